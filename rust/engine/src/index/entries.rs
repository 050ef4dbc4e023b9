//! Which slots stand under which keys? Entries that sort as bytes and follow the state.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use crate::state::{Row, State, Watermark};

/// How a slot ends an entry.
const SLOT_BYTES: usize = 4;

/// Keys with the slots that have them. INVARIANT: no key is the beginning of another, so the slot of an entry is its end.
#[derive(Debug, Default)]
pub struct Entries {
    mark: Watermark,
    sorted: BTreeSet<Arc<[u8]>>,
    /// What a slot has among the entries.
    by_slot: HashMap<u32, Vec<Arc<[u8]>>>,
}

impl Entries {
    /// Whether the state has gone on.
    pub fn is_behind(&self, state: &State) -> bool {
        self.mark.is_behind(state.changes())
    }

    /// How many records changed since the last look; `None` if all have to be looked at.
    pub fn lacks(&self, state: &State) -> Option<usize> {
        state.changes().since(&self.mark).map(<[u32]>::len)
    }

    /// Takes in what changed in the state; `keys` says what a record has.
    pub fn follow(&mut self, state: &State, keys: impl Fn(&Row<'_>) -> Vec<Vec<u8>>) {
        match state.changes().since(&self.mark) {
            Some(slots) => {
                for &slot in slots {
                    self.forget(slot);
                    if let Some(row) = state.row(slot) {
                        self.take(row.slot, keys(&row));
                    }
                }
            }
            None => {
                (self.sorted, self.by_slot) = Default::default();
                for slot in 0..state.slot_count() as u32 {
                    if let Some(row) = state.row(slot) {
                        self.take(row.slot, keys(&row));
                    }
                }
            }
        }
        self.mark = state.changes().watermark();
    }

    /// The slots between two keys, in the order of keys and slots.
    pub fn between(&self, from: &Bound<Vec<u8>>, until: &Bound<Vec<u8>>) -> impl DoubleEndedIterator<Item = u32> {
        let is_empty = match (from, until) {
            (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(until)) => from >= until,
            _ => true,
        };
        let bytes = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|bytes| Arc::from(&bytes[..]));
        let range = (!is_empty).then(|| self.sorted.range::<Arc<[u8]>, _>((bytes(from), bytes(until))));
        range.into_iter().flatten().map(slot_of)
    }

    fn forget(&mut self, slot: u32) {
        for entry in self.by_slot.remove(&slot).into_iter().flatten() {
            self.sorted.remove(&entry);
        }
    }

    fn take(&mut self, slot: u32, keys: Vec<Vec<u8>>) {
        if keys.is_empty() {
            return;
        }
        let entry = |key: Vec<u8>| Arc::from(with_slot(key, slot));
        let entries: Vec<Arc<[u8]>> = keys.into_iter().map(entry).collect();
        self.sorted.extend(entries.iter().cloned());
        self.by_slot.insert(slot, entries);
    }
}

/// The entry of a slot under a key.
pub fn with_slot(mut key: Vec<u8>, slot: u32) -> Vec<u8> {
    key.extend_from_slice(&slot.to_be_bytes());
    key
}

fn slot_of(entry: &Arc<[u8]>) -> u32 {
    let (_, slot) = entry.split_at(entry.len() - SLOT_BYTES);
    slot.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
