//! How is an index kept that knows every write before the question?
//!
//! The index lives beside the store under a lock of its own. A search asks the store what changed, takes that in, and then
//! works without the store; only for the records themselves it comes back for a moment. So a writer never waits for a search.
//! INVARIANT: nobody waits for the index while holding the store.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::moments::edge_at;
use super::past::OrDamage;
use super::rank::{Hit, Search, rank};
use super::shared::Shared;
use super::text_files::{Attached, TextFiles, attach};
use super::vectors::{Narrowed, Near, Nearby, Recent, no_past};
use super::{Store, View};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::layout::LOG;
use crate::state::{Class, Life, Row, State};
use crate::text::file::Source;
use crate::text::{CHOICE_ID, Fields, Filter, Index, Sealed, is_searched};

/// If more records changed at once, all are taken in again rather than copied out under the lock.
const MOST_CHANGES: usize = 20_000;
/// Unless that is less than this share of them.
const LARGEST_CHANGE: usize = 10;

/// The index, and how far it knows the state.
#[derive(Default)]
pub(super) struct TextDesk {
    kept: RwLock<Option<Kept>>,
    /// The same as in `kept`, for those who hold the store.
    mark: Mutex<Option<Mark>>,
    /// One makes the first index, the others wait for it.
    building: Mutex<()>,
    /// What the sealed part was made of, until it is on disk. INVARIANT: set only by those who may write `kept`.
    unsaved: Mutex<Option<Source>>,
    narrowed: Narrowed,
}

pub(super) struct Kept {
    pub(super) index: Index,
    pub(super) life: Life,
    changes: usize,
}

struct Mark {
    life: Life,
    changes: usize,
    choice: Option<Vec<u8>>,
}

/// What an index lacks.
enum Lack {
    Nothing,
    Changes(Changed),
    Everything,
}

/// Rows that changed, copied out of the state, and what the log says then.
struct Changed {
    life: Life,
    count: usize,
    rows: Vec<Copied>,
    source: Source,
}

/// A row that outlives the look at the state; without anything held if there is nothing to search any more.
pub(super) struct Copied {
    slot: u32,
    held: Option<Held>,
}

struct Held {
    id: Vec<u8>,
    record: Vec<u8>,
    class: Class,
    confidence: f64,
    seq: u64,
}

impl Copied {
    pub fn of(state: &State, slot: u32) -> Self {
        let held = state.row(slot).filter(|row| is_searched(row.id)).map(|row| Held {
            id: row.id.to_vec(),
            record: row.record.to_vec(),
            class: row.class.clone(),
            confidence: row.confidence,
            seq: row.seq,
        });
        Self { slot, held }
    }

    fn put_into(&self, index: &mut Index) {
        match &self.held {
            Some(held) => index.put(&Row {
                slot: self.slot,
                id: &held.id,
                record: &held.record,
                class: &held.class,
                confidence: held.confidence,
                seq: held.seq,
            }),
            None => index.drop_slot(self.slot),
        }
    }
}

impl TextDesk {
    /// The index, held as it is. INVARIANT: whoever holds it waits for nothing that the holder of a store may hold,
    /// unless it is the store.
    pub fn kept(&self) -> RwLockReadGuard<'_, Option<Kept>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self) -> MutexGuard<'_, Option<Mark>> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lack(&self, store: &Store) -> Lack {
        let (mark, state) = (self.mark(), &store.state);
        let changes = state.changes();
        let Some(mark) = mark.as_ref().filter(|mark| mark.life.is(changes.life())) else {
            return Lack::Everything;
        };
        if mark.changes == changes.count() {
            return Lack::Nothing;
        }
        let slots: HashSet<u32> = changes.since(mark.changes).iter().copied().collect();
        let few = MOST_CHANGES.max(state.slot_count() / LARGEST_CHANGE);
        if slots.len() > few || mark.choice.as_deref() != state.get(CHOICE_ID) {
            return Lack::Everything;
        }
        Lack::Changes(Changed {
            life: changes.life().same(),
            count: changes.count(),
            rows: slots.into_iter().map(|slot| Copied::of(state, slot)).collect(),
            source: store.text_source(),
        })
    }

