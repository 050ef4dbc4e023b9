//! Which records answer a question, as of the last change?
//!
//! Most documents lie in the sealed part; what changed since then is in the open part, and what it replaced is dead. Both
//! are searched with one set of numbers, exactly those of the living documents.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::columns::{Columns, DocSet};
use super::fields::{Fields, is_searched};
use super::filter::{Filter, Sieve};
use super::lists::List;
use super::open::Open;
use super::sealed::{NO_SLOT, Part, Sealed};
use super::sweep::{Asked, LOOKUP_STEPS, Norm, sweep, weight_of};
use crate::state::{Row, State};

/// No document.
const NOWHERE: u32 = u32::MAX;
/// The open part may have so many documents, or a tenth of the sealed ones.
const OPEN_DOCS: usize = 20_000;

/// So many times that many may wait for somebody to seal them beside the searches.
const OVERGROWN_TIMES: usize = 4;

/// A part of the index with its dead.
#[derive(Clone, Copy)]
pub(super) struct Half<'a> {
    pub(super) columns: &'a Columns,
    dead: &'a DocSet,
    pub(super) first: u32,
}

/// All documents.
#[derive(Default)]
pub struct Index {
    fields: Fields,
    sealed: Arc<Sealed>,
    open: Open,
    sealed_dead: DocSet,
    open_dead: DocSet,
    /// The living document of each slot.
    docs: Vec<u32>,
    living: usize,
    /// How many of the living have words: those without say nothing of what is usual.
    worded: usize,
    words: u64,
}

/// An index that is being sealed beside the one that is searched.
pub struct Sealing {
    fields: Fields,
    sealed: Arc<Sealed>,
    dead: DocSet,
    open: Sealed,
}

impl Sealing {
    /// The same documents, sealed.
    pub fn run(self) -> Index {
        let parts = [
            Part {
                columns: &self.sealed.columns,
                dead: &self.dead,
                lists: self.sealed.sorted(),
            },
            Part {
                columns: &self.open.columns,
                dead: &DocSet::EMPTY,
                lists: self.open.sorted(),
            },
        ];
        Index::new(self.fields, Sealed::joined(&parts))
    }
}

/// A word of a question, with what it is worth in this index.
pub struct Word<'a> {
    /// The stem.
    pub stem: String,
    /// What it is worth.
    pub weight: f64,
    pub(super) lists: [List<'a>; 2],
}

/// A question made ready for an index.
pub struct Question<'a> {
    pub(super) index: &'a Index,
    /// Its words that stand somewhere, the rarest first.
    pub words: Vec<Word<'a>>,
    pub(super) norm: Norm,
    pub(super) sieves: [Sieve<'a>; 2],
}

impl Index {
    /// An index of sealed documents.
    pub fn new(fields: Fields, sealed: Sealed) -> Self {
        let mut index = Self {
            fields,
            living: sealed.len(),
            worded: sealed.columns.lengths.iter().filter(|&&length| length > 0).count(),
            words: sealed.columns.lengths.iter().map(|&length| u64::from(length)).sum(),
            ..Self::default()
        };
        let slots = sealed.columns.slots.clone();
        index.sealed = Arc::new(sealed);
        for (doc, slot) in (0..).zip(slots) {
            if slot == NO_SLOT {
                index.bury(doc);
                continue;
            }
            // A record has one document, whatever a file says.
            index.drop_slot(slot);
            index.settle(slot, doc);
        }
        index
    }

    /// An index of all records of a state, for one that will not change.
    pub fn of_state(fields: Fields, state: &State) -> Self {
        let mut index = Self::new(fields, Sealed::default());
        (0..state.slot_count() as u32)
            .filter_map(|slot| state.row(slot))
            .for_each(|row| index.put(&row));
        index
    }

    fn settle(&mut self, slot: u32, doc: u32) {
        let at = slot as usize;
        if at >= self.docs.len() {
            self.docs.resize(at + 1, NOWHERE);
        }
        self.docs[at] = doc;
    }

