//! Finds the records that are nearest to a vector.
//!
//! A search holds the store only at its beginning and at its end: in between it works on what it took along, and writers go
//! on. A row is scored only after its digest was checked, once, and checked again if it was found, or if its score is not
//! what its companion allows: somebody may have touched the file since. If one fails, the search runs again without it: it
//! may have ruled out others. If none fails that should, the companion is wrong, and the search runs again on floats alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use roaring::RoaringBitmap;

use crate::store::live_log::LiveLog;
use crate::store::vectors::known::{KnownSpaces, Vectors};
use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::{CHUNK_ROWS, RowChunk, RowIndex};
use crate::store::vectors::rows::check::is_row;
use crate::store::vectors::rows::companions::CHUNK_GROUPS;
use crate::store::vectors::rows::filter::RowFilter;
use crate::store::vectors::rows::space_cache::{Ready, SpaceCache};
use chronolog::error::{At, Error, Result};
use chronomemory_search::vector::{Cpu, Gate, Groups, RowDoubt, RowHit, RowSearch, VectorRows, search};
use chronomemory_state::condition::Condition;
use chronomemory_state::state::{Query, State, unspelled};

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct VectorQuestion<'a> {
    /// The space, or the one that is asked when none is named.
    pub space: Option<&'a str>,
    /// How many records are wanted for each vector.
    pub k: usize,
    /// Which records count.
    pub query: Query,
    /// Only these records, if given.
    pub among: Option<&'a [String]>,
    /// The least score that counts.
    pub min_score: Option<f32>,
    /// What must hold for a record besides.
    pub condition: Option<&'a Condition>,
}

/// A record that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// The record.
    pub id: String,
    /// The reference score of its row.
    pub score: f32,
    /// Its row.
    pub row: u32,
}

/// A search that runs without the store.
pub struct VectorSearch {
    pub(in crate::store) cache: Arc<SpaceCache>,
    pub(in crate::store) chunks: Arc<Vec<Arc<RowChunk>>>,
    pub(in crate::store) rows: u32,
    pub(in crate::store) rows_by_slot: Arc<Vec<u32>>,
    pub(in crate::store) filter: Arc<RowFilter>,
    pub(in crate::store) k: usize,
    min_score: Option<f32>,
    threads: usize,
}

impl VectorSearch {
    /// Leaves the rows of those records that are allowed, asked by their slots.
    pub(in crate::store) fn keep(&mut self, allows: &dyn Fn(u32) -> bool) {
        let owner = |row: u32| self.chunks[row as usize / CHUNK_ROWS].owners[row as usize % CHUNK_ROWS];
        let left = self.filter.rows.iter().filter(|&row| allows(owner(row)));
        self.filter = Arc::new(RowFilter::of(left.collect()));
    }
}

impl Vectors {
    /// Takes along what a search needs.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub fn start_search(&self, live: LiveLog<'_>, question: &VectorQuestion<'_>) -> Result<VectorSearch> {
        if cfg!(target_endian = "big") {
            // Rows are searched where they lie, and they lie there little-endian.
            return Err(Error::Unsupported {
                what: "vectors cannot be searched on a big-endian machine".to_owned(),
                recovery: "Search this store on a little-endian machine; its records can be read here.",
            });
        }
        let mut known = self.known(live.state);
        let index = known.find(question.space)?;
        let bound = index.bound.clone();
        let cache = self.cache_of(&mut known, &bound);
        let KnownSpaces { spaces, filters, .. } = &mut *known;
        let index = &spaces.spaces[&bound.name];
        let mut filter = filters.rows_for(live, index, &question.query)?;
        if let Some(ids) = question.among {
            let rows = ids.iter().filter_map(|id| index.row_of(live.state.slot_of(id)?));
            filter = Arc::new(RowFilter::of(rows.filter(|row| filter.rows.contains(*row)).collect()));
        }
        Ok(VectorSearch {
            cache,
            chunks: Arc::clone(&index.chunks),
            rows: index.rows,
            rows_by_slot: Arc::clone(&index.current),
            filter,
            k: question.k,
            min_score: question.min_score,
            threads: self.threads,
        })
    }

    /// What is kept of a space in memory.
    pub(in crate::store) fn cache_of(&self, known: &mut KnownSpaces, bound: &Bound) -> Arc<SpaceCache> {
        let kept = known.caches.get(&bound.name).filter(|cache| cache.bound == *bound);
        let cache = kept.map_or_else(
            || Arc::new(SpaceCache::new(&self.site.disk, &self.site.layout, bound)),
            Arc::clone,
        );
        known.caches.insert(bound.name.clone(), Arc::clone(&cache));
        cache
    }

    /// Gives rows the names of their records; `None` if the log was read anew meanwhile, or the rows moved.
    pub fn end_search(
        &self,
        state: &State,
        search: &VectorSearch,
        found: &[Vec<RowHit>],
    ) -> Option<Vec<Vec<Neighbour>>> {
        if !self.has_rows_of(state, search) {
            return None;
        }
        let name = |hit: &RowHit| {
            let chunk = &search.chunks[hit.row as usize / CHUNK_ROWS];
            let owner = chunk.owners[hit.row as usize % CHUNK_ROWS];
            Neighbour {
                id: unspelled(state.spelled_id(owner)),
                score: hit.score,
                row: hit.row,
            }
        };
        Some(found.iter().map(|hits| hits.iter().map(name).collect()).collect())
    }

    /// Whether the rows of a search are still those of its space.
    pub(in crate::store) fn has_rows_of(&self, state: &State, search: &VectorSearch) -> bool {
        let known = self.known(state);
        let bound = &search.cache.bound;
        let is_kept = |cache: &Arc<SpaceCache>| Arc::ptr_eq(cache, &search.cache);
        let stays = |index: &RowIndex| index.bound.generation == bound.generation;
        known.caches.get(&bound.name).is_some_and(is_kept) && known.spaces.spaces.get(&bound.name).is_some_and(stays)
    }
}

