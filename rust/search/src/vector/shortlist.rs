//! The rows that may still be among the best, as far as bounds can tell.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Below this many a list is not worth pruning.
const FEW_CANDIDATES: usize = 1024;

/// Above this many it is asked whether bounds help at all.
const HOPELESS_CANDIDATES: usize = 4 * FEW_CANDIDATES;

/// A row, and the ranks between which its score must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BoundedRow {
    pub(super) row: u32,
    pub(super) lower: i32,
    pub(super) upper: i32,
}

/// Rows whose upper bound reaches the `k`-th best lower bound.
#[derive(Debug)]
pub(super) struct Shortlist {
    k: usize,
    least: i32,
    lowers: BinaryHeap<Reverse<i32>>,
    kept: Vec<BoundedRow>,
    prune_at: usize,
}

impl Shortlist {
    /// Wants `k` rows of at least this rank.
    pub(super) fn new(k: usize, least: i32) -> Self {
        Self {
            k,
            least,
            lowers: BinaryHeap::new(),
            kept: Vec::new(),
            prune_at: FEW_CANDIDATES,
        }
    }

    /// A rank that `k` rows reach for certain, or that the caller asked for.
    #[inline]
    pub(super) fn bar(&self) -> i32 {
        match self.lowers.peek() {
            Some(Reverse(lower)) if self.lowers.len() == self.k => self.least.max(*lower),
            _ => self.least,
        }
    }

    /// Takes the row in if it may be good enough.
    #[inline]
    pub(super) fn offer(&mut self, row: u32, (lower, upper): (i32, i32)) {
        if upper < self.bar() {
            return;
        }
        self.raise(lower);
        self.kept.push(BoundedRow { row, lower, upper });
        if self.kept.len() >= self.prune_at {
            self.prune(self.bar());
            self.prune_at = FEW_CANDIDATES.max(2 * self.kept.len());
        }
    }

    fn raise(&mut self, lower: i32) {
        if self.lowers.len() < self.k {
            self.lowers.push(Reverse(lower));
        } else if let Some(mut least) = self.lowers.peek_mut()
            && lower > least.0
        {
            least.0 = lower;
        }
    }

    fn prune(&mut self, bar: i32) {
        self.kept.retain(|candidate| candidate.upper >= bar);
    }

    /// Whether bounds rule out too few of the rows that were seen: then scoring all of them is cheaper.
    #[inline]
    pub(super) fn is_hopeless(&self, seen: usize) -> bool {
        self.kept.len() > HOPELESS_CANDIDATES && self.kept.len() > seen / 2
    }

    /// Takes in what another has kept.
    pub(super) fn merge(&mut self, other: Self) {
        for Reverse(lower) in other.lowers {
            self.raise(lower);
        }
        self.kept.extend(other.kept);
    }

    /// Every row that may reach `bar` and what `k` others reach.
    pub(super) fn into_candidates(mut self, bar: i32) -> Vec<BoundedRow> {
        self.prune(bar.max(self.bar()));
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_when_k_others_are_better_for_certain() {
        let mut list = Shortlist::new(2, -100);
        list.offer(0, (-10, 5));
        list.offer(1, (6, 9));
        assert_eq!(list.bar(), -10);
        list.offer(2, (-50, -11));
        let mut other = Shortlist::new(2, -100);
        other.offer(3, (5, 6));
        list.merge(other);
        assert_eq!(list.bar(), 5);
        let rows = |list: Vec<BoundedRow>| list.iter().map(|candidate| candidate.row).collect::<Vec<_>>();
        assert_eq!(rows(list.into_candidates(-100)), [0, 1, 3]);
    }

    #[test]
    fn a_long_list_is_pruned_on_the_way() {
        let mut list = Shortlist::new(3, -1);
        for row in 0..100_000u32 {
            list.offer(row, (row.cast_signed(), row.cast_signed() + 1));
            assert!(list.kept.len() <= FEW_CANDIDATES);
        }
        assert_eq!(list.into_candidates(-1).len(), 4);
    }
}
