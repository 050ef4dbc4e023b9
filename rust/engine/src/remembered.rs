//! Which head was seen last? A note outside the project, so that a log whose end is cut off, or that is gone, is missed.
//!
//! A chain proves that nothing is missing inside; that nothing is missing at its end only someone can tell who saw it
//! before. The note is small, written as a whole after a sync, and never replaced by a head that does not follow from it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::archive;
use crate::digest::Hex;
use crate::disk::{Access, Disk, DiskFile, read_whole};
use crate::event::line::{Event, Trust};
use crate::hint::{Hint, first_line, hint_for, line_before};
use crate::json::{self, Value};
use crate::layout::Layout;
use crate::origin::{Origin, origin_of};
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
    /// The note cannot be read: the reason.
    Unreadable(String),
}

/// What a note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The head that was seen last.
    pub seen: Synced,
    /// The head of a log that was about to take the place of that one: either may be there.
    pub next: Option<Synced>,
}

impl Note {
    /// A note about one head.
    pub fn of(seen: Synced) -> Self {
        Self { seen, next: None }
    }
}

/// Reads a note; `None` if there is none that can be believed.
///
/// # Errors
/// What the disk says.
pub fn read(disk: &dyn Disk, note: &Path) -> io::Result<Option<Note>> {
    let Some(bytes) = read_whole(disk, note)? else {
        return Ok(None);
    };
    let Ok(value) = json::parse(&bytes) else {
        return Ok(None);
    };
    Ok(head_in(&value).map(|seen| Note {
        seen,
        next: value.get("next").and_then(head_in),
    }))
}

fn head_in(value: &Value) -> Option<Synced> {
    let digest = |name: &str| Hex::read(value.get(name)?.as_str()?.as_bytes());
    let number = |name: &str| value.get(name)?.as_u64();
    Some(Synced {
        offset: number("offset")?,
        seq: number("seq")?,
        first: digest("first")?,
        head: digest("head")?,
    })
}

fn spelled(head: &Synced) -> Vec<(&'static str, Value)> {
    let number = |n: u64| Value::from(i64::try_from(n).unwrap_or(i64::MAX));
    vec![
        ("first", Value::Str(head.first.text().to_owned())),
        ("head", Value::Str(head.head.text().to_owned())),
        ("offset", number(head.offset)),
        ("seq", number(head.seq)),
    ]
}

/// Writes a note about the log in `folder`, as a whole or not at all.
///
/// # Errors
/// What the disk says.
pub fn write(disk: &dyn Disk, note: &Path, folder: &Path, says: &Note) -> io::Result<()> {
    let mut fields = spelled(&says.seen);
    fields.push(("folder", Value::Str(folder.to_string_lossy().into_owned())));
    if let Some(next) = &says.next {
        fields.push(("next", Value::object(spelled(next))));
    }
    let mut bytes = Vec::new();
    json::write_value(&Value::object(fields), &mut bytes);
    bytes.push(b'\n');
    if let Some(parent) = note.parent() {
        disk.create_dir(parent)?;
    }
    let draft = draft_of(note);
    let file = disk.create(&draft)?;
    file.write_at(&bytes, 0)?;
    // Not synced: others wait for the lock meanwhile, and a note that a power failure took only cannot tell.
    disk.rename(&draft, note)
}

/// Several may write at the same time: each has a draft of its own.
fn draft_of(note: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let mut name = note.as_os_str().to_owned();
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}-{number}.tmp", std::process::id()));
    PathBuf::from(name)
}

/// The head of a log of this length.
///
/// # Errors
/// What the disk says.
pub fn head_of(log: &dyn DiskFile, length: u64) -> io::Result<Option<Synced>> {
    let (Some(first), Some(last)) = (first_line(log, length)?, line_before(log, length)?) else {
        return Ok(None);
    };
    let read = |line: &[u8]| {
        let event = Event::read(line, Trust::Hashes).ok()?;
        Some((event.hash(line), event.spans.seq))
    };
    Ok(read(&first).zip(read(&last)).map(|((first, _), (head, seq))| Synced {
        offset: length,
        seq,
        first,
        head,
    }))
}

/// Holds the files against a remembered head.
///
/// # Errors
/// What the disk says.
pub fn standing(disk: &dyn Disk, layout: &Layout, note: Option<Note>) -> io::Result<Standing> {
    let Some(note) = note else {
        return Ok(Standing::Unseen);
    };
    let verdict = standing_to(disk, layout, &note.seen)?;
    match note.next {
        Some(next) if verdict != Standing::Kept => match standing_to(disk, layout, &next)? {
            Standing::Kept => Ok(Standing::Kept),
            _ => Ok(verdict),
        },
        _ => Ok(verdict),
    }
}

/// The same for one head.
///
/// # Errors
/// What the disk says.
pub fn standing_to(disk: &dyn Disk, layout: &Layout, seen: &Synced) -> io::Result<Standing> {
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
        match hint_for(Some(*seen), &*segment, length)? {
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
