//! Which head was seen last? A note outside the project, so that a log whose end is cut off, or that is gone, is missed.
//!
//! A chain proves that nothing is missing inside; that nothing is missing at its end only someone can tell who saw it
//! before. The note is small, written as a whole after a sync, and never replaced by a head that does not follow from it.

use std::io;
use std::path::{Path, PathBuf};

use crate::archive;
use crate::digest::Hex;
use crate::disk::{Access, Disk, DiskFile, read_whole};
use crate::json::{self, Value};
use crate::layout::Layout;
use crate::origin::{Hint, Origin, hint_for, origin_of};
use crate::wal::synced::Synced;

/// How the log stands to the head that was seen last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No head was remembered, or the note cannot be read.
    Unseen,
    /// The log still has it, or follows from it by compactions that name it.
    Kept,
    /// It does not: the reason.
    Lost(String),
    /// That cannot be found out any more: the reason.
    Unknown(String),
}

/// Reads a note; `None` if there is none that can be believed.
///
/// # Errors
/// What the disk says.
pub fn read(disk: &dyn Disk, note: &Path) -> io::Result<Option<Synced>> {
    let Some(bytes) = read_whole(disk, note)? else {
        return Ok(None);
    };
    let Ok(value) = json::parse(&bytes) else {
        return Ok(None);
    };
    let digest = |name: &str| Hex::read(value.get(name)?.as_str()?.as_bytes());
    let number = |name: &str| value.get(name)?.as_u64();
    let read = || {
        Some(Synced {
            offset: number("offset")?,
            seq: number("seq")?,
            first: digest("first")?,
            head: digest("head")?,
        })
    };
    Ok(read())
}

/// Writes a note about the log in `folder`, as a whole or not at all.
///
/// # Errors
/// What the disk says.
pub fn write(disk: &dyn Disk, note: &Path, folder: &Path, reached: &Synced) -> io::Result<()> {
    let number = |n: u64| Value::from(i64::try_from(n).unwrap_or(i64::MAX));
    let text = |text: &str| Value::Str(text.to_owned());
    let value = Value::object([
        ("first", text(reached.first.text())),
        ("folder", text(&folder.to_string_lossy())),
        ("head", text(reached.head.text())),
        ("offset", number(reached.offset)),
        ("seq", number(reached.seq)),
    ]);
    let mut bytes = Vec::new();
    json::write_value(&value, &mut bytes);
    bytes.push(b'\n');
    if let Some(parent) = note.parent() {
        disk.create_dir(parent)?;
    }
    let draft = draft_of(note);
    let file = disk.create(&draft)?;
    file.write_at(&bytes, 0)?;
    // Without its contents the new name would be worth less than the old note.
    file.sync()?;
    disk.rename(&draft, note)
}

/// Two processes may write at the same time: each has a draft of its own.
fn draft_of(note: &Path) -> PathBuf {
    let mut name = note.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    PathBuf::from(name)
}

/// Holds the files against a remembered head.
///
/// # Errors
/// What the disk says.
pub fn standing(disk: &dyn Disk, layout: &Layout, seen: Option<Synced>) -> io::Result<Standing> {
    let Some(seen) = seen else {
        return Ok(Standing::Unseen);
    };
    let log = match disk.open(layout.log(), Access::Read) {
        Ok(log) => log,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
            return Ok(Standing::Lost(format!(
                "event {} was seen here, but there is no log",
                seen.seq
            )));
        }
        Err(fault) => return Err(fault),
    };
    let mut segment: std::sync::Arc<dyn DiskFile> = log;
    loop {
        let length = segment.length()?;
        match hint_for(Some(seen), &*segment, length)? {
            Hint::Synced(_) => return Ok(Standing::Kept),
            Hint::Contradicted(_) => {
                return Ok(Standing::Lost(format!(
                    "event {} was seen here, but the log ends before it or says something else there",
                    seen.seq
                )));
            }
            Hint::None => {}
        }
        // Another log than the one that was seen: perhaps what became of it.
        let Origin::Ours(sentinel) = origin_of(&*segment, length)? else {
            return Ok(Standing::Lost(format!(
                "event {} was seen in another log than this",
                seen.seq
            )));
        };
        if sentinel.previous_head == seen.head.text() {
            return Ok(Standing::Kept);
        }
        let path = sentinel.safe_archive().map(|(name, _)| layout.inside(name));
        let opened = path.map(|path| archive::open(disk, &path));
        segment = match opened {
            Some(Ok(archive)) => archive.log,
            _ => {
                return Ok(Standing::Unknown(format!(
                    "event {} was seen here, and the history that could tell was dropped",
                    seen.seq
                )));
            }
        };
    }
}
