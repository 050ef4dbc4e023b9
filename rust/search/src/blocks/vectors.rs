//! The vectors of blocks, by the slots of their records.

use roaring::RoaringBitmap;

use super::columns::BlockColumns;
use crate::vector::Cpu;
use crate::vector::score::Scorer;
use chronolog::error::Result;

/// The limits of a search for the blocks nearest to a vector.
#[derive(Clone, Copy, Debug)]
pub struct BlockReach {
    /// The greatest number of results.
    pub number: usize,
    /// The least cosine of a result.
    pub least: f32,
}

/// A space of vectors, one for each record that has one.
pub trait BlockVectors {
    /// The vector of the record in a slot, if it has one that passed its check.
    fn vector(&self, slot: u32) -> Option<&[f32]>;

    /// The `number` nearest records in these slots with their cosines, and all with the same cosine as the last.
    ///
    /// # Errors
    /// `Argument` for a query of another dimension or that is not finite, `Io`.
    fn nearest(&self, query: &[f32], number: usize, slots: RoaringBitmap) -> Result<Vec<(u32, f64)>>;
}

/// A vector that blocks are compared with one by one.
pub(super) struct Comparison<'a> {
    columns: &'a BlockColumns,
    vectors: &'a dyn BlockVectors,
    scorer: Scorer,
}

impl<'a> Comparison<'a> {
    /// Compares with a query.
    pub fn with(columns: &'a BlockColumns, vectors: &'a dyn BlockVectors, query: &[f32]) -> Self {
        let scorer = Scorer::new(query, Cpu::best());
        Self {
            columns,
            vectors,
            scorer,
        }
    }

    /// Compares with the vector of a block.
    pub fn with_row(columns: &'a BlockColumns, vectors: &'a dyn BlockVectors, row: u32) -> Option<Self> {
        let vector = vectors.vector(columns.slot_of(row)?)?;
        Some(Self::with(columns, vectors, vector))
    }

    /// Whether a block has a vector.
    pub fn has(&self, row: u32) -> bool {
        let slot = self.columns.slot_of(row);
        slot.is_some_and(|slot| self.vectors.vector(slot).is_some())
    }

    /// The cosine of a block, if it has a vector.
    pub fn cosine(&self, row: u32) -> Option<f64> {
        let vector = self.vectors.vector(self.columns.slot_of(row)?)?;
        Some(f64::from(self.scorer.score(vector).clamp(-1.0, 1.0)))
    }
}
