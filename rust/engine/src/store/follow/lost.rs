//! What if the log goes away under an open store, or was gone before?
//!
//! A log is only ever appended to, or replaced by one that names its head. So a store that is open and finds something else
//! knows that somebody took the log away, cut it, or put another in its place. It says so at every call, writes nothing, and
//! goes on by itself if the log comes back. Only our own deeds are followed: a restore and a repair keep the log that they
//! replace where it can be found.

use crate::error::{At, Error, Result};
use crate::hint::{Hint, hint_for, read_hint};
use crate::wal::synced::Synced;

use crate::store::Store;
use crate::store::files::proofs::{logs_before_restores, other_logs};
use crate::store::load::found::Traces;

impl Store {
    /// Whether the hint about the last sync speaks of a log that a restore of ours has set aside: it was killed before it
    /// could say how far the log reaches that it brought.
    pub(in crate::store) fn was_cut_by_restore(&self) -> Result<bool> {
        let quarantine = self.layout.quarantine();
        let hint = read_hint(&*self.disk, &self.layout).at(&self.layout.synced())?;
        for log in logs_before_restores(&*self.disk, &self.layout) {
            let length = log.length().at(&quarantine)?;
            if let Ok(Hint::Synced(_)) = hint_for(hint, &*log, length) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What is wrong if the log at its path does not hold what this store knows of it, other than by a deed of ours. Whoever
    /// keeps the lock does not look around between two reads.
    ///
    /// # Errors
    /// `Io`.
    pub fn missed(&self) -> Result<Option<Error>> {
        let is_damaged = !self.log.report.damage.is_empty();
        let Some(known) = self.log.missed()?.filter(|_| !is_damaged) else {
            return Ok(None);
        };
        Ok((!self.is_kept_elsewhere(&known)?).then(|| self.log.gone(&known)))
    }

    /// Whether the log is lost and left something behind that should be set aside, looked at under the lock. Copies that were
    /// made of it are no such thing: they stay where they are.
    pub(in crate::store) fn has_remains(&mut self, now: i64) -> Result<bool> {
        self.with_lock_regardless(now, |store| {
            let is_lost = store.log.check_is_there().is_err();
            let traces = Traces::look(&*store.disk, &store.layout).at(store.layout.log())?;
            Ok(is_lost && (store.events() > 0 || traces.is_some_and(|traces| traces.has_remains())))
        })
    }

    /// Before the files are read anew: whether what is there follows from what this store knows.
    pub(in crate::store) fn check_follows(&self) -> Result<()> {
        match self.log.find_loss()? {
            Some(known) if !self.is_kept_elsewhere(&known)? => Err(self.log.gone(&known)),
            _ => Ok(()),
        }
    }

    /// Whether a restore or a repair of ours put the log aside that this store knows.
    fn is_kept_elsewhere(&self, known: &Synced) -> Result<bool> {
        let quarantine = self.layout.quarantine();
        for log in other_logs(&*self.disk, &self.layout).at(&quarantine)? {
            let length = log.length().at(&quarantine)?;
            if let Ok(Hint::Synced(_)) = hint_for(Some(*known), &*log, length) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
