//! Finds the context of the candidates of a search, without reading records.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use chronolog::event::faces::call_by;
use chronolog::scope::Viewer;
use chronomemory_search::score::Ties;
use chronomemory_search::text::{ContextMark, LinkedRecord, NamedDays, TextIndex, TextQuestion, one_named};
use chronomemory_state::state::{Sight, State};

/// The greatest number of neighbours of a record; thousands may name it.
const MOST_NEIGHBOURS: usize = 32;
/// The suffix of the kinds of records that only join others.
const JOINING_KIND: &[u8] = b"edge";
/// A joining record counts only with this status.
const ACTIVE: &[u8] = b"active";

/// The neighbours of documents, with the places of those: they may be found only if they pass.
pub(super) fn neighbours(
    index: &TextIndex,
    question: &TextQuestion<'_>,
    state: &State,
    viewer: &Viewer,
    docs: &[u32],
) -> Vec<(usize, u32)> {
    let mut found = Vec::new();
    let sight = state.sight(viewer);
    for (at, &doc) in docs.iter().enumerate() {
        let mut near = named_by(index, state, &sight, doc);
        for other in naming(index, question, state, &sight, doc) {
            if is_joining(index, other) {
                near.extend(named_by(index, state, &sight, other));
            } else {
                near.push(other);
            }
        }
        found.extend(near.into_iter().map(|doc| (at, doc)));
    }
    found
}

fn is_joining(index: &TextIndex, doc: u32) -> bool {
    index.class_of(doc).kind.ends_with(JOINING_KIND)
}

fn sees(state: &State, sight: &Sight, slot: u32) -> bool {
    sight.is_all() || sight.sees(state.scope_in(slot))
}

/// Whether a joining record counts: it is active, and states more than the likeness of two blocks, which words and vectors
/// already measure.
fn joins(index: &TextIndex, doc: u32) -> bool {
    *index.class_of(doc).status == *ACTIVE && !index.marks_of(doc).any(|mark| mark == ContextMark::Likeness)
}

/// The first documents that name this one, without joining records that do not count.
fn naming(index: &TextIndex, question: &TextQuestion<'_>, state: &State, sight: &Sight, doc: u32) -> Vec<u32> {
    let named = question.naming(doc).into_iter();
    let mut found: Vec<(u32, bool, u32)> = named.map(|(doc, called)| (index.slot_of(doc), called, doc)).collect();
    found.sort_unstable();
    let counts = |doc: u32, is_called: bool| {
        call_by(index.id_of(doc)).is_some() == is_called && (!is_joining(index, doc) || joins(index, doc))
    };
    let docs = found
        .into_iter()
        .filter(|&(slot, is_called, doc)| sees(state, sight, slot) && counts(doc, is_called));
    docs.map(|(.., doc)| doc).take(MOST_NEIGHBOURS).collect()
}

/// The visible documents that a document names.
fn named_by(index: &TextIndex, state: &State, sight: &Sight, doc: u32) -> Vec<u32> {
    let slots = index.links_of(doc).filter_map(|link| match link {
        LinkedRecord::Slot(slot) => Some(slot),
        LinkedRecord::Id(prefix, name) => state.slots.of_id(&format!("{prefix}{name}")),
    });
    let seen = slots.filter(|&slot| sees(state, sight, slot));
    seen.filter_map(|slot| index.doc_of(slot))
        .take(MOST_NEIGHBOURS)
        .collect()
}

/// Adds the groups of the documents, and those whose speaker or time the question names.
pub(super) fn add_own(
    ties: &mut Ties,
    index: &TextIndex,
    state: &State,
    docs: &[u32],
    asked: &[String],
    days: &NamedDays,
) {
    let mut numbers: HashMap<Vec<&[u8]>, u32, RandomState> =
        HashMap::with_capacity_and_hasher(docs.len(), RandomState::default());
    let mut speakers: HashMap<&str, Vec<usize>, RandomState> = HashMap::default();
    for (at, &doc) in docs.iter().enumerate() {
        let mut group = Vec::new();
        for mark in index.marks_of(doc) {
            match mark {
                ContextMark::Group(key) => group.push(key),
                ContextMark::Speaker(name) => speakers.entry(name).or_default().push(at),
                ContextMark::Likeness => {}
            }
        }
        if !group.is_empty() {
            // Records belong to one group if they agree in all group fields.
            group.sort_unstable();
            let next = numbers.len() as u32;
            ties.groups.push((at, *numbers.entry(group).or_insert(next)));
        }
        if !days.is_empty() {
            let written = || state.slots.moments(index.slot_of(doc)).created.micros();
            let micros = index.time_of(doc).or_else(written);
            let closeness = micros.map_or(0.0, |micros| days.closeness(micros));
            ties.times.extend((closeness > 0.0).then_some((at, closeness)));
        }
    }
    let named = speakers.iter().map(|(name, places)| (*name, places));
    ties.speakers = one_named(named, asked).cloned().unwrap_or_default();
}
