//! Which records of a kind have these values, in which order? One index answers that.
//!
//! It follows the state when it is asked, so a store that nobody asks pays nothing. A lookup costs what it returns, and the
//! logarithm of what there is.

use std::ops::Bound;

use super::entries::{Entries, with_slot};
use super::key::{spell, spell_missing};
use crate::event::faces::Index;
use crate::json::{elements, members};
use crate::state::{Row, State};

/// What is looked up.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
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
pub struct Ordered {
    index: &'static Index,
    entries: Entries,
}

impl Ordered {
    /// An index that knows nothing yet.
    pub fn new(index: &'static Index) -> Self {
        Self {
            index,
            entries: Entries::default(),
        }
    }

    /// Whether the state has gone on.
    pub fn is_behind(&self, state: &State) -> bool {
        self.entries.is_behind(state)
    }

    /// How many records it has to look at before it knows the state.
    pub fn lacks(&self, state: &State) -> usize {
        self.entries.lacks(state).unwrap_or_else(|| state.faces_len())
    }

    /// Takes in what changed in the state.
    pub fn follow(&mut self, state: &State) {
        let index = self.index;
        self.entries.follow(state, |row| keys_of(index, row));
    }

    /// The slots that are looked up, in order.
    pub fn find(&self, state: &State, lookup: &Lookup<'_>) -> Vec<u32> {
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
        let range = self.entries.between(&start, &end);
        match lookup.reverse {
            false => range.take(lookup.limit).collect(),
            true => range.rev().take(lookup.limit).collect(),
        }
    }

    /// The entry that a record had; where it is gone, all that were ordered alike are behind it.
    fn place(&self, state: &State, mut key: Vec<u8>, after: &After, reverse: bool) -> Vec<u8> {
        match &after.then {
            Some(then) => spell(then, &mut key),
            None => spell_missing(&mut key),
        }
        let unknown = if reverse { 0 } else { u32::MAX };
        with_slot(key, state.slot_of(&after.id).unwrap_or(unknown))
    }
}

/// What a record has among the keys of an index.
fn keys_of(index: &Index, row: &Row<'_>) -> Vec<Vec<u8>> {
    let is_of_status = index.status.is_empty() || &*row.class.status == index.status.as_bytes();
    if !row.class.face || &*row.class.kind != index.kind.as_bytes() || !is_of_status {
        return Vec::new();
    }
    let mut keys = vec![Vec::new()];
    for path in index.by {
        let Some(value) = field(row.record, path) else {
            return Vec::new();
        };
        keys = spread(&keys, value);
    }
    for key in &mut keys {
        match field(row.record, index.then) {
            None | Some(b"null") => spell_missing(key),
            Some(value) => spell(value, key),
        }
    }
    keys
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
fn field<'a>(record: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    path.iter().try_fold(record, |value, step| {
        let member = members(value).find(|(key, _)| *key == step.as_bytes());
        member.map(|(_, value)| value)
    })
}
