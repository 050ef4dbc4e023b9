//! The open log of one reader or writer, what its last look found, and its refusal after the disk broke a promise.
//!
//! After a failed sync the system counts lost pages as clean, so the log refuses writes, and a mark in the lock file tells
//! other processes. A later opening copies what is committed into a new file, and then removes the mark.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::files::{copy_bytes, copy_range, free_name, remove_ours};
use super::head_note::HeadNote;
use super::lock::{Lock, LockTerms};
use super::open::{OpenLog, TailSeen, gone, is_missed, reached_by, was_never_promised};
use super::site::Site;
use super::sync::{Barrier, Durability, LogStatus, LogSync, Unsynced, WrittenBytes};
use crate::damage::{Damage, DamageKind, Tail};
use crate::disk::{Access, UnexpectedEntry, UnexpectedKind};
use crate::error::{At, Error, Result};
use crate::event::salt::SaltTerms;
use crate::event::stamp::{self, STAMP_BYTES};
use crate::hint::{KeptHint, Synced, write_hint};
use crate::layout::{LOG, is_draft};
use crate::origin::{ALONE, Origin, origin_of};
use crate::remembered::{HeadStanding, SeenHead};
use crate::trail::Trail;
use crate::verify::{BaseState, NoSink, Report, Sink, Walk, finding};
use crate::wal::writer::{ChainEnd, Lines};

/// Memory for lines is kept from one commit to the next, up to so much.
const SPARE_BYTES: usize = 16 * 1024 * 1024;

/// A log that one reader or writer has open. It knows lines, not records.
pub struct Log {
    pub(super) site: Arc<Site>,
    pub(super) durability: Durability,
    /// The file, once there is one and it was read.
    pub(super) open: Option<OpenLog>,
    /// What the last look found.
    pub report: Report,
    /// The note about its head.
    pub head: HeadNote,
    /// The hint about the last sync.
    hint: KeptHint,
    /// The writer lock, and the mark of a failed sync in its file.
    pub lock: Lock,
    /// What this writer has not synced yet.
    pub unsynced: Unsynced,
    /// Where the log ended after the last write of this writer.
    pub(super) own_end: u64,
    /// The tail behind what was read last, if it did not change meanwhile.
    pub tail_known: Option<TailSeen>,
    poisoned: Option<String>,
    /// Memory for the lines of the next commit.
    spare: Lines,
}

/// What is known of it.
impl Log {
    /// A log that was not read yet. Its head is noted in `head_file`, outside the project, if there is one.
    pub fn new(
        site: Arc<Site>,
        durability: Durability,
        lock: LockTerms,
        head_file: Option<PathBuf>,
        report: Report,
    ) -> Result<Self> {
        Ok(Self {
            durability,
            open: None,
            report,
            head: HeadNote::new(Arc::clone(&site), head_file),
            hint: KeptHint::default(),
            lock: Lock::new(Arc::clone(&site), lock)?,
            unsynced: Unsynced::default(),
            own_end: 0,
            tail_known: None,
            poisoned: None,
            spare: Lines::default(),
            site,
        })
    }

    /// The log, if there is one and it was read.
    pub fn open(&self) -> Option<&OpenLog> {
        self.open.as_ref()
    }

    /// All was read anew; without a log if there is none.
    pub fn read_anew(&mut self, open: Option<OpenLog>, report: Report) {
        if open.is_some() {
            self.own_end = 0;
        }
        (self.open, self.report) = (open, report);
    }

    /// What comes next goes on from another log.
    pub fn go_over(&mut self, open: OpenLog) {
        self.open = Some(open);
    }

    /// The memory may not be what the files are: the next look starts from nothing.
    pub fn forget(&mut self) {
        self.open = None;
    }

    /// Where the log ends now, as the hint spells it; `None` before the first event.
    pub fn reached(&self) -> Option<Synced> {
        self.open.as_ref().and_then(OpenLog::reached)
    }

    /// The same with the trail up to there: what is noted outside.
    pub fn seen_head(&self) -> Option<SeenHead> {
        self.open.as_ref().and_then(OpenLog::seen_head)
    }

    /// The end of the chain, for the next writer.
    pub fn link(&self) -> ChainEnd {
        self.open.as_ref().map_or(ChainEnd::BEGINNING, OpenLog::link)
    }

