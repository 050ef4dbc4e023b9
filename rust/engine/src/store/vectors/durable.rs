//! When is a row safe from a power failure?
//!
//! Before the log is: whoever syncs the log first syncs the files of all rows that the log has come to name since, also of
//! those that another process wrote. In mode `full` a row is even synced before its event is written. In the others a power
//! failure may keep an event that nobody has synced and lose its row: then the record stays, and its embedding is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::check::{bad_rows, is_of_this_file};
use super::read::{Word, read};
use super::salvage::Salvage;
use super::words::{self, Bound, write_gone};
use crate::digest::write_hex;
use crate::disk::{Access, Disk, read_upto};
use crate::error::{At, Error, Result};
use crate::event::draft::Draft;
use crate::event::faces::VECTORS;
use crate::event::stamp;
use crate::layout::Layout;
use crate::log::files::{Scratch, copy_range, free_name, with_suffix};
use crate::log::{Barrier, Log};
use crate::state::{State, Watermark};
use crate::store::Store;

/// So much is written at a time.
const BUFFER_BYTES: usize = 1024 * 1024;

/// Files of rows that the disk may not have yet.
pub struct DirtyRows {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    files: Vec<PathBuf>,
    /// So much of the state is covered, as the log was read that time.
    reached: Watermark,
    reading: u64,
}

impl DirtyRows {
    /// Waits until the disk has them.
    ///
    /// # Errors
    /// `Io`.
    pub fn sync(&self) -> Result<()> {
        for path in &self.files {
            match self.disk.open(path, Access::Read) {
                // A compaction moved these rows, and synced them.
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
                // Nobody can read them: they are missing, and verify says so. Nothing is wrong with the log.
                Err(fault) if is_of_this_file(&fault) => {}
                opened => opened.and_then(|file| file.sync()).at(path)?,
            }
        }
        if self.files.is_empty() {
            Ok(())
        } else {
            match self.disk.sync_dir(&self.folder) {
                Err(fault) if is_of_this_file(&fault) => Ok(()),
                synced => synced.at(&self.folder),
            }
        }
    }
}

/// How far the disk has the rows that the log names.
#[derive(Default)]
pub(in crate::store) struct RowsOnDisk {
    /// So much of the state has its rows on disk.
    mark: Watermark,
    /// How often the log was read anew: what was synced before then says nothing.
    reading: u64,
}

impl RowsOnDisk {
    /// The log was read anew: so much of the state is known to have its rows.
    pub fn read_anew(&mut self, mark: Watermark) {
        self.mark = mark;
        self.reading += 1;
    }

    /// Rows were synced before the log named them: whatever came between these places has its rows.
    pub fn go_on(&mut self, from: &Watermark, to: Watermark) {
        if self.mark.is(from) {
            self.mark = to;
        }
    }

    /// Hears that rows were synced.
    pub fn note(&mut self, rows: &DirtyRows) {
        if rows.reading == self.reading && self.mark.is_before(&rows.reached) {
            self.mark = rows.reached.same();
        }
    }

    /// The files that the disk may not have yet; `None` if nothing changed since it had all.
    fn dirty(&self, disk: &Arc<dyn Disk>, layout: &Layout, state: &State) -> Option<DirtyRows> {
        if !self.mark.is_behind(state.changes()) {
            return None;
        }
        let fresh = state.of_face_since(VECTORS, &self.mark);
        let names: BTreeSet<(&str, u64)> = fresh
            .iter()
            .filter_map(|slot| words::file_of(state.spelled_id(*slot), state.record_in(*slot)))
            .collect();
        let files = names.iter().map(|(space, generation)| layout.rows(space, *generation));
        Some(DirtyRows {
            disk: Arc::clone(disk),
            folder: layout.vectors(),
            files: files.collect(),
            reached: state.changes().watermark(),
            reading: self.reading,
        })
    }
}

/// The rows that must be on disk before the log may be.
pub(in crate::store) struct RowBarrier<'a> {
    disk: &'a Arc<dyn Disk>,
    layout: &'a Layout,
    state: &'a State,
    on_disk: &'a mut RowsOnDisk,
}

impl Barrier for RowBarrier<'_> {
    fn sync(&mut self) -> Result<()> {
        if let Some(rows) = self.on_disk.dirty(self.disk, self.layout, self.state) {
            rows.sync()?;
            self.on_disk.note(&rows);
        }
        Ok(())
    }
}

impl Store {
    /// The log, and what must be on disk before it.
    pub(in crate::store) fn log_and_rows(&mut self) -> (&mut Log, RowBarrier<'_>) {
        let rows = RowBarrier {
            disk: &self.disk,
            layout: &self.layout,
            state: &self.state,
            on_disk: &mut self.rows_on_disk,
        };
        (&mut self.log, rows)
    }

    /// What must be synced before the log may be.
    pub(in crate::store) fn dirty_rows(&self) -> Option<DirtyRows> {
        self.rows_on_disk.dirty(&self.disk, &self.layout, &self.state)
    }

