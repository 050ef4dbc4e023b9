//! The writer lock and its lease, and the mark of a failed sync in the lock file.
//!
//! The lock file is never unlinked. After a commit the lock is kept for a moment (see [`LEASE_MICROS`]), so that of many
//! commits in a row only the first takes it. The mark is found by the length of the file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::disk::{Identity, LockFile, UnexpectedEntry, UnexpectedKind, is_swapped, read_whole};
use crate::error::{At, Error, Result};

use super::body::Log;
use super::open::{OpenLog, check_kept};
use super::site::Site;

/// How often a lock file that was replaced under the lock is looked for anew.
pub const LOCK_FILE_TRIES: usize = 8;
/// Others wait no longer than this for a writer that goes on and on.
const LEASE_MICROS: i64 = 2_000;
/// A commit so soon after the one before is probably not the last.
const RUSH_MICROS: i64 = 500;
/// How long a lease trusts that the log is still at its path: a look costs a system call.
const BELIEF_MICROS: i64 = 100;
/// How long a writer may hold the lock while it computes its change.
const TURN_MICROS: i64 = 1_000_000;
/// A lock file this long carries the mark of a failed sync.
const MARKED_BYTES: u64 = 1024;

/// What the note in a lock file contains: the last writer, or the mark of a failed sync.
const SIGNED: [&str; 2] = [", writing since ", " (told by "];

/// How a writer holds the lock.
pub struct LockTerms {
    /// Until close.
    pub exclusive: bool,
    /// A worker ends leases.
    pub attended: bool,
    /// How long to wait for another writer.
    pub patience: Duration,
    /// The note of this writer in the lock file.
    pub signature: String,
}

/// The writer lock of a log, as one of its writers holds it.
pub struct Lock {
    site: Arc<Site>,
    pub(super) terms: LockTerms,
    file: Option<(Box<dyn LockFile>, Identity)>,
    /// This writer has it.
    pub held: bool,
    /// It carries the mark of a failed sync, which this writer may remove.
    pub marked: bool,
    /// The mark of a failed sync that was there before this writer.
    mark_at_open: Option<String>,
    /// The note in it is this writer's.
    pub signed: bool,
    /// While it is held: what is known is the newest, and no tail is pending.
    pub prepared: bool,
    /// Held between commits, for a moment.
    leased: bool,
    /// When the turn of a writer began that holds the lock while it computes its change.
    pub turn: Option<i64>,
    /// No worker gives it back now.
    unattended: bool,
    /// When it was taken, or when its holder last looked around.
    since: i64,
    /// When it was needed last.
    pub(super) used: i64,
    /// When the log was last seen at its path.
    seen: i64,
    /// The log was replaced without the lock after a commit was acknowledged; the next write reports it.
    replaced: bool,
    /// How often another writer was waited for.
    pub(super) waits: u64,
}

impl Lock {
    /// A lock that is not held.
    pub fn new(site: Arc<Site>, terms: LockTerms) -> Result<Self> {
        let mark_at_open = find_mark(&site)?;
        Ok(Self {
            site,
            terms,
            mark_at_open,
            file: None,
            held: false,
            marked: false,
            signed: false,
            prepared: false,
            leased: false,
            turn: None,
            unattended: false,
            since: 0,
            used: 0,
            seen: 0,
            replaced: false,
            waits: 0,
        })
    }

    /// Whether it is kept between commits.
    pub fn is_leased(&self) -> bool {
        self.leased || self.turn.is_some()
    }

    fn is_in_turn(&self, now: i64) -> bool {
        self.turn.is_some_and(|began| (0..TURN_MICROS).contains(&(now - began)))
    }