    /// The latest moment that an event of the log carries, in microseconds since 1970.
    pub fn latest(&self) -> i64 {
        self.open.as_ref().map_or(i64::MIN, |open| open.walk.latest)
    }

    /// Whether others changed the files since the last look: a few system calls, no reading.
    pub fn is_behind(&self) -> Result<bool> {
        if self.lock.is_leased() && self.lock.prepared {
            return Ok(false);
        }
        let path = self.site.log();
        Ok(match (&self.open, self.site.disk.status(path)) {
            (None, Ok(_)) => true,
            (open, Err(fault)) if fault.kind() == std::io::ErrorKind::NotFound => open.is_some(),
            (_, Err(fault)) => return Err(Error::io(path, fault)),
            // A pending tail may have been replaced by as many other bytes: it is always looked at again.
            (Some(_), Ok(_)) if self.report.tail.is_some() => true,
            (Some(open), Ok(now)) => now.identity != open.identity || now.length != open.walk.end,
        })
    }

    /// The same for a reader. A log that another one replaced without a change of the old file is noticed within a millisecond.
    pub fn is_behind_for_reader(&self) -> Result<bool> {
        let is_leased = self.lock.is_leased() && self.lock.prepared;
        match self.open.as_ref().filter(|_| self.report.tail.is_none() && !is_leased) {
            Some(open) => open.path_look.is_behind(&*open.file, || self.is_behind()),
            None => self.is_behind(),
        }
    }

    /// The length of the log, if it is the one at its path.
    pub fn length_at_its_path(&self) -> Result<Option<u64>> {
        let path = self.site.log();
        match (&self.open, self.site.disk.status(path)) {
            (Some(open), Ok(now)) if now.identity == open.identity => Ok(Some(open.file.length().at(path)?)),
            _ => Ok(None),
        }
    }

    /// Whether the log, now this long, still has all that was read of it.
    pub fn still_holds(&self, length: u64) -> Result<bool> {
        let Some(open) = &self.open else { return Ok(true) };
        Ok(length >= open.walk.end && open.knows_its_end().at(self.site.log())?)
    }

    /// Shows what was appended, up to the length of the log.
    pub fn go_on(&mut self, length: u64, threads: usize, sink: &mut dyn Sink) -> Result<Option<Tail>> {
        match &mut self.open {
            Some(open) => open.go_on(length, threads, sink).at(self.site.log()),
            None => Ok(None),
        }
    }

    /// What a pending tail looks like, if there is one that can be looked at.
    pub fn look_at_tail(&self) -> Result<Option<TailSeen>> {
        match self.open.as_ref().filter(|_| self.report.tail.is_some()) {
            Some(open) => open.look_at_tail().at(self.site.log()),
            None => Ok(None),
        }
    }

    /// What was known, if the log at its path does not hold it.
    pub fn missed(&self) -> Result<Option<Synced>> {
        match self.reached() {
            Some(known) => Ok(is_missed(&self.site, &known)?.then_some(known)),
            None => Ok(None),
        }
    }

    /// Before the files are read anew: what was known, if what is there does not follow from it.
    pub fn find_loss(&self) -> Result<Option<Synced>> {
        let (Some(open), Some(known)) = (&self.open, self.reached()) else {
            return Ok(None);
        };
        let holds_bytes = || self.site.disk.status(self.site.log()).is_ok_and(|now| now.length > 0);
        if !self.report.damage.is_empty() && holds_bytes() {
            // In a damaged log the head that is known may not be found again where it stood.
            return Ok(None);
        }
        let is_lost = is_missed(&self.site, &known)? && !was_never_promised(&self.site, open, self.own_end)?;
        Ok(is_lost.then_some(known))
    }

    /// No lines yet behind the log, in memory that was used before.
    pub fn fresh_lines(&mut self, salts: Option<SaltTerms<'_>>) -> Lines {
        let link = self.link();
        let begins = || Some(Trail::new(link.next_seq));
        let trail = self.open.as_ref().map_or_else(begins, |open| open.trail_behind(&link));
        std::mem::take(&mut self.spare).reusing(link, trail, salts)
    }

    /// Keeps the memory of lines for the next ones.
    pub fn keep_memory(&mut self, lines: Lines) {
        if lines.bytes.capacity() <= SPARE_BYTES {
            self.spare = lines;
        }
    }

    /// The moment of a commit, spelled: never earlier than the event before.
    pub fn stamp(&self, now: i64) -> [u8; STAMP_BYTES] {
        stamp::digits(now.max(self.latest()))
    }
}

