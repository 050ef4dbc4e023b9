//! The log as one of those who read and write it has it, and its refusal after the disk broke a promise.
//!
//! After a failed sync nobody knows what is on disk, and the system no longer tries: the pages count as clean. So the log
//! refuses writes from then on, and every other process learns it from the lock file. Whoever opens the log later starts
//! afresh: what is committed is copied into a new file, which the disk must take, and only then is the mark removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::damage::Tail;
use crate::error::{At, Error, Result};
use crate::event::salt::SaltTerms;
use crate::event::stamp::{STAMP_BYTES, TimestampWriter};
use crate::remembered::SeenHead;
use crate::verify::{Report, Sink};
use crate::wal::synced::Synced;
use crate::wal::writer::{ChainEnd, Lines};

use super::head_note::HeadNote;
use super::lock::{Lock, LockTerms};
use super::loss::{is_missed, was_never_promised};
use super::open::{OpenLog, TailSeen};
use super::site::Site;
use super::sync::{Durability, Unsynced};

/// Memory for lines is kept from one commit to the next, up to so much.
const SPARE_BYTES: usize = 8 * 1024 * 1024;

/// What a writer asks of its log.
pub struct Terms {
    /// When writes are synced.
    pub durability: Durability,
    /// How the lock is held.
    pub lock: LockTerms,
    /// Where the last head is noted, outside the project; `None` if nobody asks for it.
    pub head_file: Option<PathBuf>,
}

/// A log, as one of those who read and write it has it. It knows lines, not what they say.
pub struct Log {
    pub(super) site: Arc<Site>,
    pub(super) durability: Durability,
    /// The file, once there is one and it was read.
    pub(super) open: Option<OpenLog>,
    /// What the last look found; whoever looks at more than the log adds to it.
    pub(super) report: Report,
    /// The note about its head.
    pub(super) head: HeadNote,
    pub(super) lock: Lock,
    pub(super) unsynced: Unsynced,
    /// Where the log ended when it was written to last from here.
    pub(super) own_end: u64,
    tail_known: Option<TailSeen>,
    poisoned: Option<String>,
    /// Memory for the lines of the next commit.
    spare: Lines,
    /// Stamps the commits.
    timestamps: TimestampWriter,
}

