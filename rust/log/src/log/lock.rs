//! The writer lock and its lease, and the mark of a failed sync in the lock file.
//!
//! The lock file is never unlinked. After a commit the lock is kept for a moment (see [`LEASE_MICROS`]), so that of many
//! commits in a row only the first takes it. The mark is found by the length of the file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::disk::{Identity, LockFile, UnexpectedEntry, UnexpectedKind, is_swapped, read_whole};
use crate::error::{At, Error, Result};

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

/// What a lock file says: who wrote last, or of which failure somebody has told.
const SIGNED: [&str; 2] = [", writing since ", " (told by "];

/// How a writer holds the lock.
pub struct LockTerms {
    /// Until close.
    pub exclusive: bool,
    /// Someone is there to end a lease.
    pub attended: bool,
    /// How long to wait for another writer.
    pub patience: Duration,
    /// What this writer leaves in the lock file for people.
    pub signature: String,
}

/// The writer lock of a log, as one of its writers holds it.
pub struct Lock {
    site: Arc<Site>,
    terms: LockTerms,
    file: Option<(Box<dyn LockFile>, Identity)>,
    held: bool,
    /// It carries the mark of a failed sync, which this writer may remove.
    marked: bool,
    /// The mark of a failed sync that was there before this writer.
    mark_at_open: Option<String>,
    /// The note in it is this writer's.
    signed: bool,
    /// While it is held: others have nothing to add, no tail is pending.
    prepared: bool,
    /// Held between commits, for a moment.
    leased: bool,
    /// When the turn of a writer began that holds the lock while it computes its change.
    pub turn: Option<i64>,
    /// Nobody is there to give it back.
    unattended: bool,
    /// When it was taken, or when its holder last looked around.
    since: i64,
    /// When it was needed last.
    used: i64,
    /// When the log was last seen at its path.
    seen: i64,
    /// The log was found replaced by somebody who had no lock, after something was acknowledged; the next writer hears of it.
    replaced: bool,
    /// How often another writer was waited for.
    waits: u64,
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

    /// How often another writer was waited for.
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// Whether it is held now.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Whether it carries the mark of a failed sync, and this writer may recover from that.
    pub fn is_marked(&self) -> bool {
        self.marked
    }

    /// Whether it is kept between commits.
    pub fn is_leased(&self) -> bool {
        self.leased || self.turn.is_some()
    }

    /// Whether what is known is the newest, and nothing lies behind it.
    pub fn is_prepared(&self) -> bool {
        self.prepared
    }

    /// Says whether it is.
    pub fn set_prepared(&mut self, prepared: bool) {
        self.prepared = prepared;
    }

    /// When it was needed last, by the clock of whoever needed it.
    pub fn used(&self) -> i64 {
        self.used
    }

    /// From now on it waits for so long.
    pub fn set_patience(&mut self, patience: Duration) {
        self.terms.patience = patience;
    }

    /// How long this writer waits for another.
    pub fn patience(&self) -> Duration {
        self.terms.patience
    }

    /// Takes the lock for a change at this moment; says whether the last change is only just over.
    pub fn take(&mut self, open: Option<&OpenLog>, tail: u64, now: i64) -> Result<bool> {
        let rushed = (0..RUSH_MICROS).contains(&(now - self.used));
        if self.leased && !(0..BELIEF_MICROS).contains(&(now - self.seen)) {
            self.let_go_if_replaced(open, now);
        }
        self.tell_if_replaced()?;
        if !self.held {
            self.hold(open, self.terms.patience)?;
            (self.since, self.seen) = (now, now);
        } else if !self.leased {
            self.look_around(open, tail, now)?;
        }
        self.leased = false;
        self.used = now;
        Ok(rushed)
    }

