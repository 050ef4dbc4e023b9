//! Sets of slots by key, in the order of keys, that follow the state.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::state::{Row, State, Watermark};

/// Keys between two others.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Keys, each with the slots that have it: however many these are, it is known at once.
#[derive(Debug, Default)]
pub struct Postings {
    mark: Watermark,
    sorted: BTreeMap<Arc<[u8]>, RoaringBitmap>,
    /// What a slot has among the keys.
    by_slot: HashMap<u32, Vec<Arc<[u8]>>>,
}

impl Postings {
    /// Whether the state has gone on.
    pub fn is_behind(&self, state: &State) -> bool {
        self.mark.is_behind(state.changes())
    }

    /// How many records it has to look at before it knows the state.
    pub fn lacks(&self, state: &State) -> usize {
        let changes = state.changes().since(&self.mark);
        changes.map_or_else(|| state.slot_count(), <[u32]>::len)
    }

    /// Takes in what changed in the state; `keys` says what a record has.
    pub fn follow(&mut self, state: &State, keys: impl Fn(&Row<'_>) -> Vec<Vec<u8>>) {
        match state.changes().since(&self.mark) {
            Some(slots) => {
                for &slot in slots {
                    self.forget(slot);
                    self.take(state, slot, &keys);
                }
            }
            None => {
                (self.sorted, self.by_slot) = Default::default();
                for slot in 0..state.slot_count() as u32 {
                    self.take(state, slot, &keys);
                }
            }
        }
        self.mark = state.changes().watermark();
    }

    fn forget(&mut self, slot: u32) {
        for key in self.by_slot.remove(&slot).into_iter().flatten() {
            if let Some(slots) = self.sorted.get_mut(&key) {
                slots.remove(slot);
                if slots.is_empty() {
                    self.sorted.remove(&key);
                }
            }
        }
    }

    fn take(&mut self, state: &State, slot: u32, keys: impl Fn(&Row<'_>) -> Vec<Vec<u8>>) {
        let Some(row) = state.row(slot) else { return };
        let mut own = Vec::new();
        for key in keys(&row) {
            // One copy of a key serves all who have it.
            let known = self.sorted.get_key_value(&key[..]).map(|(known, _)| Arc::clone(known));
            let key = known.unwrap_or_else(|| Arc::from(key));
            self.sorted.entry(Arc::clone(&key)).or_default().insert(slot);
            own.push(key);
        }
        if !own.is_empty() {
            self.by_slot.insert(slot, own);
        }
    }

    /// The sets of slots between two keys.
    fn between(&self, (from, until): &KeyRange) -> impl Iterator<Item = &RoaringBitmap> {
        let is_empty = match (from, until) {
            (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(until)) => from >= until,
            (Bound::Included(from), Bound::Included(until)) => from > until,
            _ => true,
        };
        let bytes = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|bytes| Arc::from(&bytes[..]));
        let range = (!is_empty).then(|| self.sorted.range::<Arc<[u8]>, _>((bytes(from), bytes(until))));
        range.into_iter().flatten().map(|(_, slots)| slots)
    }

    /// How many slots stand in some ranges, one in several of them counted for each; `None` if it is `most` or more, or takes
    /// more than so many keys to tell.
    pub fn count_below(&self, ranges: &[KeyRange], most: u64, most_keys: usize) -> Option<u64> {
        let (mut count, mut keys) = (0, 0);
        for slots in ranges.iter().flat_map(|range| self.between(range)) {
            count += slots.len();
            keys += 1;
            if count >= most || keys > most_keys {
                return None;
            }
        }
        (count < most).then_some(count)
    }

    /// The slots that stand in some ranges.
    pub fn slots(&self, ranges: &[KeyRange]) -> RoaringBitmap {
        let mut found = RoaringBitmap::new();
        for slots in ranges.iter().flat_map(|range| self.between(range)) {
            found |= slots;
        }
        found
    }
}
