//! Compares sealed documents with the records that they were made of.
//!
//! A file of documents is believed by its own digest, and whoever forges one computes that too. So all that a search would
//! take from it is held against the records: of every document its words with their counts, as one sum, and its columns; and
//! of every list the numbers that let a search pass over parts of it. The sums are keyed with chance: nobody can make another
//! document that has the same. What memory this takes is one sum for each document, and the documents of one piece.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;

use super::columns::DocumentEntry;
use super::context::SealedLinks;
use super::fields::{Fields, is_searched};
use super::lists::{NumberedList, SPAN_DOCS, WordList};
use super::open::Open;
use super::sealed::{NOWHERE, ScopeRanges, Sealed};
use chronolog::ordered::in_order;
use chronomemory_state::state::State;

/// How many records one thread takes in before it compares them.
const PIECE_ROWS: usize = 8192;

/// Adds up what lists say of each document.
#[derive(Default)]
struct Sums(RandomState, RandomState);

impl Sums {
    fn of(&self, lists: Vec<NumberedList<'_>>, docs: usize) -> Vec<(u64, u64)> {
        let mut sums = vec![(0_u64, 0_u64); docs];
        for (key, _, list) in lists {
            let own = (self.0.hash_one(key), self.1.hash_one(key));
            for (doc, &count) in list.docs().zip(list.counts) {
                let sum = &mut sums[doc as usize];
                sum.0 = sum.0.wrapping_add(mixed(own.0, count));
                sum.1 = sum.1.wrapping_add(mixed(own.1, count));
            }
        }
        sums
    }
}

/// One number of a key's hash, which nobody can know beforehand, and a count: other counts give wholly other numbers.
fn mixed(hash: u64, count: u16) -> u64 {
    let mut number = hash ^ u64::from(count).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// What is wrong with documents of a file; `None` if nothing is, or if a page fails its check: such a file is never used.
/// Records have the numbers in the file, or not; documents of records that changed behind `seq` are never looked at.
pub fn difference(
    sealed: &Sealed,
    state: &State,
    fields: &Fields,
    seq: u64,
    is_numbered: bool,
    threads: usize,
) -> Option<String> {
    if let Some(file) = &sealed.file
        && !file.container.check_all()
    {
        return None;
    }
    if has_wrong_bounds(sealed) || sealed.has_failed() {
        return Some("what it says of the list of a word is wrong".to_owned());
    }
    if has_wrong_scopes(sealed) {
        return Some("what it says of a scope is wrong".to_owned());
    }
    if !sealed
        .columns
        .context
        .has(&SealedLinks::of(&sealed.columns, &sealed.stems))
    {
        return Some("a link of it differs from the records".to_owned());
    }
    let docs = docs_of(sealed, state, is_numbered);
    let has_own_slot = |doc: u32| docs.get(sealed.columns.slots.get(doc as usize) as usize) == Some(&doc);
    if sealed.has_failed() || (is_numbered && !(0..sealed.len() as u32).all(has_own_slot)) {
        return Some("a document has the number of another record".to_owned());
    }
    let keys = Sums::default();
    let sums = keys.of(sealed.sorted(), sealed.len());
    let compare = |piece: u64, wrong: &mut Option<String>| {
        let first = piece as u32 * PIECE_ROWS as u32;
        let slots = first..(first + PIECE_ROWS as u32).min(docs.len() as u32);
        let (mut open, mut is_of_none) = (Open::default(), false);
        for slot in slots.filter(|&slot| is_numbered || docs[slot as usize] != NOWHERE) {
            match state.row(slot).filter(|row| is_searched(row.id())) {
                Some(row) if row.seq <= seq => _ = open.add(&row, fields),
                Some(_) => {}
                None => is_of_none |= docs[slot as usize] != NOWHERE,
            }
        }
        if is_of_none {
            *wrong = Some("a document has no record".to_owned());
            return Ok(());
        }
        let fresh = keys.of(open.sorted(), open.columns.len());
        *wrong = fresh.into_iter().enumerate().find_map(|(at, sum)| {
            let right = open.columns.entry(at);
            let doc = docs[right.slot as usize];
            let is_it = doc != NOWHERE
                && sums[doc as usize] == sum
                && is_same(&sealed.columns.entry(doc as usize), &right)
                && has_context_of(sealed, doc as usize, &open, at);
            (!is_it).then(|| "a document is not what its record says".to_owned())
        });
        Ok(())
    };
    let mut found = None;
    let pieces = docs.len().div_ceil(PIECE_ROWS) as u64;
    let outcome = in_order(pieces, threads, compare, |wrong: &mut Option<String>| {
        found = wrong.take();
        Ok::<_, io::Error>(found.is_none())
    });
    // INVARIANT: nothing here can fail.
    debug_assert!(outcome.is_ok());
    found
}

/// The document that a search would take for each slot: of several the last.
fn docs_of(sealed: &Sealed, state: &State, is_numbered: bool) -> Vec<u32> {
    if is_numbered {
        let doc_of = |slot: u32| sealed.doc_of(slot).unwrap_or(NOWHERE);
        return (0..state.slots.len() as u32).map(doc_of).collect();
    }
    let mut docs = vec![NOWHERE; state.slots.len()];
    let mut near = 0;
    for doc in 0..sealed.len() {
        if let Some(slot) = state.slots.of_spelled_near(sealed.columns.ids.get(doc), near) {
            docs[slot as usize] = doc as u32;
            near = slot + 1;
        }
    }
    docs
}

fn is_same(said: &DocumentEntry<'_>, right: &DocumentEntry<'_>) -> bool {
    said.id == right.id
        && said.class == right.class
        && said.confidence.to_bits() == right.confidence.to_bits()
        && said.length == right.length
        && said.owner == right.owner
}

fn has_context_of(sealed: &Sealed, doc: usize, open: &Open, at: usize) -> bool {
    let (said, right) = (&sealed.columns.context, &open.columns.context);
    let said_keys = said.keys_of(doc).iter().map(|&key| sealed.stems.get(key as usize));
    let right_keys = right.keys_of(at).iter().map(|&key| open.key(key));
    said.rows.get(doc).time() == right.rows.get(at).time() && said_keys.eq(right_keys)
}

/// Whether what is said of the scopes is not what their documents say.
fn has_wrong_scopes(sealed: &Sealed) -> bool {
    let right = ScopeRanges::of(&sealed.columns);
    let (said, right) = (&sealed.ranges, right);
    said.ends.all() != right.ends.all()
        || said.worded.all() != right.worded.all()
        || said.words.all() != right.words.all()
        || !sealed.columns.scopes.all().is_sorted()
}

/// Whether the bounds of a list are not those of its documents.
fn has_wrong_bounds(sealed: &Sealed) -> bool {
    let is_right = |list: &WordList<'_>| {
        list.runs.iter().enumerate().all(|(at, run)| {
            let (places, counts) = list.run(at);
            let lengths = places.iter().map(|&place| {
                sealed
                    .columns
                    .lengths
                    .get(run.span as usize * SPAN_DOCS + usize::from(place))
            });
            counts.iter().max().is_some_and(|&most| u32::from(most) == run.most) && lengths.min() == Some(run.shortest)
        })
    };
    let stems = &sealed.stems;
    (1..stems.len()).any(|at| stems.get(at - 1) >= stems.get(at))
        || sealed.sorted().iter().any(|(.., list)| !is_right(list))
}
