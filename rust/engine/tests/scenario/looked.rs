//! Remembers which outcomes of a crash were looked at already.
//!
//! Where little was unsynced, many power failures leave the same disk, and so does a kill. To open and verify it again, held
//! to the same, tells nothing new: it is looked at once.

use std::collections::HashSet;
use std::hash::Hash;

use crate::crash_disk::CrashDisk;

/// The disks that were looked at, and what each was held to.
pub struct Looked<Terms> {
    known: HashSet<(u64, Terms)>,
}

impl<Terms: Hash + Eq> Looked<Terms> {
    pub fn new() -> Self {
        Self { known: HashSet::new() }
    }

    /// Whether a disk like this was not held to these terms before; from now on it was.
    pub fn is_new(&mut self, disk: &CrashDisk, terms: Terms) -> bool {
        self.known.insert((disk.fingerprint(), terms))
    }

    /// How many different ones there were.
    pub fn count(&self) -> u64 {
        self.known.len() as u64
    }
}
