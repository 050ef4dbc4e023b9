//! Makes of an event, or of a record of a base, what it says in the state.

use super::acts::{apply_act, note_act};
use super::damaged_line::{BEGIN_ID, shown_id};
use super::records::State;
use super::spelling::parsed;
use crate::segment::NO_CLASS;
use crate::snapshot::{Moments, RecordSink, Stamp};
use chronolog::event::act::is_of_one;
use chronolog::event::{IncomingEvents, Known, Op};
use chronolog::json::{self, RecordSpans, Value};
use chronolog::memory::Refused;

impl State {
    /// Takes an event of some moment that the base already accounts for: only its place in the log is new.
    pub fn note(&mut self, known: Known<'_>, micros: i64) {
        let stamp = Stamp::new(known.seq, micros);
        if known.op == Op::Act {
            note_act(self, known, stamp);
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
                let slot = if known.fields.id.map(|span| span.of(known.record)) == Some(known.id) {
                    self.put(found, known.id, known.record, known.fields, (stamp, is_plain))
                } else {
                    self.put_value(found, known.id, parsed(known.record), stamp)
                };
                match known.op {
                    Op::Upsert => self.restate(slot, stamp),
                    Op::Erase => self.note_restated(known.record, true),
                    _ => {}
                }
                slot
            }
            Op::Delete => match found.filter(|&slot| self.slots.class(slot) != NO_CLASS) {
                Some(slot) => {
                    let mut record = parsed(&self.record_in(slot));
                    record.set("status", Value::Str("tombstone".to_owned()));
                    self.put_value(Some(slot), known.id, record, stamp)
                }
                None => found.unwrap_or_else(|| self.mention(known.id, stamp)),
            },
            Op::Patch => {
                let record = found
                    .filter(|&slot| self.slots.class(slot) != NO_CLASS)
                    .map_or(Value::Object(Vec::new()), |slot| parsed(&self.record_in(slot)));
                let record = json::merge(record, &parsed(known.record));
                self.put_value(found, known.id, record, stamp)
            }
            Op::Act => return apply_act(self, known, stamp),
            Op::Begin | Op::Compact | Op::Adopt | Op::Mark | Op::Other => {
                self.timeline.push(known.offset, known.seq, None);
                return;
            }
        };
        self.happened(slot, known, stamp);
    }

    /// A line behind event `seq` cannot be read, or is missing if there are no bytes of it. If it does not show which record it
    /// was about, it may have been any of those that were written before.
    pub fn note_lost_line(&mut self, line: &[u8], seq: u64) {
        match shown_id(line) {
            Some(BEGIN_ID) => {}
            Some(id) => self.doubt(id),
            None => {
                let doubts = self.order.doubts_mut();
                doubts.lost_behind = doubts.lost_behind.max(Some(seq));
            }
        }
    }

    /// An event about a record is lost, the id given as it stands between quotes in canonical JSON. An id without a record
    /// is passed over: nothing is handed out under it.
    pub fn doubt(&mut self, id: &[u8]) {
        if let Some(slot) = self.slot_spelled(id) {
            self.order.doubts_mut().named.insert(slot);
        }
    }

    fn happened(&mut self, number: u32, known: Known<'_>, stamp: Stamp) {
        self.note_change(number);
        self.touch_moments(number, stamp, known.op != Op::Patch);
        self.note_speech(number, stamp);
        let slot = self.slots.get_mut(number);
        slot.last_event = self
            .timeline
            .push(known.offset, known.seq, Some((number, slot.last_event)));
    }
}

impl RecordSink for State {
    fn make_room(&mut self, bytes: usize) -> Result<(), Refused> {
        State::make_room(self, IncomingEvents::one(bytes))
    }

    fn take(&mut self, record: &[u8], fields: RecordSpans, moments: Option<Moments>) {
        if let Some(id) = fields.id.map(|span| span.of(record)) {
            let slot = self.put(self.find(id), id, record, fields, (Stamp::UNKNOWN, false));
            if id.starts_with(b"erasure:") {
                self.note_restated(record, false);
            }
            if let Some(moments) = moments {
                self.set_moments(slot, moments);
                self.note_speech(slot, moments.updated);
            }
        }
    }

    fn date(&mut self, id: &[u8], moments: Moments) {
        if let Some(slot) = self.find(id) {
            self.set_moments(slot, moments);
            self.note_speech(slot, moments.updated);
        }
    }

    fn start_over(&mut self) {
        *self = Self::default();
    }
}
