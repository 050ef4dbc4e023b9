//! One index that a face declared: records of a kind by the values of its fields, in their order.
//!
//! It follows the state when it is asked, so a store that nobody asks pays nothing. A lookup costs what it returns, and the
//! logarithm of what there is.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::key::{spell, spell_missing};
use crate::state::{Row, State, Watermark};
use chronolog::event::faces::FaceIndex;
use chronolog::json::{elements, members};
use chronolog::scope::Viewer;

/// What is looked up.
#[derive(Clone, Copy, Debug)]
pub struct IndexLookup<'a> {
    /// Who asks.
    pub viewer: &'a Viewer,
    /// One canonical value for each field that the index is by.
    pub key: &'a [Vec<u8>],
    /// Begins behind this one.
    pub after: Option<&'a After>,
    /// At most so many.
    pub limit: usize,
    /// The last first.
    pub reverse: bool,
}

/// The place of a record in an index. It needs not be there any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// What it was ordered by, as canonical JSON; `None` if it had no such field, or null there.
    pub then: Option<Vec<u8>>,
    /// Its id.
    pub id: String,
}

/// The entries of an index.
#[derive(Debug)]
pub struct OrderedIndex {
    index: &'static FaceIndex,
    mark: Watermark,
    entries: BTreeSet<Arc<[u8]>>,
    /// What a slot has among the entries.
    by_slot: HashMap<u32, Vec<Arc<[u8]>>>,
}

/// How a slot ends an entry.
const SLOT_BYTES: usize = 4;

impl OrderedIndex {
    /// An index that knows nothing yet.
    pub fn new(index: &'static FaceIndex) -> Self {
        Self {
            index,
            mark: Watermark::default(),
            entries: BTreeSet::new(),
            by_slot: HashMap::new(),
        }
    }

    /// Whether the state has gone on.
    pub fn is_behind(&self, state: &State) -> bool {
        self.mark.is_behind(state.changes())
    }

    /// How many records it has to look at before it knows the state.
    pub fn lacks(&self, state: &State) -> usize {
        let changes = state.changes().since(&self.mark);
        changes.map_or_else(|| state.faces_len(), <[u32]>::len)
    }

    /// Takes in what changed in the state.
    pub fn follow(&mut self, state: &State) {
        match state.changes().since(&self.mark) {
            Some(slots) => {
                for &slot in slots {
                    self.forget(slot);
                    if let Some(row) = state.row(slot) {
                        self.take(&row);
                    }
                }
            }
            None => {
                (self.entries, self.by_slot) = Default::default();
                for slot in 0..state.slot_count() as u32 {
                    if let Some(row) = state.row(slot) {
                        self.take(&row);
                    }
                }
            }
        }
        self.mark = state.changes().watermark();
    }

