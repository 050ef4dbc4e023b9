//! Appends lines to the log, syncs it, and takes back what could not be written.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::damage::Tail;
use crate::disk::{Access, Stranger, StrangerKind};
use crate::error::{At, Error, Result};
use crate::event::stamp;
use crate::hint::{read_hint, write_hint};
use crate::layout::is_draft;
use crate::origin::{ALONE, Origin, origin_of};
use crate::remembered::SeenHead;
use crate::verify::{BaseState, NoSink, Walk};
use crate::wal::synced::Synced;
use crate::wal::writer::Lines;

use super::body::Log;
use super::files::{copy_bytes, copy_range, free_name, remove_ours};
use super::open::{OpenLog, first_hash};
use super::sync::{Barrier, Durability, LogSync, Pulse, WrittenBytes};

/// How lines get behind it.
impl Log {
    /// Under the lock: puts lines behind the log, creating it if there is none; says where they begin.
    pub fn append(&mut self, lines: &Lines, now: i64, barrier: &mut dyn Barrier) -> Result<u64> {
        if i64::try_from(lines.link.next_seq).is_err() {
            return Err(Error::limit("the last seq of the log is the largest there can be"));
        }
        // A log without a single line is as good as none.
        let is_empty = |open: &OpenLog| open.mark().events == 0 && self.report.damage.is_empty();
        if self.open.as_ref().is_none_or(is_empty) {
            self.check_absent()?;
            self.create(lines)?;
            self.advance(lines, now);
            self.unsynced.count(lines.starts.len(), lines.bytes.len());
            self.unsynced.born(now);
            return Ok(0);
        }
        self.make_ready(barrier)?;
        self.end_last_line()?;
        let base = self.write_behind(&lines.bytes)?;
        self.advance(lines, now);
        self.unsynced.wrote(lines.bytes.len() as u64, now);
        self.unsynced.count(lines.starts.len(), lines.bytes.len());
        Ok(base)
    }

    /// A damaged last line without a newline stays as it is, but nothing may be glued to it.
    fn end_last_line(&mut self) -> Result<()> {
        if self.open.as_ref().is_some_and(|open| open.walk.unterminated) {
            self.write_behind(b"\n")?;
            if let Some(open) = &mut self.open {
                open.walk.end += 1;
                open.walk.unterminated = false;
            }
        }
        Ok(())
    }

    /// One write of all lines; what cannot be written whole is taken back.
    fn write_behind(&mut self, bytes: &[u8]) -> Result<u64> {
        let Some(open) = &self.open else {
            return Err(Error::Closed);
        };
        let base = open.walk.end;
        match open.file.write_at(bytes, base) {
            Ok(()) => Ok(base),
            Err(fault) => Err(self.undo_write(base, fault)),
        }
    }

    /// Cuts off what a failed write left behind.
    fn undo_write(&mut self, base: u64, fault: io::Error) -> Error {
        let undone = self.open.as_ref().map_or(Ok(()), |open| open.file.truncate(base));
        if let Err(worse) = undone {
            self.poison(&format!("a failed write could not be undone: {worse}"));
        }
        Error::io(self.site.log(), fault)
    }

    fn advance(&mut self, lines: &Lines, now: i64) {
        if let Some(open) = &mut self.open {
            open.advance(lines, now);
            self.own_end = open.walk.end;
        }
    }

    /// INVARIANT: a log that holds anything is never replaced by a new one.
    fn check_absent(&self) -> Result<()> {
        let path = self.site.log();
        match (&self.open, self.site.disk.status(path)) {
            (Some(_), _) => Ok(()),
            (None, Err(fault)) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
            (None, Err(fault)) => Err(Error::io(path, fault)),
            (None, Ok(_)) => Err(Error::io(
                path,
                io::Error::other("the log must be read before it is written"),
            )),
        }
    }

