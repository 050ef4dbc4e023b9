//! Hands out records with what the state keeps beside them, for those who index or date them.

use super::arena::Arena;
use super::catalog::Class;
use super::changes::Changes;
use super::listing::Listing;
use super::query::Query;
use super::records::{NO_CLASS, Slot, State};
use crate::snapshot::Moments;
use chronolog::memory::{Refused, gathered};
use chronolog::scope::Viewer;

/// One record with what the state keeps beside it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its number; numbers grow in the order of insertion.
    pub slot: u32,
    /// Its id as canonical JSON between quotes.
    pub id: &'a [u8],
    /// The canonical record.
    pub record: &'a [u8],
    /// Its kind and status.
    pub class: &'a Class,
    /// How much it is believed.
    pub confidence: f64,
    /// The seq of the last event of the live log that speaks of it; 0 if none does.
    pub seq: u64,
}

/// A canonical record, and when it was made and spoken of last.
#[derive(Clone, Copy, Debug)]
pub struct Dated<'a> {
    /// The record.
    pub record: &'a [u8],
    /// Its moments.
    pub moments: Moments,
}

/// All rows as they were at one moment.
#[derive(Debug)]
pub struct Survey {
    arena: Arena,
    rows: Vec<(u32, u64, Slot)>,
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

    /// One of them, by its place in the order of insertion.
    pub fn row(&self, at: usize) -> Option<Row<'_>> {
        let (number, seq, slot) = self.rows.get(at)?;
        let record = self.arena.get(slot.at);
        Some(Row {
            slot: *number,
            id: slot.id.of(record),
            record,
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

    /// What a slot holds; `None` if there is no record in it.
    pub fn row(&self, number: u32) -> Option<Row<'_>> {
        let slot = self.slots.get(number as usize).filter(|slot| slot.class != NO_CLASS)?;
        Some(Row {
            slot: number,
            id: self.id_of(number),
            record: self.arena.get(slot.at),
            class: self.catalog.class_of(slot.class),
            confidence: slot.confidence,
            seq: self.seq_of(slot),
        })
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
            moments: self.moments.get(slot),
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
        let rows = self.slots.iter().enumerate().filter(|(_, slot)| slot.class != NO_CLASS);
        let rows = rows.map(|(number, slot)| (number as u32, self.seq_of(slot), slot.clone()));
        Ok(Survey {
            rows: gathered(rows)?,
            classes: self.catalog.classes(),
            arena: self.arena.freeze(),
        })
    }
}
