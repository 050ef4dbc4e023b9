//! The state itself: takes events in, and finds the last record of each id.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::arena::Arena;
use super::catalog::Catalog;
use super::changes::Changes;
use super::expiries::Expiries;
use super::likeness::{Awaited, Likeness};
use super::moments::Order;
use super::restated::RestatedRecords;
use super::scopes::Directory;
use super::spelling::spelled;
use super::table::{At, SlotTable};
use super::timeline::Timeline;
use crate::segment::NO_CLASS;

/// A slot by its id. Part of the id's hash is kept: when the table grows, nobody has to read all ids again.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotEntry {
    pub(super) hash: u32,
    pub(super) slot: u32,
}

impl SlotEntry {
    /// All bits that the table wants, from those that are kept.
    pub(super) fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// All records.
#[derive(Debug, Default)]
pub struct State {
    pub(super) arena: Arena,
    pub(super) slots: SlotTable,
    pub(super) ids: HashTable<SlotEntry>,
    hasher: RandomState,
    pub(super) catalog: Catalog,
    pub(super) timeline: Timeline,
    pub(super) changes: Changes,
    pub(super) scopes: Directory,
    pub(super) order: Order,
    pub(super) expiries: Expiries,
    pub(super) restated: RestatedRecords,
    /// Records that may come, if anyone knows some.
    pub(super) awaited: Option<Awaited>,
    /// Whether a record ever was of what a store says of itself.
    pub(super) declares: bool,
    /// The records were taken over from a log that another one replaced.
    pub(super) is_outlived: bool,
}

impl State {
    /// A state without records, to which records like these are likely to come: those are not copied.
    pub fn awaiting(likeness: &Arc<Likeness>) -> Self {
        Self {
            arena: Arena::beside(&likeness.arena),
            awaited: Some(Awaited::of(likeness)),
            ..Self::default()
        }
    }

    /// How many records there are, tombstones and the faces' included.
    pub fn len(&self) -> usize {
        usize::try_from(self.catalog.count(|_, _, _| true)).unwrap_or(usize::MAX)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The events of the live log.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Whether the event of the live log at this index or a later one speaks of an id.
    pub fn is_spoken_of_from(&self, id: &str, index: u32) -> bool {
        let slot = self.find(&spelled(id));
        let last = slot.and_then(|slot| self.timeline.index(self.slots.get(slot).last_event));
        last.is_some_and(|last| last >= index)
    }

    /// The canonical record of an id.
    pub fn get(&self, id: &str) -> Option<Cow<'_, [u8]>> {
        self.slot_of(id).map(|slot| self.record_in(slot))
    }

    /// How long the record of an id is, the id given as it stands between quotes in canonical JSON.
    pub fn length_of(&self, id: &[u8]) -> Option<usize> {
        self.slot_spelled(id).map(|slot| self.record_in(slot).len())
    }

    /// The events of the live log that speak of an id, oldest first.
    pub fn history(&self, id: &str) -> Vec<u32> {
        match self.find(&spelled(id)) {
            Some(slot) => self.timeline.back_from(slot, self.slots.get(slot).last_event),
            None => Vec::new(),
        }
    }

    /// The log starts anew: the records stay, their events are in the archive now.
    pub fn forget_events(&mut self) {
        self.set_outlived();
        let marks_stay = self.timeline.start_over();
        self.slots.forget_events(!marks_stay);
    }

    /// Notes that the records were not all read from the log that goes on and its base: in another process they have other numbers.
    pub fn set_outlived(&mut self) {
        self.is_outlived |= self.slots.len() > 0;
    }

    /// Whether the store may say anything of itself, such as which names it requires: every commit asks.
    #[inline]
    pub fn declares(&self) -> bool {
        self.declares
    }

    pub(super) fn hash(&self, id: &[u8]) -> u32 {
        (self.hasher.hash_one(id) >> 32) as u32
    }

    pub(super) fn find(&self, id: &[u8]) -> Option<u32> {
        let hash = self.hash(id);
        let is_it = |entry: &SlotEntry| entry.hash == hash && *self.id_of(entry.slot) == *id;
        let found = self.ids.find(SlotEntry::spread(hash), is_it).map(|entry| entry.slot);
        found.or_else(|| self.slots.find_sealed(id, |slot| *self.id_of(slot) == *id))
    }

    pub(super) fn id_of(&self, slot: u32) -> Cow<'_, [u8]> {
        let (at, id) = self.slots.id_at(slot);
        match self.bytes_at(at) {
            Cow::Borrowed(record) => Cow::Borrowed(id.of(record)),
            Cow::Owned(record) => Cow::Owned(id.of(&record).to_vec()),
        }
    }

    /// The bytes of a record.
    pub(super) fn bytes_at(&self, at: At) -> Cow<'_, [u8]> {
        match at {
            At::Arena(address) => Cow::Borrowed(self.arena.get(address)),
            At::Sealed { segment, row } => self.slots.read_sealed(segment, row),
        }
    }

    /// The slot of a record.
    pub fn slot_of(&self, id: &str) -> Option<u32> {
        self.slot_spelled(&spelled(id))
    }

    /// The same, the id given as it stands between quotes in canonical JSON.
    pub fn slot_spelled(&self, id: &[u8]) -> Option<u32> {
        let slot = self.find(id)?;
        (self.slots.class(slot) != NO_CLASS).then_some(slot)
    }

    /// The canonical record in a slot.
    pub fn record_in(&self, slot: u32) -> Cow<'_, [u8]> {
        self.bytes_at(self.slots.at(slot))
    }
}
