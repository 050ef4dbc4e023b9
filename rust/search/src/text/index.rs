//! A text index of records as of the last change: a sealed part, and an open one on top.
//!
//! Most documents lie in the sealed part; what changed since then is in the open part, and what it replaced is dead. Both
//! are searched with one set of numbers, exactly those of the living documents.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use foldhash::fast::RandomState;

use super::columns::{DocSet, TextColumns, Usual};
use super::context::{ContextMark, LINK, LinkedRecord, NO_LINK, prefix_of};
use super::fields::{Fields, is_searched};
use super::lists::SPAN_DOCS;
use super::open::Open;
use super::sealed::{JoinedPart, NOWHERE, Sealed};
use super::sections::Holdings;
use chronomemory_state::state::{Class, Row, State};

pub(super) const SEALED: usize = 0;
pub(super) const OPEN: usize = 1;
/// The limit of the open part; larger if a tenth of the sealed part is more.
const OPEN_DOCS: usize = 20_000;

/// Up to this multiple may wait to be sealed by another thread.
const OVERGROWN_TIMES: usize = 4;

/// A part of the index with its dead.
#[derive(Clone, Copy)]
pub(super) struct Half<'a> {
    pub(super) columns: &'a TextColumns,
    pub(super) dead: &'a DocSet,
    pub(super) first: u32,
    pub(super) sealed: Option<&'a Sealed>,
}

/// The number of a span, and the slots of its documents.
pub(super) type SpanSlots<'a> = (u32, &'a [u32]);
pub(super) const NO_SPAN: SpanSlots<'_> = (u32::MAX, &[]);

impl<'a> Half<'a> {
    /// The slot of a document; `span` keeps those of its neighbours, which are mostly asked for next.
    #[inline]
    pub(super) fn slot_near(&self, doc: u32, span: &mut SpanSlots<'a>) -> u32 {
        let (number, place) = (doc / SPAN_DOCS as u32, doc as usize % SPAN_DOCS);
        if span.0 != number {
            let first = number as usize * SPAN_DOCS;
            *span = (
                number,
                self.columns
                    .slots
                    .slice(first..self.columns.len().min(first + SPAN_DOCS)),
            );
        }
        match span.1.get(place) {
            Some(&slot) if self.sealed.is_none_or(|sealed| (slot as usize) < sealed.slot_count()) => slot,
            _ => self.slot_of(doc),
        }
    }

    /// The slot of a document.
    pub(super) fn slot_of(&self, doc: u32) -> u32 {
        match self.sealed {
            Some(sealed) => sealed.slot_of(doc),
            None => self.columns.slots.get(doc as usize),
        }
    }
}

/// All documents.
#[derive(Default)]
pub struct TextIndex {
    fields: Fields,
    pub(super) sealed: Arc<Sealed>,
    pub(super) open: Open,
    sealed_dead: DocSet,
    open_dead: DocSet,
    /// The living document of each slot that had one when the sealed part was made and was changed since.
    changed: HashMap<u32, u32, RandomState>,
    /// The living document of each slot behind those.
    fresh: Vec<u32>,
    living: usize,
    /// The statistics of the living documents of each part, and of each of its scopes.
    pub(super) usual: [Usual; 2],
    pub(super) holdings: [Holdings; 2],
}

/// An index that is being sealed beside the one that is searched.
pub struct Sealing {
    fields: Fields,
    sealed: Arc<Sealed>,
    dead: DocSet,
    open: Sealed,
}

impl Sealing {
    /// The same documents, sealed; `None` if the file of the sealed part failed a check.
    pub fn run(self) -> Option<TextIndex> {
        self.sealed.check_slots();
        if self.sealed.has_failed() {
            return None;
        }
        let parts = [
            JoinedPart {
                columns: &self.sealed.columns,
                dead: &self.dead,
                lists: self.sealed.sorted(),
            },
            JoinedPart {
                columns: &self.open.columns,
                dead: &DocSet::EMPTY,
                lists: self.open.sorted(),
            },
        ];
        let joined = Sealed::joined(&parts);
        (!self.sealed.has_failed()).then(|| TextIndex::new(self.fields, joined))
    }
}

