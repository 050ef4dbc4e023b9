//! The sealed part of an index: many documents, packed close together.

use std::collections::{BTreeSet, HashMap};

use super::columns::{DocSet, JoinedNames, TextColumns};
use super::fields::{Fields, is_searched};
use super::lists::{ListRun, OpenList, SPAN_DOCS, WordList};
use super::open::Open;
use chronolog::memory::{self, Refused};
use chronolog::scope::Carried;
use chronomemory_state::state::Survey;

/// Documents that are taken in by one thread at least.
const THREAD_DOCS: usize = SPAN_DOCS;
/// Stands for a document that is not taken over.
const NOBODY_THERE: u32 = u32::MAX;
/// Stands for the slot of a document whose record is gone.
pub const NO_SLOT: u32 = u32::MAX;
static NOBODY: DocSet = DocSet::EMPTY;

/// A part that is joined with others.
pub struct JoinedPart<'a> {
    /// Its documents.
    pub columns: &'a TextColumns,
    /// Those that are dead.
    pub dead: &'a DocSet,
    /// Its lists, sorted by their keys.
    pub lists: Vec<(&'a [u8], WordList<'a>)>,
}

/// Documents whose lists never change.
#[derive(Debug, Default)]
pub struct Sealed {
    /// Stems and keys, sorted.
    pub(super) stems: JoinedNames,
    /// Where the runs of each begin, and where the last ones end.
    pub(super) first_runs: Vec<u32>,
    /// Where the places of each begin, and where the last ones end.
    pub(super) first_places: Vec<u32>,
    pub(super) runs: Vec<ListRun>,
    pub(super) places: Vec<u16>,
    pub(super) counts: Vec<u16>,
    pub(super) columns: TextColumns,
}

impl Sealed {
    /// Takes in all rows of a survey, on several threads.
    pub fn build(survey: &Survey, fields: &Fields, threads: usize) -> Result<Self, Refused> {
        let parts = threads.clamp(1, survey.len() / THREAD_DOCS + 1);
        let docs_each = survey.len().div_ceil(parts);
        let take_in = |part: usize| {
            let mut open = Open::default();
            let rows = part * docs_each..((part + 1) * docs_each).min(survey.len());
            for row in rows.filter_map(|at| survey.row(at)).filter(|row| is_searched(row.id())) {
                open.make_room(row.record.len())?;
                open.add(&row, fields);
            }
            Ok(open)
        };
        let opens: Result<Vec<Open>, Refused> = std::thread::scope(|scope| {
            let start = |part| std::thread::Builder::new().spawn_scoped(scope, move || take_in(part));
            let others: Vec<_> = (1..parts).map(start).collect();
            let first = take_in(0);
            // The part of a thread that could not be had, or that died and has reported why, is taken in here.
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
            dead: &NOBODY,
            lists: open.sorted(),
        });
        Ok(Self::joined(&parts.collect::<Vec<_>>()))
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        let lists = 4 * self.places.len() + size_of::<ListRun>() * self.runs.len();
        lists + self.stems.bytes() + size_of::<u32>() * 2 * self.stems.len() + self.columns.bytes()
    }

    /// Joins the living documents of several parts: those of a scope together, each part behind the one before.
    pub fn joined(parts: &[JoinedPart<'_>]) -> Self {
        let mut sealed = Self::default();
        let mut numbers: Vec<Vec<u32>> = Vec::new();
        let mut order = Vec::new();
        let scopes = ranked(parts);
        for (at, (part, scopes)) in parts.iter().zip(&scopes).enumerate() {
            numbers.push(vec![NOBODY_THERE; part.columns.len()]);
            let living = (0..part.columns.len()).filter(|&doc| !part.dead.contains(doc as u32));
            order.extend(living.map(|doc| (scopes[part.columns.scopes[doc] as usize], at, doc)));
        }
        // Mostly all are of one scope, and a part that was sealed is in order: this sort finds that out.
        order.sort_by_key(|&(scope, ..)| scope);
        for (_, part, doc) in order {
            numbers[part][doc] = sealed.columns.len() as u32;
            sealed.columns.push(&parts[part].columns.entry(doc));
        }
        let mut heads = vec![0; parts.len()];
        sealed.first_runs.push(0);
        sealed.first_places.push(0);
        let mut joined = OpenList::default();
        let mut found: Vec<(u32, u16)> = Vec::new();
        loop {
            let rest = heads.iter().zip(parts).filter_map(|(&at, part)| part.lists.get(at));
            let Some(stem) = rest.map(|(stem, _)| *stem).min() else {
                break;
            };
            joined.clear();
            found.clear();
            for (head, (part, numbers)) in heads.iter_mut().zip(parts.iter().zip(&numbers)) {
                let Some((_, list)) = part.lists.get(*head).filter(|(own, _)| *own == stem) else {
                    continue;
                };
                *head += 1;
                for (doc, &count) in list.docs().zip(list.counts) {
                    let number = numbers[doc as usize];
                    if number != NOBODY_THERE {
                        found.push((number, count));
                    }
                }
            }
            found.sort_by_key(|&(number, _)| number);
            for &(number, count) in &found {
                joined.push(number, count, sealed.columns.lengths[number as usize]);
            }
            sealed.add_list(stem, joined.list());
        }
        sealed
    }

    fn add_list(&mut self, stem: &[u8], list: WordList<'_>) {
        if list.is_empty() {
            return;
        }
        self.stems.push(stem);
        self.runs.extend_from_slice(list.runs);
        self.places.extend_from_slice(list.places);
        self.counts.extend_from_slice(list.counts);
        self.first_runs.push(self.runs.len() as u32);
        self.first_places.push(self.places.len() as u32);
    }

    /// All stems and keys with their lists, sorted.
    pub fn sorted(&self) -> Vec<(&[u8], WordList<'_>)> {
        (0..self.stems.len())
            .map(|at| (self.stems.get(at), self.list_at(at)))
            .collect()
    }

    /// Looks up each document's record again: slots differ from one state to the next. Those that `find` does not know stay
    /// without one.
    pub fn settle(&mut self, find: impl Fn(u32, &[u8]) -> Option<u32>) {
        let TextColumns { slots, ids, .. } = &mut self.columns;
        for (doc, slot) in slots.iter_mut().enumerate() {
            *slot = find(*slot, ids.get(doc)).unwrap_or(NO_SLOT);
        }
    }

    /// The list of a stem or key.
    pub fn list(&self, key: &[u8]) -> Option<WordList<'_>> {
        self.stems.find(key).map(|at| self.list_at(at))
    }

    /// The list of the stem or key with this number.
    pub(super) fn list_at(&self, at: usize) -> WordList<'_> {
        let runs = self.first_runs[at] as usize..self.first_runs[at + 1] as usize;
        let places = self.first_places[at] as usize..self.first_places[at + 1] as usize;
        WordList {
            runs: &self.runs[runs],
            places: &self.places[places.clone()],
            counts: &self.counts[places],
        }
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// Which place each scope of each part has in their common order.
fn ranked(parts: &[JoinedPart<'_>]) -> Vec<Vec<u32>> {
    let all: BTreeSet<&Carried> = parts.iter().flat_map(|part| &part.columns.owners).collect();
    let ranks: HashMap<&Carried, u32> = all.into_iter().zip(0..).collect();
    let of_part = |part: &JoinedPart<'_>| part.columns.owners.iter().map(|owner| ranks[owner]).collect();
    parts.iter().map(of_part).collect()
}
