//! Moves the living rows of embeddings to a new file, without the dead ones.
//!
//! They are copied to the file of the next generation while others write. Under the lock one batch moves the space there; the
//! old file is removed once the log that named it is retired.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::store::turns::{StoreAccess, Turns};
use crate::store::vectors::changes::write::free_generation;
use crate::store::vectors::records::format::{
    self, Bound, GROUP_ROWS, write_empty, write_gone, write_groups, write_space,
};
use crate::store::vectors::records::index::RowIndex;
use crate::store::vectors::rows::check::{map_rows, row_bytes};
use chronolog::digest::Hex;
use chronolog::error::{At, Result};
use chronolog::event::draft::Draft;
use chronolog::event::faces::VECTORS;
use chronolog::log::files::{PacedFile, Scratch};
use chronolog::log::{Log, Site};
use chronomemory_state::state::State;

/// Rows are worth moving when more than one in so many is dead.
const DEAD_SHARE: u32 = 4;
const BUFFER_BYTES: usize = 1024 * 1024;

pub(in crate::store) struct Moving {
    site: Arc<Site>,
    old: Bound,
    new: Bound,
    /// The rows that come along, in order.
    rows: Vec<u32>,
    /// Rows up to here were looked at.
    seen: u32,
    copied: usize,
    file: PacedFile,
    scratch: Scratch,
}

impl Moving {
    /// Under the lock: fixes the living rows that are copied.
    pub fn start(
        site: &Arc<Site>,
        is_log_damaged: bool,
        index: &RowIndex,
        awaited: &[String],
        is_kept: impl Fn(u32) -> bool,
    ) -> Result<Self> {
        let folder = site.layout.vectors();
        site.make_folder(&folder, site.layout.folder())?;
        let old = &index.bound;
        let generation = free_generation(site, is_log_damaged, &old.name, old.generation + 1, awaited);
        let new = old.at(generation);
        let name = format!("{}.tmp", format::file_name(&new));
        let scratch = Scratch::at(&site.disk, folder.join(name));
        Ok(Self {
            site: Arc::clone(site),
            old: old.clone(),
            new,
            rows: (0..index.rows)
                .filter(|&row| index.is_living(row) && is_kept(row))
                .collect(),
            seen: index.rows,
            copied: 0,
            file: PacedFile::at(site.disk.create(scratch.path()).at(scratch.path())?, 0),
            scratch,
        })
    }

    pub fn name(&self) -> &str {
        &self.old.name
    }

    /// Under the lock: copies newly attached rows and names the file; `None` if the space changed, or a row must not be kept.
    pub fn end(
        mut self,
        state: &State,
        index: &RowIndex,
        depth: i64,
        is_kept: impl Fn(u32) -> bool,
    ) -> Result<Option<Draft>> {
        if index.bound != self.old || !self.rows.iter().all(|&row| is_kept(row)) {
            return Ok(None);
        }
        let since = (self.seen..index.rows).filter(|&row| index.is_living(row) && is_kept(row));
        self.rows.extend(since);
        self.run()?;
        let mut draft = Draft::default();
        draft_move(state, depth, &mut draft, index, &self.new, &self.rows)?;
        self.scratch
            .name(&self.site.layout.rows(&self.new.name, self.new.generation))?;
        Ok(Some(draft))
    }

    /// Copies the rows that were not copied yet. A damaged row comes along as it is, and stays damaged.
    pub fn run(&mut self) -> Result<()> {
        let path = self.site.layout.rows(&self.old.name, self.old.generation);
        let rows = map_rows(&*self.site.disk, &self.site.layout, &self.old, u64::MAX).at(&path)?;
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
        self.file.add(buffer).at(self.scratch.path())?;
        buffer.clear();
        Ok(())
    }
}

/// Moves every space that has too many dead rows.
pub(in crate::store) fn compact_rows(turns: &impl Turns, now: &dyn Fn() -> i64) -> Result<()> {
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

/// `awaited` are names that a restore is about to use: no space moves there.
fn move_spaces(
    turns: &impl Turns,
    now: &dyn Fn() -> i64,
    awaited: &[String],
    moves: impl Fn(&RowIndex) -> bool,
) -> Result<()> {
    let access = StoreAccess::shared(turns, now);
    if turns.turn(|store| Ok(store.state.of_face(VECTORS, None).next().is_none()))? {
        return Ok(());
    }
    let moving: Vec<Moving> = access.locked(|store, _| {
        let is_log_damaged = !store.log.report.damage.is_empty();
        let known = store.vectors.known(&store.state);
        let indexes = known.spaces.spaces.values().filter(|index| moves(index));
        indexes
            .map(|index| Moving::start(&store.site, is_log_damaged, index, awaited, |_| true))
            .collect()
    })?;
    for mut moving in moving {
        moving.run()?;
        access.locked(|store, now| {
            let depth = store.options.recursion_depth;
            // What was attached meanwhile comes along, and then the log says that the space has moved.
            let moved = match store.vectors.known(&store.state).spaces.spaces.get(moving.name()) {
                Some(index) => moving.end(&store.state, index, depth, |_| true)?,
                None => None,
            };
            match moved {
                None => Ok(()),
                Some(draft) => {
                    store.write(&[&draft], now)?;
                    store.on_log(Log::sync)
                }
            }
        })?;
    }
    Ok(())
}

fn draft_move(state: &State, depth: i64, draft: &mut Draft, index: &RowIndex, new: &Bound, rows: &[u32]) -> Result<()> {
    write_space(draft, new, depth)?;
    let mut first = 0;
    let mut firsts = BTreeSet::new();
    for old_rows in rows.chunks(GROUP_ROWS) {
        let entry = |row: &u32| {
            let id = index.owner_of(*row).map(|owner| state.slots.id(owner));
            let digest = index.digest_of(*row).map(|digest| Hex::spell(&digest));
            id.zip(digest)
        };
        let entries: Vec<(Cow<'_, [u8]>, Hex)> = old_rows.iter().filter_map(entry).collect();
        let entries: Vec<(&[u8], &Hex)> = entries.iter().map(|(id, digest)| (&**id, digest)).collect();
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
