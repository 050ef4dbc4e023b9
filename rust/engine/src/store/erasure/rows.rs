//! Moves embeddings to a new file without the rows of records that are erased.
//!
//! The others are copied into the file of the next generation, which nobody names before the new log does. So until that takes
//! its place nothing has happened to anybody's embedding.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chronolog::disk::Access;
use chronolog::error::{At, Result};
use chronolog::event::draft::Draft;
use chronolog::log::Site;
use chronomemory_state::state::State;

use super::chosen::Chosen;
use crate::store::Store;
use crate::store::upkeep::compact_rows::Moving;
use crate::store::vectors::Vectors;
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

/// The rows of a store, and whose of them are to leave their files.
pub(super) struct Leaving<'a> {
    site: &'a Arc<Site>,
    state: &'a State,
    vectors: &'a Vectors,
    chosen: &'a Chosen,
    depth: i64,
}

impl<'a> Leaving<'a> {
    /// Those of records that were chosen.
    pub fn of(store: &'a Store, chosen: &'a Chosen) -> Self {
        Self {
            site: &store.site,
            state: &store.state,
            vectors: &store.vectors,
            chosen,
            depth: store.options.recursion_depth,
        }
    }

    /// Whether a row is of a record that goes; that of one that stays goes too unless it is its embedding now.
    fn is_row_of(&self, index: &RowIndex, row: u32) -> bool {
        let owner = index.owner_of(row).map(|owner| self.state.spelled_id(owner));
        owner.is_some_and(|id| self.chosen.doomed.has(id) && !(self.chosen.stays(id) && index.is_living(row)))
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

    fn must_move(&self, index: &RowIndex) -> Result<bool> {
        Ok((0..index.rows).any(|row| self.is_row_of(index, row)) || self.has_nobodys_rows(index)?)
    }

    /// Under the lock: the spaces that have to move, with the rows that stay.
    pub fn start(&self) -> Result<Vec<Moving>> {
        let mut moving = Vec::new();
        for index in self.vectors.known(self.state).spaces.spaces.values() {
            if self.must_move(index)? {
                let stays = |row: u32| !self.is_row_of(index, row);
                moving.push(Moving::start(self.site, false, index, &[], stays)?);
            }
        }
        Ok(moving)
    }

    /// Under the lock: the rows that stay have left every file that holds others. Most were copied before.
    pub fn end(&self, moving: Vec<Moving>) -> Result<MovedSpaces> {
        let mut moved = MovedSpaces::default();
        let mut moving: BTreeMap<String, Moving> = moving
            .into_iter()
            .map(|space| (space.name().to_owned(), space))
            .collect();
        for index in self.vectors.known(self.state).spaces.spaces.values() {
            let stays = |row: u32| !self.is_row_of(index, row);
            let draft = match moving.remove(&index.bound.name) {
                Some(space) => space.end(self.state, index, self.depth, stays)?,
                None => None,
            };
            let draft = match draft {
                None if self.must_move(index)? => {
                    // It is not the one that was copied, or nobody knew that it has to move.
                    let space = Moving::start(self.site, false, index, &[], stays)?;
                    space.end(self.state, index, self.depth, stays)?
                }
                draft => draft,
            };
            if let Some(draft) = draft {
                moved.names.insert(index.bound.name.clone());
                moved.drafts.push(draft);
                moved.files.push(format!("vectors/{}", file_name(&index.bound)));
            }
        }
        Ok(moved)
    }
}
