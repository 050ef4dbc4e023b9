//! Finds the remains of a log that is gone or whose first line cannot be read, and the newest base that it may start from.
//!
//! Bases, archives, copies and the hint about the last sync show that there was one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use memchr::memmem;

use crate::store::files::proofs::{copies_of_logs, shown};
use chronolog::digest::Hex;
use chronolog::disk::{Access, Disk, DiskFile, Naming, read_upto};
use chronolog::hint::{Synced, hides_another, read_hint};
use chronolog::json::MAX_LINE_BYTES;
use chronolog::layout::{Layout, Shape, digest_in_base_name, is_archive_file, is_base_file, is_unpacked_base};
use chronolog::log::files::{is_folder, is_ours};
use chronolog::origin::{ALONE, Beginning};
use chronolog::wal::reader::read_pieces;
use chronomemory_state::snapshot::{self, Header};

/// The header of a base of ours is within so many bytes of its end.
const HEADER_BYTES: u64 = 4096;

/// What shows that there was a log.
#[derive(Debug)]
pub(in crate::store) struct Traces {
    /// How far it was synced, if that is known.
    pub synced: Option<Synced>,
    bases: Vec<String>,
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
    pub fn look(disk: &dyn Disk, layout: &Layout) -> io::Result<Option<Self>> {
        let traces = Self {
            synced: read_hint(disk, layout)?,
            bases: our_names(disk, &layout.bases(), is_base_file)?,
            archives: our_names(disk, &layout.archives(), is_archive_file)?,
            copy: copies_of_logs(disk, layout)
                .next()
                .map(|copy| shown(layout, copy.folder())),
            // It is no trace: half of a restore is no store that lost its log.
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

    pub fn has_bases(&self) -> bool {
        !self.bases.is_empty()
    }

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

/// The names in a folder that are ours: of the right shape, and files.
pub(in crate::store) fn our_names(disk: &dyn Disk, folder: &Path, is_named_so: Shape) -> io::Result<Vec<String>> {
    if !is_folder(disk, folder) {
        return Ok(Vec::new());
    }
    let mut names = disk.list(folder).naming(folder)?;
    names.retain(|name| is_named_so(name) && is_ours(disk, &folder.join(name)));
    Ok(names)
}

/// The header of a base, without reading all of it if it is ours.
pub(in crate::store) fn header_of(file: &dyn DiskFile) -> io::Result<Option<Header>> {
    let length = file.length()?;
    let start = length.saturating_sub(HEADER_BYTES);
    let mut end = Vec::new();
    read_upto(file, &mut end, start, (length - start) as usize)?;
    let own = memmem::rfind(&end, b"\n],").and_then(|at| Header::of_last(end[at + 1..].trim_ascii_end()));
    match own {
        Some(header) => Ok(Some(header)),
        // Another tool's, adopted: its header may stand anywhere.
        None => Ok(snapshot::read(file, &mut snapshot::NoRecordSink)?.header.ok()),
    }
}

/// The hint about the last sync, if it speaks of a log whose first line is lost and knows more events than that log still
/// has: the first line that is left follows the one that it names, or it knows events behind all that are left. What it said
/// of a log before this one would be behind none of them.
pub(in crate::store) fn missed_end(known: Option<Synced>, beginning: &Beginning, last_seq: u64) -> Option<Synced> {
    let is_lost = beginning.seq.is_some() && beginning.prev_hash.is_some();
    known.filter(|known| is_lost && known.seq > last_seq)
}

/// Words in a line that names a base, or adopts one.
const NAMING: [&[u8]; 3] = [b"base_sha256", b"__compact__", b"__adopt__"];

/// What is left of a log whose first line is damaged or missing.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub first: Option<u64>,
    /// How many damaged lines stand before that event, at least one.
    pub lines: u64,
    /// A damaged line seems to name a base.
    pub seems_compacted: bool,
}

impl Left {
    /// Reads the damaged lines of a log.
    pub fn of_log(log: &dyn DiskFile, length: u64, beginning: &Beginning) -> io::Result<Self> {
        let end = beginning.seq.map_or(length, |_| beginning.offset);
        let mut left = Self {
            first: beginning.seq,
            ..Self::default()
        };
        each_damaged(log, length, |offset, text| {
            left.lines += u64::from(offset < end);
            left.seems_compacted |= names_base(text);
        })?;
        // An event that follows another was not the first, even if nothing is before it.
        left.lines = left.lines.max(1);
        Ok(left)
    }

    /// Of a log that is gone, which may have had any number of lines.
    pub fn of_nothing() -> Self {
        Self {
            lines: 2,
            ..Self::default()
        }
    }

    /// The first event that can be read, if more events came before it than there are damaged lines.
    pub fn unaccounted(&self) -> Option<u64> {
        let first = self.first?;
        (first.saturating_sub(1) > self.lines).then_some(first)
    }
}

fn names_base(text: &[u8]) -> bool {
    NAMING.iter().any(|word| memmem::find(text, word).is_some())
}

/// Hands over every line that cannot be read, and the bytes behind the last newline.
fn each_damaged(log: &dyn DiskFile, length: u64, mut take: impl FnMut(u64, &[u8])) -> io::Result<()> {
    let mut end = 0;
    read_pieces(log, 0..length, ALONE, |piece| {
        for line in piece.lines.iter().filter(|line| line.event.is_err()) {
            take(line.offset, piece.text(line));
        }
        end = piece.end.unwrap_or(end);
        io::Result::Ok(true)
    })?;
    let mut rest = Vec::new();
    let wanted = usize::try_from(length - end).unwrap_or(usize::MAX);
    read_upto(log, &mut rest, end, wanted.min(MAX_LINE_BYTES))?;
    if !rest.is_empty() {
        take(end, &rest);
    }
    Ok(())
}

/// The newest whole base, with its name, that a log may start from whose first event is this one.
pub(super) fn newest_base(
    disk: &dyn Disk,
    layout: &Layout,
    first: Option<u64>,
) -> io::Result<Option<(String, Arc<dyn DiskFile>)>> {
    let folder = layout.bases();
    let mut found = Vec::new();
    for name in our_names(disk, &folder, is_unpacked_base)? {
        let Some(digest) = digest_in_base_name(&name).and_then(|digits| Hex::read(digits.as_bytes())) else {
            continue;
        };
        let Ok(file) = disk.open(&folder.join(&name), Access::Read) else {
            continue;
        };
        if let Some(header) = header_of(&*file).naming(&folder.join(&name))?
            && first.is_none_or(|first| header.seq.saturating_add(2) <= first)
        {
            found.push((header.seq, digest, name, file));
        }
    }
    found.sort_by_key(|(seq, ..)| *seq);
    let whole = found
        .into_iter()
        .rev()
        .find(|(_, digest, _, file)| chronolog::archive::file_digest(&**file).is_ok_and(|is| is == *digest));
    Ok(whole.map(|(_, _, name, file)| (format!("base/{name}"), file)))
}