    fn tell_if_replaced(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.replaced) {
            return Ok(());
        }
        let fault = if self.site.disk.status(self.site.log()).is_err() {
            "the log or its folder was removed while this store was open: what it held is gone from here; restore a \
             backup, or open the project again to begin a new log"
        } else {
            "the log was replaced while this store wrote: what it acknowledged in that moment is only in the file that \
             was there before; look what is missing, and write again"
        };
        Err(Error::io(self.site.log(), std::io::Error::other(fault)))
    }

    /// Gives the lock back.
    pub fn let_go(&mut self) {
        if self.held {
            (self.held, self.leased, self.prepared, self.turn) = (false, false, false, None);
            if let Some((file, _)) = &self.file
                && file.release().is_err()
            {
                // Closing the descriptor gives the lock back where unlocking did not.
                self.file = None;
            }
        }
    }

    /// After taking the lock: a mark from before asks for recovery, a newer one refuses this writer.
    fn check_mark(&mut self, lock_bytes: u64) -> Result<()> {
        self.marked = lock_bytes >= MARKED_BYTES;
        if !self.marked {
            return Ok(());
        }
        let mark = find_mark(&self.site)?;
        if mark == self.mark_at_open {
            return Ok(());
        }
        Err(Error::Poisoned(mark.unwrap_or_default()))
    }

    /// Marks the file: a sync failed, and no process may write any more.
    pub fn write_mark(&self, reason: &str) -> Result<()> {
        let mark = format!("{reason} (told by {})", self.terms.signature);
        self.write_note(&format!("{mark:<width$}", width = MARKED_BYTES as usize))
    }

    /// Removes the mark: what was committed is in a fresh file now.
    pub fn remove_mark(&mut self) -> Result<()> {
        self.write_note(&self.terms.signature)?;
        (self.marked, self.signed, self.mark_at_open) = (false, true, None);
        Ok(())
    }

    /// Notes in the file that this is the last writer.
    pub fn sign(&mut self) -> Result<()> {
        if !self.signed {
            self.write_note(&self.terms.signature)?;
            self.signed = true;
        }
        Ok(())
    }

    fn write_note(&self, note: &str) -> Result<()> {
        match &self.file {
            Some((file, _)) => file.write_note(note).at(self.site.layout.lock()),
            None => Ok(()),
        }
    }
}

/// The writer lock of an open log.
impl Log {
    /// Takes the writer lock for a change; gives whether the last change was a moment ago.
    pub fn take_lock(&mut self, now: i64) -> Result<bool> {
        let rushed = (0..RUSH_MICROS).contains(&(now - self.lock.used));
        if self.lock.leased && !(0..BELIEF_MICROS).contains(&(now - self.lock.seen)) {
            let_go_if_replaced(&mut self.lock, self.open.as_ref(), now);
        }
        self.lock.tell_if_replaced()?;
        if !self.lock.held {
            self.hold_lock()?;
            (self.lock.since, self.lock.seen) = (now, now);
        } else if !self.lock.leased {
            look_around(self, now)?;
        }
        self.lock.leased = false;
        self.lock.used = now;
        Ok(rushed)
    }

    /// After a change: lets go, unless the lock is exclusive or more changes are likely to follow at once.
    pub fn release_or_lease(&mut self, now: i64, rushed: bool) {
        let lock = &mut self.lock;
        if lock.terms.exclusive {
            return;
        }
        let is_attended = lock.terms.attended && !lock.unattended;
        let is_lease_due = rushed && is_attended && (0..LEASE_MICROS).contains(&(now - lock.since));
        if is_lease_due || lock.is_in_turn(now) {
            lock.leased = true;
            return;
        }
        if lock.seen != lock.used {
            // Others have been acknowledged since the log was seen.
            let_go_if_replaced(lock, self.open.as_ref(), now);
        }
        self.lock.let_go();
    }

    /// Leaves no lease to the worker while it is busy.
    pub fn leave_alone(&mut self, unattended: bool) {
        self.lock.unattended = unattended;
        self.end_turn();
    }

    /// Ends a turn and gives the lock back, unless it is held until close.
    pub fn end_turn(&mut self) {
        self.lock.turn = None;
        if self.lock.leased {
            let used = self.lock.used;
            let_go_if_replaced(&mut self.lock, self.open.as_ref(), used);
            self.lock.let_go();
        }
    }

    /// Gives back a lease that was not used for a moment, or whose turn took too long; whether it is still kept.
    pub fn end_lease(&mut self, now: i64) -> bool {
        if !self.lock.is_in_turn(now) && !(0..RUSH_MICROS).contains(&(now - self.lock.used)) {
            self.end_turn();
        }
        self.lock.is_leased()
    }

    /// At close: the error if the log was replaced during a lease.
    pub fn end_lease_at_last(&mut self) -> Result<()> {
        if self.lock.leased {
            let used = self.lock.used;
            let_go_if_replaced(&mut self.lock, self.open.as_ref(), used);
        }
        self.lock.tell_if_replaced()
    }

    /// Takes the writer lock for as long as it is not given back.
    pub fn hold_lock(&mut self) -> Result<()> {
        self.hold_lock_within(self.lock.terms.patience)
    }

