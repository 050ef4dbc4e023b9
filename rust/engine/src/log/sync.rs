//! When is a write safe from a power failure?

use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::{At, Result};
use crate::wal::synced::Synced;

/// What `normal` leaves unsynced at most.
const UNSYNCED_BYTES: u64 = 4 * 1024 * 1024;
/// And for how long, in microseconds.
const UNSYNCED_MICROS: i64 = 1_000_000;

/// When an acknowledged write is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before it is acknowledged.
    Full,
    /// At the latest one second or four mebibytes later, at close and before compaction.
    Normal,
    /// When the system sees fit, and at close.
    Off,
}

/// What must be on disk before the log may be, because the log names it.
pub(crate) trait Barrier {
    /// Waits until the disk has it.
    fn sync(&mut self) -> Result<()>;
}

/// A sync of the log that runs while others go on writing.
pub(crate) struct LogSync {
    pub(super) file: Arc<dyn DiskFile>,
    /// The log that is synced.
    pub path: PathBuf,
    pub(super) reached: Option<Synced>,
    pub(super) written: u64,
}

impl LogSync {
    /// Waits until the disk has everything that was written before the sync was started.
    pub fn run(&self) -> Result<()> {
        self.file.sync().at(&self.path)
    }
}

/// Counts what was written, and how much of it is on disk.
#[derive(Clone, Copy, Default)]
pub(super) struct Unsynced {
    /// How many bytes were ever written.
    written: u64,
    /// How many of them are on disk.
    synced: u64,
    /// When the first of the others was written.
    since: Option<i64>,
    /// When the last of them was.
    last: Option<i64>,
    /// How often the disk was waited for.
    syncs: u64,
}

impl Unsynced {
    /// How many bytes are written but not synced.
    pub fn bytes(&self) -> u64 {
        self.written - self.synced
    }

    /// How many bytes were ever written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// How often the disk was waited for.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Whether what was written may not wait any longer for its sync.
    pub fn is_due(&self, durability: Durability, now: i64) -> bool {
        let since = self.since.unwrap_or(now);
        match durability {
            Durability::Full => self.bytes() > 0,
            Durability::Normal => self.bytes() >= UNSYNCED_BYTES || now - since >= UNSYNCED_MICROS,
            Durability::Off => false,
        }
    }

    /// Bytes were written.
    pub fn wrote(&mut self, bytes: u64, now: i64) {
        self.written += bytes;
        self.since.get_or_insert(now);
        self.last = Some(now);
    }

    /// The disk has all that was written when so many bytes were.
    pub fn reached(&mut self, written: u64) {
        self.syncs += 1;
        // Offsets, not differences: syncs may overtake one another.
        self.synced = self.synced.max(written);
        self.since = self.last.filter(|_| self.bytes() > 0);
    }
}
