//! Gives a record its place in the state, and asks for memory before anything comes.
//!
//! A state cannot stop in the middle of an event. So all memory that some events will need is asked for before the first
//! of them is taken in, or written.

use super::records::{SlotEntry, State};
use super::scopes::SHARED;
use super::spelling::unspelled;
use super::table::{At, Slot};
use super::timeline::EventMark;
use crate::segment::{NEVER, NO_CLASS};
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
        self.slots.make_room(touched)?;
        self.ids.try_reserve(touched, |entry| SlotEntry::spread(entry.hash))?;
        self.timeline.make_room(events, coming.further)?;
        self.changes.make_room(touched)?;
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
        let slot = Slot {
            confidence: fields.confidence.unwrap_or(defaults::CONFIDENCE),
            at: self.lay(found, record),
            id: fields.id.unwrap_or_default(),
            class,
            scope,
            last_event: EventMark::NONE,
            is_gone: false,
            expires: expires.unwrap_or(NEVER),
            created: stamp,
            updated: stamp,
        };
        let number = match found {
            Some(number) if self.slots.class(number) != NO_CLASS => self.replace(number, slot),
            // What was only mentioned takes its place in the order now.
            Some(mention) => {
                let last_event = self.slots.get(mention).last_event;
                self.timeline.rename(last_event, mention, self.slots.len() as u32);
                let hash = SlotEntry::spread(self.hash(id));
                if let Ok(entry) = self.ids.find_entry(hash, |entry| entry.slot == mention) {
                    entry.remove();
                }
                self.slot_mut(mention).is_gone = true;
                self.insert(id, Slot { last_event, ..slot })
            }
            None => self.insert(id, slot),
        };
        if slot.expires != NEVER {
            self.expiries.add(slot.expires, number);
        }
        number
    }

    /// A slot, to be changed. INVARIANT: what expires among the slots in memory is listed.
    pub(super) fn slot_mut(&mut self, number: u32) -> &mut Slot {
        if self.slots.is_sealed(number) {
            let expires = self.slots.get(number).expires;
            if expires != NEVER {
                self.expiries.add(expires, number);
            }
        }
        self.slots.get_mut(number)
    }

    /// Lays a record down, unless it lies somewhere already.
    fn lay(&mut self, found: Option<u32>, record: &[u8]) -> At {
        let number = found.unwrap_or(self.slots.len() as u32);
        let there = self.awaited.as_mut().and_then(|awaited| awaited.find(number, record));
        At::Arena(there.unwrap_or_else(|| self.arena.push(record)))
    }

    fn replace(&mut self, number: u32, new: Slot) -> u32 {
        let old = self.slots.get(number);
        if let At::Arena(address) = old.at {
            self.arena.forget(address);
        }
        if old.class != new.class {
            self.catalog.remove(old.class, number);
            self.catalog.add(new.class, number);
        }
        // Nobody here gives a record another scope; a line of another tool may.
        let (before, after) = (self.scope_of(&old.view()), self.scope_to_be(&new));
        if before != after {
            self.scopes.remove(before, number);
            self.scopes.add(after, number);
            self.scopes.touch(before, self.changes.count() + 1);
        }
        if old.expires != NEVER {
            self.expiries.remove(old.expires, number);
        }
        *self.slots.get_mut(number) = Slot {
            last_event: old.last_event,
            created: old.created,
            updated: old.updated,
            ..new
        };
        if self.arena.is_wasteful() {
            self.move_out();
        }
        number
    }

    fn insert(&mut self, id: &[u8], slot: Slot) -> u32 {
        let number = self.slots.len() as u32;
        if slot.class != NO_CLASS {
            self.catalog.add(slot.class, number);
            let scope = self.scope_to_be(&slot);
            self.scopes.add(scope, number);
        }
        self.slots.push(slot);
        self.note_added(number);
        let hash = self.hash(id);
        let entry = SlotEntry { hash, slot: number };
        self.ids
            .insert_unique(SlotEntry::spread(hash), entry, |entry| SlotEntry::spread(entry.hash));
        number
    }

    /// Keeps the id of an event without a record, so that its history can be told.
    pub(super) fn mention(&mut self, id: &[u8], stamp: Stamp) -> u32 {
        let slot = Slot {
            at: At::Arena(self.arena.push(id)),
            id: Span {
                start: 0,
                end: id.len() as u32,
            },
            created: stamp,
            updated: stamp,
            ..Slot::NOTHING
        };
        self.insert(id, slot)
    }

    pub(super) fn move_out(&mut self) {
        // Where there is no memory for it, the forgotten bytes stay for now.
        let Ok(mut arena) = self.arena.successor() else {
            return;
        };
        for (_, slot) in self.slots.in_memory_mut() {
            if let At::Arena(address) = slot.at
                && !self.arena.is_shared(address)
            {
                slot.at = At::Arena(arena.push(self.arena.get(address)));
            }
        }
        self.arena = arena;
    }
}