impl TextIndex {
    /// An index of sealed documents.
    pub fn new(fields: Fields, sealed: Sealed) -> Self {
        let holdings = Holdings::of(&sealed.columns.owners.values, &sealed.ranges);
        let mut index = Self {
            fields,
            living: sealed.len(),
            usual: [holdings.usual(), Usual::default()],
            holdings: [holdings, Holdings::default()],
            ..Self::default()
        };
        let gone = sealed.gone.clone();
        index.sealed = Arc::new(sealed);
        gone.into_iter().for_each(|doc| index.bury(doc));
        index
    }

    /// An index of all records of a state, for one that will not change.
    pub fn of_state(fields: Fields, state: &State) -> Self {
        let mut index = Self::new(fields, Sealed::default());
        (0..state.slots.len() as u32)
            .filter_map(|slot| state.row(slot))
            .for_each(|row| index.put(&row));
        index
    }

    fn set_doc(&mut self, slot: u32, doc: u32) {
        let Some(at) = (slot as usize).checked_sub(self.sealed.slot_count()) else {
            self.changed.insert(slot, doc);
            return;
        };
        if at >= self.fresh.len() {
            self.fresh.resize(at + 1, NOWHERE);
        }
        self.fresh[at] = doc;
    }

    /// Indexes the record that a slot holds now.
    pub fn put(&mut self, row: &Row<'_>) {
        self.drop_slot(row.slot);
        if !is_searched(row.id()) {
            return;
        }
        let place = self.open.add(row, &self.fields);
        self.usual[OPEN] = self.usual[OPEN].and(self.open.columns.usual_of(place));
        self.holdings[OPEN].add(&self.open.columns, place);
        self.living += 1;
        self.set_doc(row.slot, self.sealed.len() as u32 + place);
    }

    /// Removes the document of a slot.
    pub fn drop_slot(&mut self, slot: u32) {
        if let Some(doc) = self.doc_of(slot) {
            self.bury(doc);
            self.set_doc(slot, NOWHERE);
        }
    }

    fn bury(&mut self, doc: u32) {
        let sealed = self.sealed.len() as u32;
        let (part, dead, columns, doc) = if doc < sealed {
            (SEALED, &mut self.sealed_dead, &self.sealed.columns, doc)
        } else {
            (OPEN, &mut self.open_dead, &self.open.columns, doc - sealed)
        };
        dead.insert(doc);
        self.holdings[part].bury(columns, doc);
        self.usual[part] = self.usual[part].without(columns.usual_of(doc));
        self.living = self.living.saturating_sub(1);
    }

    /// Joins both parts without their dead, unless the file of the sealed one failed a check.
    pub fn seal(&mut self) {
        if let Some(sealed) = self.sealing().run() {
            *self = sealed;
        }
    }

    /// Replaces the sealed part by an equal one, read from its file.
    pub fn take_sealed(&mut self, same: Sealed) {
        self.sealed = Arc::new(same);
    }

    /// Whether a check of a file failed: nothing that was found is to be used then.
    pub fn has_failed(&self) -> bool {
        self.sealed.has_failed()
    }

    /// The mark that a failed check sets, if there is a file.
    pub fn mark(&self) -> Option<Arc<AtomicBool>> {
        self.sealed.mark().cloned()
    }

    /// A copy that can be sealed while this index is in use: the open part is copied, the sealed part never changes.
    pub fn sealing(&self) -> Sealing {
        let open = JoinedPart {
            columns: &self.open.columns,
            dead: &self.open_dead,
            lists: self.open.sorted(),
        };
        Sealing {
            fields: self.fields.clone(),
            sealed: Arc::clone(&self.sealed),
            dead: self.sealed_dead.clone(),
            open: Sealed::joined(&[open]),
        }
    }

    /// Whether it should be sealed again.
    pub fn is_ragged(&self) -> bool {
        self.has_changed(1)
    }

    /// Whether it must be sealed before the next search.
    pub fn is_overgrown(&self) -> bool {
        self.has_changed(OVERGROWN_TIMES)
    }

    fn has_changed(&self, times: usize) -> bool {
        self.open.columns.len().max(self.sealed_dead.len()) / times > OPEN_DOCS.max(self.sealed.len() / 10)
    }

