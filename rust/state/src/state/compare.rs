//! Finds the records in which two states differ.

use std::collections::BTreeSet;

use super::records::State;
use super::slots::Slot;
use super::{parsed, unspelled};
use crate::segment::NO_CLASS;
use chronolog::scope::Viewer;

fn records(state: &State) -> impl Iterator<Item = u32> {
    (0..state.slots.len() as u32).filter(|&slot| state.slots.is_record(slot))
}

/// The ids of all records that differ in two states, or are in only one of them, in order.
pub fn differences(one: &State, other: &State) -> Vec<String> {
    let mut found = BTreeSet::new();
    for (one, another) in [(one, other), (other, one)] {
        for slot in records(one) {
            let id = one.slots.id(slot);
            let there = another.slots.of_spelled(&id);
            if there.is_none_or(|there| another.slots.record(there) != one.slots.record(slot)) {
                found.insert(unspelled(&id));
            }
        }
    }
    found.into_iter().collect()
}

/// Where a state that was loaded from segments differs from one that was loaded from the same log without them; `None` if it does not.
pub fn unlike(state: &State, sealed: &State) -> Option<String> {
    if state.slots.len() != sealed.slots.len() || state.timeline.len() != sealed.timeline.len() {
        return Some("it has other rows or events than the log".to_owned());
    }
    let class = |state: &State, slot: &Slot| {
        let class = (slot.class != NO_CLASS).then(|| state.catalog.class_of(slot.class).clone());
        class.map(|class| (class, state.scopes.name_of(slot.scope).0))
    };
    for number in 0..state.slots.len() as u32 {
        let (right, found) = (state.slots.get(number), sealed.slots.get(number));
        let id = state.slots.id(number);
        let is_same = class(state, &right) == class(sealed, &found)
            && right.confidence.to_bits() == found.confidence.to_bits()
            && (right.expires, right.created, right.updated) == (found.expires, found.created, found.updated)
            && right.last_event == found.last_event
            && state.slots.record(number) == sealed.slots.record(number)
            && id == sealed.slots.id(number)
            && state.slots.find(&id) == sealed.slots.find(&id);
        if !is_same {
            return Some(format!("row {number} differs from the log"));
        }
    }
    let mut events = 0..state.timeline.len() as u32;
    if let Some(event) = events.find(|&index| !state.timeline.is_same_event(&sealed.timeline, index)) {
        return Some(format!("event {event} is not where the log has it"));
    }
    let everyone = Viewer::Everyone.with_expired();
    let counts = |state: &State| (state.tally(&everyone), state.scopes.sizes());
    (counts(state) != counts(sealed)).then(|| "it counts other records than the log".to_owned())
}

/// The ids of all records whose data has a field.
pub fn having(state: &State, field: &str) -> Vec<String> {
    let has = |slot: &u32| {
        let record = state.slots.record(*slot);
        // Most records do not even hold the word.
        memchr::memmem::find(&record, field.as_bytes()).is_some()
            && parsed(&record)
                .get("data")
                .is_some_and(|data| data.get(field).is_some())
    };
    records(state)
        .filter(has)
        .map(|slot| unspelled(&state.slots.id(slot)))
        .collect()
}
