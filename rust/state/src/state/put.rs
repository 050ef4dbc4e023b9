//! Gives a record its place in the state, and asks for memory before anything comes.
//!
//! A state cannot stop in the middle of an event. So all memory that some events will need is asked for before the first
//! of them is taken in, or written.

use super::arena::Address;
use super::records::{NO_CLASS, Slot, SlotEntry, State};
use super::scopes::SHARED;
use super::spelling::unspelled;
use super::timeline::EventMark;
use crate::snapshot::Stamp;
use chronolog::event::IncomingEvents;
use chronolog::event::draft_value::defaults;
use chronolog::event::expiry::expiry_of;
use chronolog::event::faces::{SEARCH, face_of};
use chronolog::json::{self, RecordSpans, Span, Value};
use chronolog::memory::{self, Refused};

impl State {
    /// Asks for all memory that some events need. Only what a delete, a patch or an act makes of a record that is there is not
    /// announced.
    ///
    /// # Errors
    /// `Refused` if there is not so much; nothing changed.
    pub fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        let (events, touched) = (coming.events, coming.events + coming.further);
        memory::check()?;
        self.arena.make_room(coming.bytes, coming.longest)?;
        self.slots.try_reserve(touched)?;
        self.ids.try_reserve(touched, |entry| SlotEntry::spread(entry.hash))?;
        self.timeline.make_room(events, coming.further)?;
        self.changes.make_room(touched)?;
        self.scopes.make_room(touched)?;
        self.moments.make_room(touched)?;
        Ok(())
    }

    /// How much memory the records take, those included that were replaced.
    pub fn bytes(&self) -> usize {
        self.arena.bytes()
    }

    pub(super) fn put_value(&mut self, found: Option<u32>, id: &[u8], mut record: Value, stamp: Stamp) -> u32 {
        record.set("id", Value::Str(unspelled(id)));
        let text = record.to_bytes();
        match json::scan_record(&text) {
            Some(fields) => self.put(found, id, &text, fields, (stamp, false)),
            // Too long for any line: our writers refuse such a patch, so nobody was told that it was kept.
            None => found.unwrap_or_else(|| self.mention(id, stamp)),
        }
    }

    /// Puts a record in the place of the one that is there, or makes a new one, at this moment; it may be known to be plain.
    pub(super) fn put(
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