    /// Takes changes in. If that is much by now, all is sealed again.
    fn take_in(&self, changed: &Changed) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.as_mut().filter(|kept| kept.life.is(&changed.life));
        let Some(kept) = kept.filter(|kept| kept.changes < changed.count) else {
            return;
        };
        changed.rows.iter().for_each(|row| row.put_into(&mut kept.index));
        kept.changes = changed.count;
        if let Some(mark) = self.mark().as_mut().filter(|mark| mark.life.is(&changed.life)) {
            mark.changes = changed.count;
        }
        if kept.index.is_ragged() {
            kept.index.seal();
            *self.unsaved() = Some(changed.source.clone());
        }
    }

    fn unsaved(&self) -> MutexGuard<'_, Option<Source>> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a sealed part on disk for others, while searches go on.
    fn save(&self, files: &TextFiles) {
        if self.unsaved().is_none() {
            return;
        }
        let kept = self.kept();
        let source = self.unsaved().take();
        if let (Some(kept), Some(source)) = (kept.as_ref(), source) {
            files.keep(&source, kept.index.sealed());
        }
    }

    /// The nearest of the records that pass; `None` if the index is no longer that of the state they were taken from.
    fn nearest(
        &self,
        mut nearby: Nearby,
        recent: &Recent,
        filter: &Filter,
        life: &Life,
        pool: usize,
    ) -> Result<Option<Near>> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = kept.as_ref().filter(|kept| kept.life.is(life)) else {
            return Ok(None);
        };
        self.narrowed
            .narrow(&mut nearby, &known.index, known.changes, filter, recent);
        // A sweep takes longer than all the rest: the index must not wait for it.
        drop(kept);
        nearby.run(pool).map(Some)
    }

    fn keep(&self, index: Index, life: Life, changes: usize, choice: Option<Vec<u8>>, unsaved: Option<Source>) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        *self.mark() = Some(Mark {
            life: life.same(),
            changes,
            choice,
        });
        *self.unsaved() = unsaved;
        self.narrowed.forget();
        *kept = Some(Kept { index, life, changes });
    }
}

impl Store {
    /// What an index of this state is made of.
    fn text_source(&self) -> Source {
        Source {
            seq: self.last_seq(),
            head: self.head(),
            choice: self.state.get(CHOICE_ID).map(<[u8]>::to_vec),
        }
    }
}

/// The best records for a search, as of every write before it.
///
/// # Errors
/// `Invalid` if there is nothing to look for or the vector does not fit, `NoSpace`, `Io`, `Closed`.
pub fn search(shared: &Shared, search: &Search) -> Result<Vec<Hit>> {
    check(search)?;
    loop {
        let desk = catch_up(shared)?;
        let (filter, life, nearby) = shared.read(|store| {
            let log = store.log.as_ref().map(|log| (&*log.file, log.walk.end));
            let filter = filter_of(search, log, &store.state)?;
            let changes = store.state.changes();
            let nearby = match search.vector.as_deref() {
                Some(vector) => {
                    let nearby = store.start_nearby(search.space.as_deref(), vector)?;
                    let recent = desk.narrowed.recent(&nearby, &filter, changes);
                    Some((nearby, recent))
                }
                None => None,
            };
            Ok((filter, changes.life().same(), nearby))
        })?;
        let near = match nearby.map(|(nearby, recent)| desk.nearest(nearby, &recent, &filter, &life, search.pool())) {
            Some(found) => match found? {
                Some(near) if shared.looking().still_has(near.nearby()) => Some(near),
                _ => continue,
            },
            None => None,
        };
        let kept = desk.kept();
        let Some(kept) = kept.as_ref().filter(|kept| kept.life.is(&life)) else {
            continue;
        };
        let ask = |look: &mut dyn FnMut(&State)| {
            let store = shared.looking();
            store.state.changes().life().is(&kept.life).then(|| look(&store.state))
        };
        if let Some(hits) = rank(&kept.index, search, &filter, near.as_ref(), &ask) {
            return Ok(hits);
        }
    }
}

