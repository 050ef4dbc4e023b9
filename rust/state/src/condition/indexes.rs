//! The indexes over fields that a store declares for all of its records.
//!
//! The declarations are records, `search:index:<path>`, so all processes have the same. An index has an entry for every
//! value of its field, or for every element of an array.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::narrow::IndexWay;
use super::operand::FieldValue;
use super::place::{Facts, FieldPath};
use crate::index::{KeyRange, Postings, key};
use crate::state::{Row, State, Watermark, unspelled};
use chronolog::event::faces::SEARCH;
use chronolog::json::elements;
use chronolog::memory::{self, Refused};

/// What the ids of the records begin with that declare an index.
pub const INDEX_PREFIX: &str = "search:index:";
/// A store has at most so many.
pub const MAX_INDEXES: usize = 64;
/// One that was taken back is none.
const ACTIVE: &[u8] = b"active";
/// What an index takes for a record while it is made, and more.
const ENTRY_BYTES: usize = 512;

/// An index of one field.
#[derive(Debug)]
struct FieldIndex {
    place: FieldPath,
    /// The slot of the record that declares it.
    slot: u32,
    /// By value, of all.
    of_all: Postings,
    /// By scope, then by value: what somebody sees lies in a few places, and nothing of others is counted.
    by_scope: Postings,
}

impl FieldIndex {
    fn postings(&self, is_of_all: bool) -> &Postings {
        if is_of_all { &self.of_all } else { &self.by_scope }
    }
}

/// The indexes that a store declares. They follow the state when they are asked.
#[derive(Debug, Default)]
pub struct FieldIndexes {
    mark: Watermark,
    by_path: BTreeMap<String, FieldIndex>,
}

impl FieldIndexes {
    /// Whether they know the state as it is, as far as these ways need them.
    pub fn are_fresh(&self, state: &State, ways: &[IndexWay<'_>], is_of_all: bool) -> bool {
        let is_fresh = |path: String| {
            let index = self.by_path.get(&path);
            index.is_none_or(|index| !index.postings(is_of_all).is_behind(state))
        };
        !self.mark.is_behind(state.changes()) && ways.iter().all(|way| is_fresh(way.path.to_string()))
    }

    /// Takes in what changed: what is declared, and what the indexes hold that these ways need.
    pub fn follow(&mut self, state: &State, ways: &[IndexWay<'_>], is_of_all: bool) -> Result<(), Refused> {
        if !self.mark.is_of(state.changes().state_id()) {
            self.by_path.clear();
        }
        for slot in state.of_face_since(SEARCH, &self.mark) {
            if let Some(row) = state.row(slot) {
                self.declare(&row);
            }
        }
        self.mark = state.changes().watermark();
        for way in ways {
            if let Some(index) = self.by_path.get_mut(&way.path.to_string()) {
                let lacks = index.postings(is_of_all).lacks(state);
                memory::could_have(lacks * ENTRY_BYTES)?;
                let place = &index.place;
                if is_of_all {
                    index.of_all.follow(state, |row| keys_of(place, row));
                } else {
                    index
                        .by_scope
                        .follow(state, |row| in_scope(state.scope_in(row.slot), keys_of(place, row)));
                }
            }
        }
        Ok(())
    }

    fn declare(&mut self, row: &Row<'_>) {
        let id = unspelled(row.id());
        let Some(place) = id.strip_prefix(INDEX_PREFIX).and_then(indexable) else {
            return;
        };
        let path = place.to_string();
        if *row.class.status != *ACTIVE {
            self.by_path.remove(&path);
        } else {
            self.by_path.entry(path).or_insert_with(|| FieldIndex {
                place,
                slot: row.slot,
                of_all: Postings::default(),
                by_scope: Postings::default(),
            });
        }
    }

    /// The paths that are declared, the oldest first.
    pub fn declared(&self) -> Vec<String> {
        let mut paths: Vec<(u32, &String)> = self.by_path.iter().map(|(path, index)| (index.slot, path)).collect();
        paths.sort_unstable();
        paths.into_iter().map(|(_, path)| path.clone()).collect()
    }

    /// What the index of a path holds, of all or by scope.
    pub fn postings(&self, path: &str, is_of_all: bool) -> Option<&Postings> {
        self.by_path.get(path).map(|index| index.postings(is_of_all))
    }
}

/// Ranges of values in some scopes, as an index by scope has them.
pub fn ranges_in(scopes: &[u32], ranges: &[KeyRange]) -> Vec<KeyRange> {
    let inside =
        |scope: u32, bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| [&scope.to_be_bytes()[..], key].concat());
    let each = |scope: u32| {
        ranges
            .iter()
            .map(move |(from, until)| (inside(scope, from), inside(scope, until)))
    };
    scopes.iter().flat_map(|&scope| each(scope)).collect()
}

fn in_scope(scope: u32, keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let placed = keys.into_iter().map(|key| [&scope.to_be_bytes()[..], &key].concat());
    placed.collect()
}

/// Where a path leads, if an index can be made of it: a moment beside the record stands in none.
pub fn indexable(path: &str) -> Option<FieldPath> {
    let place = FieldPath::of_text(path).ok()?;
    place.stamp().is_none().then_some(place)
}

/// What a record has in a field as bytes that sort as values do: null, booleans, numbers, text. Of an array or an object it has
/// nothing to be ordered by.
pub fn sort_key(place: &FieldPath, record: &[u8]) -> Option<Vec<u8>> {
    let held = place.find(record, &Facts::default());
    let value = held.as_ref().and_then(FieldValue::value)?;
    let mut spelled = Vec::new();
    (!matches!(value.first(), Some(b'[' | b'{'))).then(|| key::spell(value, &mut spelled))?;
    Some(spelled)
}

fn keys_of(place: &FieldPath, row: &Row<'_>) -> Vec<Vec<u8>> {
    let held = place.find(&row.record, &Facts::default());
    let Some(value) = held.as_ref().and_then(FieldValue::value) else {
        return Vec::new();
    };
    let spell = |value: &[u8]| {
        let mut out = Vec::new();
        key::spell(value, &mut out);
        out
    };
    let is_scalar = |value: &&[u8]| !matches!(value.first(), Some(b'[' | b'{'));
    let mut keys: Vec<Vec<u8>> = match value.first() {
        Some(b'[') => elements(value).filter(is_scalar).map(spell).collect(),
        Some(b'{') => Vec::new(),
        _ => vec![spell(value)],
    };
    keys.sort_unstable();
    keys.dedup();
    keys
}
