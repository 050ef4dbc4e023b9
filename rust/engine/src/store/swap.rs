//! How does a store that is open elsewhere follow when the log is compacted?
//!
//! Its handle still reads the old log to its end, and what is known there is what the new log starts from: nothing has to be
//! read again. That counts, because writers follow under the lock and others wait for them.

use std::sync::Arc;

use crate::damage::Tail;
use crate::disk::{Access, DiskFile};
use crate::error::{At, Result};
use crate::log::OpenLog;
use crate::origin::{Origin, origin_of};
use crate::state::State;
use crate::verify::{BaseState, Walk};
use crate::wal::reader::Reading;

use super::Store;
use super::loader::Loader;

impl Store {
    /// Goes over from a retired log to the one that followed it; false if that is not what happened: then all is read anew.
    pub(super) fn follow_swap(&mut self) -> Result<bool> {
        let path = self.layout.log().to_owned();
        if self.log.is_none() || !self.report.damage.is_empty() || self.report.base == BaseState::Unanchored {
            return Ok(false);
        }
        let Ok(file) = self.disk.open(&path, Access::Read) else {
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
        let latest = self.latest();
        let mut walk = Walk::new(None);
        walk.latest = latest;
        self.state.forget_events();
        let tail = self.take_in_from(&mut walk, &file)?;
        let is_whole = tail.is_none() && walk.follower.damage.is_empty() && walk.follower.tail.is_none();
        self.log = Some(OpenLog::reading(file, walk, Origin::Ours(sentinel)).at(&path)?);
        self.report.base = BaseState::Anchored;
        self.report.tail = None;
        self.snapshot_due = super::derived::next_snapshot(self.events().max(self.state.len() as u64));
        // A tail or a fault is judged by the hint about the last sync, and that takes a look at everything.
        Ok(is_whole)
    }

    /// Takes in what the old log still held; false if it does not simply go on.
    fn read_old_log(&mut self) -> Result<bool> {
        let Some(mut log) = self.log.take() else {
            return Ok(false);
        };
        let file = Arc::clone(&log.file);
        let tail = self.take_in_from(&mut log.walk, &file)?;
        let is_whole = tail.is_none() && log.walk.follower.damage.is_empty() && log.walk.follower.tail.is_none();
        self.log = Some(log);
        Ok(is_whole)
    }

    fn take_in_from(&mut self, walk: &mut Walk, file: &Arc<dyn DiskFile>) -> Result<Option<Tail>> {
        let path = self.layout.log().to_owned();
        let length = file.length().at(&path)?;
        if length < walk.end {
            return Ok(Some(Tail {
                offset: length,
                length: 0,
                reason: "the log became shorter".to_owned(),
            }));
        }
        let reading = Reading {
            trusted_until: 0,
            threads: self.options.threads,
        };
        let mut loader = Loader::going_on(std::mem::take(&mut self.state));
        let outcome = walk.go(&**file, length, reading, &mut loader, &mut |_, _| {}).at(&path);
        self.state = loader.state.unwrap_or_default();
        if outcome.is_err() {
            // Half of a piece may have been taken in; the next look starts from nothing, and may need the memory.
            (self.log, self.state) = (None, State::default());
        }
        outcome
    }
}
