//! The options with which a caller opens a store.

use std::path::PathBuf;
use std::time::Duration;

use crate::store::SealTerms;

use chronolog::event::salt::{SaltTerms, Salting};
use chronolog::host::Randomness;
pub use chronolog::log::Durability;
use chronolog::log::LockTerms;

/// How an existing log is checked when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checking {
    /// Every line: form, link and hash.
    Full,
    /// What is not in a segment: form, link and hash. The rest is verified later.
    Later,
    /// Form and link everywhere; hashes only behind the last known sync.
    Quick,
}

/// A shorter log is packed before another thread would have begun.
const WORTH_A_THREAD_BYTES: u64 = 16 * 1024 * 1024;

/// How a store behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The writer's distance from the world, stamped on what it writes.
    pub recursion_depth: i64,
    /// When writes are synced.
    pub durability: Durability,
    /// Keep the writer lock until close.
    pub exclusive: bool,
    /// How long to wait for another writer.
    pub lock_timeout: Duration,
    /// Refuse a damaged store instead of reporting it.
    pub strict: bool,
    /// How the log is checked at open.
    pub checking: Checking,
    /// How many threads may read the log.
    pub threads: usize,
    /// When the state is sealed into segments.
    pub seal: SealTerms,
    /// A log of so many bytes is packed beside the base that an erasure writes, if there is a second thread.
    pub beside_from_bytes: u64,
    /// What this writer leaves in the lock file for people.
    pub signature: String,
    /// Where the last head is noted, outside the project; `None` if nobody asks for it.
    pub head_file: Option<PathBuf>,
    /// Where the salt of lines and bases comes from; `None` if nobody lends any. See section 16 of `docs/format.md`.
    pub randomness: Option<Randomness>,
    /// Which lines are salted, so that the hash of one that was erased cannot be guessed.
    pub salt: Salting,
    /// If the store's folder has to be made, it is made for a group; otherwise for its owner alone.
    pub shared: bool,
    /// A worker runs between calls: it does what can wait, and ends the lease of a lock with `Store::end_lease`.
    pub attended: bool,
}

/// What each of those who share a store may choose for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterTerms {
    /// Its distance from the world, stamped on what it writes.
    pub recursion_depth: i64,
    /// When its writes are synced.
    pub durability: Durability,
    /// How long it waits for another writer.
    pub lock_timeout: Duration,
    /// Which of its lines are salted, if there is anything to salt them with.
    pub salt: Salting,
}

impl WriterTerms {
    /// What satisfies both of two who write together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let wished = [self.durability, other.durability];
        let strictest = [Durability::Full, Durability::Normal]
            .into_iter()
            .find(|mode| wished.contains(mode));
        Self {
            durability: strictest.unwrap_or(Durability::Off),
            lock_timeout: self.lock_timeout.max(other.lock_timeout),
            salt: self.salt.max(other.salt),
            ..self
        }
    }
}

impl Options {
    /// Logs from this length on are packed beside their base, on a thread of its own.
    pub(crate) fn beside_from(&self) -> u64 {
        match self.threads > 1 {
            true => self.beside_from_bytes,
            false => u64::MAX,
        }
    }

    /// What of it others who share the store may choose otherwise.
    #[must_use]
    pub fn writer_terms(&self) -> WriterTerms {
        WriterTerms {
            recursion_depth: self.recursion_depth,
            durability: self.durability,
            lock_timeout: self.lock_timeout,
            salt: self.salt,
        }
    }

    /// Whether nothing is acknowledged before it is on disk.
    pub(crate) fn syncs_every_commit(&self) -> bool {
        self.durability == Durability::Full
    }

    /// What lines are salted with, and which, if any are.
    pub(crate) fn salts(&self) -> Option<SaltTerms<'_>> {
        let source = self.randomness.as_ref().filter(|_| self.salt != Salting::Never)?;
        Some(SaltTerms {
            source,
            salting: self.salt,
        })
    }

    /// How the log holds the lock.
    pub(crate) fn lock_terms(&self) -> LockTerms {
        LockTerms {
            exclusive: self.exclusive,
            attended: self.attended,
            patience: self.lock_timeout,
            signature: self.signature.clone(),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            recursion_depth: 0,
            durability: Durability::Normal,
            exclusive: false,
            lock_timeout: Duration::from_secs(5),
            strict: false,
            checking: Checking::Full,
            threads: 1,
            seal: SealTerms::default(),
            beside_from_bytes: WORTH_A_THREAD_BYTES,
            signature: String::new(),
            head_file: None,
            randomness: None,
            salt: Salting::default(),
            shared: false,
            attended: false,
        }
    }
}