    /// Ends a lease if its log is no longer at its path.
    fn let_go_if_replaced(&mut self, open: Option<&OpenLog>, now: i64) {
        self.seen = now;
        if let Some(open) = open
            && self.site.disk.status(self.site.log()).map(|there| there.identity).ok() != Some(open.identity)
        {
            self.replaced = true;
            self.let_go();
        }
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

    /// A holder of a long lock checks that nobody wrote past it, and that the log is still at its path.
    fn look_around(&mut self, open: Option<&OpenLog>, tail: u64, now: i64) -> Result<()> {
        let Some(open) = open else { return Ok(()) };
        let there = self.site.disk.status(self.site.log()).ok();
        // A tail that a crash left stands behind the end until somebody writes.
        let length = open.walk.end + tail;
        let is_ours = there.is_some_and(|now| now.identity == open.identity && now.length == length);
        self.since = now;
        if !is_ours {
            let fault = std::io::Error::other("another process wrote while this store held the lock: reopen the store");
            return Err(Error::io(self.site.log(), fault));
        }
        Ok(())
    }

    /// After a change: lets go, unless the lock is to be kept, for good or because more is likely to follow at once.
    pub fn release_or_lease(&mut self, open: Option<&OpenLog>, now: i64, rushed: bool) {
        if self.terms.exclusive {
            return;
        }
        let is_attended = self.terms.attended && !self.unattended;
        let is_lease_due = rushed && is_attended && (0..LEASE_MICROS).contains(&(now - self.since));
        if is_lease_due || self.is_in_turn(now) {
            self.leased = true;
            return;
        }
        if self.seen != self.used {
            // Others have been acknowledged since the log was seen.
            self.let_go_if_replaced(open, now);
        }
        self.let_go();
    }

    /// Says that whoever looks after the lock is busy for a while, or back: nothing is left to them meanwhile.
    pub fn leave_alone(&mut self, open: Option<&OpenLog>, unattended: bool) {
        self.unattended = unattended;
        self.end_turn(open);
    }

    fn is_in_turn(&self, now: i64) -> bool {
        self.turn.is_some_and(|began| (0..TURN_MICROS).contains(&(now - began)))
    }

    /// Ends a turn and gives the lock back, unless the lock is held until close.
    pub fn end_turn(&mut self, open: Option<&OpenLog>) {
        self.turn = None;
        if self.leased {
            self.let_go_if_replaced(open, self.used);
            self.let_go();
        }
    }

    /// Gives back a lock that nobody needed for a moment, or whose turn took too long; says whether it is still kept.
    pub fn end_lease(&mut self, open: Option<&OpenLog>, now: i64) -> bool {
        if !self.is_in_turn(now) && !(0..RUSH_MICROS).contains(&(now - self.used)) {
            self.end_turn(open);
        }
        self.is_leased()
    }

    /// At the end: a lease that nobody has ended yet is looked at too.
    pub fn end_lease_at_last(&mut self, open: Option<&OpenLog>) -> Result<()> {
        if self.leased {
            self.let_go_if_replaced(open, self.used);
        }
        self.tell_if_replaced()
    }

    /// Takes the lock and makes sure that it is the one at the path.
    pub fn hold(&mut self, open: Option<&OpenLog>, patience: Duration) -> Result<()> {
        let site = Arc::clone(&self.site);
        if site.layout.is_backup() {
            let path = site.layout.folder().to_owned();
            return Err(Error::ReadOnly(path));
        }
        let path = site.layout.lock();
        for _ in 0..LOCK_FILE_TRIES {
            self.open_file(open)?;
            let Some((lock, identity)) = &self.file else {
                continue;
            };
            let before = lock.waits();
            let is_mine = lock.acquire(patience).at(path)?;
            self.waits += lock.waits() - before;
            if !is_mine {
                return Err(Error::Locked {
                    holder: lock.note().unwrap_or_default(),
                    path: path.to_owned(),
                });
            }
            match site.disk.status(path) {
                Ok(now) if now.identity == *identity => {
                    self.held = true;
                    return self.check_mark(now.length).inspect_err(|_| self.let_go());
                }
                _ => lock.release().at(path)?,
            }
            self.file = None;
        }
        let fault = std::io::Error::other("the lock file keeps being replaced");
        Err(Error::io(path, fault))
    }

    fn open_file(&mut self, open: Option<&OpenLog>) -> Result<()> {
        if self.file.is_none() {
            let site = &*self.site;
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
            self.file = Some((file, identity));
        }
        Ok(())
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

    /// Marks the file: a sync failed, and nobody may write any more.
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

    /// Leaves a word for people in the file: the last writer is this one.
    pub fn sign(&mut self) -> Result<()> {
        if !self.signed {
            self.write_note(&self.terms.signature)?;
            self.signed = true;
        }
        Ok(())
    }

    /// Others have written since it was signed.
    pub fn forget_signature(&mut self) {
        self.signed = false;
    }

    fn write_note(&self, note: &str) -> Result<()> {
        match &self.file {
            Some((file, _)) => file.write_note(note).at(self.site.layout.lock()),
            None => Ok(()),
        }
    }
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