    /// Takes the lock and makes sure that it is the one at the path.
    fn hold_lock_within(&mut self, patience: Duration) -> Result<()> {
        let site = Arc::clone(&self.site);
        if site.layout.is_backup() {
            return Err(Error::ReadOnly(site.layout.folder().to_owned()));
        }
        let path = site.layout.lock();
        for _ in 0..LOCK_FILE_TRIES {
            let own = &mut self.lock;
            open_lock_file(&site, own, self.open.as_ref())?;
            let Some((file, identity)) = &own.file else {
                continue;
            };
            let before = file.waits();
            let is_mine = file.acquire(patience).at(path)?;
            own.waits += file.waits() - before;
            if !is_mine {
                return Err(Error::Locked {
                    holder: file.note().unwrap_or_default(),
                    path: path.to_owned(),
                });
            }
            match site.disk.status(path) {
                Ok(now) if now.identity == *identity => {
                    own.held = true;
                    return own.check_mark(now.length).inspect_err(|_| own.let_go());
                }
                _ => file.release().at(path)?,
            }
            own.file = None;
        }
        let fault = std::io::Error::other("the lock file keeps being replaced");
        Err(Error::io(path, fault))
    }

    /// Runs something short under the lock, whether it is held already or not.
    pub fn with_lock_for_a_moment<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.with_lock_within(self.lock.terms.patience, act)
    }

    /// The same with another patience.
    pub(super) fn with_lock_within<T>(
        &mut self,
        patience: Duration,
        act: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.lock.held {
            return act(self);
        }
        self.hold_lock_within(patience)?;
        let outcome = act(self);
        self.lock.let_go();
        outcome
    }
}

/// Ends a lease if its log is no longer at its path.
fn let_go_if_replaced(lock: &mut Lock, open: Option<&OpenLog>, now: i64) {
    lock.seen = now;
    if open.is_some_and(|open| !lock.site.is_at_its_path(open.identity)) {
        lock.replaced = true;
        lock.let_go();
    }
}

/// A holder of a long lock checks that no other process wrote, and that the log is still at its path.
fn look_around(log: &mut Log, now: i64) -> Result<()> {
    let Some(open) = &log.open else { return Ok(()) };
    let there = log.site.disk.status(log.site.log()).ok();
    // The tail of a crash is behind the end until the next write.
    let length = open.walk.end + log.report.tail.as_ref().map_or(0, |tail| tail.length);
    log.lock.since = now;
    match there.is_some_and(|now| now.identity == open.identity && now.length == length) {
        true => Ok(()),
        false => {
            let fault = std::io::Error::other("another process wrote while this store held the lock: reopen the store");
            Err(Error::io(log.site.log(), fault))
        }
    }
}

fn open_lock_file(site: &Site, lock: &mut Lock, open: Option<&OpenLog>) -> Result<()> {
    if lock.file.is_none() {
        let path = site.layout.lock();
        if site.disk.status(path).is_err() {
            if open.is_some() && !site.disk.exists(site.layout.folder()) {
                check_kept(site, open)?;
            }
            site.create_folder()?;
        }
        let file = site.disk.lock_file(path).at(path)?;
        check_note(&*file, path)?;
        let identity = file.identity().at(path)?;
        lock.file = Some((file, identity));
    }
    Ok(())
}

fn find_mark(site: &Site) -> Result<Option<String>> {
    let path = site.layout.lock();
    let is_marked = site.disk.status(path).is_ok_and(|now| now.length >= MARKED_BYTES);
    if !is_marked {
        return Ok(None);
    }
    let bytes = read_whole(&*site.disk, path).at(path)?.unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()))
}

/// Refuses to sign a file that is not a lock file: another name leads to it, or another file was put there.
pub fn check_note(lock: &dyn LockFile, path: &Path) -> Result<()> {
    let note = lock.note().at(path)?;
    if is_swapped(note.as_bytes()) {
        return Err(Error::io(path, UnexpectedEntry::at(path, UnexpectedKind::Swapped)));
    }
    if !lock.is_shared().at(path)? {
        return Ok(());
    }
    let is_signed = note.trim_matches('\0').is_empty() || SIGNED.iter().any(|words| note.contains(words));
    if is_signed {
        return Ok(());
    }
    Err(Error::io(path, UnexpectedEntry::at(path, UnexpectedKind::Foreign)))
}