/// What is known of it.
impl Log {
    /// A log that was not read yet.
    pub fn new(site: Arc<Site>, terms: Terms, report: Report) -> Result<Self> {
        Ok(Self {
            durability: terms.durability,
            open: None,
            report,
            head: HeadNote::new(Arc::clone(&site), terms.head_file),
            lock: Lock::new(Arc::clone(&site), terms.lock)?,
            unsynced: Unsynced::default(),
            own_end: 0,
            tail_known: None,
            poisoned: None,
            spare: Lines::default(),
            timestamps: TimestampWriter::default(),
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

    /// Where the chain stands for whoever writes next.
    pub fn link(&self) -> ChainEnd {
        let beginning = ChainEnd {
            head: None,
            next_seq: 1,
        };
        self.open.as_ref().map_or(beginning, OpenLog::link)
    }

    /// The latest moment that an event of the log carries, in microseconds since 1970.
    pub fn latest(&self) -> i64 {
        self.open.as_ref().map_or(i64::MIN, |open| open.walk.latest)
    }

    /// Whether others changed the files since the last look: a few system calls, no reading.
    pub fn is_behind(&self) -> Result<bool> {
        if self.lock.is_leased() && self.lock.is_prepared() {
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
        match &self.open {
            Some(open) => Ok(length >= open.walk.end && open.knows_its_end().at(self.site.log())?),
            None => Ok(true),
        }
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

    /// Whether this is the tail behind what was read last.
    pub fn knows_tail(&self, seen: Option<&TailSeen>) -> bool {
        seen.is_some() && seen == self.tail_known.as_ref()
    }

    /// Says which tail is behind what was read, if that is sure.
    pub fn know_tail(&mut self, seen: Option<TailSeen>) {
        self.tail_known = seen;
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
        std::mem::take(&mut self.spare).reusing(link, salts)
    }

    /// Keeps the memory of lines for the next ones.
    pub fn keep_memory(&mut self, lines: Lines) {
        if lines.bytes.capacity() <= SPARE_BYTES {
            self.spare = lines;
        }
    }

    /// The moment of a commit, spelled: never earlier than the event before.
    pub fn stamp(&mut self, now: i64) -> [u8; STAMP_BYTES] {
        self.timestamps.digits(now.max(self.latest()))
    }
}

/// Who may write to it now.
impl Log {
    /// Takes the writer lock for a change at this moment; says whether the last change is only just over.
    pub fn take_lock(&mut self, now: i64) -> Result<bool> {
        let tail = self.report.tail.as_ref().map_or(0, |tail| tail.length);
        self.lock.take(self.open.as_ref(), tail, now)
    }

    /// After a change: lets go, unless the lock is to be kept, for good or because more is likely to follow at once.
    pub fn rest(&mut self, now: i64, rushed: bool) {
        self.lock.rest(self.open.as_ref(), now, rushed);
    }

    /// Takes the writer lock for as long as it is not given back.
    pub fn hold_lock(&mut self) -> Result<()> {
        self.lock.hold(self.open.as_ref(), self.lock.patience())
    }

    /// Gives the writer lock back.
    pub fn let_go(&mut self) {
        self.lock.let_go();
    }

    /// Runs something short under the lock, whether it is held already or not.
    pub fn with_lock_for_a_moment<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.with_lock_within(self.lock.patience(), act)
    }

    /// The same for those who wait longer or not at all.
    pub(super) fn with_lock_within<T>(
        &mut self,
        patience: Duration,
        act: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.lock.is_held() {
            return act(self);
        }
        self.lock.hold(self.open.as_ref(), patience)?;
        let outcome = act(self);
        self.lock.let_go();
        outcome
    }

    /// Whether the writer lock is held.
    pub fn is_locked(&self) -> bool {
        self.lock.is_held()
    }

    /// Whether the lock is kept between commits; whoever looks after the log must end that soon.
    pub fn is_leased(&self) -> bool {
        self.lock.is_leased()
    }

    /// Says that whoever looks after the log is busy for a while, or back: nothing is left to them meanwhile.
    pub fn leave_alone(&mut self, unattended: bool) {
        self.lock.leave_alone(self.open.as_ref(), unattended);
    }

    /// Keeps the writer lock between commits until [`Log::end_turn`], for a writer that computes its change under it.
    pub fn begin_turn(&mut self, now: i64) {
        self.lock.turn = Some(now);
    }

    /// Ends a turn, and gives the lock back.
    pub fn end_turn(&mut self) {
        self.lock.end_turn(self.open.as_ref());
    }

    /// Gives back a lock that nobody needed for a moment; says whether it is still kept.
    pub fn end_lease(&mut self, now: i64) -> bool {
        self.lock.end_lease(self.open.as_ref(), now)
    }

    /// At the end: a lease that nobody has ended yet is looked at too.
    pub fn end_lease_at_last(&mut self) -> Result<()> {
        self.lock.end_lease_at_last(self.open.as_ref())
    }

    /// Under the lock: whether what is known is the newest, and nothing lies behind it.
    pub fn is_prepared(&self) -> bool {
        self.lock.is_prepared()
    }

    /// Says that it is.
    pub fn set_prepared(&mut self) {
        self.lock.set_prepared(true);
    }

    /// Says that it may not be any more.
    pub fn doubt(&mut self) {
        self.lock.set_prepared(false);
    }

    /// Refuses to write after a failed sync.
    pub fn check_poison(&self) -> Result<()> {
        match &self.poisoned {
            Some(reason) => Err(Error::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Whether a sync failed.
    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.is_some()
    }

    /// Hears how a sync went of what must be on disk before the log is: after one that failed nobody may rely on the disk.
    pub fn hear(&mut self, outcome: std::io::Result<()>, path: &Path) -> Result<()> {
        if let Err(fault) = &outcome {
            self.poison(&fault.to_string());
        }
        outcome.at(path)
    }

    /// Refuses all further writes, here and wherever else the log is open.
    pub fn poison(&mut self, reason: &str) {
        self.poisoned = Some(reason.to_owned());
        // Whoever has the lock may be about to sign it: the mark comes after that, or without the lock if it takes too long.
        let marked = self.with_lock_for_a_moment(|log| log.lock.write_mark(reason));
        if marked.is_err() {
            // It is known here anyway; the others meet the broken disk themselves.
            let _ = self.lock.write_mark(reason);
        }
    }

    /// Whether somebody's sync failed before this log was opened, so that it must be renewed first.
    pub fn is_marked(&self) -> bool {
        self.lock.is_marked()
    }

    /// What was committed is in a fresh file: writing is allowed again.
    pub fn remove_mark(&mut self) -> Result<()> {
        self.lock.remove_mark()
    }

    /// Leaves a word for people in the lock file: the last writer is this one.
    pub fn sign(&mut self) -> Result<()> {
        self.lock.sign()
    }

    /// Others have written since.
    pub fn forget_signature(&mut self) {
        self.lock.forget_signature();
    }
}
