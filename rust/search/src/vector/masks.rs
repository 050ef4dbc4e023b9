//! Filters of rows as bit masks of groups.

use std::ops::Range;

use roaring::RoaringBitmap;

use super::codes::GROUP_ROWS;

/// Groups without a row between two that have some: so few are passed over in less time than a new run takes.
const SHORT_GAP: usize = 16;

/// A filter as bits, sixteen rows to a word. It is made once for all queries with the same filter.
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
