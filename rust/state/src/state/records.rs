//! The state itself, and how its records are found and copied.

use std::borrow::Cow;

use super::catalog::{Catalog, Class};
use super::changes::{Changes, Watermark};
use super::restated::RestatedRecords;
use super::rows::{Dated, Frozen, Row};
use super::scopes::Directory;
use super::slots::SlotTable;
use super::spelled;
use super::timeline::Timeline;
use crate::segment::NO_EVENT;
use chronolog::event::faces::face_of;
use chronolog::memory::{Refused, gathered};

/// All records.
#[derive(Debug, Default)]
pub struct State {
    /// What is known of each id.
    pub slots: SlotTable,
    /// The slots of each kind and status.
    pub catalog: Catalog,
    pub(super) timeline: Timeline,
    pub(super) changes: Changes,
    pub(super) scopes: Directory,
    pub(super) restated: RestatedRecords,
    /// What expires up to this moment has expired.
    pub(super) clock: Option<i64>,
    /// How often a record expired, or came back because the clock was set back.
    pub expiry_moves: u64,
    /// Whether the store may declare anything, such as which names it requires: every commit asks.
    pub declares: bool,
    /// The records were not all read from the log that goes on and its base: in another process they have other slots.
    pub is_outlived: bool,
}

impl State {
    /// How many records there are, tombstones and the faces' included.
    pub fn len(&self) -> usize {
        usize::try_from(self.catalog.count(|_| true)).unwrap_or(usize::MAX)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The events of the live log.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Which records changed.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// All scopes.
    pub fn scopes(&self) -> &Directory {
        &self.scopes
    }

    /// The canonical record of an id.
    pub fn get(&self, id: &str) -> Option<Cow<'_, [u8]>> {
        self.slots.of_id(id).map(|slot| self.slots.record(slot))
    }

    /// The events of the live log that are about an id, oldest first.
    pub fn history(&self, id: &str) -> Vec<u32> {
        match self.slots.find(&spelled(id)) {
            Some(slot) => self.timeline.back_from(slot, self.slots.get(slot).last_event),
            None => Vec::new(),
        }
    }

    /// Whether the event of the live log at this index or a later one is about an id.
    pub fn is_spoken_of_from(&self, id: &str, index: u32) -> bool {
        let last = self
            .slots
            .find(&spelled(id))
            .map(|slot| self.slots.get(slot).last_event);
        last.is_some_and(|last| last != NO_EVENT && last >= index)
    }

    /// The class of the record in a slot; `None` if there is no record in it.
    pub fn class_in(&self, slot: u32) -> Option<&Class> {
        let is_record = self.slots.is_record(slot);
        is_record.then(|| self.catalog.class_of(self.slots.class(slot)))
    }

    /// What a slot holds; `None` if there is no record in it.
    pub fn row(&self, slot: u32) -> Option<Row<'_>> {
        let class = self.class_in(slot)?;
        Some(Row::of(&self.slots, slot, class, |last| self.timeline.seq(last)))
    }

    /// The seq of the last event of the live log about the record in a slot, 0 if there is none; `None` if it holds no record.
    pub fn last_seq_of(&self, slot: u32) -> Option<u64> {
        self.class_in(slot)?;
        let last = self.slots.get(slot).last_event;
        Some(if last == NO_EVENT { 0 } else { self.timeline.seq(last) })
    }

    /// The record in a slot with its moments.
    pub fn dated_in(&self, slot: u32) -> Dated<'_> {
        Dated {
            record: self.slots.record(slot),
            moments: self.slots.moments(slot),
        }
    }

    /// All records with a name, in their order.
    pub fn in_order(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let rows = (0..self.slots.len() as u32).filter_map(|slot| self.row(slot));
        rows.filter(|row| !row.id().is_empty()).map(|row| row.record)
    }

    /// The slots of the records of a face, in insertion order; only those of some kinds, if given.
    pub fn of_face<'a>(&'a self, face: &'a str, kinds: Option<&'a [&'a [u8]]>) -> impl Iterator<Item = u32> + use<'a> {
        let is_wanted = move |class: &Class| class.face && kinds.is_none_or(|kinds| kinds.contains(&&*class.kind));
        let slots = self.catalog.slots(is_wanted);
        slots.filter(move |&slot| face_of(&self.slots.id(slot)) == Some(face))
    }

    /// Those of a face that changed since then, each once; all of them, if that is another state or too long ago.
    pub fn of_face_since(&self, face: &str, mark: &Watermark) -> Vec<u32> {
        let Some(changed) = self.changes.since(mark) else {
            return self.of_face(face, None).collect();
        };
        // Most changes are of plain records: their ids are not read.
        let may_be = |slot: u32| self.class_in(slot).is_some_and(|class| class.face);
        let is_of_face = |slot: &u32| may_be(*slot) && face_of(&self.slots.id(*slot)) == Some(face);
        let mut slots: Vec<u32> = changed.iter().copied().filter(is_of_face).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// The slots of the records that events of the live log are about from some place on, ascending.
    ///
    /// # Errors
    /// `Refused` if there is no memory for the list.
    pub fn slots_since(&self, offset: u64) -> Result<Vec<u32>, Refused> {
        let first = self.timeline.index_from(offset);
        let mut touched = gathered(self.timeline.slots_from(first))?;
        touched.sort_unstable();
        touched.dedup();
        Ok(touched)
    }

    /// A copy of all records that later events do not change.
    ///
    /// # Errors
    /// `Refused` if there is no memory for what is not sealed.
    pub fn freeze(&self) -> Result<Frozen, Refused> {
        self.freeze_those(0..self.slots.len() as u32)
    }

    /// The same of the records in some slots, in their order.
    ///
    /// # Errors
    /// `Refused` if there is no memory for what is not sealed.
    pub fn freeze_those(&self, wanted: impl Iterator<Item = u32>) -> Result<Frozen, Refused> {
        Ok(Frozen {
            numbers: gathered(wanted.filter(|&slot| self.slots.is_record(slot)))?,
            state_id: self.changes.state_id().clone(),
            slots: self.slots.copy()?,
            classes: self.catalog.classes(),
            runs: self.timeline.runs.clone(),
        })
    }
}
