//! The records of a state at one moment, which stay while the state goes on.
//!
//! To freeze a state copies no record and no moment: chunks and pieces are shared, and whoever changes one makes its own.

use super::arena::{Address, Arena};
use super::likeness::Likeness;
use super::moments::MomentColumn;
use super::records::{NO_CLASS, Slot, State};
use crate::snapshot::Moments;
use chronolog::memory::{Refused, gathered};

/// Records as they were at one moment, in insertion order.
#[derive(Debug)]
pub struct Frozen {
    arena: Arena,
    records: Vec<(u32, Address)>,
    moments: MomentColumn,
}

impl Frozen {
    /// The canonical records.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.rows().map(|(record, _)| record)
    }

    /// The same with their moments.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (&[u8], Moments)> + Clone {
        let row = |&(slot, at): &(u32, Address)| (self.arena.get(at), self.moments.get(slot));
        self.records.iter().map(row)
    }

    /// They, for whoever takes in another state that is much like this one.
    pub fn likeness(self) -> Likeness {
        Likeness {
            arena: self.arena,
            records: self.records,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// One of them, by its place.
    pub fn record(&self, place: usize) -> Option<&[u8]> {
        let &(_, at) = self.records.get(place)?;
        Some(self.arena.get(at))
    }

    /// The same with its moments.
    pub fn row(&self, place: usize) -> Option<(&[u8], Moments)> {
        let &(slot, at) = self.records.get(place)?;
        Some((self.arena.get(at), self.moments.get(slot)))
    }
}

impl State {
    /// A cheap copy that later events do not change.
    pub fn freeze(&mut self) -> Result<Frozen, Refused> {
        self.freeze_those(0..self.slots.len() as u32)
    }

    /// The same of the records that events of the live log speak of from some place on.
    pub fn freeze_since(&mut self, offset: u64) -> Result<Frozen, Refused> {
        let touched = self.slots_since(offset)?;
        self.freeze_those(touched.into_iter())
    }

    /// The slots of the records that events of the live log speak of from some place on, ascending.
    pub fn slots_since(&self, offset: u64) -> Result<Vec<u32>, Refused> {
        let first = self.timeline.index_from(offset);
        let mut touched = gathered(self.timeline.slots_from(first))?;
        touched.sort_unstable();
        touched.dedup();
        Ok(touched)
    }

    /// The same of the records in some slots, in their order.
    pub fn freeze_those(&mut self, wanted: impl ExactSizeIterator<Item = u32>) -> Result<Frozen, Refused> {
        // Others wait meanwhile: all memory is asked for at once.
        let mut records = Vec::new();
        records.try_reserve_exact(wanted.len())?;
        let slots = wanted.map(|number| (number, &self.slots[number as usize]));
        let is_record = |(_, slot): &(u32, &Slot)| slot.class != NO_CLASS;
        records.extend(slots.filter(is_record).map(|(number, slot)| (number, slot.at)));
        Ok(Frozen {
            records,
            moments: self.moments.freeze()?,
            arena: self.arena.freeze(),
        })
    }
}
