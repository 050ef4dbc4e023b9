//! Which rows were checked against their digests, and which of them failed?

use std::sync::atomic::{AtomicU64, Ordering};

use super::index::BLOCK_ROWS;

const WORDS: usize = BLOCK_ROWS / 64;

/// What this process knows of the rows of a block. A row is checked once: what the log names does not change.
#[derive(Debug, Default)]
pub struct Marks {
    good: [AtomicU64; WORDS],
    bad: [AtomicU64; WORDS],
}

impl Marks {
    /// Whether a row may be believed, asking `check` if nobody has yet.
    #[inline]
    pub fn admit(&self, place: usize, check: impl FnOnce() -> bool) -> bool {
        let (word, bit) = (place / 64, 1 << (place % 64));
        // Each bit stands for itself, and nothing is published by it.
        if self.good[word].load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        if self.bad[word].load(Ordering::Relaxed) & bit != 0 {
            return false;
        }
        let is_good = check();
        let marks = if is_good { &self.good } else { &self.bad };
        marks[word].fetch_or(bit, Ordering::Relaxed);
        is_good
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

    /// Says that whoever made the companion has checked every row.
    pub fn is_empty(&self) -> bool {
        self.bad.iter().all(|bits| bits.load(Ordering::Relaxed) == 0)
    }
}
