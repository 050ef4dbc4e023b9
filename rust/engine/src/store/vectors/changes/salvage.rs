//! Saves rows that their space has left behind because a line of its move is damaged.
//!
//! A compaction moves a space by one batch of lines. If one of them is damaged, none counts, and the groups of before stay
//! as they were, while others have written to the new file since. Their rows are nobody's embedding then, and `verify`
//! tells of them. Repair takes along what is certain: the highest row of a record that had none since, unless it was taken
//! back, and only from above the last row whose group is lost, for that may have been a later one.
//!
//! If a space has a record of its own for the new generation, it was no move that was lost but the line that dropped it:
//! then nothing comes along.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::write::rows_not_to_touch;
use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::format::{Bound, shown, write_empty, write_groups, write_space};
use crate::store::vectors::records::index::RowIndex;
use crate::store::vectors::records::read::RowGroup;
use crate::store::vectors::rows::check::{is_of_this_file, is_row, map_rows, row_bytes};
use chronolog::digest::Hex;
use chronolog::disk::Mapping;
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::Draft;
use chronolog::log::{Log, Site};
use chronomemory_state::state::State;

/// A row that may come along.
struct FoundRow {
    /// Its generation, and which row it was.
    was: (u64, u32),
    id: Vec<u8>,
    digest: [u8; 32],
    is_gone: bool,
}

/// What one space has left behind.
struct SpaceLeft {
    bound: Bound,
    comes_along: bool,
    /// Where rows may be put.
    first: u32,
    /// The groups that named them.
    groups: Vec<u32>,
    /// The highest row of each record that had none since, by slot.
    rows: BTreeMap<u32, FoundRow>,
    /// Rows that are named, of each generation.
    named: BTreeMap<u64, RoaringBitmap>,
}

/// What all spaces have left behind.
pub(in crate::store) struct Salvage {
    site: Arc<Site>,
    /// Damaged lines may have named rows that nothing names now.
    is_log_damaged: bool,
    spaces: BTreeMap<String, SpaceLeft>,
    files: HashMap<(String, u64), Mapping>,
}

impl Salvage {
    /// Nothing so far.
    pub fn of(site: &Arc<Site>, is_log_damaged: bool) -> Self {
        Self {
            site: Arc::clone(site),
            is_log_damaged,
            spaces: BTreeMap::new(),
            files: HashMap::new(),
        }
    }

    /// Whether no group was left behind.
    pub(in crate::store) fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    /// Whether a group was left behind; then it is looked through.
    pub(in crate::store) fn takes(&mut self, state: &State, index: &RowIndex, group: &RowGroup<'_>) -> Result<bool> {
        if group.generation >= index.bound.generation || group.ids.is_empty() {
            return Ok(false);
        }
        let old = index.bound.at(group.generation);
        let key = (group.space.clone(), group.generation);
        if let Entry::Vacant(place) = self.files.entry(key) {
            let path = self.site.layout.rows(&old.name, old.generation);
            place.insert(map_rows(&*self.site.disk, &self.site.layout, &old, u64::MAX).at(&path)?);
        }
        let first =
            index
                .rows
                .max(index.reserved())
                .max(rows_not_to_touch(&self.site, self.is_log_damaged, &index.bound)?);
        let space = self.spaces.entry(group.space.clone()).or_insert_with(|| SpaceLeft {
            bound: index.bound.clone(),
            comes_along: index.is_implied && !index.bound.model.is_empty(),
            first,
            groups: Vec::new(),
            rows: BTreeMap::new(),
            named: BTreeMap::new(),
        });
        space.groups.push(group.row);
        let end = group.row + group.ids.len() as u32;
        space
            .named
            .entry(group.generation)
            .or_default()
            .insert_range(group.row..end);
        for ((row, id), digest) in (group.row..).zip(&group.ids).zip(&group.digests) {
            let owner = state.slot_spelled(id).filter(|owner| index.ever_of(*owner).is_none());
            let was = (group.generation, row);
            let Some(owner) = owner.filter(|owner| space.rows.get(owner).is_none_or(|found| found.was < was)) else {
                continue;
            };
            let found = FoundRow {
                was,
                id: id.to_vec(),
                digest: *digest,
                is_gone: group.gone.contains(&row),
            };
            space.rows.insert(owner, found);
        }
        Ok(true)
    }