/// What it refuses.
impl Log {
    /// Refuses to write after a failed sync.
    pub fn check_poison(&self) -> Result<()> {
        match &self.poisoned {
            Some(reason) => Err(Error::Poisoned(reason.clone())),
            None => Ok(()),
        }
    }

    /// Takes the outcome of a sync of what must be on disk before the log: a failed one poisons the log.
    pub fn record_sync(&mut self, outcome: std::io::Result<()>, path: &Path) -> Result<()> {
        if let Err(fault) = &outcome {
            self.poison(&fault.to_string());
        }
        outcome.at(path)
    }

    /// Refuses all further writes, of every process.
    pub fn poison(&mut self, reason: &str) {
        self.poisoned = Some(reason.to_owned());
        // The holder of the lock may be about to sign it: the mark comes after that, or without the lock if it takes too long.
        let marked = self.with_lock_for_a_moment(|log| log.lock.write_mark(reason));
        if marked.is_err() {
            let _ = self.lock.write_mark(reason);
        }
    }

    /// A log that is lost has no history, and nothing may be written that would begin another one.
    pub fn check_is_there(&self) -> Result<()> {
        let mut damage = self.report.damage.iter();
        if let Some(lost) = damage.find(|damage| damage.kind == DamageKind::LogMissing) {
            return Err(Error::Corrupted(Box::new(lost.clone())));
        }
        // A holder of the lock does not look at the path between two reads.
        match self.open.as_ref().filter(|open| open.is_cut()).and(self.reached()) {
            Some(known) => Err(gone(&self.site, &known)),
            None => Ok(()),
        }
    }

    /// Accepts a log with events that took the place of another one; gives whether it did.
    pub fn accept_replaced(&mut self) -> bool {
        let found = self.report.damage.len();
        if self.open.as_ref().is_some_and(|log| log.mark().events > 0) {
            self.report
                .damage
                .retain(|damage| damage.kind != DamageKind::LogMissing);
        }
        self.report.damage.len() < found
    }

    /// Refuses writes behind a lost end or an unlinked last line, and on a base that is not the one that the log names.
    pub fn check_end_is_known(&self) -> Result<()> {
        let is_of_base = |damage: &&Damage| damage.kind.is_of_base();
        if let Some(base) = self.report.damage.iter().find(is_of_base) {
            let reason = format!(
                "{}; nothing is written before repair() has restored the state that the log starts from, or restore() a backup",
                base.reason
            );
            return Err(Error::Corrupted(Box::new(Damage { reason, ..base.clone() })));
        }
        let Some(open) = &self.open else { return Ok(()) };
        let follower = &open.walk.follower;
        let is_adrift = || follower.mark.gap || follower.mark.highest_seq > follower.mark.last_seq;
        let last = follower.damage.last().filter(|_| is_adrift());
        let damage = match (&self.report.cut, last) {
            (Some(reason), _) => finding(LOG, DamageKind::LogMissing, reason.as_str()),
            (None, Some(last)) => last.clone(),
            (None, None) => return Ok(()),
        };
        let reason = format!("{}; nothing is written behind that before a repair", damage.reason);
        Err(Error::Corrupted(Box::new(Damage { reason, ..damage })))
    }

    /// Refuses to compact a log that lost its end or was replaced: files around it may be all that is left.
    pub fn check_head_is_kept(&mut self) -> Result<()> {
        self.check_end_is_known()?;
        self.head.find_standing()?;
        match &self.head.standing {
            HeadStanding::Lost(reason) => Err(Error::Corrupted(Box::new(finding(LOG, DamageKind::LogMissing, reason)))),
            _ => Ok(()),
        }
    }
}

