//! Keeps the best scores so far.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A row that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowHit {
    /// The number of the row.
    pub row: u32,
    /// Its reference score.
    pub score: f32,
}

/// The rank that every score has at least.
pub(super) const NO_RANK: i32 = rank_of(f32::NEG_INFINITY);

/// An integer that sorts as the float does.
#[inline(always)]
pub(super) const fn rank_of(value: f32) -> i32 {
    let bits = value.to_bits().cast_signed();
    bits ^ ((bits >> 31) & i32::MAX)
}

/// The float with that rank.
#[inline(always)]
pub(super) const fn value_of(rank: i32) -> f32 {
    f32::from_bits((rank ^ ((rank >> 31) & i32::MAX)).cast_unsigned())
}

/// The `k` best hits of those that were offered: score descending, then row ascending.
#[derive(Debug)]
pub(super) struct Top {
    k: usize,
    /// Nothing below this rank is wanted, even if there is room.
    least: i32,
    /// Rank and negated row in one number: the greater, the better.
    best: BinaryHeap<Reverse<i64>>,
}

impl Top {
    /// Room for `k` hits of at least this rank.
    pub(super) fn new(k: usize, least: i32) -> Self {
        Self {
            k,
            least,
            best: BinaryHeap::new(),
        }
    }

    /// The rank that a newcomer must reach. One that only equals it may still lose by its row.
    #[inline]
    pub(super) fn bar(&self) -> i32 {
        match self.best.peek() {
            Some(Reverse(worst)) if self.best.len() == self.k => (worst >> 32) as i32,
            _ => self.least,
        }
    }

    /// Takes the hit in if it is good enough.
    #[inline]
    pub(super) fn offer(&mut self, row: u32, score: f32) {
        let rank = rank_of(score);
        if rank >= self.bar() {
            self.insert((i64::from(rank) << 32) | i64::from(!row));
        }
    }

    fn insert(&mut self, key: i64) {
        if self.best.len() < self.k {
            self.best.push(Reverse(key));
        } else if let Some(mut worst) = self.best.peek_mut()
            && key > worst.0
        {
            worst.0 = key;
        }
    }

    /// Takes in what another has found.
    pub(super) fn merge(&mut self, other: Self) {
        for Reverse(key) in other.best {
            if (key >> 32) as i32 >= self.least {
                self.insert(key);
            }
        }
    }

    /// The hits, best first.
    pub(super) fn into_hits(self) -> Vec<RowHit> {
        let in_order = self.best.into_sorted_vec();
        in_order
            .into_iter()
            .map(|Reverse(key)| RowHit {
                row: !(key as u32),
                score: value_of((key >> 32) as i32),
            })
            .collect()
    }
}