    /// The sealed part.
    pub fn sealed(&self) -> &Arc<Sealed> {
        &self.sealed
    }

    /// Which fields are read.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.living
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.living == 0
    }

    /// The living document of a slot.
    #[inline]
    pub fn doc_of(&self, slot: u32) -> Option<u32> {
        let doc = match (slot as usize).checked_sub(self.sealed.slot_count()) {
            Some(fresh) => self.fresh.get(fresh).copied(),
            None if self.changed.is_empty() => return self.sealed.doc_of(slot),
            None => self.changed.get(&slot).copied().or_else(|| self.sealed.doc_of(slot)),
        };
        doc.filter(|doc| *doc != NOWHERE)
    }

    /// The slot of a document.
    pub fn slot_of(&self, doc: u32) -> u32 {
        let (part, doc) = self.part_of(doc);
        part.slot_of(doc)
    }

    /// The id of a document's record, as it stands between quotes in canonical JSON.
    pub fn id_of(&self, doc: u32) -> &[u8] {
        let (part, doc) = self.part_of(doc);
        part.columns.ids.get(doc as usize)
    }

    /// The kind and status of a document.
    pub fn class_of(&self, doc: u32) -> &Class {
        let (part, doc) = self.part_of(doc);
        part.columns.class_of(doc as usize)
    }

    /// The time that the record of a document states, if it states one.
    pub fn time_of(&self, doc: u32) -> Option<i64> {
        let (part, doc) = self.part_of(doc);
        part.columns.context.rows.get(doc as usize).time()
    }

    /// The key of a number in the part of a document.
    fn key<'a>(&'a self, part: Half<'a>, number: u32) -> &'a [u8] {
        match part.sealed {
            Some(sealed) => sealed.stems.get(number as usize),
            None => self.open.key(number),
        }
    }

    /// Whether a document has a link, a group or a speaker.
    pub fn has_context(&self) -> bool {
        self.parts().iter().any(|part| !part.columns.context.keys.is_empty())
    }

    /// The context fields of a document, in the order of its record.
    pub fn marks_of(&self, doc: u32) -> impl Iterator<Item = ContextMark<'_>> {
        let (part, doc) = self.part_of(doc);
        let keys = part.columns.context.keys_of(doc as usize).iter();
        keys.filter_map(move |&key| ContextMark::of(self.key(part, key)))
    }

    /// Where the links of a document lead, in the order of its record.
    pub fn links_of(&self, doc: u32) -> impl Iterator<Item = LinkedRecord<'_>> {
        let (part, own) = self.part_of(doc);
        let (keys, targets) = part.columns.context.ties_of(own as usize);
        let targets = targets.iter().copied().chain(std::iter::repeat(NOWHERE));
        keys.iter().zip(targets).filter_map(move |(&key, target)| match target {
            NO_LINK => None,
            // A record that is gone may have come back under another number.
            NOWHERE => self.named_link(part, own, key),
            target => match part.slot_of(target) {
                NOWHERE => self.named_link(part, own, key),
                slot => Some(LinkedRecord::Slot(slot)),
            },
        })
    }

    fn named_link<'a>(&'a self, part: Half<'a>, doc: u32, key: u32) -> Option<LinkedRecord<'a>> {
        let (&LINK, name) = self.key(part, key).split_first()? else {
            return None;
        };
        let prefix = prefix_of(part.columns.ids.get(doc as usize));
        Some(LinkedRecord::Id(prefix, std::str::from_utf8(name).ok()?))
    }

    pub(super) fn parts(&self) -> [Half<'_>; 2] {
        [
            Half {
                columns: &self.sealed.columns,
                dead: &self.sealed_dead,
                first: 0,
                sealed: Some(&self.sealed),
            },
            Half {
                columns: &self.open.columns,
                dead: &self.open_dead,
                first: self.sealed.len() as u32,
                sealed: None,
            },
        ]
    }

    pub(super) fn part_of(&self, doc: u32) -> (Half<'_>, u32) {
        let [sealed, open] = self.parts();
        if doc < open.first {
            (sealed, doc)
        } else {
            (open, doc - open.first)
        }
    }
}
