//! Syncs rows before the log that names them.
//!
//! Before a sync of the log the files of all rows that it has come to name since are synced, also rows of other
//! processes. In mode `full` a row is synced before its event is written. In the others a power failure may keep an
//! unsynced event and lose its row: then the record stays, and its embedding is missing.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::check::is_of_this_file;
use crate::store::vectors::records::format::{self};
use chronolog::disk::{Access, Disk};
use chronolog::error::{At, Result};
use chronolog::event::faces::VECTORS;
use chronolog::log::{Barrier, Site};
use chronomemory_state::state::{State, Watermark};

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
    pub fn sync(&self) -> Result<()> {
        let mut is_any_there = false;
        for path in &self.files {
            match self.disk.open(path, Access::Read) {
                // A compaction moved these rows, and synced them.
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
                // Nobody can read them: they are missing, and verify says so. Nothing is wrong with the log.
                Err(fault) if is_of_this_file(&fault) => {}
                opened => {
                    opened.and_then(|file| file.sync()).at(path)?;
                    is_any_there = true;
                }
            }
        }
        // Where none of them is, there may be no folder: rows that a record takes back may have gone with it.
        if !is_any_there {
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
        if self.mark == *from {
            self.mark = to;
        }
    }

    /// Hears that rows were synced.
    pub fn note(&mut self, rows: &DirtyRows) {
        if rows.reading == self.reading && self.mark.is_before(&rows.reached) {
            self.mark = rows.reached.clone();
        }
    }

    /// The files that the disk may not have yet; `None` if nothing changed since it had all.
    pub fn dirty(&self, site: &Site, state: &State) -> Option<DirtyRows> {
        if !self.mark.is_behind(state.changes()) {
            return None;
        }
        let fresh = state.of_face_since(VECTORS, &self.mark);
        let file_in = |slot: &u32| {
            let id = state.slots.id(*slot);
            format::file_of(&id, &state.slots.record(*slot)).map(|(space, generation)| (space.to_owned(), generation))
        };
        let names: BTreeSet<(String, u64)> = fresh.iter().filter_map(file_in).collect();
        let files = names
            .iter()
            .map(|(space, generation)| site.layout.rows(space, *generation));
        Some(DirtyRows {
            disk: Arc::clone(&site.disk),
            folder: site.layout.vectors(),
            files: files.collect(),
            reached: state.changes().watermark(),
            reading: self.reading,
        })
    }
}

/// The rows that must be on disk before the log may be.
pub(in crate::store) struct RowBarrier<'a> {
    pub site: &'a Site,
    pub state: &'a State,
    pub on_disk: &'a mut RowsOnDisk,
}

impl Barrier for RowBarrier<'_> {
    fn sync(&mut self) -> Result<()> {
        if let Some(rows) = self.on_disk.dirty(self.site, self.state) {
            rows.sync()?;
            self.on_disk.note(&rows);
        }
        Ok(())
    }
}
