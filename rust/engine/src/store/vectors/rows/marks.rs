//! Marks of the rows that were checked against their digests, and of those that failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::store::vectors::records::index::CHUNK_ROWS;

const WORDS: usize = CHUNK_ROWS / 64;

/// What this process knows of the rows of a chunk. A row that passed once is scored without another check, but checked
/// again before it is handed out; one that failed stays so.
#[derive(Debug, Default)]
pub struct Marks {
    good: [AtomicU64; WORDS],
    bad: [AtomicU64; WORDS],
    /// How often a row of the space failed: mostly never, and then nobody needs to look at every chunk.
    failures: Arc<AtomicUsize>,
}

impl Marks {
    /// Nothing is known yet of a chunk of the space whose failures are counted here.
    pub fn counted(failures: &Arc<AtomicUsize>) -> Self {
        Self {
            failures: Arc::clone(failures),
            ..Self::default()
        }
    }

    /// Whether a row may be believed, asking `check` if nobody has yet.
    #[inline]
    pub fn admit(&self, place: usize, check: impl FnOnce() -> bool) -> bool {
        let (word, bit) = (place / 64, 1 << (place % 64));
        // Each bit stands for itself, and nothing is published by it.
        if self.bad[word].load(Ordering::Relaxed) & bit != 0 {
            return false;
        }
        if self.good[word].load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        let is_good = check();
        if is_good {
            self.good[word].fetch_or(bit, Ordering::Relaxed);
        } else {
            self.fail(place);
        }
        is_good
    }

    /// Hears that a row failed, whatever was known of it.
    pub fn fail(&self, place: usize) {
        self.bad[place / 64].fetch_or(1 << (place % 64), Ordering::Relaxed);
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// The places of rows that failed.
    pub fn failed(&self) -> impl Iterator<Item = usize> + '_ {
        self.bad.iter().enumerate().flat_map(|(word, bits)| {
            let bits = bits.load(Ordering::Relaxed);
            (0..64)
                .filter(move |bit| bits >> bit & 1 == 1)
                .map(move |bit| word * 64 + bit)
        })
    }
}
