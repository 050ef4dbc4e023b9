//! The indexes over fields that a store declares for all of its records.
//!
//! The declarations are records, `search:index:<path>`, so all processes have the same. An index has an entry for every
//! value of its field, or for every element of an array.

use std::collections::BTreeMap;

use super::keys::KeyIndex;
use super::list::KeyList;
use crate::condition::{IndexWay, indexable};
use crate::state::{Row, State, Watermark, unspelled};
use chronolog::event::faces::SEARCH;
use chronolog::memory::Refused;

/// What the ids of the records begin with that declare an index.
pub const INDEX_PREFIX: &str = "search:index:";
/// Their kind.
pub const INDEX_KIND: &str = "search_index";
/// A store has at most so many.
pub const MAX_INDEXES: usize = 64;
/// One that was taken back is none.
const ACTIVE: &[u8] = b"active";
/// An index of one field.
#[derive(Debug)]
struct FieldIndex {
    /// The slot of the record that declares it.
    slot: u32,
    keys: KeyIndex,
}

/// The indexes that a store declares. They follow the state when they are asked.
#[derive(Debug, Default)]
pub struct FieldIndexes {
    mark: Watermark,
    by_path: BTreeMap<String, FieldIndex>,
}

impl FieldIndexes {
    /// Whether they know the state as it is, as far as these ways need them.
    pub fn are_fresh(&self, state: &State, ways: &[IndexWay<'_>]) -> bool {
        let is_fresh = |path: String| {
            let index = self.by_path.get(&path);
            index.is_none_or(|index| !index.keys.is_behind(state))
        };
        !self.mark.is_behind(state.changes()) && ways.iter().all(|way| is_fresh(way.path.to_string()))
    }

    /// Takes in what changed: what is declared, and what the indexes hold that these ways need.
    pub fn follow(&mut self, state: &State, ways: &[IndexWay<'_>]) -> Result<(), Refused> {
        if !self.mark.is_of(state.changes().state_id()) {
            self.by_path.clear();
        }
        let changed = match self.mark.is_of(state.changes().state_id()) {
            true => state.of_face_since(SEARCH, &self.mark),
            // The ids of other records of faces are not read for it.
            false => state.of_face(SEARCH, Some(&[INDEX_KIND.as_bytes()])).collect(),
        };
        for slot in changed {
            if let Some(row) = state.row(slot) {
                self.declare(&row);
            }
        }
        self.mark = state.changes().watermark();
        let lists: Vec<KeyList> = self.by_path.keys().filter_map(|path| list_of(path)).collect();
        for way in ways {
            if let Some(index) = self.by_path.get_mut(&way.path.to_string()) {
                index.keys.follow(state, &lists)?;
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
                slot: row.slot,
                keys: KeyIndex::new(KeyList::Field(place)),
            });
        }
    }

    /// The paths that are declared, the oldest first.
    pub fn declared(&self) -> Vec<String> {
        let mut paths: Vec<(u32, &String)> = self.by_path.iter().map(|(path, index)| (index.slot, path)).collect();
        paths.sort_unstable();
        paths.into_iter().map(|(_, path)| path.clone()).collect()
    }

    /// The keys of a path.
    pub(super) fn keys(&self, path: &str) -> Option<&KeyIndex> {
        self.by_path.get(path).map(|index| &index.keys)
    }
}

fn list_of(path: &str) -> Option<KeyList> {
    indexable(path).map(KeyList::Field)
}
