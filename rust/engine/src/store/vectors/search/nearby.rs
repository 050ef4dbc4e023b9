//! Scores the records that a text search may find by how near they are to a vector.
//!
//! The store knows whose a row is, the index of words which records pass. So a search takes the living rows along, narrows
//! them without the store, and asks for the best of those. What words or neighbours put forward is scored one by one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roaring::RoaringBitmap;

use super::query::{VectorQuestion, VectorSearch, floats};
use crate::store::live_log::LiveLog;
use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::index::CHUNK_ROWS;
use crate::store::vectors::rows::check::is_row;
use crate::store::vectors::rows::filter::{FEW_SEEN, RowFilter};
use crate::store::vectors::rows::space_cache::{Ready, SpaceCache};
use chronolog::error::{At, Error, Result};
use chronolog::scope::Viewer;
use chronomemory_search::text;
use chronomemory_search::vector::score::Scorer;
use chronomemory_search::vector::{Cpu, VectorRows};
use chronomemory_state::state::{Changes, Query, Watermark};

/// How many filters are remembered.
const MOST_NARROWED: usize = 8;
/// So many changes are followed.
const MOST_CHANGES: usize = 4096;

/// All living rows of a space, taken along for one search.
pub(in crate::store) struct Nearby {
    search: VectorSearch,
    living: Arc<RowFilter>,
    vector: Vec<f32>,
}

/// The cosines of a search.
pub(in crate::store) struct Near {
    /// The slots of the nearest records that pass, and their cosines, best first.
    pub best: Vec<(u32, f64)>,
    nearby: Nearby,
    ready: Ready,
    scorer: Scorer,
}

impl Vectors {
    /// Takes along what is needed to say how near records are.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(in crate::store) fn start_nearby(
        &self,
        live: LiveLog<'_>,
        space: Option<&str>,
        vector: &[f32],
    ) -> Result<Nearby> {
        let everyone = Query {
            min_confidence: f64::NEG_INFINITY,
            faces: true,
            viewer: Arc::new(Viewer::Everyone),
            ..Query::default()
        };
        let search = self.start_search(
            live,
            &VectorQuestion {
                space,
                query: everyone,
                ..VectorQuestion::default()
            },
        )?;
        Ok(Nearby {
            living: Arc::clone(&search.filter),
            vector: vector.to_vec(),
            search,
        })
    }
}

impl Nearby {
    /// The search that it is.
    pub fn search(&self) -> &VectorSearch {
        &self.search
    }

    /// The row of a record, if it has one that can be believed.
    pub fn believed(&self, ready: &Ready, slot: u32) -> Option<u32> {
        let Self { search, living, .. } = self;
        let row = *search.rows_by_slot.get(slot as usize)?;
        if !living.rows.contains(row) || row as usize >= ready.count {
            return None;
        }
        let bound = &search.cache.bound;
        let (number, place) = (row as usize / CHUNK_ROWS, row as usize % CHUNK_ROWS);
        let check = || is_row(ready.rows.bytes(), row, bound, &search.chunks[number].digests[place]);
        ready.marks[number].admit(place, check).then_some(row)
    }

    /// Whether the row of a record is still what the log says.
    pub fn is_still_right(&self, ready: &Ready, slot: u32) -> bool {
        let row = self.search.rows_by_slot.get(slot as usize);
        row.is_some_and(|row| self.search.check_again(ready, *row))
    }

    /// Leaves the rows of those records that are allowed, asked by their slots.
    pub fn only(mut self, allows: Option<&dyn Fn(u32) -> bool>) -> Self {
        if let Some(allows) = allows {
            self.search.keep(allows);
        }
        self
    }

    /// The nearest of the rows that are left.
    ///
    /// # Errors
    /// `Argument` for a vector of another dimension or that is not finite, `Io`.
    pub fn run(mut self, pool: usize) -> Result<Near> {
        self.search.k = pool.min(self.search.rows as usize);
        let found = self.search.run(&self.vector, self.vector.len())?;
        let owner = |row: u32| self.search.chunks[row as usize / CHUNK_ROWS].owners[row as usize % CHUNK_ROWS];
        let best = found.iter().flatten();
        let best = best.map(|hit| (owner(hit.row), f64::from(hit.score))).collect();
        let path = self.search.cache.rows_path();
        let ready = self.search.ready().at(&path)?;
        Ok(Near {
            best,
            scorer: Scorer::new(&self.vector, Cpu::best()),
            nearby: self,
            ready,
        })
    }
}

impl Near {
    /// The rows that it was made of.
    pub fn nearby(&self) -> &Nearby {
        &self.nearby
    }

    /// Whether the embedding of a record that has a cosine is still what the log says.
    pub fn check_again(&self, slot: u32) -> bool {
        self.nearby.is_still_right(&self.ready, slot)
    }

    /// The cosine of a record, whether it is among the best or not; none without an embedding that can be believed.
    pub fn cosine(&self, slot: u32) -> Option<f64> {
        let row = self.nearby.believed(&self.ready, slot)?;
        let bound = &self.nearby.search.cache.bound;
        let bytes = &self.ready.rows.bytes()[..self.ready.count * 4 * bound.dim];
        let rows = VectorRows::packed(floats(bytes).ok()?, bound.dim).ok()?;
        Some(f64::from(self.scorer.score(rows.row(row))))
    }
}

