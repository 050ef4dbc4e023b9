//! The sealed part of an index: many documents, packed close together.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::columns::{DocSet, TextColumns, Usual};
use super::context::SealedLinks;
use super::fields::{Fields, is_searched};
use super::lists::{ListRun, NumberedList, OpenList, SPAN_DOCS, WordList};
use super::open::Open;
use chronolog::memory::{self, Refused};
use chronolog::scope::Carried;
use chronomemory_state::segment::{Column, Container, JoinedNames};
use chronomemory_state::state::Frozen;

/// The least number of documents per thread.
const THREAD_DOCS: usize = SPAN_DOCS;
/// The new number of a document that is not kept.
const NOT_KEPT: u32 = u32::MAX;
pub const NOWHERE: u32 = u32::MAX;
static NO_DOCS: DocSet = DocSet::EMPTY;

/// A part that is joined with others.
pub struct JoinedPart<'a> {
    pub columns: &'a TextColumns,
    pub dead: &'a DocSet,
    /// Its lists, sorted by their keys.
    pub lists: Vec<NumberedList<'a>>,
}

/// The documents of each scope: they lie together, in the order of the scopes.
#[derive(Debug, Default)]
pub struct ScopeRanges {
    /// Where those of each end.
    pub(super) ends: Column<u32>,
    /// How many of them have words.
    pub(super) worded: Column<u64>,
    /// How many words they have.
    pub(super) words: Column<u64>,
}

impl ScopeRanges {
    pub fn usual(&self, scope: usize) -> Usual {
        Usual {
            worded: self.worded.get(scope) as usize,
            words: self.words.get(scope),
        }
    }

    /// Those of documents that are in the order of their scopes.
    pub(super) fn of(columns: &TextColumns) -> Self {
        let mut usual = vec![Usual::default(); columns.owners.values.len()];
        let mut ends = vec![0; columns.owners.values.len()];
        for doc in 0..columns.len() as u32 {
            let scope = columns.scopes.get(doc as usize) as usize;
            if let (Some(usual), Some(end)) = (usual.get_mut(scope), ends.get_mut(scope)) {
                *usual = usual.and(columns.usual_of(doc));
                *end = doc + 1;
            }
        }
        Self {
            ends: Column::Owned(ends),
            worded: Column::Owned(usual.iter().map(|usual| usual.worded as u64).collect()),
            words: Column::Owned(usual.iter().map(|usual| usual.words).collect()),
        }
    }
}

/// The file that documents are read from.
#[derive(Debug)]
pub(super) struct SealedFile {
    pub container: Arc<Container>,
    /// One bit a list: it was checked.
    pub checked: Vec<AtomicU64>,
}

/// Documents whose lists never change, in memory or in a mapped file.
#[derive(Debug, Default)]
pub struct Sealed {
    /// Stems and keys, sorted.
    pub(super) stems: JoinedNames,
    /// Where the runs of each begin, and where the last ones end.
    pub(super) first_runs: Column<u32>,
    /// Where the places of each begin, and where the last ones end.
    pub(super) first_places: Column<u32>,
    pub(super) runs: Column<ListRun>,
    pub(super) places: Column<u16>,
    pub(super) counts: Column<u16>,
    pub(super) columns: TextColumns,
    pub(super) ranges: ScopeRanges,
    /// The document of each slot, or [`NOWHERE`].
    pub(super) docs: Column<u32>,
    /// Documents whose records are gone.
    pub(super) gone: Vec<u32>,
    pub(super) file: Option<SealedFile>,
}

impl Sealed {
    /// Indexes frozen rows, on several threads.
    pub fn build(rows: &Frozen, fields: &Fields, threads: usize) -> Result<Self, Refused> {
        let parts = threads.clamp(1, rows.len() / THREAD_DOCS + 1);
        let docs_each = rows.len().div_ceil(parts);
        let take_in = |part: usize| {
            let mut open = Open::default();
            let places = part * docs_each..((part + 1) * docs_each).min(rows.len());
            for row in places.filter_map(|at| rows.row(at)).filter(|row| is_searched(row.id())) {
                open.make_room(row.record.len())?;
                open.add(&row, fields);
            }
            Ok(open)
        };
        let opens: Result<Vec<Open>, Refused> = std::thread::scope(|scope| {
            let start = |part| std::thread::Builder::new().spawn_scoped(scope, move || take_in(part));
            let others: Vec<_> = (1..parts).map(start).collect();
            let first = take_in(0);
            // If a thread did not start or panicked, its part is added here.
            let rest = (1..).zip(others);
            let rest = rest.map(|(part, thread)| {
                let taken_in = thread.ok().and_then(|thread| thread.join().ok());
                taken_in.unwrap_or_else(|| take_in(part))
            });
            std::iter::once(first).chain(rest).collect()
        });
        let opens = opens?;
        memory::could_have(opens.iter().map(Open::bytes).sum())?;
        let parts = opens.iter().map(|open| JoinedPart {
            columns: &open.columns,
            dead: &NO_DOCS,
            lists: open.sorted(),
        });
        Ok(Self::joined(&parts.collect::<Vec<_>>()))
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        let lists = self.places.bytes() + self.counts.bytes() + self.runs.bytes();
        lists + self.stems.bytes() + size_of::<u32>() * 2 * self.stems.len() + self.columns.bytes() + self.docs.bytes()
    }

