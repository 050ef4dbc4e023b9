//! What if the log goes away under an open store, or was gone before?
//!
//! A log is only ever appended to, or replaced by one that names its head. So a store that is open and finds something else
//! knows that somebody took the log away, cut it, or put another in its place. It says so at every call, writes nothing, and
//! goes on by itself if the log comes back. Only our own deeds are followed: a restore and a repair keep the log that they
//! replace where it can be found.

use crate::error::{At, Result};
use crate::hint::{Hint, hint_for};
use crate::wal::synced::Synced;

use super::Store;
use super::proofs::other_logs;

impl Store {
    /// Whether the log is lost, looked at under the lock.
    pub(super) fn is_lost(&mut self, now: i64) -> Result<bool> {
        self.with_lock_regardless(now, |store| Ok(store.log.check_is_there().is_err()))
    }

    /// Before the files are read anew: whether what is there follows from what this store knows.
    pub(super) fn check_follows(&self) -> Result<()> {
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
