//! Takes events, and the records of a base, into the state.
//!
//! A state cannot stop in the middle of an event. So all memory that some events need is asked for before the first of them is taken
//! in, or written.

use std::sync::Arc;

use memchr::memmem;

use super::records::State;
use super::scopes::SHARED;
use super::slots::{At, Slot};
use super::timeline::Timeline;
use super::{parsed, spelled, unspelled};
use crate::segment::{NEVER, NO_CLASS};
use crate::snapshot::{Moments, RecordSink, Stamp};
use chronolog::event::act::{Act, is_of_one};
use chronolog::event::draft_value::defaults;
use chronolog::event::expiry::expiry_of;
use chronolog::event::faces::{SEARCH, face_of};
use chronolog::event::{IncomingEvents, Known, Op};
use chronolog::json::{self, RecordSpans, Span, Value};
use chronolog::memory::{self, Refused};

/// The id of a line that opens a batch: it is about no record.
const BEGIN_ID: &[u8] = b"__begin__";

impl State {
    /// Asks for all memory that some events need. Only what a delete, a patch or an act makes of a record that is there is not
    /// announced.
    ///
    /// # Errors
    /// `Refused` if there is not so much; nothing changed.
    pub fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        memory::check()?;
        self.slots.make_room(coming)?;
        self.timeline.make_room(coming.events, coming.further)?;
        self.changes.make_room(coming.events + coming.further)
    }

    /// Takes an event of some moment that the base already accounts for: only its place in the log is new.
    pub fn note(&mut self, known: Known<'_>, micros: i64) {
        let stamp = Stamp::new(known.seq, micros);
        if known.op == Op::Act {
            return self.take_act(known, stamp, false);
        }
        if !is_of_one(known.op) {
            return self.pass_over(known);
        }
        let slot = self
            .slots
            .find(known.id)
            .unwrap_or_else(|| self.mention(known.id, stamp));
        self.happened(slot, known, stamp);
    }

    /// Takes an event that changes nothing: only its place in the log counts.
    pub fn pass_over(&mut self, known: Known<'_>) {
        self.timeline.push(known.offset, known.seq, None);
    }

    /// Takes an event of some moment. The base accounts for those up to a seq, if one is given.
    pub fn take_in(&mut self, known: Known<'_>, micros: i64, settled_until: Option<u64>) {
        match settled_until.is_some_and(|seq| known.seq <= seq) {
            true => self.note(known, micros),
            false => self.apply(known, micros, false),
        }
    }

    /// Takes an event of some moment. Of one that is plain it is known that it carries no scope and does not expire.
    pub fn apply(&mut self, known: Known<'_>, micros: i64, is_plain: bool) {
        let stamp = Stamp::new(known.seq, micros);
        let found = self.slots.find(known.id);
        let held = found.filter(|&slot| self.slots.class(slot) != NO_CLASS);
        let held = |state: &Self| held.map(|slot| parsed(&state.slots.record(slot)));
        let slot = match known.op {
            Op::Upsert | Op::Migrate | Op::Erase | Op::Prune => {
                let slot = if known.fields.id.map(|span| span.of(known.record)) == Some(known.id) {
                    self.put(found, known.id, known.record, known.fields, (stamp, is_plain))
                } else {
                    self.put_value(found, known.id, parsed(known.record), stamp)
                };
                if known.op == Op::Erase {
                    self.restated.note_erasure(known.record, true);
                }
                // A record that an erasure wrote again keeps the stamp that made it.
                if known.op == Op::Upsert
                    && let Some(made) = self.restated.next_made()
                    && self.slots.created(slot) == stamp
                {
                    self.set_moments(slot, Moments::of_stamps(made, stamp.not_before(made)));
                }
                slot
            }
            Op::Delete => match held(self) {
                Some(mut record) => {
                    record.set("status", Value::Str("tombstone".to_owned()));
                    self.put_value(found, known.id, record, stamp)
                }
                None => found.unwrap_or_else(|| self.mention(known.id, stamp)),
            },
            Op::Patch => {
                let record = held(self).unwrap_or(Value::Object(Vec::new()));
                self.put_value(found, known.id, json::merge(record, &parsed(known.record)), stamp)
            }
            Op::Act => return self.take_act(known, stamp, true),
            Op::Begin | Op::Compact | Op::Adopt | Op::Mark | Op::Other => return self.pass_over(known),
        };
        self.happened(slot, known, stamp);
    }

    fn happened(&mut self, number: u32, known: Known<'_>, stamp: Stamp) {
        self.note_change(number);
        self.slots.touch(number, stamp, known.op != Op::Patch);
        self.note_speech(number, stamp);
        let slot = self.slots.get_mut(number);
        let about = Some((number, slot.last_event));
        slot.last_event = self.timeline.push(known.offset, known.seq, about);
    }

    /// Takes an act; `applies` if the base does not account for it. The event is about all records that it changed or names.
    fn take_act(&mut self, known: Known<'_>, stamp: Stamp, applies: bool) {
        let Some(act) = Act::read(known.id, known.record) else {
            return self.pass_over(known);
        };
        let mut slots = Vec::new();
        let effects = if applies {
            act.effects(&|id| self.get(id))
        } else {
            Vec::new()
        };
        for (id, record) in effects {
            let id = spelled(&id);
            let slot = self.put_value(self.slots.find(&id), &id, record, stamp);
            self.note_change(slot);
            slots.push(slot);
        }
        for id in act.subjects() {
            let id = spelled(&id);
            slots.push(self.slots.find(&id).unwrap_or_else(|| self.mention(&id, stamp)));
        }
        slots.sort_unstable();
        slots.dedup();
        let about = slots.iter().map(|&slot| (slot, self.slots.get(slot).last_event));
        let event = self.timeline.push_several(known.offset, known.seq, about);
        for slot in slots {
            self.slots.touch(slot, stamp, false);
            self.slots.get_mut(slot).last_event = event;
            self.note_speech(slot, stamp);
        }
    }

    /// A line behind event `seq` cannot be read, or is missing if there are no bytes of it. If it does not show which record it
    /// was about, it may have been any of those that were written before.
    pub fn note_lost_line(&mut self, line: &[u8], seq: u64) {
        match shown_id(line) {
            Some(BEGIN_ID) => {}
            Some(id) => self.slots.doubt(id),
            None => self.slots.doubt_behind(seq),
        }
    }

    fn set_moments(&mut self, slot: u32, moments: Moments) {
        self.slots.set_moments(slot, moments.created, moments.updated);
        self.restated.note_place(slot, moments.created);
    }

    fn put_value(&mut self, found: Option<u32>, id: &[u8], mut record: Value, stamp: Stamp) -> u32 {
        record.set("id", Value::Str(unspelled(id)));
        let text = record.to_bytes();
        match json::scan_record(&text) {
            Some(fields) => self.put(found, id, &text, fields, (stamp, false)),
            // Too long for any line: our writers refuse such a patch, so no caller was told that it was kept.
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
        let class = self.catalog.number(kind, status, face.is_some());
        // A tombstone does not expire.
        let is_there = status != b"tombstone";
        let id_at = fields.id.map(|id| id.start as usize);
        let expiry = || expiry_of(record, id_at).filter(|_| is_there);
        let (scope, expires) = match is_plain {
            true => (SHARED, None),
            false => (self.scopes.number(record), expiry()),
        };
        let slot = Slot {
            confidence: fields.confidence.unwrap_or(defaults::CONFIDENCE),
            at: At::Memory(Arc::from(record)),
            id: fields.id.unwrap_or_default(),
            class,
            scope,
            expires: expires.unwrap_or(NEVER),
            created: stamp,
            updated: stamp,
            ..Slot::NOTHING
        };
        if self.is_past(slot.expires) {
            self.scopes.twin_of(slot.scope);
        }
        match found {
            Some(number) if self.slots.class(number) != NO_CLASS => {
                let (old, new) = (self.slots.view(number), slot.view());
                if old.class != new.class {
                    self.catalog.remove(old.class, number);
                    self.catalog.add(new.class, number);
                }
                // Our writers give no record another scope; a line of another tool may.
                let (before, after) = (self.scope_of(&old), self.scope_of(&new));
                if before != after {
                    self.scopes.remove(before, number);
                    self.scopes.add(after, number);
                    self.scopes.touch(before, self.changes.count() + 1);
                }
                self.slots.replace(number, slot);
                number
            }
            // What was only mentioned takes its place in the order now.
            Some(mention) => {
                let last_event = self.slots.get(mention).last_event;
                self.timeline.rename(mention, self.slots.len() as u32);
                self.slots.forget_id(mention);
                let held = self.slots.get_mut(mention);
                held.is_gone = true;
                // INVARIANT: a slot that an event changed is last changed by that event, so segments that end before it do not replace it.
                held.last_event = self.timeline.len() as u32;
                self.insert(id, Slot { last_event, ..slot })
            }
            None => self.insert(id, slot),
        }
    }

    fn insert(&mut self, id: &[u8], slot: Slot) -> u32 {
        let number = self.slots.len() as u32;
        if slot.class != NO_CLASS {
            self.catalog.add(slot.class, number);
            let scope = self.scope_of(&slot.view());
            self.scopes.add(scope, number);
        }
        self.slots.push(id, slot)
    }

    /// Keeps the id of an event without a record, so that its history can be told.
    fn mention(&mut self, id: &[u8], stamp: Stamp) -> u32 {
        let slot = Slot {
            at: At::Memory(Arc::from(id)),
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

    /// The log starts anew: the records stay, their events are in the archive now.
    pub fn forget_events(&mut self) {
        self.is_outlived |= self.slots.len() > 0;
        self.timeline = Timeline::default();
        self.slots.forget_events();
    }

    /// The slots of these ids, which stand as between quotes in canonical JSON, ascending; also of those that never were a record.
    pub fn slots_named<'a>(&self, ids: impl Iterator<Item = &'a [u8]>) -> Vec<u32> {
        let mut slots: Vec<u32> = ids.filter_map(|id| self.slots.find(id)).collect();
        slots.sort_unstable();
        slots
    }
}

impl RecordSink for State {
    fn make_room(&mut self, bytes: usize) -> Result<(), Refused> {
        State::make_room(self, IncomingEvents::one(bytes))
    }

    fn take(&mut self, record: &[u8], fields: RecordSpans, moments: Option<Moments>) {
        if let Some(id) = fields.id.map(|span| span.of(record)) {
            let slot = self.put(self.slots.find(id), id, record, fields, (Stamp::UNKNOWN, false));
            if id.starts_with(b"erasure:") {
                self.restated.note_erasure(record, false);
            }
            if let Some(moments) = moments {
                self.set_moments(slot, moments);
                self.note_speech(slot, moments.updated);
            }
        }
    }

    fn date(&mut self, id: &[u8], moments: Moments) {
        if let Some(slot) = self.slots.find(id) {
            self.set_moments(slot, moments);
            self.note_speech(slot, moments.updated);
        }
    }

    fn start_over(&mut self) {
        *self = Self::default();
    }
}

/// The id that a damaged line shows, as it stands between quotes: a line of ours names its record twice, a patch once.
fn shown_id(line: &[u8]) -> Option<&[u8]> {
    let has = |key: &[u8], value: &[u8]| {
        let written = |gap: &&[u8]| memmem::find(line, &[key, gap, value].concat()).is_some();
        [&b""[..], b" "].iter().any(written)
    };
    let start = memmem::rfind(line, b"\"record_id\":")? + 12;
    let start = start + line[start..].iter().take_while(|byte| **byte == b' ').count();
    let quoted = &line[start..json::end_of_string(line, start)?];
    let id = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (id == BEGIN_ID || has(b"\"id\":", quoted) || has(b"\"op\":", b"\"patch\"")).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_line_shows_its_id_only_where_it_is_certain() {
        for (line, shown) in [
            (
                r#"?"op":"upsert","record":{"id":"tea"},"record_id":"tea","seq":1}"#,
                Some("tea"),
            ),
            (r#"{"record": {"id": "tea"}, "record_id": "tea", ?"#, Some("tea")),
            (
                r#"?"op":"patch","record":{"label":"x"},"record_id":"tea","seq":1}"#,
                Some("tea"),
            ),
            (
                r#"?"op":"upsert","record":{"id":"tea"},"record_id":"tex","seq":1}"#,
                None,
            ),
            (
                r#"?"op":"act","record":{"ids":["a"]},"record_id":"act:blocks","seq":1}"#,
                None,
            ),
            (
                r#"?"op":"begin","record":{"events":?},"record_id":"__begin__","seq":1}"#,
                Some("__begin__"),
            ),
            (r#"?"op":"upsert","record":{"id":"tea"},"record_id":"te"#, None),
            ("", None),
        ] {
            assert_eq!(shown_id(line.as_bytes()), shown.map(str::as_bytes), "{line}");
        }
    }
}
