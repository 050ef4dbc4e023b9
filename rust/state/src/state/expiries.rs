//! The moments at which slots expire, in order.
//!
//! What is in which slot expires at which moment, in order: so what is due next is found at once, and what is due costs what it is.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

/// When records expire.
#[derive(Debug)]
pub(super) struct Expiries {
    /// All that will expire, or have, by the moment.
    due: BTreeSet<(i64, u32)>,
    by_slot: HashMap<u32, i64>,
    /// Up to this moment they have.
    pub clock: i64,
    /// How many went over, or came back, so far.
    pub moves: u64,
}

impl Default for Expiries {
    fn default() -> Self {
        Self {
            due: BTreeSet::new(),
            by_slot: HashMap::new(),
            clock: i64::MIN,
            moves: 0,
        }
    }
}

impl Expiries {
    /// Whether something that expires then has expired.
    #[inline]
    pub fn is_over(&self, expires: Option<i64>) -> bool {
        expires.is_some_and(|at| at <= self.clock)
    }

    /// Notes when what is in a slot expires.
    #[inline]
    pub fn set(&mut self, slot: u32, expires: Option<i64>) {
        if expires.is_none() && self.by_slot.is_empty() {
            return;
        }
        let before = match expires {
            Some(at) => self.by_slot.insert(slot, at),
            None => self.by_slot.remove(&slot),
        };
        if let Some(before) = before {
            self.due.remove(&(before, slot));
        }
        if let Some(at) = expires {
            self.due.insert((at, slot));
        }
    }

    /// Those between two moments, the first not included.
    pub fn between(&self, from: i64, to: i64) -> impl Iterator<Item = u32> + '_ {
        let range = (Bound::Excluded((from, u32::MAX)), Bound::Included((to, u32::MAX)));
        self.due.range(range).map(|&(_, slot)| slot)
    }

    /// Whether nothing ever expires.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// When what is in a slot expires.
    pub fn of(&self, slot: u32) -> Option<i64> {
        self.by_slot.get(&slot).copied()
    }
}
