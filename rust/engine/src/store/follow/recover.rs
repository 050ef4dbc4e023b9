//! Prepares the store for a change, under the lock: the newest state, and nothing beyond its end.

use crate::error::{At, Result};
use crate::layout::LOG;

use crate::store::Store;
use crate::store::load::tails::{ends_with_event, keep_hint};

impl Store {
    /// Under the lock, before anything is written: the newest state, and no bytes beyond the committed end.
    pub(in crate::store) fn prepare(&mut self, now: i64) -> Result<()> {
        if self.log.is_prepared() {
            return Ok(());
        }
        if self.log.is_marked() {
            self.recover(now)?;
        }
        if self.is_behind()? {
            self.catch_up()?;
            self.log.forget_signature();
        }
        if self.log.is_short_of_synced()? {
            self.reload(&mut |_, _| {})?;
        }
        self.log.sign()?;
        self.log.check_is_ours()?;
        let mut is_spared = false;
        if self.log.report.tail.is_some() {
            // What others have synced since this store was opened is no tail: only a fresh look may cut.
            self.reload(&mut |_, _| {})?;
            // Of a log that is lost, these bytes may be all that is left.
            if self.log.check_is_there().is_ok() {
                is_spared = self.spares_tail && self.has_event_in_tail()?;
                if !is_spared {
                    self.log.cut_tail(now)?;
                }
            }
        }
        if self.is_erasing() {
            self.finish_erasing()?;
        }
        if !is_spared {
            self.log.set_prepared();
        }
        Ok(())
    }

    /// Whether the log is damaged and ends with a whole event that lost its newline: so much of a tail is for a repair to judge.
    fn has_event_in_tail(&self) -> Result<bool> {
        let is_damaged = self.log.report.damage.iter().any(|damage| damage.path == LOG);
        match (&self.log.report.tail, self.log.open()) {
            (Some(tail), Some(log)) if is_damaged => ends_with_event(&*log.file, tail).at(self.site.log()),
            _ => Ok(false),
        }
    }

    /// After a failed sync of somebody else: copies the committed part of the log into a fresh file and removes the mark.
    fn recover(&mut self, now: i64) -> Result<()> {
        self.reload(&mut |_, _| {})?;
        self.log.keep_tail(now)?;
        self.vectors.renew_rows(&self.state)?;
        if self.log.renew()? {
            self.reload(&mut |_, _| {})?;
            self.make_ready()?;
            self.sync_log()?;
        }
        self.log.remove_mark()?;
        self.log
            .report
            .notes
            .push("after a failed sync the log was copied into a fresh file".to_owned());
        Ok(())
    }

    /// Takes the log as it is now for the right one.
    ///
    /// # Errors
    /// `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn accept_head(&mut self, now: i64) -> Result<()> {
        if self.log.open().is_none() && !self.log.head.is_there() {
            // Nothing is there and nothing is missed.
            return Ok(());
        }
        self.with_lock_regardless(now, |store| {
            let is_replaced = store.log.accept_replaced();
            store.log.check_is_there()?;
            if !is_replaced && !store.log.head.is_kept() {
                return Ok(());
            }
            if store.log.report.cut.take().is_some()
                && let Some(log) = store.log.open()
            {
                keep_hint(&store.site, log, now)?;
            }
            store.sync_log()?;
            let reached = store.log.seen_head();
            match store.log.head.is_kept() {
                true => store.log.head.accept(reached),
                false => Ok(()),
            }
        })
    }

    /// Under the lock, after another log took the place of the one that was there, as announced. What was missed before is
    /// missed still, unless this log has it: only [`Store::accept_head`] says that all is well.
    pub(in crate::store) fn accept_present_head(&mut self) -> Result<()> {
        self.sync_log()?;
        self.log.tell_head();
        self.log.head.find_standing()
    }
}
