//! What if the log goes away under an open store, or was gone before?
//!
//! A log is only ever appended to, or replaced by one that names its head. So a store that is open and finds something else
//! knows that somebody took the log away, cut it, or put another in its place. It says so at every call, writes nothing, and
//! goes on by itself if the log comes back. Only our own deeds are followed: a restore and a repair keep the log that they
//! replace where it can be found.

use crate::damage::{Damage, DamageKind};
use crate::disk::Access;
use crate::error::{At, Error, Result};
use crate::hint::{Hint, first_line, hint_for, line_before, read_hint};
use crate::layout::LOG;
use crate::log::OpenLog;
use crate::remembered::{self, Standing};
use crate::verify::finding;
use crate::wal::synced::{Synced, names_hash};

use super::Store;
use super::proofs::other_logs;

impl Store {
    /// A store whose log is lost has no history, and nothing may be written that would begin another one.
    pub(super) fn check_log_is_there(&self) -> Result<()> {
        let lost = self
            .report
            .damage
            .iter()
            .find(|damage| damage.kind == DamageKind::LogMissing);
        if let Some(damage) = lost {
            return Err(Error::Corrupted(Box::new(damage.clone())));
        }
        // Whoever holds the lock does not look around between two reads.
        let is_cut = |log: &OpenLog| log.file.length().is_ok_and(|length| length < log.walk.mark().end);
        match self.log.as_ref().filter(|log| is_cut(log)).and(self.reached()) {
            Some(known) => Err(Error::Corrupted(Box::new(self.gone(&known)))),
            None => Ok(()),
        }
    }

    /// Whether the last event that this store knows still stands where it stood.
    pub(super) fn knows_its_end(&self) -> Result<bool> {
        let (Some(log), Some(known)) = (&self.log, self.reached()) else {
            return Ok(true);
        };
        let line = line_before(&*log.file, known.offset).at(self.layout.log())?;
        Ok(line.is_some_and(|line| known.fits_head(&line)))
    }

    /// Whether the log is lost, looked at under the lock.
    pub(super) fn is_lost(&mut self, now: i64) -> Result<bool> {
        self.with_lock_regardless(now, |store| Ok(store.check_log_is_there().is_err()))
    }

    /// A log that has lost its end, or took the place of another, is not compacted: what lies around it may be all that is
    /// left of the one that was here.
    pub(super) fn check_head_is_kept(&mut self) -> Result<()> {
        self.find_standing()?;
        match &self.standing {
            Standing::Lost(reason) => Err(Error::Corrupted(Box::new(finding(LOG, DamageKind::LogMissing, reason)))),
            _ => Ok(()),
        }
    }

    /// Before the files are read anew: whether what is there follows from what this store knows.
    pub(super) fn check_follows(&self) -> Result<()> {
        let Some(known) = self.reached() else {
            return Ok(());
        };
        let path = self.layout.log();
        if !self.report.damage.is_empty() && self.disk.status(path).is_ok_and(|now| now.length > 0) {
            // In a damaged log the head that is known may not be found again where it stood.
            return Ok(());
        }
        let Standing::Lost(_) = remembered::standing_to(&*self.disk, &self.layout, &known).at(path)? else {
            return Ok(());
        };
        if self.was_never_promised()? || self.is_kept_elsewhere(&known)? {
            return Ok(());
        }
        Err(Error::Corrupted(Box::new(self.gone(&known))))
    }

    /// A writer that fails takes back what it wrote, and others may have read it already: no loss, for nobody was told that
    /// it is kept. What this store wrote itself, and what was synced, is.
    fn was_never_promised(&self) -> Result<bool> {
        let path = self.layout.log();
        let (Some(log), Ok(now)) = (&self.log, self.disk.status(path)) else {
            return Ok(false);
        };
        let Some(first) = log.walk.mark().first else {
            return Ok(false);
        };
        let synced = read_hint(&*self.disk, &self.layout).at(&self.layout.synced())?;
        let of_this_log = synced.filter(|synced| synced.first == first);
        let hint = hint_for(of_this_log, &*log.file, now.length).at(path)?;
        let is_kept = match of_this_log {
            Some(_) => matches!(hint, Hint::Synced(_)),
            None => first_line(&*log.file, now.length)
                .at(path)?
                .is_some_and(|line| names_hash(&line, &first)),
        };
        let is_cut = now.length < log.walk.mark().end;
        Ok(is_cut && is_kept && now.identity == log.identity && now.length >= self.own_end)
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

    fn gone(&self, known: &Synced) -> Damage {
        let how = match self.disk.open(self.layout.log(), Access::Read) {
            Err(_) => "it is not there any more",
            Ok(file) if file.length().is_ok_and(|length| length == 0) => "it was emptied",
            Ok(_) => "it was cut, or another was put in its place",
        };
        let reason = format!("{how}: this store knows it up to event {}", known.seq);
        Damage {
            seq: Some(known.seq),
            ..finding(LOG, DamageKind::LogMissing, reason)
        }
    }
}