    /// A log is born complete: written elsewhere, synced, and only then given its name.
    fn create(&mut self, lines: &Lines) -> Result<()> {
        let path = self.site.log();
        self.site.replace_log(&lines.bytes)?;
        let file = self.site.disk.open(path, Access::Write).at(path)?;
        // The hint comes second: without its log it would tell of one that was lost. Should it fail, the next append tries
        // again before it writes.
        let is_told = self.tell_birth(lines).is_ok();
        let born = OpenLog::writing(file, Walk::new(None).with_trail(), Origin::Nothing).at(path)?;
        self.open = Some(born.anchored(is_told));
        Ok(())
    }

    /// Says durably how far a log reaches that was just born.
    fn tell_birth(&self, lines: &Lines) -> Result<()> {
        if let (Some(first), Some(head)) = (first_hash(lines), lines.link.head) {
            let reached = Synced {
                offset: lines.bytes.len() as u64,
                seq: lines.link.next_seq - 1,
                first,
                head,
            };
            let (disk, layout) = (&*self.site.disk, &self.site.layout);
            write_hint(disk, layout, &reached)?.sync().at(&layout.synced())?;
            disk.sync_dir(layout.folder()).at(layout.folder())?;
        }
        Ok(())
    }

    /// Under the lock: swaps the log for one that a sentinel begins. The hint must speak of it, see [`Log::make_ready`], before
    /// anyone appends to it: others would take its word for it.
    pub fn retire(&mut self, sentinel: &Lines, now: i64) -> Result<()> {
        self.head.announce_log(sentinel);
        self.site.replace_log(&sentinel.bytes)?;
        // What comes next goes behind the sentinel.
        let (latest, path) = (self.latest(), self.site.log());
        let file = self.site.disk.open(path, Access::Write).at(path)?;
        let length = file.length().at(path)?;
        let mut walk = Walk::new(None).with_trail();
        walk.go(&*file, length, ALONE, &mut NoSink, &mut |_, _| {}).at(path)?;
        walk.latest = latest.max(now);
        let origin = origin_of(&*file, length).at(path)?;
        self.open = Some(OpenLog::writing(file, walk, origin).at(path)?);
        self.report.base = BaseState::Anchored;
        self.report.damage.clear();
        self.report.cut = None;
        Ok(())
    }

    /// Before the first append: a handle that writes, and a hint that tells a torn write from damage.
    pub fn make_ready(&mut self, barrier: &mut dyn Barrier) -> Result<()> {
        let site = Arc::clone(&self.site);
        let (disk, path, folder) = (&*site.disk, site.log(), site.layout.folder());
        let Some(open) = &mut self.open else {
            return Err(Error::Closed);
        };
        if !open.writable {
            // What an interrupted replacement left behind. A snapshot that another process is writing goes too: it is written
            // again.
            remove_ours(disk, folder, is_draft)?;
            let file = disk.open(path, Access::Write).at(path)?;
            if file.identity().at(path)? != open.identity {
                return Err(Error::io(
                    path,
                    io::Error::other("the log was replaced while it was locked"),
                ));
            }
            open.file = file;
            open.writable = true;
        }
        if open.anchored {
            return Ok(());
        }
        self.sync(barrier)?;
        if self.reached().is_none() {
            // The log ends with damage, or is nothing else: there is no event at its end that a hint could name.
            return Ok(());
        }
        site.sync_hint()?;
        if let Some(open) = &mut self.open {
            open.anchored = true;
        }
        Ok(())
    }

    /// Before another log takes its place: what the hint says of it is durable. A power failure would leave an older one else,
    /// beside which the log looks as if it had gone on after it was replaced. A hint that knows better is left as it is.
    pub fn settle_hint(&mut self, barrier: &mut dyn Barrier) -> Result<()> {
        if self.report.damage.is_empty() {
            self.sync(barrier)?;
        }
        match self.site.disk.exists(&self.site.layout.synced()) {
            true => self.site.sync_hint(),
            false => Ok(()),
        }
    }

