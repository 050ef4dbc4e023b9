//! Records with what the state keeps beside them, one by one, frozen at one moment, or as lines of an export.

use std::borrow::Cow;

use super::catalog::Class;
use super::changes::StateId;
use super::slots::SlotTable;
use super::timeline::seq_in;
use super::unspelled;
use crate::segment::NO_EVENT;
use crate::snapshot::{Moments, Stamp};
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

/// A record as a line of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportLine {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// The canonical record with its times, and a newline.
    pub line: Vec<u8>,
}

/// The places of id and kind among the fields.
const ID: usize = 4;
const KIND: usize = 6;
/// The first moment of the year 1, and the first one behind the year 9999.
const YEARS: std::ops::Range<i64> = -62_135_596_800_000_000..253_402_300_800_000_000;

impl Dated<'_> {
    /// The record as a line of an export; `None` if it has not exactly the fields of a record, or a time that has no spelling.
    pub fn export_line(&self) -> Option<ExportLine> {
        let record: &[u8] = &self.record;
        let mut values: [&[u8]; RECORD_FIELDS.len()] = Default::default();
        let mut fields = members(record);
        for (name, value) in RECORD_FIELDS.iter().zip(&mut values) {
            let (key, found) = fields.next()?;
            if key != name.as_bytes() {
                return None;
            }
            *value = found;
        }
        if fields.next().is_some() {
            return None;
        }
        let text = |quoted: &[u8]| Some(unspelled(quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?));
        // "created_at" comes behind "confidence", "updated_at" behind all others.
        let first = values[0].as_ptr() as usize - record.as_ptr() as usize + values[0].len();
        let (before, behind) = record.strip_suffix(b"}")?.split_at_checked(first)?;
        let mut line = before.to_vec();
        add_time(&mut line, "created_at", self.moments.created)?;
        line.extend_from_slice(behind);
        add_time(&mut line, "updated_at", self.moments.updated)?;
        line.extend_from_slice(b"}\n");
        Some(ExportLine {
            id: text(values[ID])?,
            kind: text(values[KIND])?,
            line,
        })
    }
}

/// Adds a time as Python spells it, if it is known; `None` if it has no spelling.
fn add_time(line: &mut Vec<u8>, name: &str, stamp: Stamp) -> Option<()> {
    let Some(micros) = stamp.micros() else {
        return Some(());
    };
    if !YEARS.contains(&micros) {
        return None;
    }
    let digits = stamp::digits(micros);
    // Whole seconds have no fraction.
    let shown = if micros % 1_000_000 == 0 { 19 } else { 26 };
    line.extend_from_slice(format!(",\"{name}\":\"").as_bytes());
    line.extend_from_slice(&digits[..shown]);
    line.extend_from_slice(b"+00:00\"");
    Some(())
}