/// How lines get behind it.
impl Log {
    /// Under the lock: appends lines, creating the log if there is none; gives their offset.
    pub fn append(&mut self, lines: &Lines, now: i64, barrier: &mut dyn Barrier) -> Result<u64> {
        if i64::try_from(lines.link.next_seq).is_err() {
            return Err(Error::limit("the last seq of the log is the largest there can be"));
        }
        // A log without a single line is as good as none.
        let is_empty = |open: &OpenLog| open.mark().events == 0 && self.report.damage.is_empty();
        if self.open.as_ref().is_none_or(is_empty) {
            self.create(lines)?;
            self.advance(lines, now);
            self.unsynced.count(lines.starts.len(), lines.bytes.len());
            // A log is on disk from its first moment on.
            let synced_until = &mut self.unsynced.status.synced_until;
            *synced_until = (*synced_until).max(Some(now));
            return Ok(0);
        }
        self.make_ready(barrier)?;
        if self.open.as_ref().is_some_and(|open| open.walk.unterminated) {
            // A damaged last line stays as it is, but nothing may be glued to it.
            self.write_behind(b"\n")?;
            if let Some(open) = &mut self.open {
                open.walk.end += 1;
                open.walk.unterminated = false;
            }
        }
        let base = self.write_behind(&lines.bytes)?;
        self.advance(lines, now);
        self.unsynced.wrote(lines.bytes.len() as u64, now);
        self.unsynced.count(lines.starts.len(), lines.bytes.len());
        Ok(base)
    }

    /// One write of all lines; a failed one is taken back.
    fn write_behind(&mut self, bytes: &[u8]) -> Result<u64> {
        let Some(open) = &self.open else {
            return Err(Error::Closed);
        };
        let base = open.walk.end;
        let Err(fault) = open.file.write_at(bytes, base) else {
            return Ok(base);
        };
        if let Err(worse) = open.file.truncate(base) {
            self.poison(&format!("a failed write could not be undone: {worse}"));
        }
        Err(Error::io(self.site.log(), fault))
    }

    fn advance(&mut self, lines: &Lines, now: i64) {
        if let Some(open) = &mut self.open {
            open.advance(lines, now);
            self.own_end = open.walk.end;
        }
    }

    /// A log is born complete: written elsewhere, synced, and only then given its name.
    fn create(&mut self, lines: &Lines) -> Result<()> {
        let path = self.site.log();
        // INVARIANT: a log that holds anything is never replaced by a new one.
        if self.open.is_none() {
            match self.site.disk.status(path) {
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
                Err(fault) => return Err(Error::io(path, fault)),
                Ok(_) => {
                    let fault = io::Error::other("the log must be read before it is written");
                    return Err(Error::io(path, fault));
                }
            }
        }
        self.site.replace_log(&lines.bytes)?;
        let file = self.site.disk.open(path, Access::Write).at(path)?;
        // The hint comes second: alone it would report a lost log. The next append retries a failed one.
        let is_hinted = write_first_hint(&self.site, lines).is_ok();
        let born = OpenLog::writing(file, Walk::new(None).with_trail(), Origin::Nothing).at(path)?;
        self.open = Some(born.anchored(is_hinted));
        Ok(())
    }

