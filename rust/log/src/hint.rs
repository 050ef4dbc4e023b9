//! Reads and writes the hint about the last sync, and finds the lines of the log that it speaks of.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::digest::{Hex, sha256};
use crate::disk::{
    Access, Disk, DiskFile, Identity, Naming, UnexpectedEntry, UnexpectedKind, is_swapped, open_if_there, read_upto,
};
use crate::error::{At, Error, Result};
use crate::event::line::{Event, Trust};
use crate::json::{self, Value};
use crate::layout::Layout;

/// How the hint about the last sync fits a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// There is none, or it is of another log.
    None,
    /// The log is on disk up to here.
    Synced(u64),
    /// It is of this log, but the log ends before that offset or has another line there.
    Contradicted(Synced),
}

impl Hint {
    /// How far the log is known to be on disk.
    pub fn synced(&self) -> Option<u64> {
        match self {
            Self::Synced(offset) => Some(*offset),
            _ => None,
        }
    }

    /// Up to here the log was whole once: an unfinished write before that offset is no tail.
    pub fn promised(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Synced(offset) => Some(*offset),
            Self::Contradicted(synced) => Some(synced.offset),
        }
    }
}

/// Reads the hint. Call it before taking the log's length: a writer in between makes the log longer.
pub fn read_hint(disk: &dyn Disk, layout: &Layout) -> io::Result<Option<Synced>> {
    Ok(hint_bytes(disk, layout)?.and_then(|bytes| Synced::read(&bytes)))
}

