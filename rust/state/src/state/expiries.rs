//! The moments at which slots in memory expire, in order.

use std::collections::BTreeSet;
use std::ops::Bound;

/// When records expire that are not sealed.
#[derive(Debug)]
pub(super) struct Expiries {
    due: BTreeSet<(i64, u32)>,
    /// Up to this moment they have.
    pub clock: i64,
    /// How many expired, or came back because the clock was set back, so far.
    pub moves: u64,
}

impl Default for Expiries {
    fn default() -> Self {
        Self {
            due: BTreeSet::new(),
            clock: i64::MIN,
            moves: 0,
        }
    }
}

impl Expiries {
    /// Notes when the record of a slot expires.
    pub fn add(&mut self, moment: i64, slot: u32) {
        self.due.insert((moment, slot));
    }

    /// The record of a slot does not expire then any more.
    pub fn remove(&mut self, moment: i64, slot: u32) {
        self.due.remove(&(moment, slot));
    }

    /// Keeps only those for which this holds.
    pub fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.due.retain(|(_, slot)| is_kept(*slot));
    }

    /// Those between two moments, the first not included, each with its moment.
    pub fn between(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, u32)> + '_ {
        let range = (Bound::Excluded((from, u32::MAX)), Bound::Included((to, u32::MAX)));
        self.due.range(range).copied()
    }

    /// Whether none of them ever expires.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}