impl VectorSearch {
    /// The best rows for each vector.
    ///
    /// # Errors
    /// `Argument`, `Io`.
    pub fn run(&self, queries: &[f32], dim: usize) -> Result<Vec<Vec<RowHit>>> {
        let bound = &self.cache.bound;
        if bound.tokens > 0 {
            let reason = format!(
                "{:?} holds codes of tokens, and no vectors that could be near",
                bound.name
            );
            return Err(Error::argument("space", reason));
        }
        if dim != bound.dim {
            let need = format!("have {} components, as those of {:?} have", bound.dim, bound.name);
            return Err(Error::must("vector", need, dim));
        }
        if let Some(odd) = queries.iter().find(|value| !value.is_finite()) {
            return Err(Error::must("vector", "be finite in all components", odd));
        }
        let path = self.cache.rows_path();
        let ready = self.ready().at(&path)?;
        let mut failed = ready.failed();
        let mut by_floats = false;
        loop {
            let is_misled = AtomicBool::new(false);
            let codes = if by_floats { Vec::new() } else { ready.codes() };
            let found = self.search(&ready, &codes, queries, &failed, &is_misled)?;
            for hit in found.iter().flatten() {
                self.check_again(&ready, hit.row);
            }
            let now = ready.failed();
            by_floats |= is_misled.into_inner();
            if now.len() == failed.len() && (codes.is_empty() || !by_floats) {
                return Ok(found);
            }
            failed = now;
        }
    }

    /// Whether rows were found damaged so far.
    pub(in crate::store) fn is_damaged(&self) -> bool {
        self.cache.is_damaged()
    }

    /// Whether a row is still what the log says.
    pub(in crate::store) fn check_again(&self, ready: &Ready, row: u32) -> bool {
        let (number, place) = (row as usize / CHUNK_ROWS, row as usize % CHUNK_ROWS);
        let digest = &self.chunks[number].digests[place];
        let is_good = is_row(ready.rows.bytes(), row, &self.cache.bound, digest);
        if !is_good {
            ready.marks[number].fail(place);
        }
        is_good
    }

    /// The rows, mapped, and what is known of them.
    pub(in crate::store) fn ready(&self) -> std::io::Result<Ready> {
        self.cache.ready(&self.chunks, self.rows, self.threads)
    }

    fn search(
        &self,
        ready: &Ready,
        codes: &[&[u8]],
        queries: &[f32],
        failed: &RoaringBitmap,
        is_misled: &AtomicBool,
    ) -> Result<Vec<Vec<RowHit>>> {
        let bound = &self.cache.bound;
        let misfit = |fault: chronomemory_search::vector::VectorMisfit| Error::argument("vector", fault);
        let bytes = &ready.rows.bytes()[..ready.count * 4 * bound.dim];
        let floats = floats(bytes).map_err(|fault| Error::argument("rows", fault))?;
        let rows = VectorRows::new(floats, bound.dim, bound.dim, ready.count).map_err(misfit)?;
        let companion = Groups::in_chunks(codes, CHUNK_GROUPS, bound.dim).map_err(misfit)?;
        let queries = VectorRows::packed(queries, bound.dim).map_err(misfit)?;
        let admit = |row: u32| {
            let (number, place) = (row as usize / CHUNK_ROWS, row as usize % CHUNK_ROWS);
            let check = || is_row(bytes, row, bound, &self.chunks[number].digests[place]);
            ready.marks[number].admit(place, check)
        };
        let doubt = |row: u32| {
            if self.check_again(ready, row) {
                is_misled.store(true, Ordering::Relaxed);
            }
        };
        let less;
        let (filter, masks) = if failed.is_empty() {
            // Without codes there is nothing to mask, and masks are kept.
            let is_masked = !self.filter.is_all && !codes.is_empty();
            let masks = is_masked.then(|| self.filter.masks(companion.count()));
            ((!self.filter.is_all).then_some(&self.filter.rows), masks)
        } else {
            less = &self.filter.rows - failed;
            (Some(&less), None)
        };
        let asked = RowSearch {
            k: self.k,
            filter,
            masks,
            gate: Some(Gate(&admit)),
            doubt: Some(RowDoubt(&doubt)),
            min_score: self.min_score,
            threads: self.threads,
            cpu: Cpu::best(),
        };
        search(rows, companion, queries, &asked).map_err(misfit)
    }
}

/// Bytes as the floats they are. Both disks begin on a multiple of eight bytes; no bytes begin nowhere.
pub(in crate::store) fn floats(bytes: &[u8]) -> std::result::Result<&[f32], bytemuck::PodCastError> {
    if bytes.is_empty() {
        return Ok(&[]);
    }
    bytemuck::try_cast_slice(bytes)
}
