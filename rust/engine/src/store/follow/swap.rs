//! How does a store that is open elsewhere follow when the log is compacted?
//!
//! Its handle still reads the old log to its end, and what is known there is what the new log starts from: nothing has to be
//! read again. That counts, because writers follow under the lock and others wait for them.

use crate::disk::Access;
use crate::error::{At, Result};
use crate::log::OpenLog;
use crate::origin::{Origin, origin_of};
use crate::verify::{BaseState, Walk};

use crate::store::Store;

impl Store {
    /// Goes over from a retired log to the one that followed it; false if that is not what happened: then all is read anew.
    pub(in crate::store) fn follow_swap(&mut self) -> Result<bool> {
        let path = self.site.layout.log().to_owned();
        let report = &self.log.report;
        let is_damaged = !report.damage.is_empty() || report.cut.is_some();
        if self.log.open().is_none() || is_damaged || report.base == BaseState::Unanchored {
            return Ok(false);
        }
        let Ok(file) = self.site.disk.open(&path, Access::Read) else {
            return Ok(false);
        };
        let length = file.length().at(&path)?;
        let Origin::Ours(sentinel) = origin_of(&*file, length).at(&path)? else {
            return Ok(false);
        };
        // A repair starts from what the files said, which may be less than what is known here.
        if sentinel.repaired {
            return Ok(false);
        }
        if !self.read_old_log()? || self.head() != sentinel.previous_head || self.last_seq() != sentinel.last_seq {
            return Ok(false);
        }
        let mut walk = Walk::new(None);
        walk.latest = self.latest();
        let mut open = OpenLog::reading(file, walk, Origin::Ours(sentinel)).at(&path)?;
        self.state.forget_events();
        let threads = self.options.threads;
        let length = open.file.length().at(&path)?;
        let tail = self.take_in_lines(|_, loader| open.go_on(length, threads, loader).at(&path))?;
        let is_whole = tail.is_none() && open.is_whole();
        self.log.go_over(open);
        self.log.report.base = BaseState::Anchored;
        self.log.report.tail = None;
        self.snapshots.read_anew(self.events().max(self.state.len() as u64));
        // A tail or a fault is judged by the hint about the last sync, and that takes a look at everything.
        Ok(is_whole)
    }

    /// Takes in what the old log still held; false if it does not simply go on.
    fn read_old_log(&mut self) -> Result<bool> {
        let Some(open) = self.log.open() else {
            return Ok(false);
        };
        let (length, threads) = (open.file.length().at(self.site.layout.log())?, self.options.threads);
        let tail = self.take_in_lines(|log, loader| log.go_on(length, threads, loader))?;
        Ok(tail.is_none() && self.log.open().is_some_and(OpenLog::is_whole))
    }
}
