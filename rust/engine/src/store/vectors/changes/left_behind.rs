//! Takes back groups of rows whose space has moved on because a line of its move is damaged.
//!
//! A compaction moves a space by one batch of lines. If one of them is lost, the groups of before stay as they were, while
//! others have written to the new file since. Nothing proves which of the old rows are still valid, so none is taken along:
//! the report names each record that is left without an embedding.

use std::collections::{BTreeMap, BTreeSet};

use crate::store::vectors::records::format::{Bound, shown, write_empty, write_space};
use crate::store::vectors::records::index::RowIndex;
use crate::store::vectors::records::read::RowGroup;
use chronolog::error::Result;
use chronolog::event::draft::Draft;
use chronomemory_state::state::State;

/// What one space has left behind.
struct SpaceLeft {
    bound: Bound,
    /// The space has no record of its own for the new generation.
    is_implied: bool,
    groups: Vec<u32>,
    /// The records that have no row since.
    ids: BTreeSet<Vec<u8>>,
}

/// What all spaces have left behind.
#[derive(Default)]
pub(in crate::store) struct LeftBehind {
    spaces: BTreeMap<String, SpaceLeft>,
}

impl LeftBehind {
    /// Whether no group was left behind.
    pub fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    /// Whether a group was left behind; then it is noted.
    pub fn takes(&mut self, state: &State, index: &RowIndex, group: &RowGroup<'_>) -> bool {
        if group.generation >= index.bound.generation || group.ids.is_empty() {
            return false;
        }
        let space = self.spaces.entry(group.space.clone()).or_insert_with(|| SpaceLeft {
            bound: index.bound.clone(),
            is_implied: index.is_implied && !index.bound.model.is_empty(),
            groups: Vec::new(),
            ids: BTreeSet::new(),
        });
        space.groups.push(group.row);
        let living = (group.row..)
            .zip(&group.ids)
            .filter(|(row, _)| !group.gone.contains(row));
        let has_none = |id: &[u8]| {
            state
                .slot_spelled(id)
                .is_some_and(|owner| index.ever_of(owner).is_none())
        };
        let ids = living.map(|(_, id)| id.to_vec()).filter(|id| has_none(id));
        space.ids.extend(ids);
        true
    }

    /// The embeddings that are lost with them, one sentence each.
    pub fn lost(&self) -> Vec<String> {
        let spaces = self.spaces.iter().filter(|(_, space)| space.is_implied);
        let lost = spaces.flat_map(|(name, space)| space.ids.iter().map(|id| describe_embedding(id, name, true)));
        lost.collect()
    }

    /// Writes the changes that take the groups back.
    ///
    /// # Errors
    /// `Refused` if a change cannot be spelled.
    pub fn take_back(&self, depth: i64, draft: &mut Draft) -> Result<()> {
        for space in self.spaces.values() {
            for group in &space.groups {
                write_empty(draft, &space.bound.name, *group)?;
            }
            if space.is_implied {
                write_space(draft, &space.bound, depth)?;
            }
        }
        Ok(())
    }
}

/// How a report names an embedding that is lost.
pub(in crate::store) fn describe_embedding(id: &[u8], space: &str, is_living: bool) -> String {
    let which = if is_living { "the" } else { "an earlier" };
    format!("{which} embedding of {:?} in space {space:?}", shown(id))
}