    /// Takes in what a slot holds now.
    pub fn put(&mut self, row: &Row<'_>) {
        self.drop_slot(row.slot);
        if !is_searched(row.id) {
            return;
        }
        let place = self.open.add(row, &self.fields);
        let length = self.open.columns.lengths[place as usize];
        self.words += u64::from(length);
        self.worded += usize::from(length > 0);
        self.living += 1;
        self.settle(row.slot, self.sealed.len() as u32 + place);
    }

    /// Forgets what a slot held.
    pub fn drop_slot(&mut self, slot: u32) {
        let doc = self.doc_of(slot).unwrap_or(NOWHERE);
        if doc != NOWHERE {
            self.bury(doc);
            self.docs[slot as usize] = NOWHERE;
        }
    }

    fn bury(&mut self, doc: u32) {
        let sealed = self.sealed.len() as u32;
        let length = if doc < sealed {
            self.sealed_dead.insert(doc);
            self.sealed.columns.lengths[doc as usize]
        } else {
            self.open_dead.insert(doc - sealed);
            self.open.columns.lengths[(doc - sealed) as usize]
        };
        self.living -= 1;
        self.worded -= usize::from(length > 0);
        self.words -= u64::from(length);
    }

    /// Joins both parts without their dead.
    pub fn seal(&mut self) {
        *self = self.sealing().run();
    }

