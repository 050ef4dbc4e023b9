//! Reads and writes the hint about the last sync, and finds the lines of the log that it speaks of.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Access, Disk, DiskFile, Identity, Naming, Stranger, StrangerKind, is_swapped, read_upto};
use crate::error::{At, Error, Result};
use crate::json;
use crate::layout::Layout;
use crate::wal::synced::{SYNCED_BYTES, Synced};

/// What the hint about the last sync says of this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nothing, or nothing that can be believed.
    None,
    /// The log is on disk up to here.
    Synced(u64),
    /// It speaks of this log, but the log ends before that place or has another line there.
    Contradicted(Synced),
}

impl Hint {
    /// Up to here the log was whole once: a write that seems unfinished before that place is no tail.
    pub fn promised(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Synced(offset) => Some(*offset),
            Self::Contradicted(synced) => Some(synced.offset),
        }
    }
}

/// Reads the hint, whatever log it speaks of. It must be read before the length of the log is asked for: a writer that
/// comes between makes the log longer, never the hint wrong.
///
/// # Errors
/// What the disk says.
pub fn read_hint(disk: &dyn Disk, layout: &Layout) -> io::Result<Option<Synced>> {
    Ok(Synced::read(&hint_bytes(disk, layout)?))
}

/// Whether the file holds bytes that are not a whole hint. A missing or empty file is no damage.
///
/// # Errors
/// What the disk says.
pub fn is_hint_damaged(disk: &dyn Disk, layout: &Layout) -> io::Result<bool> {
    // A writer may be overwriting it: only what stays unreadable is damaged.
    for _ in 0..4 {
        let bytes = hint_bytes(disk, layout)?;
        if bytes.is_empty() || Synced::read(&bytes).is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn hint_bytes(disk: &dyn Disk, layout: &Layout) -> io::Result<Vec<u8>> {
    let (path, mut bytes) = (layout.synced(), Vec::new());
    match disk.open(&path, Access::Read) {
        Ok(file) => _ = read_upto(&*file, &mut bytes, 0, SYNCED_BYTES + 1).naming(&path)?,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
        Err(fault) => return Err(fault).naming(&path),
    }
    Ok(bytes)
}

/// The hint of one who looks at it whenever it takes the lock: the file stays open, so that a look is two calls to the system.
#[derive(Default)]
pub struct KeptHint(Option<(Arc<dyn DiskFile>, Identity)>);

impl KeptHint {
    /// What [`read_hint`] says, of a hint at this place.
    ///
    /// # Errors
    /// What the disk says.
    pub fn read(&mut self, disk: &dyn Disk, path: &Path) -> io::Result<Option<Synced>> {
        let there = match disk.status(path) {
            Ok(there) => there,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault).naming(path),
        };
        if self.0.as_ref().is_none_or(|(_, known)| *known != there.identity) {
            let file = disk.open(path, Access::Read).naming(path)?;
            let identity = file.identity().naming(path)?;
            self.0 = Some((file, identity));
        }
        // One of another length is not whole.
        let Some((file, _)) = self.0.as_ref().filter(|_| there.length == SYNCED_BYTES as u64) else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        read_upto(&**file, &mut bytes, 0, SYNCED_BYTES).naming(path)?;
        Ok(Synced::read(&bytes))
    }
}

/// Overwrites the hint in place: one sector, so that a crash leaves the old or the new one.
///
/// # Errors
/// `Io`.
pub fn write_hint(disk: &dyn Disk, layout: &Layout, synced: &Synced) -> Result<Arc<dyn DiskFile>> {
    let path = layout.synced();
    let file = match disk.open(&path, Access::Write) {
        Ok(file) => file,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => disk.create(&path).at(&path)?,
        Err(fault) => return Err(Error::io(&path, fault)),
    };
    let file = if file.is_shared().at(&path)? {
        // Another name leads to it: what is written here must not be written there.
        disk.create(&path).at(&path)?
    } else {
        file
    };
    if file.length().at(&path)? > SYNCED_BYTES as u64 {
        if holds_another(&*file).at(&path)? {
            return Err(Error::io(&path, Stranger::at(&path, StrangerKind::Swapped)));
        }
        file.truncate(SYNCED_BYTES as u64).at(&path)?;
    }
    file.write_at(&synced.spell(), 0).at(&path)?;
    Ok(file)
}

/// Whether another file of the store stands where the hint should be: whoever swapped the two has lost nothing yet.
///
/// # Errors
/// What the disk says.
pub fn hides_another(disk: &dyn Disk, layout: &Layout) -> io::Result<bool> {
    let path = layout.synced();
    match disk.open(&path, Access::Read) {
        Ok(file) => holds_another(&*file).naming(&path),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(fault) => Err(fault).naming(&path),
    }
}

fn holds_another(file: &dyn DiskFile) -> io::Result<bool> {
    let mut beginning = Vec::new();
    read_upto(file, &mut beginning, 0, 1024)?;
    Ok(is_swapped(&beginning))
}

/// Holds the hint against the log.
///
/// # Errors
/// What the disk says.
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
    Ok(if fits {
        Hint::Synced(synced.offset)
    } else {
        Hint::Contradicted(synced)
    })
}

