//! Searches the embeddings of blocks for those that mean something like the query.
//!
//! Embeddings in memory, one matrix for each space, with the codes that make an exact search fast. They come from
//! the files of rows, each checked against the log.

use roaring::RoaringBitmap;

use crate::vector::score::Scorer;
use crate::vector::{Codes, Cpu, MemoryCodes, RowHit, RowSearch, VectorRows, search};

/// No block, or no vector.
const NONE: u32 = u32::MAX;

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub struct BlockReach {
    /// So many blocks at most.
    pub number: usize,
    /// The least cosine that counts.
    pub least: f32,
}

/// All embeddings.
#[derive(Default)]
pub struct BlockEmbeddings {
    spaces: Vec<EmbeddingSpace>,
}

/// The embeddings of one space.
struct EmbeddingSpace {
    name: String,
    dim: usize,
    data: Vec<f32>,
    codes: MemoryCodes,
    /// Which block a vector belongs to; none if the block has another one now.
    block_of: Vec<u32>,
    /// And back.
    vector_of: Vec<u32>,
    living: usize,
}

impl EmbeddingSpace {
    fn new(name: &str, dim: usize) -> Self {
        Self {
            name: name.to_owned(),
            dim,
            data: Vec::new(),
            codes: MemoryCodes::default(),
            block_of: Vec::new(),
            vector_of: Vec::new(),
            living: 0,
        }
    }

    fn forget(&mut self, row: u32) {
        if let Some(vector) = self.vector_of.get_mut(row as usize)
            && *vector != NONE
        {
            self.block_of[*vector as usize] = NONE;
            *vector = NONE;
            self.living -= 1;
        }
    }

    fn search(&self, rows: VectorRows<'_>, queries: VectorRows<'_>, asked: &RowSearch<'_>) -> Vec<Vec<RowHit>> {
        let parts = self.codes.parts();
        let codes = Codes::new(&parts, self.dim);
        codes
            .and_then(|codes| search(rows, codes, queries, asked))
            .unwrap_or_default()
    }

    fn vector(&self, row: u32) -> Option<&[f32]> {
        let vector = *self.vector_of.get(row as usize).filter(|&&vector| vector != NONE)? as usize;
        self.data.get(vector * self.dim..(vector + 1) * self.dim)
    }
}

impl BlockEmbeddings {
    /// Says what a block means in a space now; no vector takes its meaning away.
    pub fn set(&mut self, row: u32, name: &str, vector: Option<&[f32]>) {
        let at = match (self.spaces.iter().position(|space| space.name == name), vector) {
            (Some(at), _) => at,
            (None, Some(vector)) => {
                self.spaces.push(EmbeddingSpace::new(name, vector.len()));
                self.spaces.len() - 1
            }
            (None, None) => return,
        };
        let space = &mut self.spaces[at];
        if vector.is_some() && space.vector(row) == vector {
            return;
        }
        space.forget(row);
        let Some(vector) = vector.filter(|vector| vector.len() == space.dim) else {
            return;
        };
        if space.vector_of.len() <= row as usize {
            space.vector_of.resize(row as usize + 1, NONE);
        }
        space.vector_of[row as usize] = space.block_of.len() as u32;
        space.block_of.push(row);
        space.data.extend_from_slice(vector);
        space.living += 1;
    }

    /// Adds the codes of what was added.
    pub fn settle(&mut self, threads: usize) {
        for space in &mut self.spaces {
            if let Ok(rows) = VectorRows::packed(&space.data, space.dim) {
                // Without memory for codes, rows are scored from their floats.
                let _ = space.codes.extend(rows, threads, Cpu::best());
            }
        }
    }

    /// The embeddings that a query can be held against.
    fn space(&self, name: &str, dim: usize) -> Option<&EmbeddingSpace> {
        self.spaces.iter().find(|space| space.name == name && space.dim == dim)
    }