/// The rows of earlier searches. To ask every record again after each write would cost more than the search.
/// INVARIANT: all of them are of one index; when another one is made, they are forgotten.
#[derive(Default)]
pub(in crate::store) struct Narrowed(Mutex<Vec<Arc<NarrowedRows>>>);

struct NarrowedRows {
    cache: Arc<SpaceCache>,
    living: Arc<RowFilter>,
    /// How far the index knew the state.
    known: Watermark,
    wanted: text::TextFilter,
    rows: Arc<RowFilter>,
}

/// The slots that changed between two moments of a state.
#[derive(Default)]
pub(in crate::store) struct Recent {
    pub from: Watermark,
    pub until: Watermark,
    pub slots: Vec<u32>,
}

impl Narrowed {
    fn known(&self) -> MutexGuard<'_, Vec<Arc<NarrowedRows>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all.
    pub fn forget(&self) {
        self.known().clear();
    }

    fn before(&self, nearby: &Nearby, wanted: &text::TextFilter) -> Option<Arc<NarrowedRows>> {
        let is_same = |one: &&Arc<NarrowedRows>| one.is_for(&nearby.search.cache, wanted);
        self.known().iter().find(is_same).cloned()
    }

    /// What changed since this was asked before; nothing if that is too much to follow.
    pub fn recent(&self, nearby: &Nearby, wanted: &text::TextFilter, changes: &Changes) -> Recent {
        let since = |before: Arc<NarrowedRows>| {
            let slots = changes.since(&before.known)?;
            (slots.len() <= MOST_CHANGES).then(|| Recent {
                from: before.known.same(),
                until: changes.watermark(),
                slots: slots.to_vec(),
            })
        };
        self.before(nearby, wanted).and_then(since).unwrap_or_default()
    }

    /// Leaves the rows of those records that an index lets pass, which knows the state so far.
    pub fn narrow(
        &self,
        nearby: &mut Nearby,
        index: &text::TextIndex,
        known: &Watermark,
        wanted: &text::TextFilter,
        recent: &Recent,
    ) {
        let question = index.question(&[], wanted);
        let passes = |row: &u32| {
            let chunk = &nearby.search.chunks[*row as usize / CHUNK_ROWS];
            let doc = index.doc_of(chunk.owners[*row as usize % CHUNK_ROWS]);
            doc.is_some_and(|doc| question.passes(doc))
        };
        // Whoever sees little is asked by what is seen, and remembering it would push out what took longer.
        if question
            .seen_count()
            .is_some_and(|seen| seen < nearby.living.rows.len() as usize / FEW_SEEN)
        {
            let by_slot = &nearby.search.rows_by_slot;
            let rows = question.seen_slots().into_iter().flatten();
            let rows = rows.filter_map(|slot| by_slot.get(slot as usize).copied());
            let rows = rows
                .filter(|row| nearby.living.rows.contains(*row))
                .filter(passes)
                .collect();
            nearby.search.filter = Arc::new(RowFilter::of(rows));
            return;
        }
        let rows = match self.before(nearby, wanted) {
            Some(before) if before.known.is(known) && Arc::ptr_eq(&before.living, &nearby.living) => {
                nearby.search.filter = Arc::clone(&before.rows);
                return;
            }
            Some(before) if before.known.is(&recent.from) && known.is_between(&recent.from, &recent.until) => {
                let mut touched = &before.living.rows ^ &nearby.living.rows;
                let by_slot = &nearby.search.rows_by_slot;
                touched.extend(recent.slots.iter().filter_map(|slot| by_slot.get(*slot as usize)));
                let kept = &before.rows.rows - &touched;
                touched &= &nearby.living.rows;
                kept | touched.iter().filter(passes).collect::<RoaringBitmap>()
            }
            _ => nearby.living.rows.iter().filter(passes).collect(),
        };
        let mut rows = RowFilter::of(rows);
        rows.is_all = rows.rows.len() == u64::from(nearby.search.rows);
        nearby.search.filter = Arc::new(rows);
        let mut all = self.known();
        all.retain(|one| !one.is_for(&nearby.search.cache, wanted));
        if all.len() == MOST_NARROWED {
            all.remove(0);
        }
        all.push(Arc::new(NarrowedRows {
            cache: Arc::clone(&nearby.search.cache),
            living: Arc::clone(&nearby.living),
            known: known.same(),
            wanted: wanted.clone(),
            rows: Arc::clone(&nearby.search.filter),
        }));
    }
}

impl NarrowedRows {
    fn is_for(&self, cache: &Arc<SpaceCache>, wanted: &text::TextFilter) -> bool {
        Arc::ptr_eq(&self.cache, cache) && self.wanted == *wanted
    }
}

/// Says that embeddings are those of now.
pub(in crate::store) fn no_past() -> Error {
    Error::argument(
        "as_of",
        "embeddings are kept as they are now, so a vector cannot be asked about the past; leave out one of the two",
    )
}
