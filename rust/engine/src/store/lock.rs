//! Who may write now, and on top of what?

use std::path::Path;
use std::time::Duration;

use crate::disk::Access;
use crate::error::{At, Error, Result};
use crate::event::stamp;

use super::Store;

/// How often a lock file that was replaced under the lock is looked for anew.
const LOCK_FILE_TRIES: usize = 8;

impl Store {
    pub(super) fn check_poison(&self) -> Result<()> {
        match &self.poisoned {
            Some(reason) => Err(Error::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Takes the writer lock and makes sure that it is the one at the path.
    pub(super) fn hold_lock(&mut self) -> Result<()> {
        self.hold_lock_within(self.options.lock_timeout)
    }

    pub(super) fn hold_lock_within(&mut self, patience: Duration) -> Result<()> {
        if self.lock_held {
            return Ok(());
        }
        for _ in 0..LOCK_FILE_TRIES {
            if self.lock.is_none() {
                self.open_lock_file()?;
            }
            let path = self.layout.lock();
            let Some((lock, identity)) = &self.lock else { continue };
            if !lock.acquire(patience).at(path)? {
                return Err(Error::Locked {
                    holder: lock.note().unwrap_or_default(),
                    path: path.to_owned(),
                });
            }
            if self.disk.status(path).is_ok_and(|now| now.identity == *identity) {
                self.lock_held = true;
                return Ok(());
            }
            lock.release().at(path)?;
            self.lock = None;
        }
        let fault = std::io::Error::other("the lock file keeps being replaced");
        Err(Error::io(self.layout.lock(), fault))
    }

    fn open_lock_file(&mut self) -> Result<()> {
        self.create_folder()?;
        let path = self.layout.lock();
        let lock = self.disk.lock_file(path).at(path)?;
        let identity = lock.identity().at(path)?;
        self.lock = Some((lock, identity));
        Ok(())
    }

    pub(super) fn let_go_unless_exclusive(&mut self) {
        if !self.options.exclusive {
            self.let_go();
        }
    }

    pub(super) fn let_go(&mut self) {
        if self.lock_held {
            self.lock_held = false;
            self.prepared = false;
            if let Some((lock, _)) = &self.lock
                && lock.release().is_err()
            {
                // Closing the descriptor gives the lock back where unlocking did not.
                self.lock = None;
            }
        }
    }

    fn create_folder(&self) -> Result<()> {
        let folder = self.layout.folder();
        if self.disk.status(self.layout.lock()).is_ok() {
            return Ok(());
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

    /// Under the lock, before anything is written: the newest state, and no bytes beyond the committed end.
    pub(super) fn prepare(&mut self, now: i64) -> Result<()> {
        if self.prepared {
            return Ok(());
        }
        if self.is_behind()? {
            self.catch_up()?;
            self.signed = false;
        }
        if !self.signed {
            self.sign()?;
            self.signed = true;
        }
        if self.report.tail.is_some() {
            // What others have synced since this store was opened is no tail: only a fresh look may cut.
            self.reload(&mut |_, _| {})?;
            self.cut_tail(now)?;
        }
        self.prepared = true;
        Ok(())
    }

    /// Leaves a word for people in the lock file: the last writer is this one.
    fn sign(&self) -> Result<()> {
        let path = self.layout.lock().to_owned();
        match &self.lock {
            Some((lock, _)) => lock.write_note(&self.options.signature).at(&path),
            None => Ok(()),
        }
    }

    /// Moves what lies beyond the committed end into `quarantine/`, durably, and then cuts it off.
    fn cut_tail(&mut self, now: i64) -> Result<()> {
        let (Some(tail), Some(log)) = (self.report.tail.clone(), &self.log) else {
            return Ok(());
        };
        let path = self.layout.log().to_owned();
        let quarantine = self.layout.quarantine();
        self.disk.create_dir(&quarantine).at(&quarantine)?;
        self.disk.sync_dir(self.layout.folder()).at(self.layout.folder())?;
        let kept = super::copies::free_name(
            &*self.disk,
            &quarantine,
            &format!("{}-tail-at-{}", stamp::spell_name(now), tail.offset),
        )?;
        super::copies::copy_range(
            &*self.disk,
            &*log.file,
            tail.offset..tail.offset + tail.length,
            &kept,
            None,
        )?;
        self.disk.sync_dir(&quarantine).at(&quarantine)?;
        let file = self.disk.open(&path, Access::Write).at(&path)?;
        file.truncate(tail.offset).at(&path)?;
        if let Err(fault) = file.sync() {
            self.poisoned = Some(fault.to_string());
            return Err(Error::io(&path, fault));
        }
        self.report.tail = None;
        self.report.notes.push(format!(
            "{} bytes that no commit stood behind were moved to {}",
            tail.length,
            kept.file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default()
        ));
        Ok(())
    }
}
