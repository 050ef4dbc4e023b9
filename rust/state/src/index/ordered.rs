//! One index that a face declared: records of a kind by the values of its fields, in their order.
//!
//! It follows the state when it is asked, so a store that nobody asks pays nothing. A lookup costs what it returns, and the
//! logarithm of what there is.

use std::ops::Bound;

use super::keys::KeyIndex;
use super::list::KeyList;
use crate::condition::KeyRange;
use crate::condition::key::{spell, spell_missing};
use crate::state::State;
use chronolog::event::faces::{FaceIndex, indexes_beside};
use chronolog::memory::Refused;
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
    /// The fields that it is by, and what it orders.
    pub(crate) declared: &'static FaceIndex,
    pub(crate) keys: KeyIndex,
}

impl OrderedIndex {
    /// An index that knows nothing yet.
    pub fn new(index: &'static FaceIndex) -> Self {
        Self {
            declared: index,
            keys: KeyIndex::new(KeyList::Face(index)),
        }
    }

    /// Takes in what changed in the state.
    ///
    /// # Errors
    /// `Refused` if there is no memory for it.
    pub fn follow(&mut self, state: &State) -> Result<(), Refused> {
        let beside: Vec<KeyList> = indexes_beside(self.declared).map(KeyList::Face).collect();
        self.keys.follow(state, &beside)
    }

    /// The slots that are looked up, in order.
    pub fn find(&self, state: &State, lookup: &IndexLookup<'_>) -> Vec<u32> {
        let (mut from, mut until) = range_of(lookup.key.iter().map(Vec::as_slice));
        let after = lookup.after.map(|after| place(state, lookup, after));
        if let Some((key, _)) = &after {
            match lookup.reverse {
                false => from = Bound::Included(key.clone()),
                true => until = Bound::Included(key.clone()),
            }
        }
        let after = after.as_ref().map(|(key, slot)| (&key[..], *slot));
        let is_behind =
            |entry: &(&[u8], u32)| after.is_none_or(|after| *entry != after && (*entry > after) != lookup.reverse);
        let sight = state.sight(lookup.viewer);
        let entries = self.keys.entries(&(from, until), lookup.reverse).filter(is_behind);
        let slots = entries.map(|(_, slot)| slot);
        let seen = slots.filter(|slot| sight.sees(state.scope_in(*slot)));
        seen.take(lookup.limit).collect()
    }

    /// The slots under one canonical value of the first field, in order, whoever sees them.
    pub fn under(&self, value: &[u8]) -> impl Iterator<Item = u32> {
        self.keys
            .entries(&range_of([value].into_iter()), false)
            .map(|(_, slot)| slot)
    }
}

/// All keys that begin with these values.
fn range_of<'a>(values: impl Iterator<Item = &'a [u8]>) -> KeyRange {
    let mut from = Vec::new();
    values.for_each(|value| spell(value, &mut from));
    // No spelling begins with this byte.
    let until = [&from[..], &[u8::MAX, u8::MAX]].concat();
    (Bound::Included(from), Bound::Excluded(until))
}

/// The entry that a record had; where it is gone, all that were ordered alike are behind it.
fn place(state: &State, lookup: &IndexLookup<'_>, after: &After) -> (Vec<u8>, u32) {
    let mut key = Vec::new();
    lookup.key.iter().for_each(|value| spell(value, &mut key));
    match &after.then {
        Some(then) => spell(then, &mut key),
        None => spell_missing(&mut key),
    }
    let unknown = if lookup.reverse { 0 } else { u32::MAX };
    (key, state.slots.of_id(&after.id).unwrap_or(unknown))
}
