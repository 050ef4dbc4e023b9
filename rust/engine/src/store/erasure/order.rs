//! What is asked of an erasure, and what is told of it?

use std::borrow::Cow;

use crate::state::State;

/// What is to be erased, and how.
#[derive(Clone, Debug, Default)]
pub struct Erase {
    /// Records by their ids.
    pub ids: Vec<String>,
    /// Of these only the ones that have expired by this moment when it comes to it: what was written anew lives.
    pub due_at: Option<i64>,
    /// Every record that carries the names of this scope, or ever did; as canonical JSON.
    pub scope: Option<Vec<u8>>,
    /// Why; it stays in the log.
    pub reason: String,
    /// The history of all records goes, not only that of those.
    pub drop_history: bool,
    /// Those of the records whose present value is said again.
    pub again: Vec<String>,
    /// What was derived from one of the records goes too.
    pub derived: bool,
    /// Nothing is written: only what would be done is told.
    pub dry_run: bool,
}

impl Erase {
    /// The order as it is meant now, while nobody else writes.
    pub(super) fn now(&self, state: &State) -> Cow<'_, Self> {
        let Some(moment) = self.due_at else {
            return Cow::Borrowed(self);
        };
        let due = self.ids.iter().filter(|id| state.has_expired(id, moment));
        Cow::Owned(Self {
            ids: due.cloned().collect(),
            ..self.clone()
        })
    }
}

/// What was erased, or would be.
#[derive(Clone, Debug, Default)]
pub struct Erased {
    /// The seq of the event that tells of it; `None` if nothing was found, or nothing was done.
    pub seq: Option<u64>,
    /// The records that were asked for, as far as they were ever there.
    pub ids: Vec<String>,
    /// Others that went with them.
    pub belonging: Vec<String>,
    /// Others that stay and speak of one of them.
    pub mentions: Vec<String>,
    /// How many lines.
    pub lines: u64,
    /// How many of those had no salt: who can guess the whole text can confirm it.
    pub unsalted: u64,
    /// How many lines of each log.
    pub by_log: Vec<(String, u64)>,
    /// How many files of the past were replaced or dropped.
    pub replaced: u64,
    /// Records that were said again: those asked for, and others that events had changed which went.
    pub again: u64,
    /// Copies that went.
    pub backups: Vec<String>,
    /// What was quarantined and went.
    pub quarantine: Vec<String>,
    /// Copies outside that hold it, or cannot be read to their end: nobody touched them.
    pub copies: Vec<String>,
    /// Copies outside that are not there now, and may hold it.
    pub missing_copies: Vec<String>,
}
