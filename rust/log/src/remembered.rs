//! A note of the last head, outside the project, so that a log that was cut or is gone is missed.
//!
//! A chain alone does not tell that its end is missing. The note is written as a whole after a sync.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::archive;
use crate::digest::Hex;
use crate::disk::{Disk, DiskFile, open_if_there, read_whole};
use crate::event::Known;
use crate::event::line::{Event, Trust};
use crate::hint::{Hint, Synced, first_line, hint_for, line_before};
use crate::json::{self, Value};
use crate::layout::{Layout, own_draft};
use crate::log::files::with_suffix;
use crate::origin::{ALONE, Origin, Sentinel, WayBack, origin_of};
use crate::trail::{SentinelTrail, Trail, TrailEnd};
use crate::verify::{Sink, Walk};

/// How long to wait for another process that changes the same note: a change takes some microseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the log still holds the head that was seen last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadStanding {
    /// No head was remembered.
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

/// A head that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenHead {
    /// Which event it was, and where it stood.
    pub at: Synced,
    /// The trail up to it: tells what stood before it, also where lines were erased since.
    pub trail: Option<TrailEnd>,
}

impl From<Synced> for SeenHead {
    fn from(at: Synced) -> Self {
        Self { at, trail: None }
    }
}

/// The contents of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The head that was seen last.
    pub seen: SeenHead,
    /// The head of a log that was about to take the place of that one: either may be there.
    pub next: Option<SeenHead>,
    /// Why that head was missed when the log was replaced since: the logs that come after cannot tell it any more.
    pub lost: Option<String>,
}

impl Note {
    /// A note about one head.
    pub fn of(seen: SeenHead) -> Self {
        Self {
            seen,
            next: None,
            lost: None,
        }
    }
}

/// Reads a note; `None` if there is none. Errors: `InvalidData` if it is no note of ours.
pub fn read(disk: &dyn Disk, note: &Path) -> io::Result<Option<Note>> {
    let bytes = match read_whole(disk, note) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        // Where its folder should be is something else.
        Err(fault) if fault.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(fault) => return Err(fault),
    };
    let damaged = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());
    if bytes.is_empty() {
        return Err(damaged("it is empty"));
    }
    let value = json::parse(&bytes).map_err(|_| damaged("it is damaged"))?;
    let seen = head_in(&value).ok_or_else(|| damaged("it names no head"))?;
    Ok(Some(Note {
        seen,
        next: value.get("next").and_then(head_in),
        lost: value.get("lost").and_then(Value::as_str).map(str::to_owned),
    }))
}

fn head_in(value: &Value) -> Option<SeenHead> {
    let digest = |name: &str| Hex::read(value.get(name)?.as_str()?);
    let number = |name: &str| value.get(name)?.as_u64();
    Some(SeenHead {
        at: Synced {
            offset: number("offset")?,
            seq: number("seq")?,
            first: digest("first")?,
            head: digest("head")?,
        },
        trail: SentinelTrail::read(value).known(),
    })
}

fn spelled(seen: &SeenHead) -> Vec<(&'static str, Value)> {
    let digest = |digest: &Hex| Value::Str(digest.text().to_owned());
    let head = &seen.at;
    let mut fields = vec![
        ("first", digest(&head.first)),
        ("head", digest(&head.head)),
        ("offset", Value::from(head.offset)),
        ("seq", Value::from(head.seq)),
    ];
    if let Some(trail) = &seen.trail {
        fields.push(("trail", digest(&trail.value)));
        fields.push(("trail_from", Value::from(trail.from)));
    }
    fields
}

/// Writes a note about the log in `folder`, as a whole or not at all.
pub fn write(disk: &dyn Disk, note: &Path, folder: &Path, says: &Note) -> io::Result<()> {
    let mut fields = spelled(&says.seen);
    fields.push(("folder", Value::Str(folder.to_string_lossy().into_owned())));
    if let Some(next) = &says.next {
        fields.push(("next", Value::object(spelled(next))));
    }
    if let Some(lost) = &says.lost {
        fields.push(("lost", Value::Str(lost.clone())));
    }
    let mut bytes = Value::object(fields).to_bytes();
    bytes.push(b'\n');
    if let Some(parent) = note.parent() {
        disk.create_dir(parent)?;
    }
    let draft = own_draft(note);
    let file = disk.create(&draft)?;
    file.write_at(&bytes, 0)?;
    // Not synced: others wait for the lock meanwhile, and a note that a power failure took only cannot tell.
    disk.rename(&draft, note)
}

/// Runs something while no other process changes the note; also for readers, which may not lock the store.
///
/// # Errors
/// Those of the disk and of `act`; `TimedOut`.
pub fn alone<T>(disk: &dyn Disk, note: &Path, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if let Some(parent) = note.parent() {
        disk.create_dir(parent)?;
    }
    let lock = disk.lock_file(&with_suffix(note, ".lock"))?;
    if !lock.acquire(PATIENCE)? {
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "another process does not come to an end with it",
        ));
    }
    let outcome = act();
    // Closing gives it back too.
    let _ = lock.release();
    outcome
}

/// The head of a log of this length.
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

