//! Who may write now?
//!
//! Whoever has the lock on a permanent file, never unlinked. Of many commits in a row only the first pays for taking it: it
//! is kept for a moment, see [`LEASE_MICROS`].

use std::path::Path;
use std::time::Duration;

use crate::disk::{Found, Identity, LockFile, Stranger};
use crate::error::{At, Error, Result};

use super::Store;

/// How often a lock file that was replaced under the lock is looked for anew.
pub(super) const LOCK_FILE_TRIES: usize = 8;
/// Others wait no longer than this for a writer that goes on and on.
const LEASE_MICROS: i64 = 2_000;
/// A commit so soon after the one before is probably not the last.
const RUSH_MICROS: i64 = 500;
/// So long a writer that kept the lock believes that the log is still the one at its path: to look at each commit would
/// be one more system call for each.
const BELIEF_MICROS: i64 = 100;
/// A lock file this long carries the mark of a failed sync.
pub(super) const MARKED_BYTES: u64 = 1024;

/// What a lock file says: who wrote last, or of which failure somebody has told.
const SIGNED: [&str; 2] = [", writing since ", " (told by "];

/// The writer lock as this store holds it.
#[derive(Default)]
pub(super) struct Lock {
    file: Option<(Box<dyn LockFile>, Identity)>,
    pub held: bool,
    /// It carries the mark of a failed sync, which this store may remove.
    pub marked: bool,
    /// Held between commits, for a moment.
    leased: bool,
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
}

impl Lock {
    /// The file, for people's notes.
    pub fn file(&self) -> Option<&dyn LockFile> {
        self.file.as_ref().map(|(file, _)| &**file)
    }

    /// When it was needed last, by the clock of whoever needed it.
    pub fn used(&self) -> i64 {
        self.used
    }
}

impl Store {
    /// Takes the writer lock for a change at this moment; says whether the last change is only just over.
    pub(super) fn take_lock(&mut self, now: i64) -> Result<bool> {
        let rushed = (0..RUSH_MICROS).contains(&(now - self.lock.used));
        if self.lock.leased && !(0..BELIEF_MICROS).contains(&(now - self.lock.seen)) {
            self.let_go_if_replaced(now);
        }
        self.tell_if_replaced()?;
        if !self.lock.held {
            self.hold_lock_within(self.options.lock_timeout)?;
            (self.lock.since, self.lock.seen) = (now, now);
        } else if !self.lock.leased {
            self.look_around(now)?;
        }
        self.lock.leased = false;
        self.lock.used = now;
        Ok(rushed)
    }

    /// Looks whether the log of a lease is still the one at its path. If it is not, the lease ends: what comes next goes on
    /// from what is there.
    fn let_go_if_replaced(&mut self, now: i64) {
        self.lock.seen = now;
        if let Some(log) = &self.log
            && self.disk.status(self.layout.log()).map(|there| there.identity).ok() != Some(log.identity)
        {
            self.lock.replaced = true;
            self.let_go();
        }
    }

