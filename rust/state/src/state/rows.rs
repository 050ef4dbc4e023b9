//! Records with what the state keeps beside them, one by one, frozen at one moment, or as lines of an export.

use std::borrow::Cow;

use super::catalog::Class;
use super::changes::StateId;
use super::slots::SlotTable;
use super::timeline::seq_in;
use crate::segment::NO_EVENT;
use crate::snapshot::Moments;
use chronolog::error::Result;
use chronolog::event::draft_value::RECORD_FIELDS;
use chronolog::event::stamp;
use chronolog::json::{Span, members};

/// One record with what the state keeps beside it.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Its number; numbers grow in the order of insertion.
    pub slot: u32,
    /// The canonical record.
    pub record: Cow<'a, [u8]>,
    /// Where its id is in the record.
    pub id_span: Span,
    /// Its kind and status.
    pub class: &'a Class,
    /// How much it is believed.
    pub confidence: f64,
    /// The seq of the last event of the live log about it; 0 if there is none.
    pub seq: u64,
}

impl<'a> Row<'a> {
    pub(super) fn of(slots: &'a SlotTable, slot: u32, class: &'a Class, seq_of: impl Fn(u32) -> u64) -> Self {
        let held = slots.get(slot);
        Self {
            slot,
            record: slots.record(slot),
            id_span: held.id,
            class,
            confidence: held.confidence,
            seq: if held.last_event == NO_EVENT {
                0
            } else {
                seq_of(held.last_event)
            },
        }
    }

    /// Its id as canonical JSON between quotes.
    pub fn id(&self) -> &[u8] {
        self.id_span.of(&self.record)
    }
}

/// Records as they were at one moment, in insertion order.
#[derive(Debug)]
pub struct Frozen {
    pub(super) slots: SlotTable,
    pub(super) numbers: Vec<u32>,
    pub(super) classes: Vec<Class>,
    /// Runs of seqs of the timeline.
    pub(super) runs: Vec<(u32, u64)>,
    pub(super) state_id: StateId,
}

impl Frozen {
    /// The canonical records.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Cow<'_, [u8]>> {
        self.numbers.iter().map(|&slot| self.slots.record(slot))
    }

    /// Their moments.
    pub fn moments(&self) -> impl ExactSizeIterator<Item = Moments> {
        self.numbers.iter().map(|&slot| self.slots.moments(slot))
    }

    /// Whether all that was read of them so far is as it was sealed.
    ///
    /// # Errors
    /// `Io` if not: nothing of it is to be used.
    pub fn check(&self) -> Result<()> {
        self.slots.check()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// One of them, by its place.
    pub fn row(&self, place: usize) -> Option<Row<'_>> {
        let &slot = self.numbers.get(place)?;
        let class = self.classes.get(self.slots.class(slot) as usize)?;
        Some(Row::of(&self.slots, slot, class, |last| seq_in(&self.runs, last)))
    }

    /// The same with its moments.
    pub fn dated(&self, place: usize) -> Option<Dated<'_>> {
        let &slot = self.numbers.get(place)?;
        Some(Dated {
            record: self.slots.record(slot),
            moments: self.slots.moments(slot),
        })
    }
}

/// A canonical record, and when it was made and changed last.
#[derive(Clone, Debug)]
pub struct Dated<'a> {
    /// The record.
    pub record: Cow<'a, [u8]>,
    /// Its moments.
    pub moments: Moments,
}

/// The first moment of the year 1, and the first one behind the year 9999.
const YEARS: std::ops::Range<i64> = -62_135_596_800_000_000..253_402_300_800_000_000;

impl Dated<'_> {
    /// Appends the record as a line of an export, with its times. Returns false, and appends nothing, if it has not
    /// exactly the fields of a record, or a time that has no spelling.
    pub fn add_export_line(&self, out: &mut Vec<u8>) -> bool {
        let moments = self.moments;
        let times = [moments.created, moments.updated].map(|stamp| stamp.micros());
        match self.around_creation() {
            Some((before, behind)) if times.iter().flatten().all(|micros| YEARS.contains(micros)) => {
                out.extend_from_slice(before);
                add_time(out, b",\"created_at\":\"", times[0]);
                out.extend_from_slice(behind);
                add_time(out, b",\"updated_at\":\"", times[1]);
                out.extend_from_slice(b"}\n");
                true
            }
            _ => false,
        }
    }

    /// A record of exactly the usual fields, without its last brace, in two parts: "created_at" comes between them.
    fn around_creation(&self) -> Option<(&[u8], &[u8])> {
        let record: &[u8] = &self.record;
        let (mut fields, mut end_of_first) = (members(record), 0);
        for (place, name) in RECORD_FIELDS.iter().enumerate() {
            let (key, value) = fields.next()?;
            if key != name.as_bytes() {
                return None;
            }
            if place == 0 {
                end_of_first = value.as_ptr() as usize - record.as_ptr() as usize + value.len();
            }
        }
        match fields.next() {
            None => record.strip_suffix(b"}")?.split_at_checked(end_of_first),
            Some(_) => None,
        }
    }
}

/// Adds a time as Python spells it, if it is known.
fn add_time(line: &mut Vec<u8>, name: &[u8], micros: Option<i64>) {
    let Some(micros) = micros else {
        return;
    };
    let digits = stamp::digits(micros);
    // Whole seconds have no fraction.
    let shown = if micros % 1_000_000 == 0 { 19 } else { 26 };
    line.extend_from_slice(name);
    line.extend_from_slice(&digits[..shown]);
    line.extend_from_slice(b"+00:00\"");
}
