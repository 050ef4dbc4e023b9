//! Finds the traces of a log whose first line cannot be read, or that is gone.
//!
//! Bases, archives, copies and the hint about the last sync show that there was one.

use std::io;
use std::path::Path;

use memchr::memmem;

use chronolog::digest::Hex;
use chronolog::disk::{Disk, DiskFile, Naming, read_upto};
use chronolog::event::line::{Event, Trust};
use chronolog::hint::{hides_another, line_before, read_hint};
use chronolog::layout::{Layout, Shape, is_archive_file, is_base_file};
use chronolog::log::files::{is_folder, is_ours};
use chronolog::origin::Beginning;
use chronolog::wal::synced::Synced;
use chronomemory_state::snapshot::{self, Header};

use crate::store::files::proofs::{copies_of_logs, shown};

/// The header of a base of ours stands within so many bytes of its end.
const HEADER_BYTES: u64 = 4096;

/// What shows that there was a log.
#[derive(Debug)]
pub(in crate::store) struct Traces {
    /// How far it was synced, if that is known.
    pub synced: Option<Synced>,
    bases: Vec<String>,
    /// The names of files in `archive/`.
    pub archives: Vec<String>,
    /// A copy that holds a log, from the store's folder on.
    copy: Option<String>,
    /// A restore was interrupted, or is under way.
    is_restored: bool,
    /// It may stand where the hint should be, or what it started from.
    is_swapped: bool,
}

impl Traces {
    /// What lies in a store's folder beside its log; `None` if nothing shows that there was one.
    ///
    /// # Errors
    /// What the disk says.
    pub fn look(disk: &dyn Disk, layout: &Layout) -> io::Result<Option<Self>> {
        let traces = Self {
            synced: read_hint(disk, layout)?,
            bases: names_in(disk, &layout.bases(), is_base_file)?,
            archives: names_in(disk, &layout.archives(), is_archive_file)?,
            copy: copies_of_logs(disk, layout)
                .next()
                .map(|copy| shown(layout, copy.folder())),
            // It explains nothing: half of a restore looks like a store that lost its log, and is none either.
            is_restored: is_ours(disk, &layout.restored_draft()),
            is_swapped: hides_another(disk, layout)?,
        };
        let is_any = traces.has_remains() || traces.copy.is_some();
        Ok(is_any.then_some(traces))
    }

    /// Whether anything of the log itself is left, beside copies that were made of it.
    pub fn has_remains(&self) -> bool {
        self.synced.is_some() || self.is_swapped || !self.bases.is_empty() || !self.archives.is_empty()
    }

    /// Whether there is anything that a log may have started from.
    pub fn has_bases(&self) -> bool {
        !self.bases.is_empty()
    }

    /// What they tell, for people.
    pub fn tell(&self) -> String {
        let mut said = Vec::new();
        if let Some(synced) = &self.synced {
            said.push(format!(
                "synced knows it with {} bytes and event {}",
                synced.offset, synced.seq
            ));
        }
        if self.is_swapped {
            said.push("synced holds what another file should hold: put both back".to_owned());
        }
        if !self.bases.is_empty() {
            said.push("base/ holds what one started from".to_owned());
        }
        if !self.archives.is_empty() {
            said.push("archive/ holds what came before one".to_owned());
        }
        if let Some(copy) = &self.copy {
            said.push(format!("{copy} holds a copy, which restore brings back"));
        }
        if self.is_restored {
            said.push("a restore was begun and is not done: restore again".to_owned());
        }
        said.join(", ")
    }
}

/// The names in a folder that are ours; none if the folder is not there, or something else in its place.
fn names_in(disk: &dyn Disk, folder: &Path, is_named_so: Shape) -> io::Result<Vec<String>> {
    if !is_folder(disk, folder) {
        return Ok(Vec::new());
    }
    let mut names = disk.list(folder).naming(folder)?;
    names.retain(|name| is_named_so(name) && is_ours(disk, &folder.join(name)));
    Ok(names)
}

/// The hash of the last event of a log.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn head_of(log: &dyn DiskFile) -> io::Result<Option<Hex>> {
    let line = line_before(log, log.length()?)?;
    Ok(line.and_then(|line| Some(Event::read(&line, Trust::Nothing).ok()?.hash(&line))))
}

/// The header of a base, without reading all of it if it is ours.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn header_of(file: &dyn DiskFile) -> io::Result<Option<Header>> {
    let length = file.length()?;
    let start = length.saturating_sub(HEADER_BYTES);
    let mut end = Vec::new();
    read_upto(file, &mut end, start, (length - start) as usize)?;
    let own = memmem::rfind(&end, b"\n],").and_then(|at| Header::of_last(end[at + 1..].trim_ascii_end()));
    match own {
        Some(header) => Ok(Some(header)),
        // Another tool's, adopted: its header may stand anywhere.
        None => Ok(snapshot::read(file, &mut snapshot::NoTaker)?.header.ok()),
    }
}

/// The hint about the last sync, if it speaks of a log whose first line is lost and knows more events than that log still
/// has: the first line that is left follows the one that it names, or it knows events behind all that are left. What it said
/// of a log before this one would be behind none of them.
pub(in crate::store) fn missed_end(known: Option<Synced>, beginning: &Beginning, last_seq: u64) -> Option<Synced> {
    let is_lost = beginning.seq.is_some() && beginning.prev_hash.is_some();
    known.filter(|known| is_lost && known.seq > last_seq)
}