    /// The slots that are looked up, in order.
    pub fn find(&self, state: &State, lookup: &IndexLookup<'_>) -> Vec<u32> {
        let mut from = Vec::new();
        for value in lookup.key {
            spell(value, &mut from);
        }
        // No spelling begins with this byte.
        let until = [&from[..], &[u8::MAX, u8::MAX]].concat();
        let (mut start, mut end) = (Bound::Included(from.clone()), Bound::Excluded(until));
        if let Some(after) = lookup.after {
            let place = Bound::Excluded(self.place(state, from, after, lookup.reverse));
            match lookup.reverse {
                false => start = place,
                true => end = place,
            }
        }
        let is_empty = match (&start, &end) {
            (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(until)) => from >= until,
            _ => true,
        };
        if is_empty {
            return Vec::new();
        }
        let bytes = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|bytes| Arc::from(&bytes[..]));
        let range = self.entries.range::<Arc<[u8]>, _>((bytes(&start), bytes(&end)));
        let sight = state.sight(lookup.viewer);
        let is_seen = |slot: &u32| sight.sees(state.scope_in(*slot));
        match lookup.reverse {
            false => range.map(slot_of).filter(is_seen).take(lookup.limit).collect(),
            true => range.rev().map(slot_of).filter(is_seen).take(lookup.limit).collect(),
        }
    }

    /// The fields that it is by, and what it orders.
    pub fn declared(&self) -> &'static FaceIndex {
        self.index
    }

    /// Whether it has the record in a slot.
    pub fn has(&self, slot: u32) -> bool {
        self.by_slot.contains_key(&slot)
    }

    /// Every slot that it has, in no order.
    pub fn slots(&self) -> impl Iterator<Item = u32> {
        self.by_slot.keys().copied()
    }

    /// The slots under one canonical value of the first field, in order, whoever sees them.
    pub fn under(&self, value: &[u8]) -> impl Iterator<Item = u32> {
        let mut from = Vec::new();
        spell(value, &mut from);
        // No spelling begins with this byte.
        let until = [&from[..], &[u8::MAX, u8::MAX]].concat();
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&until[..]));
        self.entries.range::<[u8], _>(bounds).map(slot_of)
    }

    /// The entry that a record had; where it is gone, all that were ordered alike are behind it.
    fn place(&self, state: &State, mut key: Vec<u8>, after: &After, reverse: bool) -> Vec<u8> {
        match &after.then {
            Some(then) => spell(then, &mut key),
            None => spell_missing(&mut key),
        }
        let unknown = if reverse { 0 } else { u32::MAX };
        key.extend_from_slice(&state.slot_of(&after.id).unwrap_or(unknown).to_be_bytes());
        key
    }

    fn forget(&mut self, slot: u32) {
        for entry in self.by_slot.remove(&slot).into_iter().flatten() {
            self.entries.remove(&entry);
        }
    }

    fn take(&mut self, row: &Row<'_>) {
        let status = self.index.status;
        let is_of_status = status.is_empty() || &*row.class.status == status.as_bytes();
        if row.class.face == self.index.is_plain() || &*row.class.kind != self.index.kind.as_bytes() || !is_of_status {
            return;
        }
        let mut keys = vec![Vec::new()];
        for path in self.index.by {
            let Some(value) = field(&row.record, path) else { return };
            keys = spread(&keys, value);
        }
        let then = field(&row.record, self.index.then);
        let entries: Vec<Arc<[u8]>> = keys
            .into_iter()
            .map(|mut key| {
                match then {
                    None | Some(b"null") => spell_missing(&mut key),
                    Some(value) => spell(value, &mut key),
                }
                key.extend_from_slice(&row.slot.to_be_bytes());
                Arc::from(key)
            })
            .collect();
        self.entries.extend(entries.iter().cloned());
        self.by_slot.insert(row.slot, entries);
    }
}

/// Each key with a value behind it, or with each element of an array, or with each key of an object.
fn spread(keys: &[Vec<u8>], value: &[u8]) -> Vec<Vec<u8>> {
    let values: Vec<Vec<u8>> = match value.first() {
        Some(b'[') => elements(value).map(<[u8]>::to_vec).collect(),
        Some(b'{') => members(value).map(|(key, _)| [b"\"", key, b"\""].concat()).collect(),
        _ => vec![value.to_vec()],
    };
    let with = |key: &Vec<u8>, value: &[u8]| {
        let mut key = key.clone();
        spell(value, &mut key);
        key
    };
    keys.iter()
        .flat_map(|key| values.iter().map(move |value| with(key, value)))
        .collect()
}

/// The canonical value that a path of keys leads to; `None` if there is none.
pub fn field<'a>(record: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    path.iter().try_fold(record, |value, step| {
        let member = members(value).find(|(key, _)| *key == step.as_bytes());
        member.map(|(_, value)| value)
    })
}

fn slot_of(entry: &Arc<[u8]>) -> u32 {
    let (_, slot) = entry.split_at(entry.len() - SLOT_BYTES);
    slot.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
