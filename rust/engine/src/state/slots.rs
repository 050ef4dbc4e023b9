//! Which number has a record, so that other indexes can speak of it in four bytes?
//!
//! A record keeps its slot as long as the state lives.

use super::records::{NO_CLASS, Query, State, wanted};
use super::spelling::spelled;

/// Which slots a query asks for, to be asked one by one.
#[derive(Clone, Debug)]
pub struct Sieve {
    classes: Vec<bool>,
    least: f64,
}

impl State {
    /// The slot of a record.
    pub fn slot_of(&self, id: &str) -> Option<u32> {
        self.slot_spelled(&spelled(id))
    }

    /// The same, the id given as it stands between quotes in canonical JSON.
    pub fn slot_spelled(&self, id: &[u8]) -> Option<u32> {
        let slot = self.find(id)?;
        (self.slots[slot as usize].class != NO_CLASS).then_some(slot)
    }

    /// The id of a slot, as it stands between quotes in canonical JSON.
    pub fn spelled_id(&self, slot: u32) -> &[u8] {
        self.id_of(slot)
    }

    /// The canonical record in a slot.
    pub fn record_in(&self, slot: u32) -> &[u8] {
        self.arena.get(self.slots[slot as usize].at)
    }

    /// How many slots there are, those without a record included.
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// The slots of what was said about embeddings, in the order it was said, a slot as often as it was spoken of.
    pub fn vector_changes(&self) -> &[u32] {
        &self.vectors
    }

    /// A query, ready to be asked of single slots. It is good until the state changes.
    pub fn sieve(&self, query: &Query) -> Sieve {
        Sieve {
            classes: self.catalog.accepted(wanted(query)),
            least: query.min_confidence,
        }
    }

    /// Whether a query asks for the record in a slot.
    pub fn passes(&self, sieve: &Sieve, slot: u32) -> bool {
        let slot = &self.slots[slot as usize];
        let is_of_class = sieve.classes.get(slot.class as usize).copied().unwrap_or(false);
        is_of_class && slot.confidence >= sieve.least
    }
}