    /// Joins the living documents of several parts: those of a scope together, each part behind the one before.
    pub fn joined(parts: &[JoinedPart<'_>]) -> Self {
        let mut sealed = Self::default();
        let mut numbers: Vec<Vec<u32>> = Vec::new();
        let mut order = Vec::new();
        let scopes = ranked(parts);
        for (at, (part, scopes)) in parts.iter().zip(&scopes).enumerate() {
            numbers.push(vec![NOT_KEPT; part.columns.len()]);
            let living = (0..part.columns.len()).filter(|&doc| !part.dead.contains(doc as u32));
            let rank = |doc: usize| {
                scopes
                    .get(part.columns.scopes.get(doc) as usize)
                    .copied()
                    .unwrap_or_default()
            };
            order.extend(living.map(|doc| (rank(doc), at, doc)));
        }
        // The sort is fast on the usual input: one scope, or parts that are already in order.
        order.sort_by_key(|&(scope, ..)| scope);
        for &(_, part, doc) in &order {
            numbers[part][doc] = sealed.columns.len() as u32;
            sealed.columns.push(&parts[part].columns.entry(doc));
        }
        sealed.ranges = ScopeRanges::of(&sealed.columns);
        sealed.docs = docs_by_slot(sealed.columns.slots.all());
        let mut heads = vec![0; parts.len()];
        let mut keys: Vec<Vec<u32>> = parts.iter().map(|part| vec![NOWHERE; part.lists.len()]).collect();
        sealed.first_runs.push(0);
        sealed.first_places.push(0);
        let mut joined = OpenList::default();
        let mut found: Vec<(u32, u16)> = Vec::new();
        loop {
            let rest = heads.iter().zip(parts).filter_map(|(&at, part)| part.lists.get(at));
            let Some(stem) = rest.map(|(stem, ..)| *stem).min() else {
                break;
            };
            joined.clear();
            found.clear();
            for (at, head) in heads.iter_mut().enumerate() {
                let Some((_, key, list)) = parts[at].lists.get(*head).filter(|(own, ..)| *own == stem) else {
                    continue;
                };
                *head += 1;
                keys[at][*key as usize] = sealed.stems.len() as u32;
                let numbers = &numbers[at];
                for (doc, &count) in list.docs().zip(list.counts) {
                    let number = numbers.get(doc as usize).copied();
                    found.extend(
                        number
                            .filter(|number| *number != NOT_KEPT)
                            .map(|number| (number, count)),
                    );
                }
            }
            found.sort_by_key(|&(number, _)| number);
            for &(number, count) in &found {
                joined.push(number, count, sealed.columns.lengths.get(number as usize));
            }
            sealed.add_list(stem, joined.list());
        }
        for (_, part, doc) in order {
            let context = &parts[part].columns.context;
            let known = context
                .keys_of(doc)
                .iter()
                .map(|key| keys[part].get(*key as usize).copied());
            sealed.columns.context.keys.extend(&known.flatten().collect::<Vec<_>>());
            sealed.columns.context.end_document(context.rows.get(doc).time());
        }
        let links = SealedLinks::of(&sealed.columns, &sealed.stems);
        sealed.columns.context.take(links);
        sealed
    }

    fn add_list(&mut self, stem: &[u8], list: WordList<'_>) {
        if list.is_empty() {
            return;
        }
        self.stems.push(stem);
        self.runs.extend(list.runs);
        self.places.extend(list.places);
        self.counts.extend(list.counts);
        self.first_runs.push(self.runs.len() as u32);
        self.first_places.push(self.places.len() as u32);
    }

    /// All stems and keys with their lists, sorted.
    pub fn sorted(&self) -> Vec<NumberedList<'_>> {
        (0..self.stems.len())
            .map(|at| (self.stems.get(at), at as u32, self.list_at(at)))
            .collect()
    }

