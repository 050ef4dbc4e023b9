//! Finds the records that are nearest to a vector, alone or among those that words and tokens find.
//!
//! A search holds the store only at its beginning and at its end. A row is scored only after it was checked once: by its SHA-256, or by the
//! XXH3 that it had when that was checked. It is checked again if it was found: the file may have changed since. If a check fails, the
//! search runs again without the row, which may have excluded others. If the score of a row is not what its codes allow, its SHA-256
//! is checked; if the row is right, its codes are wrong and their file is dropped. The search runs again then, as it does if a page of a file
//! of codes fails its check.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use roaring::RoaringBitmap;

use crate::store::vectors::known::{KnownSpaces, Vectors};
use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::{CHUNK_ROWS, NONE, RowChunk, RowIndex};
use crate::store::vectors::rows::check::row_bytes;
use crate::store::vectors::rows::filter::RowFilter;
use crate::store::vectors::rows::space_cache::{Ready, SpaceCache};
use chronolog::error::{At, Error, Result};
use chronomemory_search::blocks::BlockVectors;
use chronomemory_search::score::Coded;
use chronomemory_search::vector::score::Scorer;
use chronomemory_search::vector::tokens::TokenQuery;
use chronomemory_search::vector::{CodePart, Codes, Cpu, RowHit, RowSearch, TokenQuestion, VectorRows, search};
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

impl<'a> VectorQuestion<'a> {
    /// A question that no record is the answer to, for a search that chooses its rows later.
    pub(in crate::store) fn of_space(space: Option<&'a str>) -> Self {
        Self {
            space,
            among: Some(&[]),
            ..Self::default()
        }
    }
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
#[derive(Clone)]
pub struct VectorSearch {
    pub(in crate::store) cache: Arc<SpaceCache>,
    pub(in crate::store) chunks: Arc<Vec<Arc<RowChunk>>>,
    pub(in crate::store) rows: u32,
    rows_by_slot: Arc<Vec<u32>>,
    /// Rows that were taken back.
    gone: Arc<RoaringBitmap>,
    pub(in crate::store) filter: Arc<RowFilter>,
    pub(in crate::store) k: usize,
    min_score: Option<f32>,
    threads: usize,
}

impl VectorSearch {
    /// Leaves the rows of those records that are allowed, asked by their slots.
    pub(in crate::store) fn keep(&mut self, allows: &dyn Fn(u32) -> bool) {
        let left = self.filter.rows.iter().filter(|&row| allows(self.owner(row)));
        self.filter = Arc::new(RowFilter::among(left.collect(), self.rows));
    }

    fn owner(&self, row: u32) -> u32 {
        self.chunks[row as usize / CHUNK_ROWS].owners[row as usize % CHUNK_ROWS]
    }

