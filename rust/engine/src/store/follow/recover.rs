//! Prepares the store for a change, under the lock: the newest state, and nothing beyond its end.

use super::unfinished::{finish_erasing, is_erasing};
use chronolog::error::{At, Result};
use chronolog::layout::LOG;
use chronolog::log::{Log, Site};

use crate::store::Store;
use crate::store::load::tails::{ends_with_event, keep_hint};

/// What becomes of a whole event beyond the end of a damaged log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum TailLeft {
    /// It is moved aside, as any tail.
    MovedAside,
    /// It stays where it is, for those who judge it.
    Spared,
}

impl Store {
    /// Runs a change under the lock, on the newest state.
    pub(in crate::store) fn with_lock<T>(
        &mut self,
        now: i64,
        change: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.with_lock_regardless(now, |store| {
            store.log.check_is_there()?;
            change(store)
        })
    }

    /// The same, also if the log is lost: for those who bring it back.
    pub(in crate::store) fn with_lock_regardless<T>(
        &mut self,
        now: i64,
        change: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.with_lock_on(TailLeft::MovedAside, now, change)
    }

    fn with_lock_on<T>(&mut self, tail: TailLeft, now: i64, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let rushed = self.begin(tail, now)?;
        let outcome = change(self);
        // Whatever went wrong may have left the files other than the memory thinks. And a caller who hears of a fault asks
        // nobody to end a lease.
        if outcome.is_err() {
            self.log.doubt();
        }
        self.log.rest(now, rushed && outcome.is_ok());
        outcome
    }

    /// The same for those who judge what lies beyond the end of a damaged log: a whole event is left there. The next writer
    /// moves it aside as ever.
    pub(in crate::store) fn with_lock_sparing_tail<T>(
        &mut self,
        now: i64,
        change: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.with_lock_on(TailLeft::Spared, now, change)
    }

    /// Runs something short under the lock, whether this store has it already or not.
    pub(in crate::store) fn with_lock_for_a_moment<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.log.is_locked() {
            return act(self);
        }
        self.log.hold_lock()?;
        let outcome = act(self);
        self.log.let_go();
        outcome
    }

    /// Takes the lock and the newest state; says whether the last change is only just over.
    pub(in crate::store) fn begin(&mut self, tail: TailLeft, now: i64) -> Result<bool> {
        self.check_open()?;
        self.log.check_poison()?;
        let rushed = self.log.take_lock(now)?;
        if let Err(fault) = self.prepare(tail, now) {
            self.log.doubt();
            self.log.rest(now, false);
            return Err(fault);
        }
        Ok(rushed)
    }

    /// Under the lock, before anything is written: the newest state, and no bytes beyond the committed end.
    fn prepare(&mut self, tail: TailLeft, now: i64) -> Result<()> {
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
        if self.log.report().tail.is_some() {
            // What others have synced since this store was opened is no tail: only a fresh look may cut.
            self.reload(&mut |_, _| {})?;
            // Of a log that is lost, these bytes may be all that is left.
            if self.log.check_is_there().is_ok() {
                is_spared = tail == TailLeft::Spared && has_event_in_tail(&self.site, &self.log)?;
                if !is_spared {
                    self.log.cut_tail(now)?;
                }
            }
        }
        if is_erasing(&self.site) {
            finish_erasing(&self.site, &self.log, &self.state, &self.vectors)?;
        }
        if !is_spared {
            self.log.set_prepared();
        }
        Ok(())
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
            .note("after a failed sync the log was copied into a fresh file".to_owned());
        Ok(())
    }

    /// Takes the log as it is now for the right one.
    ///
    /// # Errors
    /// `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn accept_head(&mut self, now: i64) -> Result<()> {
        if self.log.open().is_none() && !self.log.head().is_there() {
            // Nothing is there and nothing is missed.
            return Ok(());
        }
        self.with_lock_regardless(now, |store| {
            let is_replaced = store.log.accept_replaced();
            store.log.check_is_there()?;
            if !is_replaced && !store.log.head().is_kept() {
                return Ok(());
            }
            if store.log.accept_cut()
                && let Some(log) = store.log.open()
            {
                keep_hint(&store.site, log, now)?;
            }
            store.sync_log()?;
            let reached = store.log.seen_head();
            match store.log.head().is_kept() {
                true => store.log.accept_head(reached),
                false => Ok(()),
            }
        })
    }

    /// Under the lock, after another log took the place of the one that was there, as announced. What was missed before is
    /// missed still, unless this log has it: only [`Store::accept_head`] says that all is well.
    pub(in crate::store) fn accept_present_head(&mut self) -> Result<()> {
        self.sync_log()?;
        self.log.tell_head();
        self.log.find_standing()
    }
}

/// Whether the log is damaged and ends with a whole event that lost its newline: so much of a tail is for a repair to judge.
fn has_event_in_tail(site: &Site, log: &Log) -> Result<bool> {
    let is_damaged = log.report().damage.iter().any(|damage| damage.path == LOG);
    match (&log.report().tail, log.open()) {
        (Some(tail), Some(open)) if is_damaged => ends_with_event(&*open.file, tail).at(site.log()),
        _ => Ok(false),
    }
}
