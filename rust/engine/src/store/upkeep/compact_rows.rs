//! How do the living rows leave the dead ones behind?
//!
//! They are copied into the file of the next generation, beside the writers. Then, under the lock, one batch says that the
//! space has moved: a commit like any other, so everybody who follows the log moves along. The old file is garbage from then
//! on, and removed once the log that named it is retired.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::digest::Hex;
use crate::disk::{Disk, DiskFile, PACE_BYTES};
use crate::error::{At, Result};
use crate::event::draft::Draft;
use crate::layout::{CODES_SUFFIX, Layout, ROWS_SUFFIX, is_file_of_space};
use crate::log::files::{Scratch, is_folder, is_ours};
use crate::store::Store;
use crate::store::care::Turns;
use crate::store::vectors::records::format::{
    self, Bound, GROUP_ROWS, write_empty, write_gone, write_groups, write_space,
};
use crate::store::vectors::records::index::RowIndex;
use crate::store::vectors::rows::check::{map_rows, row_bytes};

/// Rows are worth moving when more than one in so many is dead.
const DEAD_SHARE: u32 = 4;
/// How much is copied at a time.
const BUFFER_BYTES: usize = 1024 * 1024;

/// A space that is moving.
struct Moving {
    disk: Arc<dyn Disk>,
    layout: Layout,
    old: Bound,
    new: Bound,
    /// The rows that come along, in order.
    rows: Vec<u32>,
    /// Rows up to here were looked at.
    seen: u32,
    copied: usize,
    written: u64,
    synced: u64,
    file: Arc<dyn DiskFile>,
    scratch: Scratch,
}

impl Moving {
    /// Copies the rows that were not copied yet. A damaged row comes along as it is, and stays damaged.
    fn run(&mut self) -> Result<()> {
        let path = self.layout.rows(&self.old.name, self.old.generation);
        let rows = map_rows(&*self.disk, &self.layout, &self.old, u64::MAX).at(&path)?;
        let missing = vec![0; self.old.stride() as usize];
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + missing.len());
        for number in self.copied..self.rows.len() {
            buffer.extend_from_slice(row_bytes(rows.bytes(), self.rows[number], &self.old).unwrap_or(&missing));
            if buffer.len() >= BUFFER_BYTES {
                self.put(&mut buffer)?;
            }
        }
        self.put(&mut buffer)?;
        self.copied = self.rows.len();
        self.file.sync().at(self.scratch.path())
    }

    fn put(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        self.file.write_at(buffer, self.written).at(self.scratch.path())?;
        self.written += buffer.len() as u64;
        if self.written - self.synced >= PACE_BYTES {
            self.file.sync().at(self.scratch.path())?;
            self.synced = self.written;
        }
        buffer.clear();
        Ok(())
    }
}

/// Moves every space that has too many dead rows.
pub(in crate::store) fn leave_the_dead(turns: &impl Turns, now: &dyn Fn() -> i64) -> Result<()> {
    move_spaces(turns, now, &[], |index| {
        index.rows - index.living > index.rows / DEAD_SHARE
    })
}

/// Moves every space whose rows lie in a file of one of these names, within `vectors/`.
pub(in crate::store) fn make_way(turns: &impl Turns, now: &dyn Fn() -> i64, names: &[String]) -> Result<()> {
    move_spaces(turns, now, names, |index| {
        names.contains(&format::file_name(&index.bound))
    })
}

/// `awaited` are files that somebody is about to bring: no space moves there.
fn move_spaces(
    turns: &impl Turns,
    now: &dyn Fn() -> i64,
    awaited: &[String],
    moves: impl Fn(&RowIndex) -> bool,
) -> Result<()> {
    for mut moving in turns.turn(|store| store.start_moves(now(), awaited, &moves))? {
        moving.run()?;
        turns.turn(|store| store.end_move(moving, now()))?;
    }
    Ok(())
}

impl Store {
    fn start_moves(&mut self, now: i64, awaited: &[String], moves: &dyn Fn(&RowIndex) -> bool) -> Result<Vec<Moving>> {
        if self.state.vector_changes().is_empty() {
            return Ok(Vec::new());
        }
        self.with_lock(now, |store| {
            let known = store.known_spaces();
            let mut moving = Vec::new();
            for index in known.spaces.spaces.values().filter(|index| moves(index)) {
                let folder = store.site.layout.vectors();
                store.site.make_folder(&folder, store.site.layout.folder())?;
                let old = &index.bound;
                let new = old.at(store.free_generation(&old.name, old.generation + 1, awaited));
                let name = format!("{}.tmp", format::file_name(&new));
                let scratch = Scratch::at(&store.site.disk, folder.join(name));
                moving.push(Moving {
                    disk: Arc::clone(&store.site.disk),
                    layout: store.site.layout.clone(),
                    old: old.clone(),
                    new,
                    rows: (0..index.rows).filter(|row| index.is_living(*row)).collect(),
                    seen: index.rows,
                    copied: 0,
                    written: 0,
                    synced: 0,
                    file: store.site.disk.create(scratch.path()).at(scratch.path())?,
                    scratch,
                });
            }
            Ok(moving)
        })
    }

