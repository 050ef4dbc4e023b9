//! Rows of floats in memory, checked to fit each other.

use thiserror::Error;

/// The largest dimension: sums of products of codes stay within 32 bits, twice over.
pub const LARGEST_DIM: usize = 65_536;

/// Why rows, codes and queries cannot be compared.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorMisfit {
    /// No vector has this many components.
    #[error("a dimension of {0} is not within 1 to {LARGEST_DIM}")]
    Dimension(usize),
    /// Vectors of one dimension were held against vectors of another.
    #[error("the vectors have dimension {found}, not {expected}")]
    OtherDimension {
        /// What was expected.
        expected: usize,
        /// What came.
        found: usize,
    },
    /// The memory does not hold what was said about it.
    #[error("{found} values are too few or too many, expected {expected}")]
    Length {
        /// How many values there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// More rows than a bitmap can name.
    #[error("{0} rows are more than 2^32 - 1")]
    TooManyRows(usize),
    /// There is no memory for what would make a search fast.
    #[error("there is not enough memory")]
    Memory,
}

/// A matrix of float32 in memory, row after row.
#[derive(Clone, Copy, Debug)]
pub struct VectorRows<'a> {
    data: &'a [f32],
    dim: usize,
    count: u32,
}

impl<'a> VectorRows<'a> {
    /// Rows end to end, all of `data`.
    ///
    /// # Errors
    /// If the dimension is refused, or `data` ends inside a row.
    pub fn packed(data: &'a [f32], dim: usize) -> Result<Self, VectorMisfit> {
        let count = data.len() / checked_dim(dim)?;
        if count * dim != data.len() {
            return Err(VectorMisfit::Length {
                expected: count * dim,
                found: data.len(),
            });
        }
        Ok(Self {
            data,
            dim,
            count: u32::try_from(count).map_err(|_| VectorMisfit::TooManyRows(count))?,
        })
    }

    /// At most so many of the rows from one on.
    #[must_use]
    pub fn part(&self, first: usize, most: usize) -> Self {
        let first = first.min(self.count as usize);
        Self {
            data: &self.data[first * self.dim..],
            count: (self.count - first as u32).min(most as u32),
            ..*self
        }
    }

    /// How many components a row has.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many rows there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// One row; rows are numbered from 0 to [`Self::count`].
    #[must_use]
    pub fn row(&self, row: u32) -> &'a [f32] {
        let start = row as usize * self.dim;
        &self.data[start..start + self.dim]
    }
}

/// The dimension, if vectors may have it. Errors: If they may not.
pub(super) fn checked_dim(dim: usize) -> Result<usize, VectorMisfit> {
    if (1..=LARGEST_DIM).contains(&dim) {
        Ok(dim)
    } else {
        Err(VectorMisfit::Dimension(dim))
    }
}