    /// A space, its rows and these queries, if it can be searched for them.
    fn searched<'a>(
        &'a self,
        name: &str,
        queries: &'a [f32],
        dim: usize,
    ) -> Option<(&'a EmbeddingSpace, [VectorRows<'a>; 2])> {
        let space = self.space(name, dim)?;
        let rows = [
            VectorRows::packed(&space.data, dim).ok()?,
            VectorRows::packed(queries, dim).ok()?,
        ];
        Some((space, rows))
    }

    /// Whether a block can be held against a query.
    pub fn reaches(&self, name: &str, query: &[f32], row: u32) -> bool {
        self.space(name, query.len())
            .is_some_and(|space| space.vector(row).is_some())
    }

    /// The `number` blocks of greatest cosine among those that `wanted` accepts, and all that equal the last of them.
    pub fn nearest(
        &self,
        name: &str,
        query: &[f32],
        number: usize,
        wanted: impl Fn(u32) -> bool,
        threads: usize,
    ) -> Vec<(u32, f32)> {
        let Some((space, [rows, queries])) = self.searched(name, query, query.len()) else {
            return Vec::new();
        };
        let passes = |&vector: &u32| {
            let row = space.block_of[vector as usize];
            row != NONE && wanted(row)
        };
        let all = 0..space.block_of.len() as u32;
        let filter = match all.clone().all(|vector| passes(&vector)) {
            true => None,
            false => RoaringBitmap::from_sorted_iter(all.filter(passes)).ok(),
        };
        let mut asked = RowSearch {
            filter: filter.as_ref(),
            threads,
            ..RowSearch::best(number + 1)
        };
        let ask = |asked: &RowSearch<'_>| {
            let found = space.search(rows, queries, asked);
            found.into_iter().next().unwrap_or_default()
        };
        let mut hits = ask(&asked);
        if hits.len() > number && hits[number - 1].score == hits[number].score {
            // Which of those that are alike come first is not for rows to say.
            asked.min_score = Some(hits[number].score);
            asked.k = space.living;
            hits = ask(&asked);
        } else {
            hits.truncate(number);
        }
        hits.iter()
            .map(|&RowHit { row, score }| (space.block_of[row as usize], clamped(score)))
            .collect()
    }

    /// The same of these blocks, all of them that can be compared, in their order.
    pub fn compared(&self, name: &str, query: &[f32], rows: &[u32]) -> Vec<(u32, f32)> {
        let Some(query) = self.held_against(name, query) else {
            return Vec::new();
        };
        rows.iter().filter_map(|&row| Some((row, query.cosine(row)?))).collect()
    }

    /// For each of several queries, end to end, those of these blocks that are within reach, the nearest first.
    pub fn near_each_of(
        &self,
        name: &str,
        queries: &[f32],
        dim: usize,
        reach: BlockReach,
        rows: &[u32],
    ) -> Vec<Vec<(u32, f32)>> {
        let space = self.space(name, dim);
        let age = |row: u32| space.and_then(|space| space.vector_of.get(row as usize));
        let near = |query: &[f32]| {
            let mut found = self.compared(name, query, rows);
            found.retain(|(_, cosine)| *cosine >= reach.least);
            // As a search of all does: the nearest first, of those that are alike the one that was embedded first.
            found.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| age(one.0).cmp(&age(other.0))));
            found.truncate(reach.number);
            found
        };
        queries.chunks(dim.max(1)).map(near).collect()
    }

    /// For each of several queries, end to end, the blocks within reach, the nearest first.
    pub fn near_each(
        &self,
        name: &str,
        queries: &[f32],
        dim: usize,
        reach: BlockReach,
        wanted: impl Fn(u32) -> bool,
        threads: usize,
    ) -> Vec<Vec<(u32, f32)>> {
        let Some((space, [rows, queries])) = self.searched(name, queries, dim) else {
            return vec![Vec::new(); queries.len() / dim.max(1)];
        };
        let passes = |&vector: &u32| {
            let row = space.block_of[vector as usize];
            row != NONE && wanted(row)
        };
        let filter: RoaringBitmap = (0..space.block_of.len() as u32).filter(passes).collect();
        let asked = RowSearch {
            filter: Some(&filter),
            min_score: Some(reach.least),
            threads,
            ..RowSearch::best(reach.number)
        };
        let found = space.search(rows, queries, &asked);
        let named = |hits: Vec<RowHit>| {
            hits.iter()
                .map(|hit| (space.block_of[hit.row as usize], clamped(hit.score)))
                .collect()
        };
        found.into_iter().map(named).collect()
    }

    /// A query that blocks are held against one by one; nothing where none of them can be.
    pub fn held_against(&self, name: &str, query: &[f32]) -> Option<HeldAgainst<'_>> {
        let space = self.space(name, query.len())?;
        Some(HeldAgainst {
            space,
            scorer: Scorer::new(query, Cpu::best()),
        })
    }

    /// The vector of a block in a space.
    pub fn vector(&self, name: &str, row: u32) -> Option<&[f32]> {
        let space = self.spaces.iter().find(|space| space.name == name)?;
        space.vector(row)
    }
}

/// A query that blocks are held against.
pub struct HeldAgainst<'a> {
    space: &'a EmbeddingSpace,
    scorer: Scorer,
}

impl HeldAgainst<'_> {
    /// How alike a block is to it, if it can be compared.
    pub fn cosine(&self, row: u32) -> Option<f32> {
        self.space.vector(row).map(|vector| clamped(self.scorer.score(vector)))
    }
}

fn clamped(score: f32) -> f32 {
    score.clamp(-1.0, 1.0)
}
