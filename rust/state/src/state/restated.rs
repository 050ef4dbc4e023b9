//! The places of records that an erasure wrote again.
//!
//! An erasure redacts the lines of a record that referred to an erased one, and writes the record again without the reference.
//! Its event notes the stamps of the events that made these records, so that they keep their moments and their places.

use std::collections::{BTreeSet, HashSet};

use super::records::State;
use crate::snapshot::{Moments, Stamp};
use chronolog::json::{self, Value};

/// The position of a record in the order in which records were made: the seq of the event that made it, and its slot.
pub(super) type Place = (Option<u64>, u32);

/// Records that erasures wrote again.
#[derive(Debug, Default)]
pub(super) struct RestatedRecords {
    /// What erasures noted.
    noted: HashSet<Stamp>,
    /// What the last of them noted of records whose events come next, the last first.
    coming: Vec<Option<Stamp>>,
    /// The places of the records.
    pub places: BTreeSet<Place>,
}

impl RestatedRecords {
    /// Whether no erasure wrote anything again.
    pub fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }

    /// Whether records that an erasure wrote again come next.
    pub fn is_awaiting(&self) -> bool {
        !self.coming.is_empty()
    }
}

impl State {
    /// Notes the place of a record that an erasure wrote again, if it is one.
    pub(super) fn restated_at(&mut self, slot: u32, created: Stamp) {
        if self.restated.noted.contains(&created) {
            self.restated.places.insert((created.seq(), slot));
        }
    }

    /// Takes the stamps that the event of an erasure notes; `is_next` if the records come behind it.
    pub(super) fn note_restated(&mut self, erasure: &[u8], is_next: bool) {
        let record = json::parse(erasure).unwrap_or(Value::Null);
        let rows = record.get("data").and_then(|data| data.get("made"));
        let rows = rows.and_then(Value::as_array).unwrap_or_default();
        let stamps: Vec<_> = rows.iter().map(Stamp::read).rev().collect();
        self.restated.noted.extend(stamps.iter().flatten());
        if is_next {
            self.restated.coming = stamps;
        }
    }

    /// A whole record was written by an event at this stamp: if an erasure wrote it again, it keeps the stamp that made it.
    pub(super) fn restate(&mut self, slot: u32, stamp: Stamp) {
        let made = self.restated.coming.pop().flatten();
        if let Some(made) = made.filter(|_| self.created_in(slot) == stamp) {
            self.set_moments(slot, Moments::of_stamps(made, stamp.not_before(made)));
        }
    }

    /// All that is known of when a record was made and changed.
    pub(super) fn set_moments(&mut self, slot: u32, moments: Moments) {
        self.put_moments(slot, moments.created, moments.updated);
        self.restated_at(slot, moments.created);
    }

    /// The stamp of the event that made a record.
    pub fn created(&self, id: &str) -> Stamp {
        let slot = self.slot_of(id);
        slot.map_or(Stamp::UNKNOWN, |slot| self.created_in(slot))
    }

    /// The place of a record.
    pub(super) fn place(&self, slot: u32) -> Place {
        (self.created_in(slot).seq(), slot)
    }
}