    /// Under the lock: swaps the log for a sentinel. [`Log::make_ready`] must follow before anyone appends.
    pub fn retire(&mut self, sentinel: &Lines, now: i64) -> Result<()> {
        self.head.announce_log(sentinel);
        self.site.replace_log(&sentinel.bytes)?;
        // What comes next goes behind the sentinel.
        let (latest, path) = (self.latest(), self.site.log());
        let file = self.site.disk.open(path, Access::Write).at(path)?;
        let length = file.length().at(path)?;
        let mut walk = Walk::new(None).with_trail();
        walk.go(&*file, length, ALONE, &mut NoSink).at(path)?;
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
            // Drafts of an interrupted replacement, and snapshots of other processes, which write them again.
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

    /// Before a swap of logs: makes the hint durable, so that no power failure leaves one of an older end.
    pub fn settle_hint(&mut self, barrier: &mut dyn Barrier) -> Result<()> {
        if self.report.damage.is_empty() {
            self.sync(barrier)?;
        }
        match self.site.disk.exists(&self.site.layout.synced()) {
            true => self.site.sync_hint(),
            false => Ok(()),
        }
    }

    /// A log that another name leads to may be another program's file, unless it holds an event.
    pub fn check_is_ours(&self) -> Result<()> {
        let path = self.site.log();
        match &self.open {
            Some(open) if open.mark().events == 0 && open.file.is_shared().at(path)? => {
                Err(Error::io(path, UnexpectedEntry::at(path, UnexpectedKind::Foreign)))
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

    /// Under the lock: copies the committed part into a fresh file, to be read then; whether there is a log.
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
    /// Sets the options of the next writer.
    pub fn set_writer_options(&mut self, durability: Durability, patience: Duration) {
        self.durability = durability;
        self.lock.terms.patience = patience;
    }

    /// How it is, as far as memory tells.
    pub fn log_status(&self) -> LogStatus {
        LogStatus {
            poisoned: self.check_poison().err().map(|fault| fault.to_string()),
            lock_waits: self.lock.waits,
            unsynced_bytes: self.unsynced.bytes(),
            ..self.unsynced.status.clone()
        }
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
            .filter(|_| self.unsynced.bytes() > 0 && self.poisoned.is_none())?;
        Some(LogSync {
            file: Arc::clone(&open.file),
            identity: open.identity,
            path: self.site.log().to_owned(),
            reached: self.seen_head(),
            written: self.unsynced.written(),
        })
    }

    /// Takes the result of a sync: a failure poisons the log, success is noted in the hint.
    pub fn end_sync(&mut self, sync: &LogSync, outcome: Result<()>) -> Result<()> {
        self.note_sync(outcome, sync.written)?;
        // Only the holder of the lock writes the hint. If another process has it, that one will.
        let Some(reached) = sync.reached else {
            return Ok(());
        };
        let _ = self.with_lock_within(Duration::ZERO, |log| {
            // Another process may have synced as far already.
            let known = log.hint.read(&*log.site.disk, &log.site.layout.synced()).ok().flatten();
            let is_known = known.is_some_and(|it| it.first == reached.at.first && it.offset >= reached.at.offset);
            if log.site.is_at_its_path(sync.identity) && !is_known {
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

    /// The same without the hint.
    pub fn sync_quietly(&mut self, barrier: &mut dyn Barrier) -> Result<()> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let outcome = barrier.sync().and_then(|()| open.file.sync().at(self.site.log()));
        self.note_sync(outcome, self.unsynced.written())
    }

    fn note_sync(&mut self, outcome: Result<()>, written: WrittenBytes) -> Result<()> {
        if let Err(fault) = outcome {
            // Where no file could be opened the disk was not used: the next sync tries again.
            if !fault.is_scarcity() {
                self.poison(&fault.to_string());
            }
            return Err(fault);
        }
        self.unsynced.reached(written);
        Ok(())
    }

    /// Whether events that another process synced are missing, although the log has the length that is known.
    pub fn is_short_of_synced(&mut self) -> Result<bool> {
        let (Some(open), None) = (&self.open, &self.report.cut) else {
            return Ok(false);
        };
        let path = self.site.layout.synced();
        let known = self.hint.read(&*self.site.disk, &path).at(&path)?;
        let mark = open.mark();
        // What is written from here counts as well: others may have synced it.
        let reached = open.walk.follower.claimed.max(mark.highest_seq).max(mark.last_seq);
        Ok(known.is_some_and(|known| Some(known.first) == mark.first && known.seq > reached))
    }

    /// Writes the hint. It only tells a tail from damage: a write is no less safe without it.
    fn remember(&mut self, reached: &SeenHead) {
        if self.report.cut.is_some() {
            // It knows of an end that is lost, and a repair needs that.
            return;
        }
        if let Err(fault) = self.hint.write(&*self.site.disk, &self.site.layout, &reached.at) {
            self.report
                .notes
                .push(format!("the hint about the last sync could not be written: {fault}"));
        }
        self.head.tell_now_and_then(reached, self.lock.used);
    }

    /// Under the lock, after a sync: notes the head, if it follows from the one that was noted last.
    pub fn tell_head(&mut self) {
        if let Some(reached) = self.seen_head() {
            self.head.tell(&reached);
        }
    }

    /// Notes how far the log is known to be on disk.
    pub fn tell_known_head(&mut self) {
        if self.head.file.is_none() || self.open.is_none() || !self.site.disk.exists(self.site.layout.lock()) {
            return;
        }
        let own = self.seen_head();
        let told = self.with_lock_within(Duration::ZERO, |log| {
            log.head.tell_known(true, own);
            Ok(())
        });
        if told.is_err() {
            self.head.tell_known(false, own);
        }
    }
}

/// Writes the hint of a log that was just born, durably.
fn write_first_hint(site: &Site, lines: &Lines) -> Result<()> {
    let (disk, layout) = (&*site.disk, &site.layout);
    let Some(reached) = reached_by(lines) else {
        return Ok(());
    };
    write_hint(disk, layout, &reached)?.sync().at(&layout.synced())?;
    disk.sync_dir(layout.folder()).at(layout.folder())
}
