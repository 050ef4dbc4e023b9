//! How does a change become part of the log?

use crate::disk::Access;
use crate::error::{At, Error, Result};
use crate::event::draft::Draft;
use crate::event::{Known, Op, stamp};
use crate::layout::{Layout, base_name};
use crate::options::Durability;
use crate::origin::Origin;
use crate::snapshot::{self, Header};
use crate::verify::{BaseState, Walk};
use crate::wal::synced::Synced;
use crate::wal::writer::{Lines, Link, Saying};

use super::{Log, Store, Unsynced};

/// The first snapshot is due at so many events.
pub(super) const FIRST_SNAPSHOT_EVENTS: u64 = 50;
/// Each further one at so many times the events: its cost stays a constant share of writing.
const SNAPSHOT_GROWTH: u64 = 10;
/// What `normal` leaves unsynced at most.
const UNSYNCED_BYTES: u64 = 4 * 1024 * 1024;
/// And for how long, in microseconds.
const UNSYNCED_MICROS: i64 = 1_000_000;
/// What a record may grow to by patches, with room for the rest of its line.
const PATCHED_LIMIT_BYTES: usize = crate::json::MAX_LINE_BYTES - 4096;
const ADOPT_ID: &[u8] = b"__adopt__";

/// When the next snapshot is due in a log of so many events.
pub(super) fn next_snapshot(events: u64) -> u64 {
    let mut due = FIRST_SNAPSHOT_EVENTS;
    while due <= events {
        due *= SNAPSHOT_GROWTH;
    }
    due
}

/// What a commit wrote.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The seq of the first change; a batch's `begin` stands before it.
    pub first_seq: u64,
    /// The seq after the last change.
    pub next_seq: u64,
    /// The line of the last change, without its newline.
    pub last_line: Vec<u8>,
}

impl Store {
    /// Writes a draft as one atomic batch. `now` is in microseconds since 1970.
    ///
    /// # Errors
    /// `Locked` if another writer keeps the lock, `Io`, `Poisoned`, `Closed`, `Invalid`; nothing is written then.
    pub fn commit(&mut self, draft: &Draft, now: i64) -> Result<Committed> {
        self.with_lock(now, |store| {
            store.check_patches(draft)?;
            store.write_draft(draft, now)
        })
    }

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// `Io`, `Poisoned`, `Closed`.
    pub fn sync(&mut self) -> Result<()> {
        self.check_open()?;
        self.check_poison()?;
        if self.unsynced.bytes == 0 || self.options.durability == Durability::Off {
            return Ok(());
        }
        self.hold_lock()?;
        let outcome = self.sync_log();
        self.let_go_unless_exclusive();
        outcome
    }

    /// Syncs if `normal` has waited long enough.
    ///
    /// # Errors
    /// As `sync`.
    pub fn sync_if_due(&mut self, now: i64) -> Result<()> {
        match self.unsynced.since {
            Some(since) if now - since >= UNSYNCED_MICROS => self.sync(),
            _ => Ok(()),
        }
    }

    /// Runs a change under the lock, on the newest state.
    pub(super) fn with_lock<T>(&mut self, now: i64, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check_open()?;
        self.check_poison()?;
        self.hold_lock()?;
        let outcome = self.prepare(now).and_then(|()| change(self));
        self.let_go_unless_exclusive();
        outcome
    }