    /// Renumbers the documents for a state with other slots. Documents that `find` does not know are gone.
    pub fn renumber(&mut self, find: impl Fn(u32, &[u8]) -> Option<u32>) {
        let find = |doc: usize| find(self.columns.slots.get(doc), self.columns.ids.get(doc));
        let slots: Vec<u32> = (0..self.len()).map(|doc| find(doc).unwrap_or(NOWHERE)).collect();
        self.gone = (0..)
            .zip(&slots)
            .filter(|(_, slot)| **slot == NOWHERE)
            .map(|(doc, _)| doc)
            .collect();
        self.docs = docs_by_slot(&slots);
        self.columns.slots = Column::Owned(slots);
    }

    /// Whether there are documents whose records are gone.
    pub fn has_gone(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Marks the file as failed if a document names a record beyond those that it lists.
    pub fn check_slots(&self) {
        let is_known = |slot: u32| slot == NOWHERE || (slot as usize) < self.docs.len();
        if let Some(file) = &self.file
            && !(0..self.len()).all(|doc| is_known(self.columns.slots.get(doc)))
        {
            file.container.fail();
        }
    }

    /// Whether a check of the file failed: nothing that was read is to be used then.
    pub fn has_failed(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.container.has_failed())
    }

    /// The mark that a failed check sets, if there is a file.
    pub fn mark(&self) -> Option<&Arc<AtomicBool>> {
        self.file.as_ref().map(|file| file.container.mark())
    }

    fn fail(&self) {
        if let Some(file) = &self.file {
            file.container.fail();
        }
    }

    /// How many slots there were when the documents were sealed, those without one included.
    pub fn slot_count(&self) -> usize {
        self.docs.len()
    }

    /// The document of a slot.
    #[inline]
    pub fn doc_of(&self, slot: u32) -> Option<u32> {
        if slot as usize >= self.docs.len() {
            return None;
        }
        let doc = self.docs.get(slot as usize);
        if doc as usize >= self.len() {
            if doc != NOWHERE {
                self.fail();
            }
            return None;
        }
        Some(doc)
    }

    /// The slot of a document.
    #[inline]
    pub fn slot_of(&self, doc: u32) -> u32 {
        let slot = self.columns.slots.get(doc as usize);
        if slot as usize >= self.docs.len() && slot != NOWHERE {
            self.fail();
            return 0;
        }
        slot
    }

    /// The list of a stem or key.
    pub fn list(&self, key: &[u8]) -> Option<WordList<'_>> {
        self.stems.find(key).map(|at| self.list_at(at))
    }

    /// The list of the stem or key with this number. One of a file is checked when it is first read.
    pub(super) fn list_at(&self, at: usize) -> WordList<'_> {
        let runs = self.first_runs.get(at) as usize..self.first_runs.get(at + 1) as usize;
        let places = self.first_places.get(at) as usize..self.first_places.get(at + 1) as usize;
        let list = WordList {
            runs: self.runs.slice(runs),
            places: self.places.slice(places.clone()),
            counts: self.counts.slice(places),
        };
        let Some(file) = &self.file else { return list };
        let bit = 1 << (at % 64);
        let is_checked = |bits: &AtomicU64| bits.load(Ordering::Relaxed) & bit != 0;
        let bits = file.checked.get(at / 64);
        if bits.is_some_and(is_checked) {
            return list;
        }
        if file.container.has_failed() || list.is_empty() || !list.is_whole(self.len()) {
            file.container.fail();
            return WordList::default();
        }
        if let Some(bits) = bits {
            bits.fetch_or(bit, Ordering::Relaxed);
        }
        list
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn docs_by_slot(slots: &[u32]) -> Column<u32> {
    let known = slots.iter().filter(|slot| **slot != NOWHERE);
    let mut docs = vec![NOWHERE; known.max().map_or(0, |last| *last as usize + 1)];
    for (doc, &slot) in (0..).zip(slots) {
        if let Some(place) = docs.get_mut(slot as usize) {
            *place = doc;
        }
    }
    Column::Owned(docs)
}

/// Which place each scope of each part has in their common order.
fn ranked(parts: &[JoinedPart<'_>]) -> Vec<Vec<u32>> {
    let all: BTreeSet<&Carried> = parts.iter().flat_map(|part| &part.columns.owners.values).collect();
    let ranks: HashMap<&Carried, u32> = all.into_iter().zip(0..).collect();
    let of_part = |part: &JoinedPart<'_>| part.columns.owners.values.iter().map(|owner| ranks[owner]).collect();
    parts.iter().map(of_part).collect()
}
