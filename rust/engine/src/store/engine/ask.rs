//! The reading methods of the engine: records, history, searches and recalls.

use std::borrow::Cow;
use std::sync::PoisonError;

use super::Engine;
use crate::store::erasure::erase::erasures;
use crate::store::{self, Moment, Neighbour, RecordSearch, SearchHit, Shared, Store, VectorQuestion, View};
use chronolog::error::{Error, Result};
use chronolog::event::Op;
use chronolog::event::faces::{ERASURES, VECTORS, face_of};
use chronolog::event::line::{Event, Trust};
use chronolog::scope::{Carried, Viewer, carried};
use chronomemory_search::blocks::{Ask, BlockAnswer, BlockColumns, BlockReach, BlockView, Census};
use chronomemory_state::condition::Condition;
use chronomemory_state::state::{Frozen, Listing, Query};

/// So often a look at the past is repeated after a compaction removed files.
const MOST_LOOKS: u32 = 8;

/// What is known now.
impl Engine {
    /// The canonical record of an id, if the viewer sees it.
    pub fn get(&self, viewer: &Viewer, id: &str) -> Result<Option<Vec<u8>>> {
        self.read(|store| Ok(store.state.dated(viewer, id).map(|one| one.record.into_owned())))
    }

    /// The canonical records that a query asks for.
    pub fn query(&self, query: &Query) -> Result<Vec<Vec<u8>>> {
        self.read(|store| Ok(query.records(&store.state)?.into_iter().map(Cow::into_owned).collect()))
    }

    /// The records of a listing for which a condition holds, unaffected by later writes.
    pub fn freeze(&self, listing: &Listing, condition: Option<&Condition>) -> Result<Frozen> {
        self.change(|store, _| {
            store.refresh()?;
            store.clock.tell(&mut store.state, &|| self.moment());
            store.freeze(listing, condition)
        })
    }

    /// How many records a query would find.
    pub fn count(&self, query: &Query) -> Result<u64> {
        self.read(|store| Ok(query.count(&store.state)))
    }

    /// The lines of all events of a record that a viewer sees, archives included, by the scope of the record then.
    pub fn history(&self, viewer: &Viewer, id: &str) -> Result<Vec<Vec<u8>>> {
        self.read_past(|store| {
            let lines = store.past().of_record(id)?;
            // Records about embeddings and erasures name records of any scope.
            if matches!(face_of(id.as_bytes()), Some(ERASURES | VECTORS))
                && !store.state.sight(viewer).is_of_all_scopes()
            {
                return Ok(Vec::new());
            }
            let scope = match (store.state.get(id), store.log.report.damage.is_empty()) {
                (Some(now), _) => Carried::of(&now),
                (None, true) => Carried::shared(),
                // The line with its scope may be lost.
                (None, false) => Carried::Malformed,
            };
            Ok(seen_lines(viewer, scope, lines))
        })
    }

    /// The ids of a viewer's own records that have expired at a moment, in the order of expiry; by default now.
    pub fn due(&self, viewer: &Viewer, now: Option<i64>) -> Result<Vec<String>> {
        self.read(|store| Ok(store.state.due_at(viewer, now.unwrap_or_else(|| self.moment()))))
    }

    /// The store as it was at a moment.
    pub fn as_of(&self, moment: Moment) -> Result<View> {
        self.read_past(|store| store.past().as_of(moment))
    }

    /// The lines of the live log from a seq on.
    pub fn replay(&self, from_seq: u64) -> Result<Vec<Vec<u8>>> {
        self.read_past(|store| store.past().replay(from_seq))
    }

    /// The ids of the records that events from a seq on are about and that a viewer sees, those of faces too if wanted.
    pub fn changed_since(&self, viewer: &Viewer, seq: u64, faces: bool) -> Result<Vec<String>> {
        self.read_past(|store| {
            let mut changed = store.past().changed_since(seq, faces)?;
            if !store.state.sight(viewer).is_all() {
                changed.retain(|id| store.state.seen(viewer, id).is_some());
            }
            Ok(changed)
        })
    }

    /// Whether the event with this seq is the one with this hash.
    pub fn has_event(&self, seq: u64, hash: &str) -> Result<bool> {
        self.read_past(|store| store.past().has_event(seq, hash))
    }

    /// Asks again if a compaction elsewhere removed the files meanwhile: what is missing then is no damage.
    fn read_past<T>(&self, ask: impl Fn(&Store) -> Result<T>) -> Result<T> {
        for _ in 1..MOST_LOOKS {
            match self.read(&ask) {
                Err(Error::Corrupted(_) | Error::HistoryUnavailable { .. })
                    if self.store.read_guard().is_behind()? => {}
                outcome => return outcome,
            }
        }
        self.read(ask)
    }
}

/// Searches; other calls do not wait for them.
impl Engine {
    /// The best records for a search, as of every write before it.
    ///
    /// # Errors
    /// `Argument` if there is nothing to search for or the vector does not fit; `NoSpace`.
    pub fn search(&self, search: &RecordSearch) -> Result<Vec<SearchHit>> {
        self.find(|shared| store::search(shared, search))
    }

