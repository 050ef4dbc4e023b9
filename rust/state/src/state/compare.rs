//! Finds the records in which two states differ, and walks over all of them in their order.

use std::collections::BTreeSet;

use std::borrow::Cow;

use super::records::State;
use super::spelling::unspelled;
use super::table::Slot;
use crate::segment::NO_CLASS;
use chronolog::scope::Viewer;

impl State {
    /// The ids of all records that are other here than there, or are in only one of them, in order.
    pub fn differences(&self, other: &State) -> Vec<String> {
        let mut found = BTreeSet::new();
        for (one, another) in [(self, other), (other, self)] {
            for number in 0..one.slots.len() as u32 {
                if one.slots.class(number) == NO_CLASS {
                    continue;
                }
                let id = one.id_of(number);
                let there = another.slot_spelled(&id);
                let is_same = there.is_some_and(|slot| another.record_in(slot) == one.record_in(number));
                if !is_same {
                    found.insert(unspelled(&id));
                }
            }
        }
        found.into_iter().collect()
    }

    /// Says where a state that was loaded from segments differs from this one, which was loaded from the same log without them; `None` if
    /// it does not.
    pub fn unlike(&self, sealed: &State) -> Option<String> {
        if self.slots.len() != sealed.slots.len() || self.timeline.len() != sealed.timeline.len() {
            return Some("it has other rows or events than the log".to_owned());
        }
        let class = |state: &State, slot: &Slot| {
            (slot.class != NO_CLASS).then(|| {
                (
                    state.catalog.class_of(slot.class).clone(),
                    state.scopes.name_of(slot.scope).0,
                )
            })
        };
        for number in 0..self.slots.len() as u32 {
            let (right, found) = (self.slots.get(number), sealed.slots.get(number));
            let id = self.id_of(number);
            let is_same = class(self, &right) == class(sealed, &found)
                && right.confidence.to_bits() == found.confidence.to_bits()
                && (right.expires, right.created, right.updated) == (found.expires, found.created, found.updated)
                && self.timeline.index(right.last_event) == sealed.timeline.index(found.last_event)
                && self.bytes_at(right.at) == sealed.bytes_at(found.at)
                && id == sealed.id_of(number)
                && self.find(&id) == sealed.find(&id);
            if !is_same {
                return Some(format!("row {number} differs from the log"));
            }
        }
        let event =
            (0..self.timeline.len() as u32).find(|&index| !self.timeline.is_same_event(&sealed.timeline, index));
        if let Some(event) = event {
            return Some(format!("event {event} is not where the log has it"));
        }
        let everyone = Viewer::Everyone.with_expired();
        let sizes = |state: &State| state.scopes.sizes();
        (self.tally(&everyone) != sealed.tally(&everyone) || sizes(self) != sizes(sealed))
            .then(|| "it counts other records than the log".to_owned())
    }

    /// All records with a name, in their order.
    pub fn in_order(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let rows = (0..self.slots.len() as u32).filter_map(|slot| self.row(slot));
        rows.filter(|row| !row.id().is_empty()).map(|row| row.record)
    }

    /// The ids of all records whose data has a field.
    pub fn having(&self, field: &str) -> Vec<String> {
        let numbers = 0..self.slots.len() as u32;
        let is_record = |number: &u32| self.slots.class(*number) != NO_CLASS;
        let has = |number: &u32| {
            let record = self.record_in(*number);
            // Most records do not even hold the word.
            memchr::memmem::find(&record, field.as_bytes()).is_some()
                && super::spelling::parsed(&record)
                    .get("data")
                    .is_some_and(|data| data.get(field).is_some())
        };
        numbers
            .filter(|number| is_record(number) && has(number))
            .map(|number| unspelled(&self.id_of(number)))
            .collect()
    }
}
