//! The records that an erasure takes, and whether a line goes with them.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use chronolog::event::act::each_named;
use chronolog::event::{Known, Op};

/// Records that are to be erased, by their ids as they stand between quotes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::store) struct Doomed(HashSet<Vec<u8>, RandomState>);

impl Doomed {
    /// One more.
    pub fn add(&mut self, id: &[u8]) -> bool {
        self.0.insert(id.to_vec())
    }

    /// Whether the record of an id is one of them.
    pub fn has(&self, id: &[u8]) -> bool {
        self.0.contains(id)
    }

    /// Their ids.
    pub fn ids(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the line of an event goes with them: it speaks of one of them. What a log says of itself never goes.
    pub fn takes(&self, known: &Known<'_>) -> bool {
        match known.op {
            Op::Begin | Op::Compact | Op::Adopt | Op::Erase | Op::Prune | Op::Mark => false,
            Op::Act => {
                let mut is_named = false;
                each_named(known.op, known.id, known.record, |id| is_named |= self.has(id));
                is_named
            }
            _ => self.has(known.id),
        }
    }
}