    fn row_of(&self, slot: u32) -> Option<u32> {
        let row = *self.rows_by_slot.get(slot as usize)?;
        (row != NONE && !self.gone.contains(row)).then_some(row)
    }
}

impl Vectors {
    /// Takes along what a search needs.
    pub fn start_search(&self, state: &State, question: &VectorQuestion<'_>) -> Result<VectorSearch> {
        let mut known = self.known(state);
        let index = known.find(question.space)?;
        let bound = index.bound.clone();
        let cache = self.cache_of(&mut known, &bound);
        let KnownSpaces { spaces, filters, .. } = &mut *known;
        let index = &spaces.spaces[&bound.name];
        let mut filter = match question.among {
            Some([]) => Arc::default(),
            _ => filters.rows_for(state, index, &question.query),
        };
        if let Some(ids) = question.among {
            let rows = ids.iter().filter_map(|id| index.row_of(state.slots.of_id(id)?));
            let rows = rows.filter(|row| filter.rows.contains(*row)).collect();
            filter = Arc::new(RowFilter::among(rows, index.rows));
        }
        Ok(VectorSearch {
            cache,
            chunks: Arc::clone(&index.chunks),
            rows: index.rows,
            rows_by_slot: Arc::clone(&index.current),
            gone: Arc::clone(&index.gone),
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
        let name = |hit: &RowHit| Neighbour {
            id: unspelled(&state.slots.id(search.owner(hit.row))),
            score: hit.score,
            row: hit.row,
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
        let rows = VectorRows::packed(floats, bound.dim).map_err(misfit)?;
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
            gate: Some(&admit),
            doubt: Some(&doubt),
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

/// A search whose rows are mapped.
pub(in crate::store) struct OpenSpace {
    search: VectorSearch,
    ready: Ready,
}

impl VectorSearch {
    /// Maps the rows.
    ///
    /// # Errors
    /// `Io`.
    pub(in crate::store) fn open(self) -> Result<OpenSpace> {
        let ready = self.ready().at(&self.cache.rows_path())?;
        Ok(OpenSpace { search: self, ready })
    }

    /// The cosines of a vector, and the `pool` nearest rows.
    ///
    /// # Errors
    /// `Argument` for a vector of another dimension or that is not finite, `Io`.
    pub(in crate::store) fn near(mut self, vector: &[f32], pool: usize) -> Result<Near> {
        self.k = pool.min(self.rows as usize);
        let found = self.run(vector, vector.len())?;
        let best = found.iter().flatten();
        let best = best.map(|hit| (self.owner(hit.row), f64::from(hit.score))).collect();
        Ok(Near {
            best,
            scorer: Scorer::new(vector, Cpu::best()),
            space: self.open()?,
        })
    }

    /// Goes on with the tokens of a question.
    ///
    /// # Errors
    /// `Argument` for vectors of another dimension or that are not finite, and for a space of vectors; `Io`.
    pub(in crate::store) fn ask_tokens(self, tokens: &TokenQuestion) -> Result<TokenSearch> {
        check(tokens, &self.cache.bound)?;
        Ok(TokenSearch {
            query: TokenQuery::new(&tokens.vectors, tokens.dim, Cpu::best()),
            space: self.open()?,
        })
    }
}

impl OpenSpace {
    pub fn search(&self) -> &VectorSearch {
        &self.search
    }

    /// The bytes of a record's row, if it passes its check.
    fn bytes(&self, slot: u32) -> Option<&[u8]> {
        let search = &self.search;
        let row = search.row_of(slot).filter(|&row| (row as usize) < self.ready.count)?;
        let bound = &search.cache.bound;
        let is_right = self.ready.admits(bound, &search.chunks, row);
        is_right
            .then(|| row_bytes(self.ready.rows.bytes(), row, bound))
            .flatten()
    }

    /// Whether the row of a record is still what the log says.
    pub fn check_again(&self, slot: u32) -> bool {
        let row = self.search.row_of(slot);
        row.is_some_and(|row| self.search.check_again(&self.ready, row))
    }

    /// For each of several queries, end to end, the `k` nearest of the records in these slots whose cosine is at least `least`.
    ///
    /// # Errors
    /// `Argument` for queries of another dimension or that are not finite, `Io`.
    pub fn near_each(
        &self,
        queries: &[f32],
        dim: usize,
        k: usize,
        least: Option<f32>,
        slots: &RoaringBitmap,
    ) -> Result<Vec<Vec<(u32, f32)>>> {
        let rows = slots.iter().filter_map(|slot| self.search.row_of(slot)).collect();
        let search = VectorSearch {
            filter: Arc::new(RowFilter::among(rows, self.search.rows)),
            k,
            min_score: least,
            ..self.search.clone()
        };
        let owned = |hit: RowHit| (search.owner(hit.row), hit.score.clamp(-1.0, 1.0));
        let found = search.run(queries, dim)?.into_iter();
        Ok(found.map(|hits| hits.into_iter().map(owned).collect()).collect())
    }
}

impl BlockVectors for OpenSpace {
    fn vector(&self, slot: u32) -> Option<&[f32]> {
        floats(self.bytes(slot)?).ok()
    }

    fn nearest(&self, query: &[f32], number: usize, slots: RoaringBitmap) -> Result<Vec<(u32, f64)>> {
        let near = |k: usize, least: Option<f32>| {
            let found = self.near_each(query, query.len(), k, least, &slots)?;
            Ok::<_, Error>(found.into_iter().next().unwrap_or_default())
        };
        let mut found = near(number + 1, None)?;
        if found.len() > number && found[number - 1].1 == found[number].1 {
            // Which of equals come first is for the caller to decide.
            found = near(slots.len() as usize, Some(found[number].1))?;
        }
        Ok(found
            .into_iter()
            .map(|(slot, cosine)| (slot, f64::from(cosine)))
            .collect())
    }
}

/// The token codes of records, and the tokens of a question.
pub(in crate::store) struct TokenSearch {
    pub space: OpenSpace,
    query: TokenQuery,
}

impl TokenSearch {
    /// The slots of all records that may be found, unless these are more.
    pub fn few(&self, most: usize) -> Option<Vec<u32>> {
        let search = &self.space.search;
        let rows = &search.filter.rows;
        (rows.len() <= most as u64).then(|| rows.iter().map(|row| search.owner(row)).collect())
    }
}

impl Coded for TokenSearch {
    fn asked(&self) -> usize {
        self.query.len()
    }

    fn is_coded(&self, slot: u32) -> bool {
        self.space.search.row_of(slot).is_some()
    }

    fn products(&self, slot: u32, products: &mut Vec<i32>) -> bool {
        let bytes = self.space.bytes(slot);
        bytes.inspect(|bytes| self.query.best(bytes, products)).is_some()
    }
}

/// The cosines of a search.
pub(in crate::store) struct Near {
    /// The slots of the nearest records that pass, and their cosines, best first.
    pub best: Vec<(u32, f64)>,
    pub space: OpenSpace,
    scorer: Scorer,
}

impl Near {
    /// The cosine of a record, whether it is among the best or not; none without an embedding that passes its check.
    pub fn cosine(&self, slot: u32) -> Option<f64> {
        let vector = self.space.vector(slot)?;
        Some(f64::from(self.scorer.score(vector)))
    }
}

/// The error of a question that compares a vector with the past.
pub(in crate::store) fn no_past() -> Error {
    Error::argument(
        "as_of",
        "embeddings are kept as they are now, so a vector cannot be asked about the past; leave out one of the two",
    )
}
