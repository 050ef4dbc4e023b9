//! Retires the live log in favour of a new base and archive, while others go on using the store.
//!
//! A [`Rewrite`] freezes a committed prefix of the log, writes its state and packs its events without the lock, and
//! follows what is appended meanwhile in ever shorter rounds. The rest is added under the lock. A compaction is a
//! rewrite, an erasure one with a [`Filter`] that leaves records and lines out.

use std::sync::Arc;

use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::error::{Error, Result};
use chronolog::log::Passed;
use chronomemory_state::state::{Frozen, State};

use super::bases::{ArchiveTold, NewFiles};
use crate::store::files::snapshots::header_of;
use crate::store::turns::{StoreAccess, Turns};
use crate::store::{Progress, Store};

/// How many rounds follow the log without the lock.
const MOST_ROUNDS: usize = 8;
/// So few bytes are left to the end, under the lock.
const REST_BYTES: u64 = 128 * 1024;

/// Decides what of the log and of its records is kept. The default is everything.
pub(in crate::store) trait Filter {
    /// The kept records that were changed since a place in the log, or all; `None` if only `freeze_replayed` knows them.
    fn freeze(&mut self, state: &mut State, since: Option<u64>) -> Result<Option<Frozen>> {
        Ok(Some(match since {
            Some(since) => state.freeze_since(since)?,
            None => state.freeze()?,
        }))
    }

    /// Reads what was appended up to a place; false if that changes what is kept, so that all has to begin anew.
    fn follow(&mut self, _log: &dyn DiskFile, _end: u64) -> Result<bool> {
        Ok(true)
    }

    /// After `follow`: the same as `freeze` if the kept records are known from a replay.
    fn freeze_replayed(&mut self, _since: Option<u64>) -> Result<Option<Frozen>> {
        Ok(None)
    }

    /// The log up to a place as it is archived, and how long that is.
    fn archived(&mut self, log: &Arc<dyn DiskFile>, end: u64) -> Result<(Arc<dyn DiskFile>, u64)> {
        Ok((Arc::clone(log), end))
    }
}

/// Keeps every record and every line.
pub(super) struct KeepAll;

impl Filter for KeepAll {}

/// A new base and archive of the live log.
pub(in crate::store) struct Rewrite<F> {
    pub filter: F,
    log: Arc<dyn DiskFile>,
    /// The log is accounted for up to here.
    until: Passed,
    /// What is written; `None` before `begin`.
    files: Option<NewFiles>,
    keep_history: bool,
    /// Up to here the archive is to be packed.
    length: u64,
    /// Logs from this length on are packed beside the base, on a thread of its own.
    beside_from: u64,
}

impl<F: Filter> Rewrite<F> {
    /// Accounts for a log up to a place, with nothing written yet.
    pub fn new(filter: F, log: Arc<dyn DiskFile>, until: Passed, keep_history: bool, beside_from: u64) -> Self {
        Self {
            filter,
            log,
            until,
            files: None,
            keep_history,
            length: 0,
            beside_from,
        }
    }

    /// Under the lock: freezes the state and begins the files; false if all has to begin anew.
    pub fn begin(&mut self, store: &mut Store) -> Result<bool> {
        if !self.follow_to_the_end(store)? {
            return Ok(false);
        }
        let records = match self.filter.freeze(&mut store.state, None)? {
            Some(records) => Some(records),
            None => self.filter.freeze_replayed(None)?,
        };
        let log = self.archived()?;
        let threads = store.options.threads;
        self.files = Some(NewFiles::start(
            &store.site,
            records.ok_or(Error::Closed)?,
            log,
            threads,
        )?);
        Ok(true)
    }

    /// Writes what is known so far.
    pub fn run(&mut self, progress: Progress<'_>) -> Result<()> {
        let is_worth_a_thread = self.until.end >= self.beside_from;
        match &mut self.files {
            Some(files) => files.run(self.length, is_worth_a_thread, progress),
            None => Ok(()),
        }
    }

    /// Follows what others append until little is left; false if all has to begin anew.
    pub fn catch_up(&mut self, access: &StoreAccess<'_, impl Turns>) -> Result<bool> {
        for _ in 0..MOST_ROUNDS {
            // The slow part comes first, so that little is left to sync under the lock.
            access.sync()?;
            let Some((until, changed)) = access.look(|store| self.appended(store, REST_BYTES))? else {
                return Ok(false);
            };
            if until.end - self.until.end <= REST_BYTES {
                break;
            }
            if !self.advance(until, changed)? {
                return Ok(false);
            }
            self.run(&mut |_, _| {})?;
        }
        Ok(true)
    }

    /// Under the lock: follows the rest; false if all has to begin anew.
    pub fn follow_to_the_end(&mut self, store: &mut Store) -> Result<bool> {
        match self.appended(store, 0)? {
            None => Ok(false),
            Some((until, _)) if until.end == self.until.end => Ok(true),
            Some((until, changed)) => self.advance(until, changed),
        }
    }

    /// Under the lock, after `follow_to_the_end`: names the files, that of the archive with a suffix.
    pub fn finish(&mut self, store: &Store, suffix: &str) -> Result<(Hex, Option<ArchiveTold>)> {
        let files = self.files.take().ok_or(Error::Closed)?;
        let first_seq = store.log.open().and_then(|open| open.mark().first_seq).unwrap_or(0);
        let header = (&header_of(&store.log), store.options.salts());
        files.finish(&store.site, header, self.length, (first_seq, suffix))
    }

    /// Where the log ends now, and the records that were changed if that is more than a rest; `None` if it was replaced.
    fn appended(&mut self, store: &mut Store, rest: u64) -> Result<Option<(Passed, Option<Frozen>)>> {
        let open = store.log.open().filter(|open| open.goes_on_from(&self.until));
        let Some(until) = open.map(|open| open.passing()) else {
            return Ok(None);
        };
        let since = self.until.end;
        let changed = match self.files {
            Some(_) if until.end - since > rest => self.filter.freeze(&mut store.state, Some(since))?,
            _ => None,
        };
        Ok(Some((until, changed)))
    }

    fn advance(&mut self, until: Passed, changed: Option<Frozen>) -> Result<bool> {
        if !self.filter.follow(&*self.log, until.end)? {
            return Ok(false);
        }
        let since = std::mem::replace(&mut self.until, until).end;
        if self.files.is_none() {
            return Ok(true);
        }
        let changed = match changed {
            Some(changed) => Some(changed),
            None => self.filter.freeze_replayed(Some(since))?,
        };
        let log = self.archived()?;
        if let Some(files) = &mut self.files {
            files.take(changed, log);
        }
        Ok(true)
    }

    fn archived(&mut self) -> Result<Option<Arc<dyn DiskFile>>> {
        if !self.keep_history {
            return Ok(None);
        }
        let (log, length) = self.filter.archived(&self.log, self.until.end)?;
        self.length = length;
        Ok(Some(log))
    }
}
