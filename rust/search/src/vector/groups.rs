//! The layout of codes in groups of sixteen rows.

use super::rows::{VectorMisfit, checked_dim};

/// How many rows lie side by side.
pub const GROUP_ROWS: usize = 16;
/// Four components of each row of a group.
pub(super) const STEP_BYTES: usize = 4 * GROUP_ROWS;
/// Scales and rests of a group.
pub(super) const TAIL_BYTES: usize = 2 * 4 * GROUP_ROWS;

/// How many bytes a group takes.
#[must_use]
pub const fn group_bytes(dim: usize) -> usize {
    dim.div_ceil(4) * STEP_BYTES + TAIL_BYTES
}

/// Whole groups in memory, wherever they came from.
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    parts: Parts<'a>,
    dim: usize,
}

#[derive(Clone, Copy, Debug)]
enum Parts<'a> {
    Whole(&'a [u8]),
    /// Equal numbers of groups in each but the last.
    Chunks(&'a [&'a [u8]], usize),
}

/// One group: codes in steps of four components, and what each row lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeGroup<'a> {
    pub(super) codes: &'a [[u8; STEP_BYTES]],
    pub(super) scales: [f32; GROUP_ROWS],
    pub(super) residuals: [f32; GROUP_ROWS],
}

impl<'a> Groups<'a> {
    /// Whole groups that are known to be such.
    pub(super) fn known(bytes: &'a [u8], dim: usize) -> Self {
        Self {
            parts: Parts::Whole(bytes),
            dim,
        }
    }

    /// Takes bytes that [`encode_groups`](super::companion::encode_groups) wrote.
    ///
    /// # Errors
    /// If the dimension is refused, or the bytes end inside a group.
    pub fn new(bytes: &'a [u8], dim: usize) -> Result<Self, VectorMisfit> {
        check_whole(bytes, dim)?;
        Ok(Self {
            parts: Parts::Whole(bytes),
            dim,
        })
    }

    /// The same in chunks of so many groups each, wherever each chunk lies. Only the last may have fewer.
    ///
    /// # Errors
    /// If the dimension is refused, or a chunk has another length.
    pub fn in_chunks(chunks: &'a [&'a [u8]], groups: usize, dim: usize) -> Result<Self, VectorMisfit> {
        let each = group_bytes(checked_dim(dim)?);
        let expected = each * groups;
        let (last, others) = chunks
            .split_last()
            .map_or((&[][..], chunks), |(last, others)| (*last, others));
        let is_last_short = last.len() < expected && last.len().is_multiple_of(each);
        let other = others.iter().find(|chunk| chunk.len() != expected);
        match other.or((last.len() != expected && !is_last_short).then_some(&last)) {
            Some(other) => Err(VectorMisfit::Length {
                expected,
                found: other.len(),
            }),
            None => Ok(Self {
                parts: Parts::Chunks(chunks, groups.max(1)),
                dim,
            }),
        }
    }

    /// How many components a row has.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many groups there are.
    #[must_use]
    pub fn count(&self) -> usize {
        match self.parts {
            Parts::Whole(bytes) => bytes.len() / group_bytes(self.dim),
            Parts::Chunks(chunks, each) => chunks.split_last().map_or(0, |(last, others)| {
                others.len() * each + last.len() / group_bytes(self.dim)
            }),
        }
    }

    #[inline(always)]
    pub(super) fn group(&self, group: usize) -> CodeGroup<'a> {
        let each = group_bytes(self.dim);
        let bytes = match self.parts {
            Parts::Whole(bytes) => &bytes[group * each..][..each],
            Parts::Chunks(chunks, groups) => &chunks[group / groups][group % groups * each..][..each],
        };
        let (codes, tail) = bytes.split_at(each - TAIL_BYTES);
        let (scales, residuals) = tail.split_at(TAIL_BYTES / 2);
        CodeGroup {
            codes: codes.as_chunks().0,
            scales: floats(scales),
            residuals: floats(residuals),
        }
    }
}

fn check_whole(bytes: &[u8], dim: usize) -> Result<(), VectorMisfit> {
    let each = group_bytes(checked_dim(dim)?);
    if bytes.len().is_multiple_of(each) {
        return Ok(());
    }
    Err(VectorMisfit::Length {
        expected: bytes.len() / each * each,
        found: bytes.len(),
    })
}

#[inline(always)]
fn floats(bytes: &[u8]) -> [f32; GROUP_ROWS] {
    let fours = bytes.as_chunks::<4>().0;
    let mut floats = [0.0; GROUP_ROWS];
    for row in 0..GROUP_ROWS {
        floats[row] = f32::from_le_bytes(fours[row]);
    }
    floats
}