    /// A log that another name leads to may be anybody's file, unless it holds an event: then it is a log.
    pub fn check_is_ours(&self) -> Result<()> {
        let path = self.site.log();
        match &self.open {
            Some(open) if open.mark().events == 0 && open.file.is_shared().at(path)? => {
                Err(Error::io(path, Stranger::at(path, StrangerKind::Foreign)))
            }
            _ => Ok(()),
        }
    }

    /// Under the lock: moves what lies beyond the committed end into `quarantine/`, durably, and then cuts it off.
    pub fn cut_tail(&mut self, now: i64) -> Result<()> {
        let Some(tail) = self.keep_tail(now)? else {
            return Ok(());
        };
        let site = Arc::clone(&self.site);
        let file = site.disk.open(site.log(), Access::Write).at(site.log())?;
        file.truncate(tail.offset).at(site.log())?;
        if let Err(fault) = file.sync() {
            self.poison(&fault.to_string());
            return Err(Error::io(site.log(), fault));
        }
        self.report.tail = None;
        Ok(())
    }

    /// Copies what lies beyond the committed end into `quarantine/`, durably.
    pub fn keep_tail(&mut self, now: i64) -> Result<Option<Tail>> {
        let (Some(tail), Some(open)) = (self.report.tail.clone(), &self.open) else {
            return Ok(None);
        };
        let (disk, folder) = (&*self.site.disk, self.site.layout.folder());
        let quarantine = self.site.layout.quarantine();
        disk.create_dir(&quarantine).at(&quarantine)?;
        disk.sync_dir(folder).at(folder)?;
        let name = format!("{}-tail-at-{}", stamp::spell_name(now), tail.offset);
        let kept = free_name(disk, &quarantine, &name)?;
        let range = tail.offset..tail.offset + tail.length;
        copy_range(disk, &*open.file, range, &kept, None)?;
        disk.sync_dir(&quarantine).at(&quarantine)?;
        self.report.notes.push(format!(
            "{} bytes that no commit stood behind were moved to {}",
            tail.length,
            kept.file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default()
        ));
        Ok(Some(tail))
    }

    /// Under the lock: copies the committed part of the log into a fresh file, which must be read then; says whether there
    /// is a log.
    pub fn renew(&self) -> Result<bool> {
        let Some(open) = &self.open else {
            return Ok(false);
        };
        let (disk, folder) = (&*self.site.disk, self.site.layout.folder());
        let draft = self.site.layout.log_draft();
        copy_bytes(disk, &*open.file, 0..open.walk.end, &draft, None)?;
        disk.rename(&draft, self.site.log()).at(self.site.log())?;
        disk.sync_dir(folder).at(folder)?;
        Ok(true)
    }
}

/// How it gets to the disk.
impl Log {
    /// Whoever writes next asks for this.
    pub fn come_to_terms(&mut self, durability: Durability, patience: Duration) {
        self.durability = durability;
        self.lock.set_patience(patience);
    }

    /// How many bytes are written but not synced.
    pub fn unsynced_bytes(&self) -> u64 {
        self.unsynced.bytes()
    }

    /// How it is, as far as memory tells.
    pub fn pulse(&self) -> Pulse {
        Pulse {
            poisoned: self.check_poison().err().map(|fault| fault.to_string()),
            lock_waits: self.lock.waits(),
            ..self.unsynced.pulse()
        }
    }

    /// How often the disk was waited for.
    pub fn syncs(&self) -> u64 {
        self.unsynced.syncs()
    }

    /// Whether what was written may not wait any longer for its sync.
    pub fn is_sync_due(&self, now: i64) -> bool {
        self.unsynced.is_due(self.durability, now)
    }

    /// Begins a sync that can run while others go on writing; `None` if there is nothing to do.
    pub fn start_sync(&self) -> Option<LogSync> {
        let open = self
            .open
            .as_ref()
            .filter(|_| self.unsynced_bytes() > 0 && !self.is_poisoned())?;
        Some(LogSync {
            file: Arc::clone(&open.file),
            path: self.site.log().to_owned(),
            reached: self.seen_head(),
            written: self.unsynced.written(),
        })
    }

