//! Finds the records in which two states differ, and walks over all of them in their order.

use std::collections::BTreeSet;

use super::records::{NO_CLASS, State};
use super::spelling::unspelled;

impl State {
    /// The ids of all records that are other here than there, or are in only one of them, in order.
    pub fn differences(&self, other: &State) -> Vec<String> {
        let mut found = BTreeSet::new();
        for (one, another) in [(self, other), (other, self)] {
            for number in 0..one.slots.len() as u32 {
                if one.slots[number as usize].class == NO_CLASS {
                    continue;
                }
                let id = one.id_of(number);
                let there = another
                    .find(id)
                    .map(|slot| &another.slots[slot as usize])
                    .filter(|slot| slot.class != NO_CLASS);
                let is_same = there.is_some_and(|slot| another.arena.get(slot.at) == one.record_in(number));
                if !is_same {
                    found.insert(unspelled(id));
                }
            }
        }
        found.into_iter().collect()
    }

    /// All records with a name, in their order, each behind its id as it stands between quotes.
    pub fn named_in_order(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let numbers = 0..self.slots.len() as u32;
        let is_record =
            |number: &u32| self.slots[*number as usize].class != NO_CLASS && !self.id_of(*number).is_empty();
        numbers
            .filter(is_record)
            .map(|number| (self.id_of(number), self.record_in(number)))
    }

    /// All records with a name, in their order.
    pub fn in_order(&self) -> impl Iterator<Item = &[u8]> {
        self.named_in_order().map(|(_, record)| record)
    }

    /// The ids of all records whose data has a field.
    pub fn having(&self, field: &str) -> Vec<String> {
        let numbers = 0..self.slots.len() as u32;
        let is_record = |number: &u32| self.slots[*number as usize].class != NO_CLASS;
        let has = |number: &u32| {
            let record = self.record_in(*number);
            // Most records do not even hold the word.
            memchr::memmem::find(record, field.as_bytes()).is_some()
                && super::spelling::parsed(record)
                    .get("data")
                    .is_some_and(|data| data.get(field).is_some())
        };
        numbers
            .filter(|number| is_record(number) && has(number))
            .map(|number| unspelled(self.id_of(number)))
            .collect()
    }
}
