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
use super::query::{Query, wanted};
use super::scopes::{Directory, SHARED};
use super::spelling::{parsed, spelled, unspelled};
use super::timeline::{EventMark, Timeline};
use crate::event::act::is_of_one;
use crate::event::draft_value::defaults;
use crate::event::expiry::expiry_of;
use crate::event::faces::{SEARCH, face_of};
use crate::event::{IncomingEvents, Known, Op};
use crate::json::{self, RecordSpans, Span, Value};
use crate::memory::{Refused, gathered};
use crate::snapshot::{Moments, Stamp, Taker};

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
    /// Records that may come, if anyone knows some.
    awaited: Option<Awaited>,
    /// Whether a record ever was of what a store says of itself.
    declares: bool,
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

    /// The canonical records that a query asks for, in insertion order.
    ///
    /// # Errors
    /// `Refused` if there is no memory for so many.
    pub fn query(&self, query: &Query) -> Result<Vec<&[u8]>, Refused> {
        gathered(self.matches(query).take(query.limit.unwrap_or(usize::MAX)))
    }

    /// The same one by one, its limit aside.
    pub fn matches<'a>(&'a self, query: &Query) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.matching_slots(query).map(|slot| self.record_in(slot))
    }

    /// How many records a query would find, its limit aside.
    pub fn count(&self, query: &Query) -> u64 {
        let sight = self.sight(&query.viewer);
        if query.min_confidence <= 0.0 && sight.is_of_all_scopes() {
            return self.count_classes(&sight, wanted(query));
        }
        self.matching_slots(query).count() as u64
    }

    /// The log starts anew: the records stay, their events are in the archive now.
    pub fn forget_events(&mut self) {
        if !self.timeline.start_over() {
            for slot in &mut self.slots {
                slot.last_event = EventMark::NONE;
            }
        }
    }

    /// Takes an event of some moment that the base already accounts for: only its place in the log is new.
    pub fn note(&mut self, known: Known<'_>, micros: i64) {
        let stamp = Stamp::new(known.seq, micros);
        if known.op == Op::Act {
            self.note_act(known, stamp);
            return;
        }
        if !is_of_one(known.op) {
            self.timeline.push(known.offset, known.seq, None);
            return;
        }
        let slot = self.find(known.id).unwrap_or_else(|| self.mention(known.id, stamp));
        self.happened(slot, known, stamp);
    }

    /// Takes an event that changes nothing: only its place in the log counts.
    pub fn pass_over(&mut self, known: Known<'_>) {
        self.timeline.push(known.offset, known.seq, None);
    }

    /// Whether the store may say anything of itself, such as which names it requires: every commit asks.
    #[inline]
    pub fn declares(&self) -> bool {
        self.declares
    }

    /// Takes an event of some moment.
    pub fn apply(&mut self, known: Known<'_>, micros: i64) {
        self.apply_drafted(known, micros, false);
    }

    /// The same; of one that is plain it is known that it carries no scope and says nothing of its expiry.
    pub fn apply_drafted(&mut self, known: Known<'_>, micros: i64, is_plain: bool) {
        let stamp = Stamp::new(known.seq, micros);
        let found = self.find(known.id);
        let slot = match known.op {
            Op::Upsert | Op::Migrate | Op::Erase | Op::Prune => {
                if known.fields.id.map(|span| span.of(known.record)) == Some(known.id) {
                    self.put(found, known.id, known.record, known.fields, (stamp, is_plain))
                } else {
                    self.put_value(found, known.id, parsed(known.record), stamp)
                }
            }
            Op::Delete => match found.filter(|&slot| self.slots[slot as usize].class != NO_CLASS) {
                Some(slot) => {
                    let mut record = parsed(self.arena.get(self.slots[slot as usize].at));
                    record.set("status", Value::Str("tombstone".to_owned()));
                    self.put_value(Some(slot), known.id, record, stamp)
                }
                None => found.unwrap_or_else(|| self.mention(known.id, stamp)),
            },
            Op::Patch => {
                let record = found
                    .filter(|&slot| self.slots[slot as usize].class != NO_CLASS)
                    .map_or(Value::Object(Vec::new()), |slot| {
                        parsed(self.arena.get(self.slots[slot as usize].at))
                    });
                let record = json::merge(record, &parsed(known.record));
                self.put_value(found, known.id, record, stamp)
            }
            Op::Act => return self.apply_act(known, stamp),
            Op::Begin | Op::Compact | Op::Adopt | Op::Mark | Op::Other => {
                self.timeline.push(known.offset, known.seq, None);
                return;
            }
        };
        self.happened(slot, known, stamp);
    }

    fn happened(&mut self, number: u32, known: Known<'_>, stamp: Stamp) {
        self.note_change(number);
        self.moments.speak(number, stamp);
        self.note_speech(number, stamp);
        let slot = &mut self.slots[number as usize];
        slot.last_event = self
            .timeline
            .push(known.offset, known.seq, Some((number, slot.last_event)));
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

    pub(super) fn put_value(&mut self, found: Option<u32>, id: &[u8], mut record: Value, stamp: Stamp) -> u32 {
        record.set("id", Value::Str(unspelled(id)));
        let mut text = Vec::new();
        json::write_value(&record, &mut text);
        match json::scan_record(&text) {
            Some(fields) => self.put(found, id, &text, fields, (stamp, false)),
            // Too long for any line: our writers refuse such a patch, so nobody was told that it was kept.
            None => found.unwrap_or_else(|| self.mention(id, stamp)),
        }
    }

    /// Puts a record in the place of the one that is there, or makes a new one, at this moment; it may be known to be plain.
    fn put(
        &mut self,
        found: Option<u32>,
        id: &[u8],
        record: &[u8],
        fields: RecordSpans,
        (stamp, is_plain): (Stamp, bool),
    ) -> u32 {
        let text = |span: Option<Span>, default: &'static str| span.map_or(default.as_bytes(), |span| span.of(record));
        let (status, face) = (text(fields.status, defaults::STATUS), face_of(id));
        self.declares |= face == Some(SEARCH);
        let kind = text(fields.kind, defaults::KIND);
        let class = self.catalog.class(kind, status, face.is_some());
        // What is deleted is deleted: that it would have expired makes no difference.
        let is_there = status != b"tombstone";
        let id_at = fields.id.map(|id| id.start as usize);
        let expiry = || expiry_of(record, id_at).filter(|_| is_there);
        let (scope, expires) = match is_plain {
            true => (SHARED, None),
            false => (self.scopes.number(record), expiry()),
        };
        let scope = match self.expiries.is_over(expires) {
            false => scope,
            true => self.scopes.twin_of(scope),
        };
        let slot = Slot {
            confidence: fields.confidence.unwrap_or(defaults::CONFIDENCE),
            at: self.lay(found, record),
            id: fields.id.unwrap_or_default(),
            class,
            scope,
            last_event: EventMark::NONE,
        };
        let number = match found {
            Some(number) if self.slots[number as usize].class != NO_CLASS => self.replace(number, slot),
            // What was only mentioned takes its place in the order now.
            Some(mention) => {
                let last_event = self.slots[mention as usize].last_event;
                let hash = SlotEntry::spread(self.hash(id));
                let number = self.slots.len() as u32;
                self.timeline.rename(last_event, mention, number);
                if let Some(entry) = self.ids.find_mut(hash, |entry| entry.slot == mention) {
                    entry.slot = number;
                }
                self.scopes.add(slot.scope, number);
                self.slots.push(Slot { last_event, ..slot });
                self.moments.push(stamp);
                self.catalog.add(class, number);
                number
            }
            None => {
                self.catalog.add(class, self.slots.len() as u32);
                self.scopes.add(slot.scope, self.slots.len() as u32);
                self.insert(id, slot, stamp)
            }
        };
        self.expiries.set(number, expires);
        number
    }

    /// Lays a record down, unless it lies somewhere already.
    fn lay(&mut self, found: Option<u32>, record: &[u8]) -> Address {
        let number = found.unwrap_or(self.slots.len() as u32);
        let there = self.awaited.as_mut().and_then(|awaited| awaited.find(number, record));
        there.unwrap_or_else(|| self.arena.push(record))
    }

    fn replace(&mut self, number: u32, new: Slot) -> u32 {
        let old = &mut self.slots[number as usize];
        self.arena.forget(old.at);
        if old.class != new.class {
            self.catalog.remove(old.class, number);
            self.catalog.add(new.class, number);
        }
        // Nobody here gives a record another scope; a line of another tool may.
        if old.scope != new.scope {
            self.scopes.remove(old.scope, number);
            self.scopes.add(new.scope, number);
            self.scopes.touch(old.scope, self.changes.count() + 1);
        }
        *old = Slot {
            last_event: old.last_event,
            ..new
        };
        if self.arena.is_wasteful() {
            self.move_out();
        }
        number
    }

    fn insert(&mut self, id: &[u8], slot: Slot, stamp: Stamp) -> u32 {
        let number = self.slots.len() as u32;
        self.slots.push(slot);
        self.moments.push(stamp);
        let hash = self.hash(id);
        let entry = SlotEntry { hash, slot: number };
        self.ids
            .insert_unique(SlotEntry::spread(hash), entry, |entry| SlotEntry::spread(entry.hash));
        number
    }

    /// Keeps the id of an event without a record, so that its history can be told.
    pub(super) fn mention(&mut self, id: &[u8], stamp: Stamp) -> u32 {
        let slot = Slot {
            confidence: 0.0,
            at: self.arena.push(id),
            id: Span {
                start: 0,
                end: id.len() as u32,
            },
            class: NO_CLASS,
            scope: SHARED,
            last_event: EventMark::NONE,
        };
        self.insert(id, slot, stamp)
    }

    fn move_out(&mut self) {
        // Where there is no memory for it, the forgotten bytes stay for now.
        let Ok(mut arena) = self.arena.successor() else {
            return;
        };
        for slot in &mut self.slots {
            if !self.arena.is_shared(slot.at) {
                slot.at = arena.push(self.arena.get(slot.at));
            }
        }
        self.arena = arena;
    }
}

impl Taker for State {
    fn make_room(&mut self, bytes: usize) -> Result<(), Refused> {
        State::make_room(self, IncomingEvents::one(bytes))
    }

    fn take(&mut self, record: &[u8], fields: RecordSpans, moments: Option<Moments>) {
        if let Some(id) = fields.id.map(|span| span.of(record)) {
            let slot = self.put(self.find(id), id, record, fields, (Stamp::UNKNOWN, false));
            if let Some(moments) = moments {
                self.moments.set(slot, moments);
                self.note_speech(slot, moments.updated);
            }
        }
    }

    fn date(&mut self, id: &[u8], moments: Moments) {
        if let Some(slot) = self.find(id) {
            self.moments.set(slot, moments);
            self.note_speech(slot, moments.updated);
        }
    }

    fn start_over(&mut self) {
        *self = Self::default();
    }
}