    /// The rows of a space that come along: whose, their digests, their bytes.
    fn certain<'a>(&'a self, space: &'a SpaceLeft) -> Vec<(&'a [u8], Hex, &'a [u8])> {
        let file_of = |generation: u64| self.files.get(&(space.bound.name.clone(), generation));
        // Only the latest generation, and in it only rows above the last one that nobody names.
        let Some((latest, named)) = space.named.last_key_value() else {
            return Vec::new();
        };
        let there = file_of(*latest).map_or(0, |file| file.bytes().len() as u64 / space.bound.stride());
        let is_named = |row: &u64| u32::try_from(*row).is_ok_and(|row| named.contains(row));
        let hole = (0..there).rev().find(|row| !is_named(row));
        let is_certain =
            |(generation, row): (u64, u32)| generation == *latest && hole.is_none_or(|hole| u64::from(row) > hole);
        let living = space.rows.values().filter(|found| space.comes_along && !found.is_gone);
        let mut certain = Vec::new();
        for found in living {
            let old = space.bound.at(found.was.0);
            let rows = file_of(found.was.0).map(Mapping::bytes).unwrap_or_default();
            let is_right = is_row(rows, found.was.1, &old, &found.digest) && is_certain(found.was);
            if let Some(bytes) = row_bytes(rows, found.was.1, &old).filter(|_| is_right) {
                certain.push((&found.id[..], Hex::spell(&found.digest), bytes));
            }
        }
        certain
    }

    /// The embeddings that do not come along though their records have no others, one sentence each.
    pub(in crate::store) fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        for space in self.spaces.values().filter(|space| space.comes_along) {
            let certain: BTreeSet<&[u8]> = self.certain(space).iter().map(|(id, _, _)| *id).collect();
            let left = space.rows.values().filter(|found| !found.is_gone);
            let left = left.filter(|found| !certain.contains(&found.id[..]));
            lost.extend(left.map(|found| named(&found.id, &space.bound.name, true)));
        }
        lost
    }

    /// Puts what is certain behind the other rows, durably, and says so in a draft. A space whose own file cannot be
    /// written is left as it is.
    pub(in crate::store) fn bring(
        &self,
        vectors: &mut Vectors,
        log: &mut Log,
        depth: i64,
        draft: &mut Draft,
    ) -> Result<()> {
        for space in self.spaces.values() {
            let bound = &space.bound;
            let certain = self.certain(space);
            if !certain.is_empty() {
                let path = self.site.layout.rows(&bound.name, bound.generation);
                let file = match vectors.rows_file(log, bound) {
                    Err(Error::Io { source, .. }) if is_of_this_file(&source) => continue,
                    opened => opened?,
                };
                for (row, (_, _, bytes)) in (u64::from(space.first)..).zip(&certain) {
                    file.write_at(bytes, row * bound.stride()).at(&path)?;
                }
                let synced = file.sync();
                log.hear(synced, &path)?;
            }
            for group in &space.groups {
                write_empty(draft, &bound.name, *group)?;
            }
            if space.comes_along {
                write_space(draft, bound, depth)?;
            }
            let rows: Vec<(&[u8], &Hex)> = certain.iter().map(|(id, digest, _)| (*id, digest)).collect();
            write_groups(draft, bound, space.first, &rows, depth)?;
        }
        Ok(())
    }
}

/// How a report names an embedding that is lost.
pub(in crate::store) fn named(id: &[u8], space: &str, is_living: bool) -> String {
    let which = if is_living { "the" } else { "an earlier" };
    format!("{which} embedding of {:?} in space {space:?}", shown(id))
}
