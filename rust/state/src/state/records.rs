//! The state itself: takes events in, and finds the last record of each id.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::arena::{Address, Arena};
use super::catalog::Catalog;
use super::changes::Changes;
use super::expiries::Expiries;
use super::likeness::{Awaited, Likeness};
use super::moments::MomentColumn;
use super::restated::RestatedRecords;
use super::scopes::Directory;
use super::spelling::spelled;
use super::timeline::{EventMark, Timeline};
use chronolog::json::Span;

/// The class of an id that events spoke of but that never was a record.
pub(super) const NO_CLASS: u32 = u32::MAX;

/// One id and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub confidence: f64,
    pub at: Address,
    pub id: Span,
    pub class: u32,
    pub scope: u32,
    pub last_event: EventMark,
}

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
    pub(super) slots: Vec<Slot>,
    pub(super) ids: HashTable<SlotEntry>,
    hasher: RandomState,
    pub(super) catalog: Catalog,
    pub(super) timeline: Timeline,
    pub(super) changes: Changes,
    pub(super) scopes: Directory,
    pub(super) moments: MomentColumn,
    pub(super) expiries: Expiries,
    pub(super) restated: RestatedRecords,
    /// Records that may come, if anyone knows some.
    pub(super) awaited: Option<Awaited>,
    /// Whether a record ever was of what a store says of itself.
    pub(super) declares: bool,
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
        let last = slot.and_then(|slot| self.timeline.index(self.slots[slot as usize].last_event));
        last.is_some_and(|last| last >= index)
    }

    /// The canonical record of an id.
    pub fn get(&self, id: &str) -> Option<&[u8]> {
        let slot = &self.slots[self.find(&spelled(id))? as usize];
        (slot.class != NO_CLASS).then(|| self.arena.get(slot.at))
    }

    /// How long the record of an id is, the id given as it stands between quotes in canonical JSON.
    pub fn length_of(&self, id: &[u8]) -> Option<usize> {
        let slot = &self.slots[self.find(id)? as usize];
        (slot.class != NO_CLASS).then(|| self.arena.get(slot.at).len())
    }

    /// The events of the live log that speak of an id, oldest first.
    pub fn history(&self, id: &str) -> Vec<u32> {
        match self.find(&spelled(id)) {
            Some(slot) => self.timeline.back_from(slot, self.slots[slot as usize].last_event),
            None => Vec::new(),
        }
    }

    /// The log starts anew: the records stay, their events are in the archive now.
    pub fn forget_events(&mut self) {
        if !self.timeline.start_over() {
            for slot in &mut self.slots {
                slot.last_event = EventMark::NONE;
            }
        }
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
        let is_it = |entry: &SlotEntry| entry.hash == hash && self.id_of(entry.slot) == id;
        self.ids.find(SlotEntry::spread(hash), is_it).map(|entry| entry.slot)
    }

    pub(super) fn id_of(&self, slot: u32) -> &[u8] {
        let slot = &self.slots[slot as usize];
        slot.id.of(self.arena.get(slot.at))
    }

    /// The slot of a record.
    pub fn slot_of(&self, id: &str) -> Option<u32> {
        self.slot_spelled(&spelled(id))
    }

    /// The same, the id given as it stands between quotes in canonical JSON.
    pub fn slot_spelled(&self, id: &[u8]) -> Option<u32> {
        let slot = self.find(id)?;
        (self.slots[slot as usize].class != NO_CLASS).then_some(slot)
    }

    /// The canonical record in a slot.
    pub fn record_in(&self, slot: u32) -> &[u8] {
        self.arena.get(self.slots[slot as usize].at)
    }
}
