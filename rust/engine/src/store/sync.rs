//! Syncs the log of a store, and first what must be on disk before it.

use std::path::Path;

use chronolog::error::Result;
use chronolog::log::{LogSync, Pulse};
use chronolog::wal::writer::Lines;

use super::Store;
use crate::store::vectors::DirtyRows;

/// A sync that runs while others go on writing.
pub struct Syncing {
    log: LogSync,
    rows: Option<DirtyRows>,
}

impl Syncing {
    /// The log that is synced.
    pub fn path(&self) -> &Path {
        &self.log.path
    }

    /// Waits until the disk has everything that was written before the sync was started.
    ///
    /// # Errors
    /// `Io`; the store must hear of it.
    pub fn run(&self) -> Result<()> {
        // What the log names must be there when the log is.
        self.rows.as_ref().map_or(Ok(()), DirtyRows::sync)?;
        self.log.run()
    }
}

impl Store {
    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// `Io`, `Poisoned`, `Closed`.
    pub fn sync(&mut self) -> Result<()> {
        self.check_open()?;
        self.log.check_poison()?;
        match self.start_sync() {
            None => Ok(()),
            Some(syncing) => {
                let outcome = syncing.run();
                self.end_sync(&syncing, outcome)
            }
        }
    }

    /// How many bytes are written but not synced.
    pub fn unsynced_bytes(&self) -> u64 {
        self.log.unsynced_bytes()
    }

    /// How the log is, as far as memory tells: nothing is read for it.
    pub fn pulse(&self) -> Pulse {
        self.log.pulse()
    }

    /// How often this store has waited for the disk to take the log.
    pub fn syncs(&self) -> u64 {
        self.log.syncs()
    }

    /// Begins a sync that can run without the store; `None` if there is nothing to do.
    pub fn start_sync(&self) -> Option<Syncing> {
        let log = self.log.start_sync()?;
        let rows = self.vectors.dirty_rows(&self.state);
        Some(Syncing { log, rows })
    }

    /// Hears how a sync went: a failure poisons the store, success is remembered in the hint.
    ///
    /// # Errors
    /// What the sync said.
    pub fn end_sync(&mut self, syncing: &Syncing, outcome: Result<()>) -> Result<()> {
        self.log.end_sync(&syncing.log, outcome)?;
        if let Some(rows) = &syncing.rows {
            self.vectors.on_disk.note(rows);
        }
        Ok(())
    }

    /// Whether what was written may not wait any longer for its sync.
    pub fn is_sync_due(&self, now: i64) -> bool {
        self.log.is_sync_due(now)
    }

    /// Under the lock, after a write: syncs what may not wait any longer.
    pub(super) fn sync_if_due(&mut self, now: i64) -> Result<()> {
        if !self.is_sync_due(now) {
            return Ok(());
        }
        // If that fails the bytes are in the file but nobody may rely on them: the memory must not either.
        self.sync_log().inspect_err(|_| self.log.forget())
    }

    /// Under the lock: syncs the log and remembers how far.
    pub(super) fn sync_log(&mut self) -> Result<()> {
        let (log, mut rows) = self.log_and_rows();
        log.sync(&mut rows)
    }

    /// Under the lock: syncs the log.
    pub(super) fn sync_quietly(&mut self) -> Result<()> {
        let (log, mut rows) = self.log_and_rows();
        log.sync_quietly(&mut rows)
    }

    /// Under the lock, before the first append: a log that can be written to.
    pub(super) fn make_ready(&mut self) -> Result<()> {
        let (log, mut rows) = self.log_and_rows();
        log.make_ready(&mut rows)
    }

    /// Under the lock, before another log takes the place of this one: what is known of its end is on disk.
    pub(super) fn settle_hint(&mut self) -> Result<()> {
        let (log, mut rows) = self.log_and_rows();
        log.settle_hint(&mut rows)
    }

    /// Under the lock: puts lines behind the log; says where they begin.
    pub(super) fn append(&mut self, lines: &Lines, now: i64) -> Result<u64> {
        let (log, mut rows) = self.log_and_rows();
        log.append(lines, now, &mut rows)
    }
}
