//! How do the rows of records that are to be erased leave their files?
//!
//! The others are copied into the file of the next generation, which nobody names before the new log does. So until that takes
//! its place nothing has happened to anybody's embedding.

use std::collections::BTreeSet;

use crate::disk::Access;
use crate::error::{At, Result};
use crate::event::draft::Draft;

use super::chosen::Chosen;
use crate::store::Store;
use crate::store::upkeep::compact_rows::copy_some;
use crate::store::vectors::records::format::file_name;
use crate::store::vectors::records::index::RowIndex;

/// Spaces that have moved once the new log says so.
#[derive(Default)]
pub(super) struct MovedSpaces {
    /// Their names.
    pub names: BTreeSet<String>,
    /// What says so.
    pub drafts: Vec<Draft>,
    /// The files that are left behind, from the store's folder on.
    pub files: Vec<String>,
}

impl Store {
    /// Whether a row is of a record that goes; that of one that stays goes too unless it is its embedding now.
    fn is_row_of(&self, chosen: &Chosen, index: &RowIndex, row: u32) -> bool {
        let owner = index.owner_of(row).map(|owner| self.state.spelled_id(owner));
        owner.is_some_and(|id| chosen.doomed.has(id) && !(chosen.is_again(id) && index.is_living(row)))
    }

    /// Whether a file has rows that no group names: the line that named them was lost, so nobody knows whose they are.
    fn has_nobodys_rows(&self, index: &RowIndex) -> Result<bool> {
        if (0..index.rows).any(|row| index.owner_of(row).is_none()) {
            return Ok(true);
        }
        let path = self.site.layout.rows(&index.bound.name, index.bound.generation);
        if !self.site.disk.exists(&path) {
            return Ok(false);
        }
        let length = self.site.disk.open(&path, Access::Read).and_then(|file| file.length());
        Ok(length.at(&path)? > u64::from(index.rows) * index.bound.stride())
    }

    /// Under the lock: copies the rows that stay out of every file that holds others.
    pub(super) fn leave_rows(&self, chosen: &Chosen) -> Result<MovedSpaces> {
        let mut moved = MovedSpaces::default();
        let known = self.vectors.known(&self.state);
        for index in known.spaces.spaces.values() {
            let goes = |row: u32| self.is_row_of(chosen, index, row);
            if (0..index.rows).any(goes) || self.has_nobodys_rows(index)? {
                let depth = self.options.recursion_depth;
                let draft = copy_some(&self.site, &self.state, index, depth, |row| !goes(row))?;
                moved.names.insert(index.bound.name.clone());
                moved.drafts.push(draft);
                moved.files.push(format!("vectors/{}", file_name(&index.bound)));
            }
        }
        Ok(moved)
    }
}