/// Compares the files with a remembered head. Log and note may be replaced meanwhile: after a loss the caller looks again.
pub fn standing(disk: &dyn Disk, layout: &Layout, note: Option<&Note>) -> io::Result<HeadStanding> {
    let Some(note) = note else {
        return Ok(HeadStanding::Unseen);
    };
    let verdict = standing_to(disk, layout, &note.seen)?;
    match (&note.next, &note.lost) {
        _ if verdict == HeadStanding::Kept => Ok(verdict),
        (_, Some(reason)) => Ok(HeadStanding::Lost(reason.clone())),
        (Some(next), None) if standing_to(disk, layout, next)? == HeadStanding::Kept => Ok(HeadStanding::Kept),
        _ => Ok(verdict),
    }
}

/// The answer of one log about a head, or the sentinel that leads further back.
enum HeadAnswer {
    Here(HeadStanding),
    Before(Sentinel),
}

/// The same for one head.
pub fn standing_to(disk: &dyn Disk, layout: &Layout, head: &SeenHead) -> io::Result<HeadStanding> {
    let seen = &head.at;
    let Some(log) = open_if_there(disk, layout.log())? else {
        let reason = format!("event {} was seen here, but there is no log", seen.seq);
        return Ok(HeadStanding::Lost(reason));
    };
    let mut answer = ask(&*log, head)?;
    let mut way = WayBack::default();
    let unknown = |why: String| {
        Ok(HeadStanding::Unknown(format!(
            "event {} was seen here, and {why}",
            seen.seq
        )))
    };
    loop {
        let sentinel = match answer {
            HeadAnswer::Here(standing) => return Ok(standing),
            HeadAnswer::Before(sentinel) => sentinel,
        };
        let Some((name, _)) = sentinel.safe_archive() else {
            return unknown("the history that could tell was dropped".to_owned());
        };
        let asked = archive::open(disk, &layout.inside(name)).and_then(|archive| ask(&*archive.log, head));
        answer = match asked {
            // A segment begins where the one before it ends: whatever leads elsewhere leads nowhere.
            Ok(HeadAnswer::Before(earlier)) if earlier.last_seq >= sentinel.last_seq => {
                return unknown(format!("{name}, which could tell, leads in a circle"));
            }
            Ok(HeadAnswer::Before(earlier)) => HeadAnswer::Before(way.back(&sentinel, earlier)),
            Ok(answer) => answer,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                return unknown(format!("the history that could tell was dropped: {name} is not there"));
            }
            Err(fault) => return unknown(format!("{name}, which could tell, cannot be read: {fault}")),
        };
    }
}

fn lost(seen: &Synced, how: &str) -> HeadAnswer {
    HeadAnswer::Here(HeadStanding::Lost(format!(
        "event {} was seen here, but {how}",
        seen.seq
    )))
}

/// Asks one log, the live one or one in an archive.
fn ask(log: &dyn DiskFile, head: &SeenHead) -> io::Result<HeadAnswer> {
    let (length, seen) = (log.length()?, &head.at);
    if log.is_redacted() {
        return ask_redacted(log, length, head);
    }
    match hint_for(Some(*seen), log, length)? {
        Hint::Synced(_) => return Ok(HeadAnswer::Here(HeadStanding::Kept)),
        Hint::Contradicted(_) => return Ok(lost(seen, "the log ends before it or says something else there")),
        Hint::None => {}
    }
    ask_origin(log, length, seen)
}

/// Searches a redacted log for a head by seq and hash. Only the trail proves what came before it.
fn ask_redacted(log: &dyn DiskFile, length: u64, head: &SeenHead) -> io::Result<HeadAnswer> {
    let seen = &head.at;
    let mut search = HeadSearch {
        seen,
        trail: None,
        found: None,
    };
    let mut walk = Walk::new(None);
    walk.go(log, length, ALONE, &mut search)?;
    if let Some(found) = search.found {
        return Ok(match head.trail.is_none_or(|noted| noted == found) {
            true => HeadAnswer::Here(HeadStanding::Kept),
            false => lost(seen, "what stands before it is not what stood there then"),
        });
    }
    if walk.mark().first == Some(seen.first) {
        return Ok(lost(seen, "the log says something else there"));
    }
    ask_origin(log, length, seen)
}

struct HeadSearch<'a> {
    seen: &'a Synced,
    trail: Option<Trail>,
    found: Option<TrailEnd>,
}

impl Sink for HeadSearch<'_> {
    fn count(&mut self, known: Known<'_>, _: i64) {
        let begin = || Trail::beginning(known.seq, known.op, known.record);
        let trail = self.trail.get_or_insert_with(begin);
        if let Some(hash) = Hex::read_raw(known.hash) {
            trail.add(&hash);
        }
        if known.seq == self.seen.seq && known.hash == self.seen.head.bytes() {
            self.found = Some(trail.end());
        }
    }

    fn is_satisfied(&self) -> bool {
        self.found.is_some()
    }
}

/// Another log than the one that was seen: perhaps what became of it.
fn ask_origin(log: &dyn DiskFile, length: u64, seen: &Synced) -> io::Result<HeadAnswer> {
    Ok(match origin_of(log, length)? {
        Origin::Ours(sentinel) if sentinel.previous_head == seen.head.text() => HeadAnswer::Here(HeadStanding::Kept),
        Origin::Ours(sentinel) => HeadAnswer::Before(sentinel),
        Origin::Nothing | Origin::Foreign => HeadAnswer::Here(HeadStanding::Lost(format!(
            "event {} was seen in another log than this",
            seen.seq
        ))),
    })
}
