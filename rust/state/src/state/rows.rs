//! Hands out records with what the state keeps beside them, for those who index or date them.

use std::borrow::Cow;

use super::catalog::Class;
use super::changes::Changes;
use super::listing::Listing;
use super::query::Query;
use super::records::State;
use super::table::{Slot, View};
use crate::segment::NO_CLASS;
use crate::snapshot::Moments;
use chronolog::json::Span;
use chronolog::memory::{Refused, gathered};
use chronolog::scope::Viewer;

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
    /// The seq of the last event of the live log that speaks of it; 0 if none does.
    pub seq: u64,
}

impl Row<'_> {
    /// Its id as canonical JSON between quotes.
    pub fn id(&self) -> &[u8] {
        self.id_span.of(&self.record)
    }
}

/// A canonical record, and when it was made and spoken of last.
#[derive(Clone, Debug)]
pub struct Dated<'a> {
    /// The record.
    pub record: Cow<'a, [u8]>,
    /// Its moments.
    pub moments: Moments,
}

/// All rows as they were at one moment.
#[derive(Debug)]
pub struct Survey {
    view: View,
    rows: Vec<(u32, u64)>,
    classes: Vec<Class>,
}

impl Survey {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As [`Frozen::check`](super::Frozen::check).
    ///
    /// # Errors
    /// `Io` if a check failed.
    pub fn check(&self) -> chronolog::error::Result<()> {
        match self.view.has_failed() {
            true => Err(super::frozen::damaged_segment()),
            false => Ok(()),
        }
    }

    /// One of them, by its place in the order of insertion.
    pub fn row(&self, at: usize) -> Option<Row<'_>> {
        let (number, seq) = self.rows.get(at)?;
        let slot = self.view.get(*number);
        Some(Row {
            slot: *number,
            record: self.view.bytes_at(slot.at),
            id_span: slot.id,
            class: self.classes.get(slot.class as usize)?,
            confidence: slot.confidence,
            seq: *seq,
        })
    }
}

impl State {
    /// Which records changed.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The slots that are in memory, changed ones among them.
    pub fn slots_in_memory(&self) -> impl ExactSizeIterator<Item = u32> {
        let mut slots: Vec<u32> = self.slots.in_memory().map(|(slot, _)| slot).collect();
        slots.sort_unstable();
        slots.into_iter()
    }

    /// The class of the record in a slot; `None` if there is no record in it.
    pub fn class_in(&self, slot: u32) -> Option<&Class> {
        let is_there = (slot as usize) < self.slots.len();
        let class = is_there.then(|| self.slots.class(slot));
        let class = class.filter(|class| *class != NO_CLASS)?;
        Some(self.catalog.class_of(class))
    }

    /// What a slot holds; `None` if there is no record in it.
    pub fn row(&self, number: u32) -> Option<Row<'_>> {
        let is_there = (number as usize) < self.slots.len();
        let slot = is_there
            .then(|| self.slots.get(number))
            .filter(|slot| slot.class != NO_CLASS)?;
        Some(Row {
            slot: number,
            record: self.bytes_at(slot.at),
            id_span: slot.id,
            class: self.catalog.class_of(slot.class),
            confidence: slot.confidence,
            seq: self.seq_of(&slot),
        })
    }

    /// The seq of the last event of the live log about the record in a slot, 0 if there is none; `None` if it holds no record.
    pub fn last_seq_of(&self, slot: u32) -> Option<u64> {
        let held = self.slots.get(slot);
        (held.class != NO_CLASS).then(|| self.seq_of(&held))
    }

    /// Whether the record in a slot has an id, which stands as between quotes in canonical JSON. A sealed record is not read for it: its
    /// hash has to do.
    pub fn is_id_of(&self, slot: u32, id: &[u8]) -> bool {
        (slot as usize) < self.slots.len()
            && self.slots.class(slot) != NO_CLASS
            && match self.slots.sealed_hash(slot) {
                Some(hash) => self.slots.hash_sealed(id) == Some(hash),
                None => *self.id_of(slot) == *id,
            }
    }

    /// The record of an id with its moments, if somebody sees it.
    pub fn dated(&self, viewer: &Viewer, id: &str) -> Option<Dated<'_>> {
        let slot = self.slot_of(id)?;
        self.is_seen(viewer, slot).then(|| self.dated_in(slot))
    }

    /// The record in a slot with its moments.
    pub fn dated_in(&self, slot: u32) -> Dated<'_> {
        Dated {
            record: self.record_in(slot),
            moments: self.moments_of(slot),
        }
    }

    /// The records that a query asks for, in insertion order, with their moments.
    pub fn query_dated(&self, query: &Query) -> Result<Vec<Dated<'_>>, Refused> {
        let listing = Listing {
            query: query.clone(),
            ..Listing::default()
        };
        let slots = listing.by_place(self, None, query.limit.unwrap_or(usize::MAX))?;
        gathered(slots.into_iter().map(|slot| self.dated_in(slot)))
    }

    /// The same one by one, its limit aside.
    pub fn matches_dated<'a>(&'a self, query: &Query) -> impl Iterator<Item = Dated<'a>> + use<'a> {
        self.matching_slots(query).map(|slot| self.dated_in(slot))
    }

    fn seq_of(&self, slot: &Slot) -> u64 {
        let last = self.timeline().index(slot.last_event);
        last.map_or(0, |last| self.timeline().seq(last))
    }

    /// All rows as they are now, to be read while others go on.
    pub fn survey(&mut self) -> Result<Survey, Refused> {
        let slots = (0..self.slots.len() as u32).map(|number| (number, self.slots.get(number)));
        let rows = slots.filter(|(_, slot)| slot.class != NO_CLASS);
        let rows = gathered(rows.map(|(number, slot)| (number, self.seq_of(&slot))))?;
        Ok(Survey {
            rows,
            classes: self.catalog.classes(),
            view: self.view()?,
        })
    }
}