    /// A patch needs a record to change, and the result must fit into a line.
    fn check_patches(&self, draft: &Draft) -> Result<()> {
        let mut born = std::collections::HashMap::new();
        for change in draft.changes() {
            let (id, record) = (draft.id(change), draft.record(change));
            match change.op {
                Op::Upsert if draft.has_patches() => {
                    born.insert(id, record.len());
                }
                Op::Patch => {
                    let shown = || String::from_utf8_lossy(id).into_owned();
                    let known = born.get(id).copied().or_else(|| self.state.length_of(id));
                    let Some(length) = known else {
                        return Err(Error::invalid("id", format!("there is no record \"{}\" to patch", shown())));
                    };
                    if length + record.len() + id.len() > PATCHED_LIMIT_BYTES {
                        return Err(Error::invalid("patch", format!("\"{}\" would outgrow 16 MiB", shown())));
                    }
                    born.insert(id, length + record.len());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives a foreign base its anchor, if it has none yet.
    pub(super) fn anchor(&mut self, now: i64) -> Result<()> {
        match self.report.base {
            BaseState::Unanchored => self.write_draft(&Draft::default(), now).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn write_draft(&mut self, draft: &Draft, now: i64) -> Result<Committed> {
        let adoption = self.adopt()?;
        let ts = stamp::spell(now.max(self.latest()));
        let depth = self.options.recursion_depth;
        let mut link = self.link();
        let mut bytes = Vec::new();
        if let Some(record) = &adoption {
            let mut first = Lines::after(link);
            first.push(Saying {
                op: Op::Adopt,
                id: ADOPT_ID,
                record: record.as_bytes(),
                ts: &ts,
                depth,
            });
            link = first.link;
            bytes = first.bytes;
        }
        let adopted = bytes.len();
        let mut lines = Lines::of_draft(draft, link, &ts, depth);
        let base = self.append(if adopted == 0 { &lines.bytes } else { bytes.extend_from_slice(&lines.bytes); &bytes }, &lines, now)?;
        if adopted > 0 {
            // The adoption changes how the log is read; what it says is already in memory, its place is not.
            let known = self.known_system_event(Op::Adopt, base, link.next_seq - 1);
            self.state.note(known);
        }
        self.take_in(draft, &mut lines, base + adopted as u64);
        self.write_snapshot_if_due();
        let count = draft.changes().len() as u64;
        Ok(Committed {
            first_seq: lines.link.next_seq - count,
            next_seq: lines.link.next_seq,
            last_line: lines.starts.len().checked_sub(1).map(|last| lines.line(last).to_vec()).unwrap_or_default(),
        })
    }

    pub(super) fn known_system_event(&self, op: Op, offset: u64, seq: u64) -> Known<'static> {
        Known {
            op,
            id: b"",
            record: b"{}",
            fields: crate::json::RecordSpans::default(),
            hash: b"",
            offset,
            seq,
        }
    }

    fn take_in(&mut self, draft: &Draft, lines: &mut Lines, base: u64) {
        let system_lines = lines.starts.len() - draft.changes().len();
        let mut seq = lines.link.next_seq - lines.starts.len() as u64;
        for index in 0..system_lines {
            let known = self.known_system_event(Op::Begin, base + lines.starts[index] as u64, seq);
            self.state.apply(known);
            seq += 1;
        }
        for (change, start) in draft.changes().iter().zip(&lines.starts[system_lines..]) {
            self.state.apply(Known {
                op: change.op,
                id: draft.id(change),
                record: draft.record(change),
                fields: change.fields,
                hash: b"",
                offset: base + *start as u64,
                seq,
            });
            seq += 1;
        }
    }

    pub(super) fn link(&self) -> Link {
        let mark = self.log.as_ref().map(|log| *log.walk.mark()).unwrap_or_default();
        Link {
            head: mark.head,
            next_seq: mark.last_seq + 1,
        }
    }

    pub(super) fn latest(&self) -> i64 {
        self.log.as_ref().map_or(i64::MIN, |log| log.walk.latest)
    }

    /// Puts lines behind the log, creating it if there is none; gives the offset they begin at.
    pub(super) fn append(&mut self, bytes: &[u8], lines: &Lines, now: i64) -> Result<u64> {
        if self.log.is_none() {
            self.create_log(bytes)?;
            self.advance(bytes, lines, now);
            return Ok(0);
        }
        self.make_ready()?;
        let path = self.layout.log();
        let Some(log) = &self.log else {
            return Err(Error::Closed);
        };
        let base = log.walk.end;
        if let Err(fault) = log.file.write_at(bytes, base) {
            if let Err(worse) = log.file.truncate(base) {
                self.poisoned = Some(format!("a failed write could not be undone: {worse}"));
            }
            return Err(Error::io(&path, fault));
        }
        self.unsynced.bytes += bytes.len() as u64;
        self.unsynced.since.get_or_insert(now);
        let due = match self.options.durability {
            Durability::Full => true,
            Durability::Normal => {
                self.unsynced.bytes >= UNSYNCED_BYTES
                    || self.unsynced.since.is_some_and(|since| now - since >= UNSYNCED_MICROS)
            }
            Durability::Off => false,
        };
        self.advance(bytes, lines, now);
        if due {
            if let Err(fault) = self.sync_log() {
                // The bytes are in the file but nobody may rely on them: the memory must not either.
                self.log = None;
                return Err(fault);
            }
        }
        Ok(base)
    }

    fn advance(&mut self, bytes: &[u8], lines: &Lines, now: i64) {
        let total_lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
        if let Some(log) = &mut self.log {
            let mark = &mut log.walk.follower.mark;
            mark.head = lines.link.head;
            mark.first_seq.get_or_insert(lines.link.next_seq - total_lines);
            mark.last_seq = lines.link.next_seq - 1;
            mark.events += total_lines;
            log.walk.latest = log.walk.latest.max(now);
            log.walk.lines += total_lines;
            log.walk.end += bytes.len() as u64;
        }
    }

    /// A log is born complete: written elsewhere, synced, and only then given its name.
    fn create_log(&mut self, bytes: &[u8]) -> Result<()> {
        let path = self.layout.log();
        self.replace_log(bytes)?;
        let file = self.disk.open(&path, Access::Write).at(&path)?;
        let mut walk = Walk::new(None);
        let first = bytes.get(9..73).and_then(crate::digest::Hex::read);
        walk.follower.mark.first = first;
        self.log = Some(Log {
            identity: file.identity().at(&path)?,
            file,
            writable: true,
            walk,
            origin: Origin::Nothing,
            anchored: false,
        });
        self.unsynced = Unsynced::default();
        Ok(())
    }

    /// Gives the log new contents, as a whole or not at all.
    pub(super) fn replace_log(&mut self, bytes: &[u8]) -> Result<()> {
        let (draft, path, folder) = (self.layout.log_draft(), self.layout.log(), self.layout.folder().to_owned());
        let file = self.disk.create(&draft).at(&draft)?;
        file.write_at(bytes, 0).at(&draft)?;
        file.sync().at(&draft)?;
        self.disk.rename(&draft, &path).at(&path)?;
        self.disk.sync_dir(&folder).at(&folder)
    }

    /// Before the first append: a handle that writes, and a hint that tells a torn write from damage.
    fn make_ready(&mut self) -> Result<()> {
        let path = self.layout.log();
        let Some(log) = &mut self.log else {
            return Err(Error::Closed);
        };
        if !log.writable {
            for leftover in [self.layout.log_draft(), self.layout.snapshot_draft()] {
                remove_if_there(&*self.disk, &leftover)?;
            }
            let file = self.disk.open(&path, Access::Write).at(&path)?;
            if file.identity().at(&path)? != log.identity {
                return Err(Error::io(&path, std::io::Error::other("the log was replaced while it was locked")));
            }
            log.file = file;
            log.writable = true;
        }
        if log.anchored {
            return Ok(());
        }
        self.sync_log()?;
        let hint = self.layout.synced();
        let file = self.disk.open(&hint, Access::Write).at(&hint)?;
        file.sync().at(&hint)?;
        self.disk.sync_dir(self.layout.folder()).at(self.layout.folder())?;
        if let Some(log) = &mut self.log {
            log.anchored = true;
        }
        Ok(())
    }

    /// Syncs the log and remembers how far; a failure poisons the store.
    pub(super) fn sync_log(&mut self) -> Result<()> {
        let path = self.layout.log();
        let Some(log) = &self.log else {
            return Ok(());
        };
        if let Err(fault) = log.file.sync() {
            self.poisoned = Some(fault.to_string());
            return Err(Error::io(&path, fault));
        }
        self.unsynced = Unsynced::default();
        let mark = log.walk.mark();
        let (Some(first), Some(head)) = (mark.first, mark.head) else {
            return Ok(());
        };
        let synced = Synced {
            offset: log.walk.end,
            seq: mark.last_seq,
            first,
            head,
        };
        write_hint(&*self.disk, &self.layout, &synced)
    }

    /// Before the first write to a log that another tool compacted, its snapshot becomes a base of ours.
    fn adopt(&mut self) -> Result<Option<String>> {
        if self.report.base != BaseState::Unanchored {
            return Ok(None);
        }
        let path = self.layout.snapshot();
        let file = self.disk.open(&path, Access::Read).at(&path)?;
        let contents = snapshot::read(&*file, &mut |_| true).at(&path)?;
        let header = contents.header.map_err(|reason| Error::Unsupported {
            what: format!("{}: {reason}", path.display()),
        })?;
        let sha256 = contents.sha256;
        let bases = self.layout.bases();
        self.disk.create_dir(&bases).at(&bases)?;
        self.disk.sync_dir(self.layout.folder()).at(self.layout.folder())?;
        super::copies::copy_file(&*self.disk, &path, &self.layout.inside(&base_name(sha256.text())), None)?;
        self.disk.sync_dir(&bases).at(&bases)?;
        self.report.base = BaseState::Adopted;
        let mut record = format!("{{\"base_sha256\":\"{}\",\"last_hash\":", sha256.text()).into_bytes();
        crate::json::write_string(&header.last_hash, &mut record);
        record.extend_from_slice(format!(",\"seq\":{}}}", header.seq).as_bytes());
        Ok(Some(String::from_utf8_lossy(&record).into_owned()))
    }

    /// `snapshot.json` is derived: if it cannot be written, the log is none the worse.
    fn write_snapshot_if_due(&mut self) {
        if self.events() < self.snapshot_due {
            return;
        }
        self.snapshot_due = next_snapshot(self.events());
        if self.write_snapshot().is_err() {
            self.report.notes.push("snapshot.json could not be written".to_owned());
        }
    }

    /// Writes the state down for people and other tools.
    pub(super) fn write_snapshot(&mut self) -> Result<()> {
        let (path, folder) = (self.layout.snapshot(), self.layout.folder().to_owned());
        let draft = self.layout.snapshot_draft();
        let header = self.header();
        let frozen = self.state.freeze();
        snapshot::write(&*self.disk, &draft, &header, &frozen, &mut |_, _| {}).at(&draft)?;
        self.disk.rename(&draft, &path).at(&path)?;
        self.disk.sync_dir(&folder).at(&folder)
    }

    /// What stands before the records of the state as it is now.
    pub(super) fn header(&self) -> Header {
        Header {
            seq: self.last_seq(),
            last_hash: self.head(),
            ts: stamp::spell(self.latest().max(0)),
        }
    }
}

/// Overwrites the hint in place: one sector, so that a crash leaves the old or the new one.
pub(super) fn write_hint(disk: &dyn crate::disk::Disk, layout: &Layout, synced: &Synced) -> Result<()> {
    let path = layout.synced();
    let file = match disk.open(&path, Access::Write) {
        Ok(file) => file,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => disk.create(&path).at(&path)?,
        Err(fault) => return Err(Error::io(&path, fault)),
    };
    file.write_at(&synced.spell(), 0).at(&path)
}

fn remove_if_there(disk: &dyn crate::disk::Disk, path: &std::path::Path) -> Result<()> {
    match disk.remove(path) {
        Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, fault)),
        _ => Ok(()),
    }
}
