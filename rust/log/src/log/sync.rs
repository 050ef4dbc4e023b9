//! Counts what is not yet synced, decides when a sync is due, and carries it out.

use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::{DiskFile, Identity};
use crate::error::{At, Result};
use crate::remembered::SeenHead;

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
pub trait Barrier {
    /// Waits until the disk has it.
    fn sync(&mut self) -> Result<()>;
}

/// A sync of the log that runs while others go on writing.
pub struct LogSync {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) identity: Identity,
    /// The log that is synced.
    pub path: PathBuf,
    pub(super) reached: Option<SeenHead>,
    pub(super) written: WrittenBytes,
}

/// How much was written at a moment, and when the last of it was.
#[derive(Clone, Copy)]
pub(super) struct WrittenBytes {
    bytes: u64,
    last: Option<i64>,
}

impl LogSync {
    /// Waits until the disk has everything that was written before the sync was started.
    pub fn run(&self) -> Result<()> {
        self.file.sync().at(&self.path)
    }
}

/// Counts what was written, and how much of it is on disk.
#[derive(Default)]
pub struct Unsynced {
    /// How many bytes were ever written.
    written: u64,
    /// How many of them are on disk.
    synced: u64,
    /// When the first of the others was written.
    since: Option<i64>,
    /// When the last of them was.
    last: Option<i64>,
    /// What was counted for reports.
    pub(super) status: LogStatus,
}

/// How much one writer appended to a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// How often.
    pub commits: u64,
    /// How many lines.
    pub events: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// How a log is, as far as memory tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStatus {
    /// What was appended to it from here.
    pub appended: Appended,
    /// How often the disk was waited for.
    pub syncs: u64,
    /// How often another writer was waited for.
    pub lock_waits: u64,
    /// How many bytes are written from here and not synced.
    pub unsynced_bytes: u64,
    /// What was written from here until this moment is on disk.
    pub synced_until: Option<i64>,
    /// Which failed sync refuses all writes.
    pub poisoned: Option<String>,
}

impl Unsynced {
    /// Counts lines that were appended.
    pub(super) fn count(&mut self, events: usize, bytes: usize) {
        let appended = &mut self.status.appended;
        appended.commits += 1;
        appended.events += events as u64;
        appended.bytes += bytes as u64;
    }

    /// How many bytes are written but not synced.
    pub fn bytes(&self) -> u64 {
        self.written - self.synced
    }

    pub(super) fn written(&self) -> WrittenBytes {
        WrittenBytes {
            bytes: self.written,
            last: self.last,
        }
    }

    /// Whether what was written may not wait any longer for its sync.
    pub(super) fn is_due(&self, durability: Durability, now: i64) -> bool {
        let since = self.since.unwrap_or(now);
        match durability {
            Durability::Full => self.bytes() > 0,
            Durability::Normal => self.bytes() >= UNSYNCED_BYTES || now - since >= UNSYNCED_MICROS,
            Durability::Off => false,
        }
    }

    pub(super) fn wrote(&mut self, bytes: u64, now: i64) {
        self.written += bytes;
        self.since.get_or_insert(now);
        self.last = Some(now);
    }

    /// Everything up to there is on disk.
    pub(super) fn reached(&mut self, written: WrittenBytes) {
        self.status.syncs += 1;
        // Offsets, not differences: syncs may overtake one another.
        self.synced = self.synced.max(written.bytes);
        self.status.synced_until = self.status.synced_until.max(written.last);
        // What was written during the sync is younger than all that was synced, or as old.
        self.since = self.since.max(written.last).filter(|_| self.bytes() > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = UNSYNCED_MICROS;

    #[test]
    fn what_is_written_while_the_disk_is_at_work_waits_from_then_on() {
        let mut unsynced = Unsynced::default();
        unsynced.wrote(10, 0);
        let began = unsynced.written();
        unsynced.wrote(10, SECOND / 10);
        unsynced.wrote(10, SECOND);
        unsynced.reached(began);
        assert_eq!(unsynced.bytes(), 20);
        assert!(
            unsynced.is_due(Durability::Normal, SECOND + SECOND / 10),
            "the first of them has waited for a second then"
        );
        unsynced.reached(unsynced.written());
        assert!(!unsynced.is_due(Durability::Normal, 9 * SECOND));
    }
}
