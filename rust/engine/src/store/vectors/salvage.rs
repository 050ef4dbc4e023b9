//! What becomes of rows that their space has left behind?
//!
//! A compaction moves a space by one batch of lines. If one of them is damaged, none counts, and the groups of before stay
//! as they were, while others have written to the new file since. Their rows are nobody's embedding then, and `verify`
//! tells of them. Repair takes along those that are still there, unless their record has another embedding by now.

use std::collections::{BTreeMap, HashMap};

use super::check::{is_row, map_rows, row_bytes};
use super::index::RowIndex;
use super::read::Group;
use super::words::{Bound, write_empty, write_groups, write_space};
use crate::digest::Hex;
use crate::disk::Mapping;
use crate::error::{At, Result};
use crate::event::draft::Draft;
use crate::store::Store;

/// A row that comes along.
struct Found {
    id: Vec<u8>,
    digest: Hex,
    bytes: Vec<u8>,
}

/// What one space has left behind.
struct Space {
    bound: Bound,
    is_implied: bool,
    /// Where rows may be put.
    first: u32,
    /// The groups that named them.
    groups: Vec<u32>,
    /// Those that are right, by the slots of their records.
    rows: BTreeMap<u32, Found>,
}

/// What all spaces have left behind.
#[derive(Default)]
pub(super) struct Salvage {
    spaces: BTreeMap<String, Space>,
    files: HashMap<(String, u64), Mapping>,
}

impl Salvage {
    /// Whether a group was left behind; then it is looked through. Groups are given with the latest first.
    pub(super) fn takes(&mut self, store: &Store, index: &RowIndex, group: &Group<'_>) -> Result<bool> {
        if group.generation >= index.bound.generation || group.ids.is_empty() {
            return Ok(false);
        }
        let old = Bound {
            generation: group.generation,
            ..index.bound.clone()
        };
        let key = (group.space.clone(), group.generation);
        if !self.files.contains_key(&key) {
            let path = store.layout.rows(&old.name, old.generation);
            let rows = map_rows(&*store.disk, &store.layout, &old, u64::MAX).at(&path)?;
            self.files.insert(key.clone(), rows);
        }
        let rows = self.files.get(&key).map(Mapping::bytes).unwrap_or_default();
        let first = index
            .rows
            .max(index.reserved)
            .max(store.rows_not_to_touch(&index.bound)?);
        let space = self.spaces.entry(group.space.clone()).or_insert_with(|| Space {
            bound: index.bound.clone(),
            is_implied: index.is_implied,
            first,
            groups: Vec::new(),
            rows: BTreeMap::new(),
        });
        space.groups.push(group.row);
        let living: Vec<u32> = group.living().collect();
        for row in living.into_iter().rev() {
            let place = (row - group.row) as usize;
            let (id, digest) = (&group.ids[place], &group.digests[place]);
            let owner = store
                .state
                .slot_spelled(id)
                .filter(|owner| index.row_of(*owner).is_none());
            let (Some(owner), Some(bytes)) = (owner, row_bytes(rows, row, &old)) else {
                continue;
            };
            if is_row(rows, row, &old, digest) {
                space.rows.entry(owner).or_insert_with(|| Found {
                    id: id.to_vec(),
                    digest: Hex::spell(digest),
                    bytes: bytes.to_vec(),
                });
            }
        }
        Ok(true)
    }

    /// Puts what was found behind the other rows, durably, and says so in a draft.
    pub(super) fn bring(&self, store: &mut Store, draft: &mut Draft) -> Result<()> {
        let depth = store.options.recursion_depth;
        for space in self.spaces.values() {
            let bound = &space.bound;
            for group in &space.groups {
                write_empty(draft, &bound.name, *group)?;
            }
            if space.is_implied && !bound.model.is_empty() {
                write_space(draft, bound, depth)?;
            }
            if space.rows.is_empty() {
                continue;
            }
            let path = store.layout.rows(&bound.name, bound.generation);
            let file = store.rows_file(bound)?;
            for (row, found) in (u64::from(space.first)..).zip(space.rows.values()) {
                file.write_at(&found.bytes, row * bound.stride()).at(&path)?;
            }
            let synced = file.sync();
            store.hear(synced, &path)?;
            let rows: Vec<(&[u8], &Hex)> = space
                .rows
                .values()
                .map(|found| (&found.id[..], &found.digest))
                .collect();
            write_groups(draft, bound, space.first, &rows, depth)?;
        }
        Ok(())
    }
}