    /// Answers a question about blocks, by meaning and by words.
    pub fn recall(&self, ask: &Ask) -> Result<BlockAnswer> {
        self.find(|shared| store::recall(shared, ask))
    }

    /// Runs a search that may leave work to the worker, such as sealing an index.
    fn find<T>(&self, search: impl FnOnce(&Shared) -> Result<T>) -> Result<T> {
        self.check_caller()?;
        self.store.tell_time(&|| self.moment());
        let found = search(&self.store);
        self.worker.tell(self.store.due_work(self.host.now()));
        found
    }

    /// Shows the columns that recalls of blocks use, and what a viewer sees of them, as of now, without keeping the store.
    pub fn blocks<T>(&self, viewer: &Viewer, ask: impl FnOnce(&BlockColumns, &BlockView) -> T) -> Result<T> {
        let look = |store: &Store| Ok((store.blocks()?, BlockView::of(&store.state, viewer)));
        let (columns, view) = self.read(look)?;
        let columns = columns.read().unwrap_or_else(PoisonError::into_inner);
        Ok(ask(&columns, &view))
    }

    /// Counts the links of blocks that a viewer sees, and the blocks in sessions.
    pub fn census(&self, viewer: &Viewer) -> Result<Census> {
        let sessions = self.read(|store: &Store| Ok(store.state.scopes().in_sessions(viewer)))?;
        self.blocks(viewer, |columns, view| columns.census(&view.sight, &sessions))
    }

    /// For each of several vectors, which lie end to end, the active blocks of at least this cosine, the nearest first.
    pub fn nearest_blocks(
        &self,
        viewer: &Viewer,
        space: &str,
        vectors: &[f32],
        dim: usize,
        reach: BlockReach,
    ) -> Result<Vec<Vec<(String, f32)>>> {
        self.find(|shared| store::nearest_blocks(shared, viewer, space, vectors, dim, reach))
    }

    /// The records nearest to each of these vectors, which lie end to end: score descending, then row ascending.
    ///
    /// # Errors
    /// `NoSpace`, `Argument` for vectors of another dimension or that are not finite.
    pub fn nearest(&self, question: &VectorQuestion<'_>, queries: &[f32], dim: usize) -> Result<Vec<Vec<Neighbour>>> {
        self.find(|shared| shared.nearest(question, queries, dim))
    }

    /// The bytes of a record's embedding, little-endian float32.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupted` if its row is damaged.
    pub fn embedding(&self, viewer: &Viewer, space: Option<&str>, id: &str) -> Result<Option<Vec<u8>>> {
        self.find(|shared| shared.embedding(viewer, space, id))
    }
}

/// The lines of a record that a viewer sees. `scope` is that of the first lines, if they name none.
fn seen_lines(viewer: &Viewer, mut scope: Carried, lines: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut seen = |line: &Vec<u8>| {
        if let Ok(event) = Event::read(line, Trust::Hashes) {
            let record = event.record(line);
            match event.op {
                Op::Upsert | Op::Migrate => scope = Carried::of(record),
                Op::Patch if carried(record).is_some() => scope = Carried::of(record),
                _ => {}
            }
        }
        viewer.sees(&scope).is_some()
    };
    lines.into_iter().filter(|line| seen(line)).collect()
}

/// A reader of many records looks for erasures of other processes after so many.
const RECORDS_BETWEEN_LOOKS: usize = 64;

/// What was read from a store at some moment is good until something is erased.
pub struct Unchanged {
    engine: Engine,
    erasures: usize,
}

impl Engine {
    /// What is read from now on, as long as nothing is erased.
    pub fn unchanged(&self) -> Result<Unchanged> {
        Ok(Unchanged {
            engine: self.on_terms(self.terms),
            erasures: self.read(|store| Ok(erasures(&store.state)))?,
        })
    }
}

impl Unchanged {
    /// Fails if something was erased since the read, here or elsewhere. A closed store is not asked.
    ///
    /// # Errors
    /// `HistoryUnavailable` with this seq.
    pub fn check(&self, seq: u64) -> Result<()> {
        self.check_known(seq, true)
    }

    /// The same after so many of many records: erasures of other processes are looked for now and then.
    pub fn check_on_the_way(&self, records: usize) -> Result<()> {
        self.check_known(0, records.is_multiple_of(RECORDS_BETWEEN_LOOKS))
    }

    fn check_known(&self, seq: u64, follows: bool) -> Result<()> {
        let now = match follows {
            true => self.engine.read(|store| Ok(erasures(&store.state))),
            false => self
                .engine
                .check_caller()
                .map(|()| erasures(&self.engine.store.read_guard().state)),
        };
        match now {
            Ok(now) if now != self.erasures => Err(Error::HistoryUnavailable {
                first_seq: seq,
                reason: "records were erased since this was read; ask for it again".to_owned(),
            }),
            Ok(_) | Err(Error::Closed) => Ok(()),
            Err(fault) => Err(fault),
        }
    }
}
