//! Finds what surrounds the records that a question put forward.

use std::collections::HashMap;

use chronolog::event::faces::{call_by, call_of};
use chronolog::json::members;
use chronolog::scope::Viewer;
use chronomemory_search::blocks::is_of_likeness;
use chronomemory_search::score::Ties;
use chronomemory_search::text::{FoundField, NamedDays, TextIndex, TextQuestion, link_key, one_named};
use chronomemory_state::state::{Row, Sight, State, unspelled};

/// A record may be named by thousands; so many of them count as its neighbours.
const MOST_NEIGHBOURS: usize = 32;
/// What the kinds of records end with that only join others.
const JOINING_KIND: &[u8] = b"edge";
/// One that was taken back joins nothing.
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
        let Some(row) = state.row(index.slot_of(doc)) else {
            continue;
        };
        let mut near = named_by(index, state, &sight, &row);
        for other in naming(question, state, &sight, &row) {
            if is_joining(&other) {
                near.extend(named_by(index, state, &sight, &other));
            } else {
                near.extend(index.doc_of(other.slot));
            }
        }
        found.extend(near.into_iter().map(|doc| (at, doc)));
    }
    found
}

fn is_joining(row: &Row<'_>) -> bool {
    row.class.kind.ends_with(JOINING_KIND)
}

/// Whether one that joins others was not taken back, and, if it joins blocks, says more than that these are alike: words and
/// vectors say that already.
fn joins(row: &Row<'_>, is_called: bool) -> bool {
    let data = || members(&row.record).find(|(key, _)| *key == b"data");
    let says_likeness = || data().is_some_and(|(_, data)| is_of_likeness(data));
    *row.class.status == *ACTIVE && !(is_called && says_likeness())
}

/// The first records that name this one, without those that join others and were taken back.
fn naming<'a>(question: &TextQuestion<'_>, state: &'a State, sight: &Sight, row: &Row<'_>) -> Vec<Row<'a>> {
    let id = unspelled(row.id());
    let slots = |name: &str| {
        let docs = question.with_key(&link_key(name));
        docs.into_iter().map(|doc| question.slot_of(doc)).collect::<Vec<_>>()
    };
    let mut found: Vec<(u32, bool)> = slots(&id).into_iter().map(|slot| (slot, false)).collect();
    let called = call_of(row.id()).and_then(|call| id.strip_prefix(call.of));
    if let Some(called) = called {
        found.extend(slots(called).into_iter().map(|slot| (slot, true)));
    }
    found.sort_unstable();
    let counts = |row: &Row<'_>, is_called: bool| {
        call_by(row.id()).is_some() == is_called && (!is_joining(row) || joins(row, is_called))
    };
    // Thousands may name it: no more of them are looked at than are needed.
    let rows = found
        .into_iter()
        .filter(|(slot, _)| sight.sees(state.scope_in(*slot)))
        .filter_map(|(slot, is_called)| state.row(slot).filter(|row| counts(row, is_called)));
    rows.take(MOST_NEIGHBOURS).collect()
}

/// The documents that a record names, those that the asker sees.
fn named_by(index: &TextIndex, state: &State, sight: &Sight, row: &Row<'_>) -> Vec<u32> {
    let prefix = call_by(row.id()).map_or("", |call| call.of);
    let mut named = Vec::new();
    index.surroundings().read(&row.record, &mut |found| {
        if let FoundField::Link(id) = found
            && named.len() < MOST_NEIGHBOURS
        {
            let slot = state.slot_of(&format!("{prefix}{id}"));
            let slot = slot.filter(|&slot| sight.sees(state.scope_in(slot)));
            named.extend(slot.and_then(|slot| index.doc_of(slot)));
        }
    });
    named
}

/// Adds what documents say of themselves: their groups, and who among them the question means, and when.
pub(super) fn add_own(
    ties: &mut Ties,
    index: &TextIndex,
    state: &State,
    docs: &[u32],
    asked: &[String],
    days: &NamedDays,
) {
    let mut numbers: HashMap<Vec<(u16, String)>, u32> = HashMap::new();
    let mut speakers: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, &doc) in docs.iter().enumerate() {
        let slot = index.slot_of(doc);
        let Some(row) = state.row(slot) else { continue };
        let (mut group, mut stated) = (Vec::new(), None);
        index.surroundings().read(&row.record, &mut |found| match found {
            FoundField::Group(field, value) => group.push((field, value.to_owned())),
            FoundField::Speaker(name) => speakers.entry(name.to_owned()).or_default().push(at),
            FoundField::Time(field, micros) if stated.is_none_or(|(before, _)| field < before) => {
                stated = Some((field, micros));
            }
            _ => {}
        });
        if !group.is_empty() {
            // Records are of one group if they agree in all fields that make one.
            group.sort_unstable();
            let next = numbers.len() as u32;
            ties.groups.push((at, *numbers.entry(group).or_insert(next)));
        }
        if !days.is_empty() {
            let written = || state.dated_in(slot).moments.created.micros();
            let micros = stated.map(|(_, micros)| micros).or_else(written);
            let closeness = micros.map_or(0.0, |micros| days.closeness(micros));
            ties.times.extend((closeness > 0.0).then_some((at, closeness)));
        }
    }
    let named = speakers.iter().map(|(name, places)| (&**name, places));
    ties.speakers = one_named(named, asked).cloned().unwrap_or_default();
}
