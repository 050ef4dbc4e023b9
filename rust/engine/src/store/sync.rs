//! When is a write safe from a power failure?

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::disk::DiskFile;
use crate::error::{At, Result};
use crate::hint::{read_hint, write_hint};
use crate::options::Durability;
use crate::wal::synced::Synced;

use super::Store;
use super::vectors::DirtyRows;

/// What `normal` leaves unsynced at most.
const UNSYNCED_BYTES: u64 = 4 * 1024 * 1024;
/// And for how long, in microseconds.
const UNSYNCED_MICROS: i64 = 1_000_000;

/// A sync that runs while others go on writing.
pub struct Syncing {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    reached: Option<Synced>,
    written: u64,
    rows: Option<DirtyRows>,
}

impl Syncing {
    /// The log that is synced.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the disk has everything that was written before the sync was started.
    ///
    /// # Errors
    /// `Io`; the store must hear of it.
    pub fn run(&self) -> Result<()> {
        // What the log names must be there when the log is.
        self.rows.as_ref().map_or(Ok(()), DirtyRows::sync)?;
        self.file.sync().at(&self.path)
    }
}

impl Store {
    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// `Io`, `Poisoned`, `Closed`.
    pub fn sync(&mut self) -> Result<()> {
        self.check_open()?;
        self.check_poison()?;
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
        self.unsynced.written - self.unsynced.synced
    }

    /// How often this store has waited for the disk to take the log.
    pub fn syncs(&self) -> u64 {
        self.unsynced.syncs
    }

    /// Begins a sync that can run without the store; `None` if there is nothing to do.
    pub fn start_sync(&self) -> Option<Syncing> {
        let log = self
            .log
            .as_ref()
            .filter(|_| self.unsynced_bytes() > 0 && self.poisoned.is_none())?;
        Some(Syncing {
            file: Arc::clone(&log.file),
            path: self.layout.log().to_owned(),
            reached: self.reached(),
            written: self.unsynced.written,
            rows: self.dirty_rows(),
        })
    }

    /// Hears how a sync went: a failure poisons the store, success is remembered in the hint.
    ///
    /// # Errors
    /// What the sync said.
    pub fn end_sync(&mut self, syncing: &Syncing, outcome: Result<()>) -> Result<()> {
        self.note_sync(outcome, syncing.written, syncing.rows.as_ref())?;
        // The hint belongs to whoever holds the lock. It is only a hint: if another does, it is left to them.
        let Some(reached) = syncing.reached else {
            return Ok(());
        };
        let _ = self.with_lock_for_a_moment(Duration::ZERO, |store| {
            if store.is_at_its_path(&*syncing.file) && !store.is_known(&reached) {
                store.remember(&reached);
            }
            Ok(())
        });
        Ok(())
    }

    /// Whether another process has synced as far already.
    fn is_known(&self, reached: &Synced) -> bool {
        let known = read_hint(&*self.disk, &self.layout);
        matches!(known, Ok(Some(known)) if known.first == reached.first && known.offset >= reached.offset)
    }

    /// Writes the hint. It only tells a tail from damage: a write is no less safe without it.
    fn remember(&mut self, reached: &Synced) {
        if let Err(fault) = write_hint(&*self.disk, &self.layout, reached) {
            self.report
                .notes
                .push(format!("the hint about the last sync could not be written: {fault}"));
        }
        self.tell_head(reached);
    }

    /// Whether what was written may not wait any longer for its sync.
    pub fn is_sync_due(&self, now: i64) -> bool {
        let since = self.unsynced.since.unwrap_or(now);
        match self.options.durability {
            Durability::Full => self.unsynced_bytes() > 0,
            Durability::Normal => self.unsynced_bytes() >= UNSYNCED_BYTES || now - since >= UNSYNCED_MICROS,
            Durability::Off => false,
        }
    }

    /// Under the lock, after a write: syncs what may not wait any longer.
    pub(super) fn sync_if_due(&mut self, now: i64) -> Result<()> {
        if !self.is_sync_due(now) {
            return Ok(());
        }
        // If that fails the bytes are in the file but nobody may rely on them: the memory must not either.
        self.sync_log().inspect_err(|_| self.log = None)
    }

    /// Under the lock: syncs the log and remembers how far.
    pub(super) fn sync_log(&mut self) -> Result<()> {
        self.sync_rows_and_log()?;
        if let Some(reached) = self.reached() {
            self.remember(&reached);
        }
        Ok(())
    }

    /// Under the lock: syncs the log.
    pub(super) fn sync_rows_and_log(&mut self) -> Result<()> {
        let Some(log) = &self.log else {
            return Ok(());
        };
        let rows = self.dirty_rows();
        let outcome = rows
            .as_ref()
            .map_or(Ok(()), DirtyRows::sync)
            .and_then(|()| log.file.sync().at(self.layout.log()));
        self.note_sync(outcome, self.unsynced.written, rows.as_ref())
    }

    fn note_sync(&mut self, outcome: Result<()>, written: u64, rows: Option<&DirtyRows>) -> Result<()> {
        if let Err(fault) = outcome {
            self.poison(&fault.to_string());
            return Err(fault);
        }
        self.unsynced.syncs += 1;
        if let Some(rows) = rows {
            self.note_rows(rows);
        }
        // Offsets, not differences: syncs may overtake one another.
        self.unsynced.synced = self.unsynced.synced.max(written);
        self.unsynced.since = self.unsynced.last.filter(|_| self.unsynced_bytes() > 0);
        Ok(())
    }

    /// Where the log ends now, as the hint spells it; `None` before the first event.
    pub(super) fn reached(&self) -> Option<Synced> {
        // If lines stand behind the last event that could not be loaded, a hint there would make a tail of them.
        let mark = self.log.as_ref().map(|log| log.walk.mark()).filter(|mark| !mark.gap)?;
        Some(Synced {
            offset: mark.end,
            seq: mark.last_seq,
            first: mark.first?,
            head: mark.head?,
        })
    }

    pub(super) fn is_at_its_path(&self, file: &dyn DiskFile) -> bool {
        let here = self.disk.status(self.layout.log());
        matches!((file.identity(), here), (Ok(file), Ok(now)) if file == now.identity)
    }
}