    /// Adds what was attached meanwhile, and says that the space has moved.
    fn end_move(&mut self, mut moving: Moving, now: i64) -> Result<()> {
        self.with_lock(now, |store| {
            let mut draft = Draft::default();
            let new = moving.new.clone();
            {
                let known = store.known_spaces();
                let Some(index) = known
                    .spaces
                    .spaces
                    .get(&moving.old.name)
                    .filter(|index| index.bound == moving.old)
                else {
                    return Ok(());
                };
                moving
                    .rows
                    .extend((moving.seen..index.rows).filter(|row| index.is_living(*row)));
                moving.run()?;
                store.draft_move(&mut draft, index, &new, &moving.rows)?;
            }
            moving
                .scratch
                .name(&store.site.layout.rows(&new.name, new.generation))?;
            store.write(&[&draft], now)?;
            store.sync_log()
        })
    }

    fn draft_move(&self, draft: &mut Draft, index: &RowIndex, new: &Bound, rows: &[u32]) -> Result<()> {
        let depth = self.options.recursion_depth;
        write_space(draft, new, depth)?;
        let mut first = 0;
        let mut firsts = BTreeSet::new();
        for old_rows in rows.chunks(GROUP_ROWS) {
            let entry = |row: &u32| {
                let id = index.owner_of(*row).map(|owner| self.state.spelled_id(owner));
                let digest = index.digest_of(*row).map(|digest| Hex::spell(&digest));
                id.zip(digest)
            };
            let entries: Vec<(&[u8], Hex)> = old_rows.iter().filter_map(entry).collect();
            let entries: Vec<(&[u8], &Hex)> = entries.iter().map(|(id, digest)| (*id, digest)).collect();
            let groups = write_groups(draft, new, first, &entries, depth)?;
            // Taken back, or replaced by a row that was taken back, while the others were copied.
            let gone = (first..).zip(old_rows).filter(|(_, row)| !index.is_living(**row));
            let gone: Vec<u32> = gone.map(|(row, _)| row).collect();
            let group_of = |row: &u32| groups.iter().rfind(|group| *group <= row);
            for rows in gone.chunk_by(|a, b| group_of(a) == group_of(b)) {
                write_gone(draft, new, group_of(&rows[0]).copied().unwrap_or(first), rows)?;
            }
            firsts.extend(groups);
            first += old_rows.len() as u32;
        }
        for group in index.groups.keys().filter(|group| !firsts.contains(group)) {
            write_empty(draft, &new.name, *group)?;
        }
        Ok(())
    }

    /// Files of rows, and what is derived from them, that the log does not name. Others may have named some since.
    pub(in crate::store) fn unnamed_rows(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for (folder, suffix) in [
            (self.site.layout.vectors(), ROWS_SUFFIX),
            (self.site.layout.companions(), CODES_SUFFIX),
        ] {
            if !is_folder(&*self.site.disk, &folder) {
                continue;
            }
            for name in self.site.disk.list(&folder).at(&folder)? {
                let path = folder.join(&name);
                // What is not called as we call ours is somebody else's, and so is a folder or a link.
                if is_file_of_space(&name, suffix) && is_ours(&*self.site.disk, &path) && !self.names_rows(&path) {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }

    /// Whether a file holds rows that the log names, or what is derived from them.
    pub(in crate::store) fn names_rows(&self, path: &Path) -> bool {
        let known = self.known_spaces();
        known.spaces.spaces.values().any(|index| {
            let Bound { name, generation, .. } = &index.bound;
            let is_of = |generation: u64| path == self.site.layout.rows(name, generation);
            is_of(*generation)
                || path == self.site.layout.companion(name, *generation)
                || index.left_behind.keys().any(|(generation, _)| is_of(*generation))
        })
    }

    /// The files of rows that the log names, and how many bytes of each.
    pub(in crate::store) fn named_rows(&self) -> Vec<(String, u64)> {
        let known = self.known_spaces();
        let named = known.spaces.spaces.values().map(|index| {
            let bound = &index.bound;
            let name = format::file_name(bound);
            (name, u64::from(index.rows) * bound.stride())
        });
        named.collect()
    }
}