/// Brings the index to where the state is.
pub(super) fn catch_up(shared: &Shared) -> Result<Arc<TextDesk>> {
    loop {
        let look = |store: &Store| Ok((Arc::clone(&store.text), TextFiles::of(store), store.text.lack(store)));
        let (desk, files, lack) = shared.read(look)?;
        match lack {
            Lack::Nothing => return Ok(desk),
            Lack::Changes(changed) => {
                desk.take_in(&changed);
                desk.save(&files);
            }
            Lack::Everything => make(shared, &desk, &files)?,
        }
    }
}

/// Makes an index where there is none: from a file, or from all records.
fn make(shared: &Shared, desk: &TextDesk, files: &TextFiles) -> Result<()> {
    let _turn = desk.building.lock().unwrap_or_else(PoisonError::into_inner);
    if !matches!(shared.read(|store| Ok(store.text.lack(store)))?, Lack::Everything) {
        return Ok(());
    }
    let found = files.newest();
    let mut store = shared.tending();
    store.refresh()?;
    store.state.watch();
    let (life, changes) = (store.state.changes().life().same(), store.state.changes().count());
    let source = store.text_source();
    let threads = store.options.threads;
    if let Some(attached) = found.and_then(|(source, sealed)| attach(&store, &source, sealed)) {
        drop(store);
        let Attached { mut index, changed } = attached;
        changed.iter().for_each(|row| row.put_into(&mut index));
        desk.keep(index, life, changes, source.choice, None);
        return Ok(());
    }
    let survey = store.state.survey();
    drop(store);
    let fields = Fields::chosen(source.choice.as_deref());
    let index = Index::new(fields.clone(), Sealed::build(&survey, &fields, threads));
    desk.keep(index, life, changes, source.choice.clone(), Some(source));
    desk.save(files);
    Ok(())
}

fn check(search: &Search) -> Result<()> {
    if search.text.is_none() && search.vector.is_none() {
        return Err(Error::Invalid {
            field: "text".to_owned(),
            reason: "a search needs a text or a vector".to_owned(),
        });
    }
    Ok(())
}

/// The filter of a search, with the events that stand for its moments.
fn filter_of(search: &Search, log: Option<(&dyn DiskFile, u64)>, state: &State) -> Result<Filter> {
    let edge = |micros: Option<i64>| match (micros, log) {
        (Some(micros), Some((file, length))) => {
            edge_at(file, length, state.timeline(), micros).map(Some).or_damage(LOG)
        }
        _ => Ok(None),
    };
    Ok(Filter {
        since: edge(search.since)?,
        until: edge(search.until.map(|micros| micros.saturating_add(1)))?,
        ..search.filter.clone()
    })
}

impl View {
    /// The best records for a search, as they were.
    ///
    /// # Errors
    /// `Invalid` if there is nothing to look for or a vector is, `Io`.
    pub fn search(&self, search: &Search) -> Result<Vec<Hit>> {
        check(search)?;
        if search.vector.is_some() {
            return Err(no_past());
        }
        let fields = || Fields::chosen(self.state.get(CHOICE_ID));
        let index = self.text.get_or_init(|| Index::of_state(fields(), &self.state));
        let log = self.log.as_ref().map(|(file, length)| (&**file, *length));
        let filter = filter_of(search, log, &self.state)?;
        let ask = |look: &mut dyn FnMut(&State)| {
            look(&self.state);
            Some(())
        };
        Ok(rank(index, search, &filter, None, &ask).unwrap_or_default())
    }
}