    /// Hears how a sync went, with all that had to come before it: a failure poisons the log, success is remembered in the
    /// hint.
    pub fn end_sync(&mut self, sync: &LogSync, outcome: Result<()>) -> Result<()> {
        self.note_sync(outcome, sync.written)?;
        // The hint belongs to whoever holds the lock. It is only a hint: if another does, it is left to them.
        let Some(reached) = sync.reached else {
            return Ok(());
        };
        let _ = self.with_lock_within(Duration::ZERO, |log| {
            if log.site.is_at_its_path(&*sync.file) && !log.is_known(&reached.at) {
                log.remember(&reached);
            }
            Ok(())
        });
        Ok(())
    }

    /// Under the lock: syncs what must come before the log, then the log, and remembers how far.
    pub fn sync(&mut self, barrier: &mut dyn Barrier) -> Result<()> {
        self.sync_quietly(barrier)?;
        if let Some(reached) = self.seen_head() {
            self.remember(&reached);
        }
        Ok(())
    }

    /// The same without a word about how far.
    pub fn sync_quietly(&mut self, barrier: &mut dyn Barrier) -> Result<()> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let outcome = barrier.sync().and_then(|()| open.file.sync().at(self.site.log()));
        self.note_sync(outcome, self.unsynced.written())
    }

    fn note_sync(&mut self, outcome: Result<()>, written: WrittenBytes) -> Result<()> {
        if let Err(fault) = outcome {
            // Where no file could be opened nothing was asked of the disk: the next sync asks again.
            if !fault.is_scarcity() {
                self.poison(&fault.to_string());
            }
            return Err(fault);
        }
        self.unsynced.reached(written);
        Ok(())
    }

    /// Whether what another process has synced since is not there any more: then a log may be just as long as it was known to
    /// be, and nothing else tells that it was longer.
    pub fn is_short_of_synced(&mut self) -> Result<bool> {
        let (Some(open), None) = (&mut self.open, &self.report.cut) else {
            return Ok(false);
        };
        let path = self.site.layout.synced();
        let known = open.hint.read(&*self.site.disk, &path).at(&path)?;
        let mark = open.mark();
        // What is written from here counts as well: others may have synced it.
        let reached = open.walk.follower.claimed.max(mark.highest_seq).max(mark.last_seq);
        Ok(known.is_some_and(|known| Some(known.first) == mark.first && known.seq > reached))
    }

    /// Whether another process has synced as far already.
    fn is_known(&self, reached: &Synced) -> bool {
        let known = read_hint(&*self.site.disk, &self.site.layout);
        matches!(known, Ok(Some(known)) if known.first == reached.first && known.offset >= reached.offset)
    }

    /// Writes the hint. It only tells a tail from damage: a write is no less safe without it.
    fn remember(&mut self, reached: &SeenHead) {
        if self.report.cut.is_some() {
            // It knows of an end that is lost, and a repair needs that.
            return;
        }
        if let Err(fault) = write_hint(&*self.site.disk, &self.site.layout, &reached.at) {
            self.report
                .notes
                .push(format!("the hint about the last sync could not be written: {fault}"));
        }
        self.head.tell_now_and_then(reached, self.lock.used());
    }

    /// Under the lock, after a sync: notes the head, if it follows from the one that was noted last.
    pub fn tell_head(&mut self) {
        if let Some(reached) = self.seen_head() {
            self.head.tell(&reached);
        }
    }

    /// Notes how far the log is known to be on disk, whoever brought it there.
    pub fn tell_known_head(&mut self) {
        if !self.head.is_kept() || self.open.is_none() || !self.site.disk.exists(self.site.layout.lock()) {
            return;
        }
        let own = self.seen_head();
        let told = self.with_lock_within(Duration::ZERO, |log| {
            log.head.tell_known(true, own);
            Ok(())
        });
        if told.is_err() {
            // Someone else has the lock, or this reader may not have it.
            self.head.tell_known(false, own);
        }
    }
}
