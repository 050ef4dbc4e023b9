//! What was seen of archives before, so that they need not be opened each time.
//!
//! They never change, and their names are their digests. So whoever looks after a store night by night need not open a long history
//! each time; whether the files are there is for the caller to see.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::origin::Beginning;

/// What this process has seen of archives, by their names from the store's folder on.
#[derive(Default)]
pub struct ArchivesSeen(Mutex<SeenArchives>);

#[derive(Default)]
struct SeenArchives {
    /// How long the log is in each, and how it begins.
    beginnings: HashMap<String, (u64, Beginning)>,
    /// Those that were found to have the digest that a log names.
    proved: HashSet<String>,
}

impl ArchivesSeen {
    fn seen(&self) -> MutexGuard<'_, SeenArchives> {
        // Each change of it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the log in an archive is, and how it begins.
    pub fn beginning(&self, name: &str) -> Option<(u64, Beginning)> {
        self.seen().beginnings.get(name).cloned()
    }

    /// Notes that.
    pub fn note_beginning(&self, name: &str, length: u64, beginning: &Beginning) {
        let seen = (length, beginning.clone());
        self.seen().beginnings.insert(name.to_owned(), seen);
    }

    /// Whether an archive was found to have its digest.
    pub fn is_proved(&self, name: &str) -> bool {
        self.seen().proved.contains(name)
    }

    /// Notes that.
    pub fn note_proved(&self, name: &str) {
        self.seen().proved.insert(name.to_owned());
    }
}
