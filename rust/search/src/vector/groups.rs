//! The layout of codes in groups of sixteen rows.

use std::ops::Range;

use roaring::RoaringBitmap;

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

/// Groups without a row between two that have some: so few are passed over in less time than a new run takes.
const SHORT_GAP: usize = 16;

/// A filter, sixteen rows to a word. Whoever asks with the same filter again and again makes it once.
#[derive(Clone, Debug, Default)]
pub struct RowMasks {
    /// Those from the first group that has a row left to the last one: who keeps little does not hold what others have.
    masks: Vec<u16>,
    first: usize,
    /// How many groups were asked.
    groups: usize,
    /// How many groups have a row left.
    touched: usize,
    /// Where they are, short gaps included: who keeps little does not walk through what others have.
    runs: Vec<Range<usize>>,
}

impl RowMasks {
    /// The masks of the first groups.
    #[must_use]
    pub fn of(filter: &RoaringBitmap, groups: usize) -> Self {
        let asked = 0..(groups * GROUP_ROWS) as u32;
        let mut ends = filter.range(asked.clone());
        let first = ends.next().map_or(0, |row| row as usize / GROUP_ROWS);
        let last = ends.next_back().map_or(first, |row| row as usize / GROUP_ROWS);
        let mut masks = vec![0u16; last + 1 - first];
        let mut touched = 0;
        let mut runs: Vec<Range<usize>> = Vec::new();
        for row in filter.range(asked) {
            let group = row as usize / GROUP_ROWS;
            let mask = &mut masks[group - first];
            if *mask == 0 {
                touched += 1;
                match runs.last_mut() {
                    Some(run) if group <= run.end + SHORT_GAP => run.end = group + 1,
                    _ => runs.push(group..group + 1),
                }
            }
            *mask |= 1 << (row as usize % GROUP_ROWS);
        }
        Self {
            masks,
            first,
            groups,
            touched,
            runs,
        }
    }

    /// How many groups have one.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// The masks of groups within a run.
    pub(super) fn within(&self, groups: Range<usize>) -> &[u16] {
        &self.masks[groups.start - self.first..groups.end - self.first]
    }

    pub(super) fn touched(&self) -> usize {
        self.touched
    }

    /// Where groups with a row are, in order.
    pub(super) fn runs(&self) -> &[Range<usize>] {
        &self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_hold_every_touched_group_and_no_long_gap() {
        let rows = [3u32, 16, 17, 40, 16 * 30, 16 * 200, 16 * 201 + 15, 16 * 500];
        let masks = RowMasks::of(&rows.into_iter().collect(), 400);
        assert_eq!(masks.touched(), 6);
        assert_eq!(masks.runs(), [0..3, 30..31, 200..202]);
        assert_eq!(masks.within(201..202), [1 << 15]);
        assert_eq!(masks.groups(), 400);
        let few = RowMasks::of(&[16 * 200 + 1, 16 * 203].into_iter().collect(), 400);
        assert_eq!(few.within(200..204), [2, 0, 0, 1]);
        assert!(RowMasks::of(&RoaringBitmap::new(), 400).runs().is_empty());
    }
}