    /// What it takes to join both parts while this index is in use: the open one is copied, the sealed one never changes.
    pub fn sealing(&self) -> Sealing {
        let open = Part {
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

    /// Whether so much changed that it should be sealed again.
    pub fn is_ragged(&self) -> bool {
        self.has_changed(1)
    }

    /// Whether so much changed that a search should not go on before it is sealed.
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
    pub fn doc_of(&self, slot: u32) -> Option<u32> {
        self.docs.get(slot as usize).copied().filter(|&doc| doc != NOWHERE)
    }

    /// The slot of a document.
    pub fn slot_of(&self, doc: u32) -> u32 {
        let (part, doc) = self.part_of(doc);
        part.columns.slots[doc as usize]
    }

    /// The living documents in the list of a key, ascending in each part.
    pub fn with_key(&self, key: &[u8]) -> Vec<u32> {
        let [sealed, open] = self.parts();
        let in_sealed = self.sealed.list(key).into_iter().flat_map(List::docs);
        let in_open = self.open.list(key).into_iter().flat_map(List::docs);
        let in_sealed = in_sealed.filter(|&doc| !sealed.dead.contains(doc));
        let in_open = in_open.filter(|&doc| !open.dead.contains(doc));
        in_sealed.chain(in_open.map(|doc| doc + open.first)).collect()
    }

    pub(super) fn parts(&self) -> [Half<'_>; 2] {
        [
            Half {
                columns: &self.sealed.columns,
                dead: &self.sealed_dead,
                first: 0,
            },
            Half {
                columns: &self.open.columns,
                dead: &self.open_dead,
                first: self.sealed.len() as u32,
            },
        ]
    }

    fn part_of(&self, doc: u32) -> (Half<'_>, u32) {
        let [sealed, open] = self.parts();
        if doc < open.first {
            (sealed, doc)
        } else {
            (open, doc - open.first)
        }
    }

    /// Makes a question ready: what its words are worth, and what may be found.
    pub fn question(&self, stems: &[String], filter: &Filter) -> Question<'_> {
        let norm = Norm::of(self.words as f64 / self.worded.max(1) as f64);
        let mut words: Vec<Word<'_>> = Vec::new();
        for stem in stems {
            let lists =
                [self.sealed.list(stem.as_bytes()), self.open.list(stem.as_bytes())].map(Option::unwrap_or_default);
            let living = living_in(lists[0], &self.sealed_dead) + living_in(lists[1], &self.open_dead);
            if living > 0 {
                let (stem, weight) = (stem.clone(), weight_of(living, self.worded));
                words.push(Word { stem, weight, lists });
            }
        }
        // An order that only the living decide: whatever else the parts still hold, all processes get the same sums.
        words.sort_by(|one, other| {
            other
                .weight
                .total_cmp(&one.weight)
                .then_with(|| one.stem.cmp(&other.stem))
        });
        let [sealed, open] = self.parts();
        Question {
            index: self,
            words,
            norm,
            sieves: [
                Sieve::new(filter, sealed.columns, sealed.dead, |key| self.sealed.list(key)),
                Sieve::new(filter, open.columns, open.dead, |key| self.open.list(key)),
            ],
        }
    }
}

/// How many of a list are not dead, the shorter way round.
fn living_in(list: List<'_>, dead: &DocSet) -> usize {
    if dead.is_empty() {
        return list.len();
    }
    let buried = if dead.len() * LOOKUP_STEPS < list.len() {
        dead.iter().filter(|&doc| list.count_in(doc) > 0).count()
    } else {
        list.docs().filter(|&doc| dead.contains(doc)).count()
    };
    list.len() - buried
}

/// A document and its score; the better one is the greater.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ranked {
    score: f32,
    slot: u32,
    doc: u32,
}

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap gives away its greatest: that is the worst here.
        other.score.total_cmp(&self.score).then(self.slot.cmp(&other.slot))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Question<'_> {
    /// Whether a document may be found.
    pub fn passes(&self, doc: u32) -> bool {
        let (_, own) = self.index.part_of(doc);
        self.sieves[usize::from(doc >= self.index.sealed.len() as u32)].passes(own)
    }

    /// What is asked of one part.
    pub(super) fn asked_of(&self, part: usize) -> Vec<Asked<'_>> {
        let asked = self.words.iter().map(|word| Asked {
            weight: word.weight,
            list: word.lists[part],
        });
        asked.collect()
    }

    /// The best documents and their scores, best first; of equals the older record.
    pub fn best(&self, limit: usize) -> Vec<(u32, f64)> {
        if limit == 0 {
            return Vec::new();
        }
        let mut best: BinaryHeap<Ranked> = BinaryHeap::new();
        for (at, part) in self.index.parts().iter().enumerate() {
            let asked = self.asked_of(at);
            let reached = |best: &BinaryHeap<Ranked>| match best.peek() {
                Some(worst) if best.len() == limit => worst.score,
                _ => 0.0,
            };
            let start = reached(&best);
            sweep(&asked, &part.columns.lengths, self.norm, start, |doc, score| {
                let own = Ranked {
                    score,
                    slot: part.columns.slots[doc as usize],
                    doc: doc + part.first,
                };
                let is_better = best.len() < limit || best.peek().is_some_and(|worst| own < *worst);
                if is_better && self.sieves[at].passes(doc) {
                    if best.len() == limit {
                        best.pop();
                    }
                    best.push(own);
                }
                reached(&best)
            });
        }
        let mut found: Vec<_> = best.into_iter().map(|own| (own, self.score(own.doc))).collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.slot.cmp(&other.0.slot)));
        found.into_iter().map(|(own, score)| (own.doc, score)).collect()
    }

    /// What a document scores.
    pub fn score(&self, doc: u32) -> f64 {
        // A sum of nothing would be a negative zero.
        self.parts_of(doc).fold(0.0, |sum, (_, score)| sum + score)
    }

    /// What each word adds to it.
    pub fn parts_of(&self, doc: u32) -> impl Iterator<Item = (&str, f64)> {
        let (part, own) = self.index.part_of(doc);
        let at = usize::from(doc >= self.index.sealed.len() as u32);
        let length = part.columns.lengths[own as usize];
        self.words.iter().filter_map(move |word| {
            let count = word.lists[at].count_in(own);
            (count > 0).then(|| {
                (
                    word.stem.as_str(),
                    self.norm.score(word.weight, u32::from(count), length),
                )
            })
        })
    }
}
