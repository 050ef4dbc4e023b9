//! The places of records that an erasure wrote again.
//!
//! An erasure redacts the lines of a record that referred to an erased one, and writes the record again without the reference.
//! Its event notes the stamps of the events that made these records, so that they keep their moments and their places.

use std::collections::{BTreeSet, HashSet};

use crate::snapshot::Stamp;
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

    /// Notes the place of a record that an erasure wrote again, if it is one.
    pub fn note_place(&mut self, slot: u32, created: Stamp) {
        if self.noted.contains(&created) {
            self.places.insert((created.seq(), slot));
        }
    }

    /// Takes the stamps that the event of an erasure notes; `is_next` if the records come behind it.
    pub fn note_erasure(&mut self, erasure: &[u8], is_next: bool) {
        let record = json::parse(erasure).unwrap_or(Value::Null);
        let rows = record.get("data").and_then(|data| data.get("made"));
        let rows = rows.and_then(Value::as_array).unwrap_or_default();
        let stamps: Vec<_> = rows.iter().map(Stamp::read).rev().collect();
        self.noted.extend(stamps.iter().flatten());
        if is_next {
            self.coming = stamps;
        }
    }

    /// The stamp that the record of the next event keeps, if an erasure wrote it again.
    pub fn next_made(&mut self) -> Option<Stamp> {
        self.coming.pop().flatten()
    }
}