    /// Says once that a log was replaced.
    fn tell_if_replaced(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.lock.replaced) {
            return Ok(());
        }
        let fault = "the log was replaced while this store wrote: what it acknowledged in that moment is only in the file \
                     that was there before; look what is missing, and write again";
        Err(Error::io(self.layout.log(), std::io::Error::other(fault)))
    }

    /// At the end: a lease that nobody has ended yet is looked at too.
    pub(super) fn end_lease_at_last(&mut self) -> Result<()> {
        if self.lock.leased {
            self.let_go_if_replaced(self.lock.used);
        }
        self.tell_if_replaced()
    }

    /// Whoever keeps the lock for long looks whether someone got past it: nothing of theirs is overwritten. Now and then
    /// it also looks whether the log is still the one at its path.
    fn look_around(&mut self, now: i64) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let there = self.disk.status(self.layout.log()).ok();
        // A tail that a crash left stands behind the end until somebody writes.
        let tail = self.report.tail.as_ref().map_or(0, |tail| tail.length);
        let length = log.walk.end + tail;
        let is_ours = there.is_some_and(|now| now.identity == log.identity && now.length == length);
        self.lock.since = now;
        if !is_ours {
            let fault = std::io::Error::other("another process wrote while this store held the lock: reopen the store");
            return Err(Error::io(self.layout.log(), fault));
        }
        Ok(())
    }

    /// After a change: lets go, unless the lock is to be kept, for good or because more is likely to follow at once.
    pub(super) fn rest(&mut self, now: i64, rushed: bool) {
        if self.options.exclusive {
            return;
        }
        if rushed && self.is_attended() && (0..LEASE_MICROS).contains(&(now - self.lock.since)) {
            self.lock.leased = true;
            return;
        }
        if self.lock.seen != self.lock.used {
            // Others have been acknowledged since the log was seen.
            self.let_go_if_replaced(now);
        }
        self.let_go();
    }

    /// Whether someone is there to end a lease.
    fn is_attended(&self) -> bool {
        self.options.attended && !self.lock.unattended
    }

    /// Says that whoever looks after the store is busy for a while, or back: nothing is left to them meanwhile.
    pub fn leave_alone(&mut self, unattended: bool) {
        self.lock.unattended = unattended;
        if self.lock.leased {
            self.let_go_if_replaced(self.lock.used);
            self.let_go();
        }
    }

    /// Whether the lock is kept between commits; whoever looks after the store must end that soon.
    pub fn is_leased(&self) -> bool {
        self.lock.leased
    }

    /// Gives back a lock that nobody needed for a moment; says whether it is still kept.
    pub fn end_lease(&mut self, now: i64) -> bool {
        if self.lock.leased && !(0..RUSH_MICROS).contains(&(now - self.lock.used)) {
            self.let_go_if_replaced(now);
            self.let_go();
        }
        self.lock.leased
    }

    /// Runs something short under the lock, whether this store has it already or not.
    pub(super) fn with_lock_for_a_moment<T>(
        &mut self,
        patience: Duration,
        act: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.lock.held {
            return act(self);
        }
        self.hold_lock_within(patience)?;
        let outcome = act(self);
        self.let_go();
        outcome
    }

    /// Takes the writer lock and makes sure that it is the one at the path.
    pub(super) fn hold_lock_within(&mut self, patience: Duration) -> Result<()> {
        if self.layout.is_backup() {
            let path = self.layout.folder().to_owned();
            return Err(Error::ReadOnly { path });
        }
        for _ in 0..LOCK_FILE_TRIES {
            self.open_lock_file()?;
            let path = self.layout.lock();
            let Some((lock, identity)) = &self.lock.file else {
                continue;
            };
            if !lock.acquire(patience).at(path)? {
                return Err(Error::Locked {
                    holder: lock.note().unwrap_or_default(),
                    path: path.to_owned(),
                });
            }
            match self.disk.status(path) {
                Ok(now) if now.identity == *identity => {
                    self.lock.held = true;
                    return self.check_mark(now.length).inspect_err(|_| self.let_go());
                }
                _ => lock.release().at(path)?,
            }
            self.lock.file = None;
        }
        let fault = std::io::Error::other("the lock file keeps being replaced");
        Err(Error::io(self.layout.lock(), fault))
    }

    fn open_lock_file(&mut self) -> Result<()> {
        if self.lock.file.is_none() {
            self.create_folder()?;
            let path = self.layout.lock();
            let file = self.disk.lock_file(path).at(path)?;
            check_note(&*file, path)?;
            let identity = file.identity().at(path)?;
            self.lock.file = Some((file, identity));
        }
        Ok(())
    }

    pub(super) fn let_go(&mut self) {
        if self.lock.held {
            (self.lock.held, self.lock.leased) = (false, false);
            self.prepared = false;
            if let Some(file) = self.lock.file()
                && file.release().is_err()
            {
                // Closing the descriptor gives the lock back where unlocking did not.
                self.lock.file = None;
            }
        }
    }

    fn create_folder(&self) -> Result<()> {
        let folder = self.layout.folder();
        if self.disk.status(self.layout.lock()).is_ok() {
            return Ok(());
        }
        // Whoever has read a log here does not begin another folder: this one was moved away or removed.
        if self.log.is_some() && !self.disk.exists(folder) {
            self.check_follows()?;
        }
        // Every folder that is new needs its name made durable in the one above.
        let missing: Vec<&Path> = folder.ancestors().take_while(|path| !self.disk.exists(path)).collect();
        self.disk.create_dir(folder).at(folder)?;
        for parent in missing.iter().filter_map(|path| path.parent()) {
            let parent = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            self.disk.sync_dir(parent).at(parent)?;
        }
        Ok(())
    }
}

/// Whoever takes the lock signs it. If another name leads to the file, it must be a lock file already: nobody else's file is
/// signed.
pub(super) fn check_note(lock: &dyn LockFile, path: &Path) -> Result<()> {
    if !lock.is_shared().at(path)? {
        return Ok(());
    }
    let note = lock.note().at(path)?;
    let is_signed = note.trim_matches('\0').is_empty() || SIGNED.iter().any(|words| note.contains(words));
    if is_signed {
        return Ok(());
    }
    Err(Error::io(path, Stranger::at(path, Found::Foreign)))
}