    /// Takes back all rows that are not what the log says; what they hold instead is kept in `quarantine/`. Files that
    /// cannot be read are left as they are.
    pub(in crate::store) fn take_back_damaged(&mut self, now: i64) -> Result<()> {
        self.look_at_damaged(now, false)
    }

    /// Whether some of them can be taken back: an error if all that could be damaged cannot be read. Nothing is changed.
    pub(in crate::store) fn check_damaged_rows(&mut self, now: i64) -> Result<()> {
        self.look_at_damaged(now, true)
    }

    fn look_at_damaged(&mut self, now: i64, only_look: bool) -> Result<()> {
        let mut draft = Draft::default();
        let mut lost: BTreeMap<String, Vec<(u32, Vec<u8>)>> = BTreeMap::new();
        let mut left_behind = Salvage::default();
        let mut unread = None;
        let known = self.known_spaces();
        for slot in self.state.of_face(VECTORS) {
            let word = read(self.state.spelled_id(slot), self.state.record_in(slot));
            let Some(Word::Group(group)) = word else {
                continue;
            };
            let Some(index) = known.spaces.spaces.get(&group.space) else {
                continue;
            };
            let bad = match left_behind.takes(self, index, &group) {
                Ok(true) => continue,
                Ok(false) if group.generation > index.bound.generation => continue,
                Ok(false) => bad_rows(&*self.disk, &self.layout, &index.bound, &group),
                Err(fault) => Err(fault),
            };
            let rows = match bad {
                Err(Error::Io { path, source }) if is_of_this_file(&source) => {
                    unread = Some(Error::Io { path, source });
                    continue;
                }
                bad => bad?,
            };
            if !rows.is_empty() {
                write_gone(&mut draft, &index.bound, group.row, &rows)?;
                let id = |row: u32| group.ids[(row - group.row) as usize].to_vec();
                let these = rows.into_iter().map(|row| (row, id(row)));
                lost.entry(group.space.clone()).or_default().extend(these);
            }
        }
        if only_look {
            let is_nothing = draft.is_empty() && left_behind.is_empty();
            return unread.filter(|_| is_nothing).map_or(Ok(()), Err);
        }
        for (space, rows) in &mut lost {
            rows.sort();
            self.keep_rows(&known.spaces.spaces[space].bound, rows, now)?;
        }
        drop(known);
        left_behind.bring(self, &mut draft)?;
        if !draft.is_empty() {
            self.write(&[&draft], now)?;
            return Ok(());
        }
        // If there is nothing else to do, at least it should be known why.
        unread.filter(|_| self.log.report.damage.is_empty()).map_or(Ok(()), Err)
    }

    /// Keeps what rows hold, as far as they are there: a line for each.
    fn keep_rows(&self, bound: &Bound, rows: &[(u32, Vec<u8>)], now: i64) -> Result<()> {
        let path = self.layout.rows(&bound.name, bound.generation);
        let file = match self.disk.open(&path, Access::Read) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.at(&path)?,
        };
        let quarantine = self.layout.quarantine();
        self.make_folder(&quarantine, self.layout.folder())?;
        let name = format!("{}-{}-rows.jsonl", stamp::spell_name(now), words::file_name(bound));
        let target = free_name(&*self.disk, &quarantine, &name)?;
        let scratch = Scratch::at(&self.disk, with_suffix(&target, ".tmp"));
        let kept = self.disk.create(scratch.path()).at(scratch.path())?;
        let (mut bytes, mut lines, mut written) = (Vec::new(), Vec::new(), 0);
        for (number, (row, id)) in rows.iter().enumerate() {
            bytes.clear();
            let offset = u64::from(*row) * bound.stride();
            read_upto(&*file, &mut bytes, offset, bound.stride() as usize).at(&path)?;
            lines.extend_from_slice(b"{\"bytes\":\"");
            write_hex(&bytes, &mut lines);
            lines.extend_from_slice(b"\",\"id\":\"");
            lines.extend_from_slice(id);
            lines.extend_from_slice(format!("\",\"row\":{row}}}\n").as_bytes());
            if lines.len() >= BUFFER_BYTES || number + 1 == rows.len() {
                kept.write_at(&lines, written).at(scratch.path())?;
                written += lines.len() as u64;
                lines.clear();
            }
        }
        kept.sync().at(scratch.path())?;
        scratch.name(&target)
    }

    /// After a failed sync: copies all rows into fresh files, which the disk must take.
    pub(in crate::store) fn renew_rows(&self) -> Result<()> {
        let folder = self.layout.vectors();
        for (name, bytes) in self.named_rows() {
            let path = folder.join(name);
            let file = match self.disk.open(&path, Access::Read) {
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.at(&path)?,
            };
            let there = file.length().at(&path)?.min(bytes);
            copy_range(&*self.disk, &*file, 0..there, &path, None)?;
            self.disk.sync_dir(&folder).at(&folder)?;
        }
        Ok(())
    }
}
