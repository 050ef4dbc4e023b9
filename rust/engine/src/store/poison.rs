//! What if the disk broke a promise?
//!
//! After a failed sync nobody knows what is on disk, and the system no longer tries: the pages count as clean. So the
//! store refuses writes from then on, and every other process learns it from the lock file: it is made so long that one
//! look at it, which every writer takes anyway, tells. A store that is opened later starts afresh: before its first write
//! it copies what is committed into a new file, which the disk must take, and only then is the mark removed.

use crate::disk::read_whole;
use crate::error::{At, Error, Result};
use crate::log::files::copy_bytes;

use super::Store;
use super::lock::MARKED_BYTES;

impl Store {
    pub(super) fn check_poison(&self) -> Result<()> {
        match &self.poisoned {
            Some(reason) => Err(Error::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Refuses all further writes of this store, and of every other one that is open.
    pub(super) fn poison(&mut self, reason: &str) {
        self.poisoned = Some(reason.to_owned());
        let mark = format!("{reason} (told by {})", self.options.signature);
        let mark = format!("{mark:<width$}", width = MARKED_BYTES as usize);
        // Whoever has the lock may be about to sign it: the mark comes after that, or without the lock if it takes too long.
        let patience = self.options.lock_timeout;
        let marked = self.with_lock_for_a_moment(patience, |store| store.write_mark(&mark));
        if marked.is_err() {
            // This store knows anyway; the others meet the broken disk themselves.
            let _ = self.write_mark(&mark);
        }
    }

    fn write_mark(&self, mark: &str) -> Result<()> {
        match self.lock.file() {
            Some(lock) => lock.write_note(mark).at(self.layout.lock()),
            None => Ok(()),
        }
    }

    /// The mark that the lock file carries, if any.
    pub(super) fn find_mark(&self) -> Result<Option<String>> {
        let path = self.layout.lock();
        let is_marked = self.disk.status(path).is_ok_and(|now| now.length >= MARKED_BYTES);
        if !is_marked {
            return Ok(None);
        }
        let bytes = read_whole(&*self.disk, path).at(path)?.unwrap_or_default();
        Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()))
    }

    /// Just after the lock was taken: a mark that was there when this store was opened asks for recovery, a later one
    /// tells that what this store knows may never reach the disk.
    pub(super) fn check_mark(&mut self, lock_bytes: u64) -> Result<()> {
        self.lock.marked = lock_bytes >= MARKED_BYTES;
        if !self.lock.marked {
            return Ok(());
        }
        let mark = self.find_mark()?;
        if mark == self.mark_at_open {
            return Ok(());
        }
        Err(Error::Poisoned {
            reason: mark.unwrap_or_default(),
        })
    }

    /// Copies the committed part of the log into a fresh file and removes the mark.
    pub(super) fn recover(&mut self, now: i64) -> Result<()> {
        self.reload(&mut |_, _| {})?;
        self.keep_tail(now)?;
        self.renew_rows()?;
        if let Some(log) = &self.log {
            let (draft, path) = (self.layout.log_draft(), self.layout.log());
            copy_bytes(&*self.disk, &*log.file, 0..log.walk.end, &draft, None)?;
            self.disk.rename(&draft, path).at(path)?;
            self.disk.sync_dir(self.layout.folder()).at(self.layout.folder())?;
            self.reload(&mut |_, _| {})?;
            self.make_ready()?;
            self.sync_log()?;
        }
        if let Some(lock) = self.lock.file() {
            lock.write_note(&self.options.signature).at(self.layout.lock())?;
        }
        (self.lock.marked, self.signed, self.mark_at_open) = (false, true, None);
        self.report
            .notes
            .push("after a failed sync the log was copied into a fresh file".to_owned());
        Ok(())
    }
}
