//! Removes records from a state as if the base that an erasure wrote had been loaded.
//!
//! The same as if the base had been loaded that the erasure wrote, without reading it: the others keep their places, their
//! moments and the bytes they lie in. It is another life of the state, so whatever was derived from the one before is made anew.

use std::collections::BTreeMap;

use super::changes::Changes;
use super::frozen::Frozen;
use super::records::{SlotEntry, State};
use super::table::At;
use crate::segment::{NEVER, NO_CLASS};
use crate::snapshot::Stamp;
use chronolog::event::faces::is_told;
use chronolog::memory::{Refused, gathered};
use chronolog::scope::{Carried, Scope};
use roaring::RoaringBitmap;

impl State {
    /// The slots of these ids, which stand as between quotes in canonical JSON, ascending; also of those that never were a record.
    pub fn slots_named<'a>(&self, ids: impl Iterator<Item = &'a [u8]>) -> Vec<u32> {
        let mut slots: Vec<u32> = ids.filter_map(|id| self.find(id)).collect();
        slots.sort_unstable();
        slots
    }

    /// The slots of the records whose scope is meant, also of those that have expired.
    pub fn slots_within(&self, is_meant: impl Fn(&Scope) -> bool) -> Vec<u32> {
        let meant = self.scopes.all().filter(|(carried, _)| match carried {
            Carried::Names(scope) => is_meant(scope),
            Carried::Malformed => false,
        });
        meant.flat_map(|(_, slots)| slots).collect()
    }

    /// A cheap copy of the records that are not in some slots, which ascend.
    pub fn freeze_without(&mut self, slots: &[u32]) -> Result<Frozen, Refused> {
        let mut going = slots.iter().copied().peekable();
        let all = 0..self.slots.len() as u32;
        let left = gathered(all.filter(|slot| going.next_if_eq(slot).is_none()))?;
        self.freeze_those(left.into_iter())
    }

    /// Takes out the records in some slots, which ascend, and all events.
    pub fn erase(&mut self, slots: &[u32]) {
        let mut scopes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &number in slots {
            let hash = SlotEntry::spread(self.hash(&self.id_of(number)));
            if let Ok(entry) = self.ids.find_entry(hash, |entry| entry.slot == number) {
                entry.remove();
            }
            let held = self.slots.get(number);
            if let At::Arena(address) = held.at {
                self.arena.wipe(address);
            }
            if held.class != NO_CLASS {
                self.catalog.remove(held.class, number);
                scopes.entry(self.scope_of(&held.view())).or_default().push(number);
            }
            if held.expires != NEVER {
                self.expiries.remove(held.expires, number);
            }
            let slot = self.slots.get_mut(number);
            (slot.class, slot.expires) = (NO_CLASS, NEVER);
        }
        for (scope, gone) in scopes {
            let last_of = |slots: &RoaringBitmap, told: bool| {
                let is_it = |slot: &u32| {
                    let class = self.catalog.class_of(self.slots.class(*slot));
                    is_told(&class.kind, class.face) == told
                };
                let spoken = slots.iter().filter(is_it).map(|slot| self.slots.get(slot).updated);
                spoken.max_by_key(Stamp::seq).unwrap_or(Stamp::UNKNOWN)
            };
            self.scopes.erase(scope, &gone, last_of);
        }
        self.forget_events();
        self.scopes.forget_changes();
        self.changes = Changes::default();
    }
}
