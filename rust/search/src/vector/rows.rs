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

/// A matrix of float32 in memory: row `i` is the `dim` values from `i * stride` on.
#[derive(Clone, Copy, Debug)]
pub struct VectorRows<'a> {
    data: &'a [f32],
    dim: usize,
    stride: usize,
    count: u32,
}

impl<'a> VectorRows<'a> {
    /// Rows that may have a gap after each; `count` of them are looked at, whatever lies behind.
    ///
    /// # Errors
    /// If the dimension is refused, the stride is smaller than it, or the memory is too short.
    pub fn new(data: &'a [f32], dim: usize, stride: usize, count: usize) -> Result<Self, VectorMisfit> {
        let dim = checked_dim(dim)?;
        if stride < dim {
            return Err(VectorMisfit::OtherDimension {
                expected: dim,
                found: stride,
            });
        }
        let expected = match count {
            0 => Some(0),
            _ => (count - 1).checked_mul(stride).and_then(|start| start.checked_add(dim)),
        };
        match expected {
            Some(expected) if expected <= data.len() => {}
            _ => {
                return Err(VectorMisfit::Length {
                    expected: expected.unwrap_or(usize::MAX),
                    found: data.len(),
                });
            }
        }
        Ok(Self {
            data,
            dim,
            stride,
            count: u32::try_from(count).map_err(|_| VectorMisfit::TooManyRows(count))?,
        })
    }

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
        Self::new(data, dim, dim, count)
    }

    /// At most so many of the rows from one on.
    #[must_use]
    pub fn part(&self, first: usize, most: usize) -> Self {
        let first = first.min(self.count as usize);
        Self {
            data: self.data.get(first * self.stride..).unwrap_or_default(),
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
        let start = row as usize * self.stride;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused() {
        let data = [0.0; 12];
        assert_eq!(VectorRows::packed(&data, 0).err(), Some(VectorMisfit::Dimension(0)));
        assert_eq!(
            VectorRows::packed(&data, 65_537).err(),
            Some(VectorMisfit::Dimension(65_537))
        );
        assert_eq!(
            VectorRows::packed(&data, 5).err(),
            Some(VectorMisfit::Length {
                expected: 10,
                found: 12
            })
        );
        assert!(VectorRows::new(&data, 3, 2, 1).is_err());
        assert!(VectorRows::new(&data, 3, 5, 3).is_err());
        assert!(VectorRows::new(&data, 3, usize::MAX, 3).is_err());
    }

    #[test]
    fn the_last_row_needs_no_gap_behind_it() {
        let data: Vec<f32> = (0..13u8).map(f32::from).collect();
        let rows = VectorRows::new(&data, 3, 5, 3).expect("three rows");
        assert_eq!(rows.row(2), [10.0, 11.0, 12.0]);
        assert_eq!(VectorRows::packed(&[], 3).expect("no rows").count(), 0);
    }
}
