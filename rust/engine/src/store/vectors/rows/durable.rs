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
use super::salvage::Salvage;
use crate::digest::write_hex;
use crate::disk::{Access, Disk, read_upto};
use crate::error::{At, Error, Result};
use crate::event::draft::Draft;
use crate::event::stamp;
use crate::layout::Layout;
use crate::log::files::{Scratch, copy_range, free_name, with_suffix};
use crate::log::{Barrier, Log};
use crate::state::State;
use crate::store::Store;
use crate::store::vectors::records::format::{self, Bound, write_gone};
use crate::store::vectors::records::read::{Word, read};

/// So much is written at a time.
const BUFFER_BYTES: usize = 1024 * 1024;

/// Files of rows that the disk may not have yet.
pub struct DirtyRows {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    files: Vec<PathBuf>,
    /// So much of what names rows is covered, as the log was read that time.
    reached: usize,
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
    /// How much of what was said about embeddings has its rows on disk.
    said: usize,
    /// How often the log was read anew: what was said before then is counted otherwise.
    reading: u64,
}

impl RowsOnDisk {
    /// The log was read anew: so much of what it says of rows is known to have them.
    pub fn read_anew(&mut self, said: usize) {
        self.said = said;
        self.reading += 1;
    }

    /// Rows that were synced before the log named them, from `said` on.
    pub fn go_on(&mut self, said: usize, now_said: usize) {
        if self.said == said {
            self.said = now_said;
        }
    }

    /// Hears that rows were synced.
    pub fn note(&mut self, rows: &DirtyRows) {
        if rows.reading == self.reading {
            self.said = self.said.max(rows.reached);
        }
    }

    /// The files that the disk may not have yet; `None` if it has all.
    fn dirty(&self, disk: &Arc<dyn Disk>, layout: &Layout, state: &State) -> Option<DirtyRows> {
        let named = state.rows_named();
        let fresh = named.get(self.said..).filter(|fresh| !fresh.is_empty())?;
        let names: BTreeSet<(&str, u64)> = fresh
            .iter()
            .filter_map(|slot| format::file_of(state.spelled_id(*slot), state.record_in(*slot)))
            .collect();
        let files = names.iter().map(|(space, generation)| layout.rows(space, *generation));
        Some(DirtyRows {
            disk: Arc::clone(disk),
            folder: layout.vectors(),
            files: files.collect(),
            reached: named.len(),
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
            disk: &self.site.disk,
            layout: &self.site.layout,
            state: &self.state,
            on_disk: &mut self.rows_on_disk,
        };
        (&mut self.log, rows)
    }

    /// What must be synced before the log may be.
    pub(in crate::store) fn dirty_rows(&self) -> Option<DirtyRows> {
        self.rows_on_disk.dirty(&self.site.disk, &self.site.layout, &self.state)
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
        let mut slots: Vec<u32> = self.state.vector_changes().to_vec();
        slots.sort_unstable();
        slots.dedup();
        let mut draft = Draft::default();
        let mut lost: BTreeMap<String, Vec<(u32, Vec<u8>)>> = BTreeMap::new();
        let mut left_behind = Salvage::default();
        let mut unread = None;
        let known = self.known_spaces();
        for slot in slots {
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
                Ok(false) => bad_rows(&*self.site.disk, &self.site.layout, &index.bound, &group),
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
        let path = self.site.layout.rows(&bound.name, bound.generation);
        let file = match self.site.disk.open(&path, Access::Read) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.at(&path)?,
        };
        let quarantine = self.site.layout.quarantine();
        self.site.make_folder(&quarantine, self.site.layout.folder())?;
        let name = format!("{}-{}-rows.jsonl", stamp::spell_name(now), format::file_name(bound));
        let target = free_name(&*self.site.disk, &quarantine, &name)?;
        let scratch = Scratch::at(&self.site.disk, with_suffix(&target, ".tmp"));
        let kept = self.site.disk.create(scratch.path()).at(scratch.path())?;
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
        let folder = self.site.layout.vectors();
        for (name, bytes) in self.named_rows() {
            let path = folder.join(name);
            let file = match self.site.disk.open(&path, Access::Read) {
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.at(&path)?,
            };
            let there = file.length().at(&path)?.min(bytes);
            copy_range(&*self.site.disk, &*file, 0..there, &path, None)?;
            self.site.disk.sync_dir(&folder).at(&folder)?;
        }
        Ok(())
    }
}
