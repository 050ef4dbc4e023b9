//! Finds the records that are nearest to a vector, alone or among those that words and tokens find.
//!
//! A search holds the store only at its beginning and at its end. A row is scored only after it was checked once: by its SHA-256, or by the
//! XXH3 that it had when that was checked. It is checked again if it was found: the file may have changed since. If a check fails, the
//! search runs again without the row, which may have excluded others. If the score of a row is not what its codes allow, its SHA-256
//! is checked; if the row is right, its codes are wrong and their file is dropped. The search runs again then, as it does if a page of a file
//! of codes fails its check.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roaring::RoaringBitmap;

use crate::store::history::lines::LiveLog;
use crate::store::vectors::known::{KnownSpaces, Vectors};
use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::{CHUNK_ROWS, RowChunk, RowIndex};
use crate::store::vectors::rows::check::row_bytes;
use crate::store::vectors::rows::filter::{FEW_SEEN, RowFilter};
use crate::store::vectors::rows::space_cache::{Ready, SpaceCache};
use chronolog::error::{At, Error, Result};
use chronolog::scope::Viewer;
use chronomemory_search::score::Coded;
use chronomemory_search::text;
use chronomemory_search::vector::score::Scorer;
use chronomemory_search::vector::tokens::TokenQuery;
use chronomemory_search::vector::{
    CodePart, Codes, Cpu, Gate, RowDoubt, RowHit, RowSearch, TokenQuestion, VectorRows, search,
};
use chronomemory_state::condition::Condition;
use chronomemory_state::state::{Changes, Query, State, Watermark, unspelled};

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
                id: unspelled(&state.spelled_id(owner)),
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
        let mut ready = self.ready().at(&path)?;
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
            let (is_misled, has_failed) = (is_misled.into_inner(), ready.has_failed_files());
            if !is_misled && !has_failed && now.len() == failed.len() {
                return Ok(found);
            }
            // Codes that were made anew and mislead as well are not asked again.
            by_floats |= is_misled && !has_failed;
            ready = self.ready().at(&path)?;
            failed = ready.failed();
        }
    }

    /// Whether rows were found damaged so far.
    pub(in crate::store) fn is_damaged(&self) -> bool {
        self.cache.is_damaged()
    }

    /// Whether a row is still what the log says.
    pub(in crate::store) fn check_again(&self, ready: &Ready, row: u32) -> bool {
        ready.check_again(&self.cache.bound, &self.chunks, row)
    }

    /// The rows, mapped, and what is known of them.
    pub(in crate::store) fn ready(&self) -> std::io::Result<Ready> {
        self.cache.ready(&self.chunks, self.rows, self.threads)
    }

    fn search(
        &self,
        ready: &Ready,
        codes: &[CodePart<'_>],
        queries: &[f32],
        failed: &RoaringBitmap,
        is_misled: &AtomicBool,
    ) -> Result<Vec<Vec<RowHit>>> {
        let bound = &self.cache.bound;
        let misfit = |fault: chronomemory_search::vector::VectorMisfit| Error::argument("vector", fault);
        let bytes = &ready.rows.bytes()[..ready.count * 4 * bound.dim];
        let floats = floats(bytes).map_err(|fault| Error::argument("rows", fault))?;
        let rows = VectorRows::new(floats, bound.dim, bound.dim, ready.count).map_err(misfit)?;
        let codes = Codes::new(codes, bound.dim).map_err(misfit)?;
        let queries = VectorRows::packed(queries, bound.dim).map_err(misfit)?;
        let admit = |row: u32| ready.admits(bound, &self.chunks, row);
        let doubt = |row: u32| {
            if ready.doubt(bound, &self.chunks, row) {
                is_misled.store(true, Ordering::Relaxed);
            }
        };
        let less;
        let (filter, masks) = if failed.is_empty() {
            // Without codes there is nothing to mask, and masks are kept.
            let is_masked = !self.filter.is_all && codes.count() > 0;
            let masks = is_masked.then(|| self.filter.masks(codes.count()));
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
        search(rows, codes, queries, &asked).map_err(misfit)
    }
}

/// Bytes as the floats they are. Both disks begin on a multiple of eight bytes; no bytes begin nowhere.
pub(in crate::store) fn floats(bytes: &[u8]) -> std::result::Result<&[f32], bytemuck::PodCastError> {
    if bytes.is_empty() {
        return Ok(&[]);
    }
    bytemuck::try_cast_slice(bytes)
}

impl Vectors {
    /// Whether the tokens of a question can be compared with a space; nobody minds if there is none of that name.
    ///
    /// # Errors
    /// `Argument` if they cannot.
    pub fn check_tokens(&self, state: &State, tokens: &TokenQuestion) -> Result<()> {
        let known = self.known(state);
        let index = known.spaces.spaces.get(tokens.space());
        index.map_or(Ok(()), |index| check(tokens, &index.bound))
    }
}

fn check(asked: &TokenQuestion, bound: &Bound) -> Result<()> {
    let Bound { name, tokens, .. } = bound;
    if *tokens == 0 {
        return Err(Error::argument(
            "token_space",
            format!("{name:?} holds vectors, no codes of tokens"),
        ));
    }
    if asked.dim != *tokens {
        let need = format!("have {tokens} components, as those of {name:?} had");
        return Err(Error::must("query_tokens", need, asked.dim));
    }
    if asked.vectors.is_empty() {
        return Err(Error::must("query_tokens", "have at least one row", 0));
    }
    match asked.vectors.iter().find(|value| !value.is_finite()) {
        Some(odd) => Err(Error::must("query_tokens", "be finite in all components", odd)),
        None => Ok(()),
    }
}

/// The rows of codes of a search.
pub(in crate::store) struct TokenSearch {
    nearby: Nearby,
    ready: Ready,
    query: TokenQuery,
}

impl Nearby {
    /// Goes on with the tokens of a question.
    ///
    /// # Errors
    /// `Argument` for vectors of another dimension or that are not finite, and for a space of vectors; `Io`.
    pub fn ask_tokens(self, tokens: &TokenQuestion) -> Result<TokenSearch> {
        let search = self.search();
        check(tokens, &search.cache.bound)?;
        let ready = search.ready().at(&search.cache.rows_path())?;
        Ok(TokenSearch {
            query: TokenQuery::new(&tokens.vectors, tokens.dim, Cpu::best()),
            nearby: self,
            ready,
        })
    }
}

impl TokenSearch {
    /// The rows that it was made of.
    pub fn nearby(&self) -> &Nearby {
        &self.nearby
    }

    /// The slots of all records that may be found, unless these are more.
    pub fn few(&self, most: usize) -> Option<Vec<u32>> {
        let search = self.nearby.search();
        let owner = |row: u32| search.chunks[row as usize / CHUNK_ROWS].owners[row as usize % CHUNK_ROWS];
        let rows = &search.filter.rows;
        (rows.len() <= most as u64).then(|| rows.iter().map(owner).collect())
    }

    /// Whether the codes of a record are still what the log says.
    pub fn check_again(&self, slot: u32) -> bool {
        self.nearby.is_still_right(&self.ready, slot)
    }
}

impl Coded for TokenSearch {
    fn asked(&self) -> usize {
        self.query.len()
    }

    fn products(&self, slot: u32, products: &mut Vec<i32>) -> bool {
        let bound = &self.nearby.search().cache.bound;
        let row = self.nearby.believed(&self.ready, slot);
        let Some(bytes) = row.and_then(|row| row_bytes(self.ready.rows.bytes(), row, bound)) else {
            return false;
        };
        self.query.best(bytes, products);
        true
    }
}

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
        ready.admits(&search.cache.bound, &search.chunks, row).then_some(row)
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
