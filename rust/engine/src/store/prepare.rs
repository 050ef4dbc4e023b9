//! What is written on top of? Under the lock, before a change: the newest state and nothing beyond its end.

use crate::damage::Tail;
use crate::disk::{Access, Found, Stranger};
use crate::error::{At, Error, Result};
use crate::event::stamp;
use crate::log::files::{copy_range, free_name};

use super::Store;

impl Store {
    /// Under the lock, before anything is written: the newest state, and no bytes beyond the committed end.
    pub(super) fn prepare(&mut self, now: i64) -> Result<()> {
        if self.prepared {
            return Ok(());
        }
        if self.lock.marked {
            self.recover(now)?;
        }
        if self.is_behind()? {
            self.catch_up()?;
            self.signed = false;
        }
        if !self.signed {
            self.sign()?;
            self.signed = true;
        }
        self.check_log_is_ours()?;
        if self.report.tail.is_some() {
            // What others have synced since this store was opened is no tail: only a fresh look may cut.
            self.reload(&mut |_, _| {})?;
            self.cut_tail(now)?;
        }
        self.prepared = true;
        Ok(())
    }

    /// A log that another name leads to may be anybody's file, unless it holds an event: then it is a log.
    fn check_log_is_ours(&self) -> Result<()> {
        let path = self.layout.log();
        match &self.log {
            Some(log) if log.walk.mark().events == 0 && log.file.is_shared().at(path)? => {
                Err(Error::io(path, Stranger::at(path, Found::Foreign)))
            }
            _ => Ok(()),
        }
    }

    /// Leaves a word for people in the lock file: the last writer is this one.
    fn sign(&self) -> Result<()> {
        match self.lock.file() {
            Some(lock) => lock.write_note(&self.options.signature).at(self.layout.lock()),
            None => Ok(()),
        }
    }

    /// Moves what lies beyond the committed end into `quarantine/`, durably, and then cuts it off.
    fn cut_tail(&mut self, now: i64) -> Result<()> {
        let Some(tail) = self.keep_tail(now)? else {
            return Ok(());
        };
        let path = self.layout.log().to_owned();
        let file = self.disk.open(&path, Access::Write).at(&path)?;
        file.truncate(tail.offset).at(&path)?;
        if let Err(fault) = file.sync() {
            self.poison(&fault.to_string());
            return Err(Error::io(&path, fault));
        }
        self.report.tail = None;
        Ok(())
    }

    /// Copies what lies beyond the committed end into `quarantine/`, durably.
    pub(super) fn keep_tail(&mut self, now: i64) -> Result<Option<Tail>> {
        let (Some(tail), Some(log)) = (self.report.tail.clone(), &self.log) else {
            return Ok(None);
        };
        let quarantine = self.layout.quarantine();
        self.disk.create_dir(&quarantine).at(&quarantine)?;
        self.disk.sync_dir(self.layout.folder()).at(self.layout.folder())?;
        let name = format!("{}-tail-at-{}", stamp::spell_name(now), tail.offset);
        let kept = free_name(&*self.disk, &quarantine, &name)?;
        let range = tail.offset..tail.offset + tail.length;
        copy_range(&*self.disk, &*log.file, range, &kept, None)?;
        self.disk.sync_dir(&quarantine).at(&quarantine)?;
        self.report.notes.push(format!(
            "{} bytes that no commit stood behind were moved to {}",
            tail.length,
            kept.file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default()
        ));
        Ok(Some(tail))
    }
}