/// The first whole line that is not blank, without its newline; `None` if there is none.
///
/// # Errors
/// What the disk says.
pub fn first_line(log: &dyn DiskFile, length: u64) -> io::Result<Option<Vec<u8>>> {
    let mut offset = 0;
    let mut line = Vec::new();
    let mut window = Vec::new();
    while offset < length && line.len() <= json::MAX_LINE_BYTES {
        window.clear();
        let got = read_upto(log, &mut window, offset, 4096)?;
        if got == 0 {
            break;
        }
        offset += got as u64;
        for part in window.split_inclusive(|b| *b == b'\n') {
            line.extend_from_slice(part);
            if line.ends_with(b"\n") {
                line.pop();
                if !line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r')) {
                    return Ok(Some(line));
                }
                line.clear();
            }
        }
    }
    // What is longer than any line is one that does not fit.
    Ok((line.len() > json::MAX_LINE_BYTES).then_some(line))
}

/// The line whose newline stands just before `end`.
///
/// # Errors
/// What the disk says.
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

/// The line that begins at a place, without its newline.
///
/// # Errors
/// What the disk says.
pub fn line_from(file: &dyn DiskFile, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let known = line.len();
        let room = (length - offset - known as u64).min(4096) as usize;
        let got = read_upto(file, &mut line, offset + known as u64, room)?;
        if let Some(newline) = memchr::memchr(b'\n', &line[known..]) {
            line.truncate(known + newline);
            return Ok(line);
        }
        if got == 0 {
            return Ok(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;
    use crate::disk::CrashDisk;

    #[test]
    fn a_hint_that_is_kept_open_is_seen_as_it_is_now() {
        let (disk, layout) = (CrashDisk::new(), Layout::of_folder("/store".into()));
        disk.create_dir(layout.folder()).expect("a folder");
        let (path, mut kept) = (layout.synced(), KeptHint::default());
        let synced = |seq: u64| Synced {
            offset: 100 * seq,
            seq,
            first: sha256(b"first"),
            head: sha256(b"head"),
        };
        let mut look = || {
            let seen = kept.read(&disk, &path).expect("read");
            assert_eq!(seen, read_hint(&disk, &layout).expect("read"));
            seen.map(|synced| synced.seq)
        };
        assert_eq!(look(), None);
        // Overwritten in place, as all do.
        for seq in [1, 2, 3] {
            write_hint(&disk, &layout, &synced(seq)).expect("written");
            assert_eq!(look(), Some(seq));
        }
        // Another file in its place, one that is not whole, and none.
        let other = disk.create(&layout.log_draft()).expect("a file");
        other.write_at(&synced(4).spell(), 0).expect("written");
        disk.rename(&layout.log_draft(), &path).expect("renamed");
        assert_eq!(look(), Some(4));
        other.write_at(b"more", SYNCED_BYTES as u64).expect("written");
        assert_eq!(look(), None);
        other.truncate(7).expect("cut");
        assert_eq!(look(), None);
        disk.remove(&path).expect("removed");
        assert_eq!(look(), None);
        write_hint(&disk, &layout, &synced(5)).expect("written");
        assert_eq!(look(), Some(5));
    }
}
