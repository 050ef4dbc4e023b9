//! Which rows of each group does a filter keep?

use roaring::RoaringBitmap;

use super::groups::GROUP_ROWS;

/// A filter, sixteen rows to a word. Whoever asks with the same filter again and again makes it once.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    masks: Vec<u16>,
    /// How many groups have a row left.
    touched: usize,
}

impl Masks {
    /// The masks of the first groups.
    #[must_use]
    pub fn of(filter: &RoaringBitmap, groups: usize) -> Self {
        let mut masks = vec![0u16; groups];
        let mut touched = 0;
        for row in filter.range(0..(groups * GROUP_ROWS) as u32) {
            let mask = &mut masks[row as usize / GROUP_ROWS];
            touched += usize::from(*mask == 0);
            *mask |= 1 << (row as usize % GROUP_ROWS);
        }
        Self { masks, touched }
    }

    /// How many groups have one.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.masks.len()
    }

    pub(super) fn words(&self) -> &[u16] {
        &self.masks
    }

    pub(super) fn touched(&self) -> usize {
        self.touched
    }
}