/// Whether the file is no whole hint. A missing file is no damage, nor is an empty one beside an empty log.
pub fn is_hint_damaged(disk: &dyn Disk, layout: &Layout) -> io::Result<bool> {
    // A writer may be creating or overwriting it: only what stays unreadable is damaged.
    for look in 0..4 {
        if look > 0 {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        let Some(bytes) = hint_bytes(disk, layout)? else {
            return Ok(false);
        };
        let has_events = || disk.status(layout.log()).is_ok_and(|log| log.length > 0);
        if Synced::read(&bytes).is_some() || (bytes.is_empty() && !has_events()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The bytes of the file, at most one more than a hint has; `None` if it is missing.
pub fn hint_bytes(disk: &dyn Disk, layout: &Layout) -> io::Result<Option<Vec<u8>>> {
    let (path, mut bytes) = (layout.synced(), Vec::new());
    let Some(file) = open_if_there(disk, &path).naming(&path)? else {
        return Ok(None);
    };
    read_upto(&*file, &mut bytes, 0, SYNCED_BYTES + 1).naming(&path)?;
    Ok(Some(bytes))
}

/// A hint that is read and written often: the file stays open, which saves system calls.
#[derive(Default)]
pub struct KeptHint(Option<KeptFile>);

struct KeptFile {
    file: Arc<dyn DiskFile>,
    identity: Identity,
    is_writable: bool,
}

impl KeptHint {
    /// As [`read_hint`], for a hint at this path.
    pub fn read(&mut self, disk: &dyn Disk, path: &Path) -> io::Result<Option<Synced>> {
        let there = match disk.status(path) {
            Ok(there) => there,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault).naming(path),
        };
        let mut bytes = Vec::new();
        // One of another length is not whole.
        if there.length == SYNCED_BYTES as u64 {
            let kept = match self.0.take().filter(|kept| kept.identity == there.identity) {
                Some(kept) => kept,
                None => KeptFile::of(disk.open(path, Access::Read).naming(path)?, false).naming(path)?,
            };
            read_upto(&*self.0.insert(kept).file, &mut bytes, 0, SYNCED_BYTES).naming(path)?;
        }
        Ok(Synced::read(&bytes))
    }

    /// As [`write_hint`].
    pub fn write(&mut self, disk: &dyn Disk, layout: &Layout, synced: &Synced) -> Result<()> {
        let path = layout.synced();
        let there = disk
            .status(&path)
            .ok()
            .filter(|there| there.length == SYNCED_BYTES as u64);
        let is_it = |kept: &&KeptFile| kept.is_writable && there.is_some_and(|there| there.identity == kept.identity);
        if let Some(kept) = self.0.as_ref().filter(is_it)
            && !kept.file.is_shared().at(&path)?
        {
            return kept.file.write_at(&synced.spell(), 0).at(&path);
        }
        self.0 = Some(KeptFile::of(write_hint(disk, layout, synced)?, true).at(&path)?);
        Ok(())
    }
}

impl KeptFile {
    fn of(file: Arc<dyn DiskFile>, is_writable: bool) -> io::Result<Self> {
        Ok(Self {
            identity: file.identity()?,
            file,
            is_writable,
        })
    }
}

/// Overwrites the hint in place: one sector, so that a crash leaves the old or the new one.
pub fn write_hint(disk: &dyn Disk, layout: &Layout, synced: &Synced) -> Result<Arc<dyn DiskFile>> {
    let path = layout.synced();
    let file = match disk.open(&path, Access::Write) {
        // Another name leads to it: what is written here must not be written there.
        Ok(file) if file.is_shared().at(&path)? => disk.create(&path).at(&path)?,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => disk.create(&path).at(&path)?,
        opened => opened.at(&path)?,
    };
    if file.length().at(&path)? > SYNCED_BYTES as u64 {
        if holds_another(&*file).at(&path)? {
            return Err(Error::io(&path, UnexpectedEntry::at(&path, UnexpectedKind::Swapped)));
        }
        file.truncate(SYNCED_BYTES as u64).at(&path)?;
    }
    file.write_at(&synced.spell(), 0).at(&path)?;
    Ok(file)
}

/// Whether the file holds what another file of the store should hold. The two were swapped, and nothing is lost yet.
pub fn hides_another(disk: &dyn Disk, layout: &Layout) -> io::Result<bool> {
    let path = layout.synced();
    let file = open_if_there(disk, &path).naming(&path)?;
    file.map_or(Ok(false), |file| holds_another(&*file)).naming(&path)
}

fn holds_another(file: &dyn DiskFile) -> io::Result<bool> {
    let mut beginning = Vec::new();
    read_upto(file, &mut beginning, 0, 1024)?;
    Ok(is_swapped(&beginning))
}

/// Compares the hint with the log.
pub fn hint_for(synced: Option<Synced>, log: &dyn DiskFile, length: u64) -> io::Result<Hint> {
    let Some(synced) = synced else {
        return Ok(Hint::None);
    };
    match first_line(log, length)? {
        // A log is born complete: one without a whole line has lost the end of its first.
        None => return Ok(Hint::Contradicted(synced)),
        Some(first) if !synced.fits_first(&first) => return Ok(Hint::None),
        Some(_) => {}
    }
    let fits = synced.offset <= length && line_before(log, synced.offset)?.is_some_and(|line| synced.fits_head(&line));
    Ok(match fits {
        true => Hint::Synced(synced.offset),
        false => Hint::Contradicted(synced),
    })
}

/// The hash of the first event of a log, as 32 bytes.
pub fn origin_hash(log: &dyn DiskFile, length: u64) -> Option<[u8; 32]> {
    let line = first_line(log, length).ok()??;
    let line = line.strip_suffix(b"\r").unwrap_or(&line);
    Some(Event::read(line, Trust::Hashes).ok()?.hash_and_raw(line).1)
}

/// The first whole line that is not blank, without its newline; `None` if there is none.
pub fn first_line(log: &dyn DiskFile, length: u64) -> io::Result<Option<Vec<u8>>> {
    let mut offset = 0;
    while offset < length {
        let (line, is_whole) = read_line(log, offset, length)?;
        if !is_whole {
            // What is longer than any line does not fit.
            return Ok((line.len() > json::MAX_LINE_BYTES).then_some(line));
        }
        if !line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r')) {
            return Ok(Some(line));
        }
        offset += line.len() as u64 + 1;
    }
    Ok(None)
}

/// The line whose newline is just before `end`.
pub fn line_before(log: &dyn DiskFile, end: u64) -> io::Result<Option<Vec<u8>>> {
    let mut reach = 4096;
    loop {
        let start = end.saturating_sub(reach);
        let mut window = Vec::new();
        read_upto(log, &mut window, start, (end - start) as usize)?;
        if window.pop() != Some(b'\n') {
            return Ok(None);
        }
        if let Some(newline) = memchr::memrchr(b'\n', &window) {
            return Ok(Some(window.split_off(newline + 1)));
        }
        if start == 0 {
            return Ok(Some(window));
        }
        if reach > 2 * json::MAX_LINE_BYTES as u64 {
            return Ok(None);
        }
        reach *= 8;
    }
}

/// The line that begins at an offset, without its newline.
pub fn line_from(file: &dyn DiskFile, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    read_line(file, offset, length).map(|(line, _)| line)
}

/// A line, and whether it ends with a newline. Of one that is longer than any line no more is read.
fn read_line(file: &dyn DiskFile, offset: u64, length: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut line = Vec::new();
    while line.len() <= json::MAX_LINE_BYTES {
        let known = line.len();
        let room = length.saturating_sub(offset + known as u64).min(4096) as usize;
        if read_upto(file, &mut line, offset + known as u64, room)? == 0 {
            break;
        }
        if let Some(newline) = memchr::memchr(b'\n', &line[known..]) {
            line.truncate(known + newline);
            return Ok((line, true));
        }
    }
    Ok((line, false))
}

/// How long a writer may take to fill the file that it created.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// The length of the file.
pub const SYNCED_BYTES: usize = 120;
const MAGIC: &[u8; 8] = b"CMSYNC\x00\x01";

/// The contents of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Up to here the log was on disk.
    pub offset: u64,
    /// The last seq before that.
    pub seq: u64,
    /// The hash of the log's first event: which log is meant.
    pub first: Hex,
    /// The hash of the last event before the offset.
    pub head: Hex,
}

impl Synced {
    /// The bytes of the file.
    pub fn spell(&self) -> [u8; SYNCED_BYTES] {
        let mut bytes = [0; SYNCED_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.seq.to_le_bytes());
        bytes[24..56].copy_from_slice(&self.first.raw());
        bytes[56..88].copy_from_slice(&self.head.raw());
        let checksum = sha256(&bytes[..88]).raw();
        bytes[88..].copy_from_slice(&checksum);
        bytes
    }

    /// Reads the file; `None` if it is not whole.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; SYNCED_BYTES] = bytes.try_into().ok()?;
        if &bytes[..8] != MAGIC || sha256(&bytes[..88]).raw() != bytes[88..] {
            return None;
        }
        let number = |at: usize| Some(u64::from_le_bytes(bytes[at..at + 8].try_into().ok()?));
        let digest = |at: usize| Some(Hex::spell(bytes[at..at + 32].try_into().ok()?));
        Some(Self {
            offset: number(8).filter(|&offset| offset > 0)?,
            seq: number(16)?,
            first: digest(24)?,
            head: digest(56)?,
        })
    }

    /// Whether it speaks of the log with this first line.
    pub fn fits_first(&self, first_line: &[u8]) -> bool {
        Event::read(first_line, Trust::Nothing).is_ok_and(|event| event.hash(first_line) == self.first)
    }

    /// Whether the line that ends at its offset is the one it speaks of.
    pub fn fits_head(&self, line_before_offset: &[u8]) -> bool {
        names_hash(line_before_offset, &self.head)
    }
}

/// Whether bytes begin as the file does, whole or not.
pub fn begins_as_hint(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Whether a line names this hash as its own.
pub fn names_hash(line: &[u8], hash: &Hex) -> bool {
    json::parse(line).is_ok_and(|event| event.get("hash").and_then(Value::as_str) == Some(hash.text()))
}
