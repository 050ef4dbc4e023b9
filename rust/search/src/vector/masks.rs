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
    pub(super) groups: usize,
    /// How many groups have a row left.
    pub(super) touched: usize,
    /// Where they are, short gaps included: who keeps little does not walk through what others have.
    pub(super) runs: Vec<Range<usize>>,
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

    /// The masks of groups within a run.
    pub(super) fn within(&self, groups: Range<usize>) -> &[u16] {
        &self.masks[groups.start - self.first..groups.end - self.first]
    }
}
