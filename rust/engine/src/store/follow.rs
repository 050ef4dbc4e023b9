//! How does the memory follow the files?

use super::derived;
use super::load::{Examined, Look, Seen, look_for_lost, look_twice, nothing};
use super::loader::Loader;
use super::{Progress, Store, vectors};
use crate::digest::{Hex, sha256};
use crate::disk::{Identity, read_upto};
use crate::error::{At, Error, Result};
use crate::log::OpenLog;
use crate::state::State;

/// A larger tail is read anew at every look.
const LARGEST_TAIL_BYTES: u64 = 64 * 1024 * 1024;

/// What a pending tail looked like. Others may replace it by as many other bytes, so its length does not tell; but to load
/// everything anew for the same bytes again and again would keep a search from ever seeing one state twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TailSeen {
    log: Identity,
    start: u64,
    digest: Hex,
}

impl Store {
    /// Reads what others committed since.
    ///
    /// # Errors
    /// `Io`, `Closed`.
    pub fn refresh(&mut self) -> Result<()> {
        self.check_open()?;
        // What this store writes itself is not news to it.
        let is_writing = self.lock.held && self.prepared;
        if !is_writing && self.is_behind()? {
            self.catch_up()?;
        }
        Ok(())
    }

    /// Whether others changed the files since the last look: a few system calls, no reading.
    ///
    /// # Errors
    /// `Io`, `Closed`.
    pub fn is_behind(&self) -> Result<bool> {
        self.check_open()?;
        if self.is_leased() && self.prepared {
            return Ok(false);
        }
        let path = self.layout.log();
        Ok(match (&self.log, self.disk.status(path)) {
            (None, Ok(_)) => true,
            (log, Err(fault)) if fault.kind() == std::io::ErrorKind::NotFound => log.is_some(),
            (_, Err(fault)) => return Err(Error::io(path, fault)),
            // A pending tail may have been replaced by as many other bytes: it is always looked at again.
            (Some(_), Ok(_)) if self.report.tail.is_some() => true,
            (Some(log), Ok(now)) => now.identity != log.identity || now.length != log.walk.end,
        })
    }

    /// Forgets the memory and loads base and log anew.
    pub(super) fn reload(&mut self, progress: Progress<'_>) -> Result<()> {
        let path = self.layout.log().to_owned();
        let look = Look {
            threads: self.options.threads,
            checking: self.options.checking,
            archives: false,
        };
        let seen = look_twice(&*self.disk, &self.layout, look, Loader::loading, progress).at(&path)?;
        let Some(Seen {
            file,
            found,
            taker: loader,
        }) = seen
        else {
            let mut loader = Loader::loading();
            let lost = look_for_lost(&*self.disk, &self.layout, self.options.threads, &mut loader).at(&path)?;
            if let (true, Some(damage)) = (self.options.strict, lost.iter().flat_map(|lost| &lost.damage).next()) {
                return Err(Error::Corrupted(Box::new(damage.clone())));
            }
            self.log = None;
            self.state = loader.state.filter(|_| lost.is_some()).unwrap_or_default();
            self.vectors = vectors::Vectors::default();
            self.report = lost.unwrap_or_else(nothing);
            self.snapshot_due = derived::FIRST_SNAPSHOT_EVENTS;
            return self.find_standing();
        };
        let Examined {
            walk,
            report,
            origin,
            anchored,
            synced,
            proof: _,
        } = found;
        if let (true, Some(damage)) = (self.options.strict, report.damage.first()) {
            return Err(Error::Corrupted(Box::new(damage.clone())));
        }
        let is_synced = synced == Some(walk.end);
        self.log = Some(OpenLog::reading(file, walk, origin).at(&path)?.anchored(anchored));
        self.own_end = 0;
        self.report = report;
        self.state = loader.state.unwrap_or_default();
        self.vectors = vectors::Vectors::default();
        self.unsynced.rows = if is_synced { self.state.rows_named().len() } else { 0 };
        self.unsynced.reading += 1;
        self.snapshot_due = derived::next_snapshot(self.events().max(self.state.len() as u64));
        self.find_standing()
    }

    /// Takes in what was appended; anything that does not simply follow means a reload.
    pub(super) fn catch_up(&mut self) -> Result<()> {
        let path = self.layout.log().to_owned();
        let same = match &self.log {
            Some(log) => self.disk.status(&path).is_ok_and(|now| now.identity == log.identity),
            None => false,
        };
        if !same {
            return match self.follow_swap()? {
                true => Ok(()),
                false => {
                    self.check_follows()?;
                    self.reload(&mut |_, _| {})
                }
            };
        }
        let Some(log) = self.log.as_mut() else {
            return self.reload(&mut |_, _| {});
        };
        let length = log.file.length().at(&path)?;
        if length < log.walk.end {
            self.check_follows()?;
            return self.reload(&mut |_, _| {});
        }
        if !self.knows_its_end()? {
            // Another log was written over this one.
            self.check_follows()?;
            return self.reload(&mut |_, _| {});
        }
        let seen = self.look_at_tail()?;
        if seen.is_some() && seen == self.tail_known {
            return Ok(());
        }
        let Some(log) = self.log.as_mut() else {
            return Ok(());
        };
        let before = log.walk.follower.damage.len();
        let mut loader = Loader::going_on(std::mem::take(&mut self.state));
        let reading = crate::wal::reader::Reading {
            trusted_until: 0,
            threads: self.options.threads,
        };
        let tail = log
            .walk
            .go(&*log.file, length, reading, &mut loader, &mut |_, _| {})
            .at(&path);
        self.state = loader.state.unwrap_or_default();
        if tail.is_err() {
            // Half of a piece may have been taken in; the next look starts from nothing, and may need the memory.
            (self.log, self.state) = (None, State::default());
        }
        let tail = tail?;
        let Some(log) = &self.log else {
            return Ok(());
        };
        if log.walk.follower.damage.len() > before || log.walk.follower.tail.is_some() {
            self.reload(&mut |_, _| {})?;
            // The same before and after: then it was this that was loaded.
            self.tail_known = self.look_at_tail()?.filter(|now| seen.as_ref() == Some(now));
            return Ok(());
        }
        self.report.tail = tail;
        Ok(())
    }

    /// What a pending tail looks like, if there is one that can be looked at.
    fn look_at_tail(&self) -> Result<Option<TailSeen>> {
        let Some(log) = self.log.as_ref().filter(|_| self.report.tail.is_some()) else {
            return Ok(None);
        };
        let path = self.layout.log();
        let (start, end) = (log.walk.end, log.file.length().at(path)?);
        if end.saturating_sub(start) > LARGEST_TAIL_BYTES {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        read_upto(&*log.file, &mut bytes, start, (end - start) as usize).at(path)?;
        Ok(Some(TailSeen {
            log: log.identity,
            start,
            digest: sha256(&bytes),
        }))
    }
}
