//! Keeps documents in sections by scope, and finds those that a viewer sees.
//!
//! A sealed part is in the order of its scopes, so a viewer sees a few sections of it, however large it is. An open part is in the
//! order of arrival.

use std::collections::BTreeMap;
use std::ops::Range;

use super::columns::{TextColumns, Usual};
use super::lists::{ListRun, OpenList, SPAN_DOCS, WordList};
use super::sealed::ScopeRanges;
use super::sweep::LOOKUP_STEPS;
use chronolog::scope::{Carried, Viewer};
use chronomemory_state::segment::Column;

/// Shorter sections are copied out of a list, which costs less than a sweep of each.
const LONG_SECTION_DOCS: usize = 2048;

/// The living documents of one scope.
#[derive(Clone, Debug, Default)]
struct ScopeSections {
    sections: Vec<Range<u32>>,
    usual: Usual,
}

/// The documents of each scope in a part.
#[derive(Debug, Default)]
pub struct Holdings {
    order: BTreeMap<Carried, u32>,
    each: Vec<ScopeSections>,
}

impl Holdings {
    /// The sections of a sealed part.
    pub fn of(owners: &[Carried], ranges: &ScopeRanges) -> Self {
        let mut start = 0;
        let scope = |(at, &end): (usize, &u32)| {
            let range = start..end;
            start = end;
            ScopeSections {
                sections: vec![range],
                usual: ranges.usual(at),
            }
        };
        Self {
            order: owners.iter().cloned().zip(0..).collect(),
            each: ranges.ends.all().iter().enumerate().map(scope).collect(),
        }
    }

    pub fn usual(&self) -> Usual {
        self.each
            .iter()
            .fold(Usual::default(), |sum, scope| sum.and(scope.usual))
    }

    /// Adds a document after all others.
    pub fn add(&mut self, columns: &TextColumns, doc: u32) {
        let scope = columns.scopes.get(doc as usize);
        while self.each.len() <= scope as usize {
            self.order
                .insert(columns.owners.values[self.each.len()].clone(), self.each.len() as u32);
            self.each.push(ScopeSections::default());
        }
        let holding = &mut self.each[scope as usize];
        match holding.sections.last_mut().filter(|last| last.end == doc) {
            Some(last) => last.end += 1,
            None => holding.sections.push(doc..doc + 1),
        }
        holding.usual = holding.usual.and(columns.usual_of(doc));
    }

    /// Removes a document from the statistics; it keeps its place.
    pub fn bury(&mut self, columns: &TextColumns, doc: u32) {
        if let Some(holding) = self.each.get_mut(columns.scopes.get(doc as usize) as usize) {
            holding.usual = holding.usual.without(columns.usual_of(doc));
        }
    }

    /// The numbers of the scopes that a viewer sees; `None` for all.
    fn seen_by(&self, viewer: &Viewer) -> Option<Vec<u32>> {
        viewer.choose(&self.order)
    }
}

/// The documents of a part that a viewer sees, removed ones included.
#[derive(Debug)]
pub struct Sections {
    /// Ascending, none touches the next; `None` for all.
    some: Option<Vec<Range<u32>>>,
    pub usual: Usual,
}

impl Sections {
    /// The documents that a viewer sees; `all` are the statistics of the whole part.
    pub fn seen(holdings: &Holdings, viewer: &Viewer, all: Usual) -> Self {
        let Some(scopes) = holdings.seen_by(viewer) else {
            return Self { some: None, usual: all };
        };
        let seen = || scopes.iter().filter_map(|&scope| holdings.each.get(scope as usize));
        let mut sections: Vec<Range<u32>> = seen().flat_map(|scope| &scope.sections).cloned().collect();
        sections.sort_by_key(|section| section.start);
        let mut some: Vec<Range<u32>> = Vec::new();
        for section in sections {
            match some.last_mut().filter(|last| last.end == section.start) {
                Some(last) => last.end = section.end,
                None => some.push(section),
            }
        }
        Self {
            some: Some(some),
            usual: seen().fold(Usual::default(), |sum, scope| sum.and(scope.usual)),
        }
    }

    #[inline]
    pub fn contains(&self, doc: u32) -> bool {
        self.some.as_ref().is_none_or(|some| {
            let behind = some.partition_point(|section| section.end <= doc);
            some.get(behind).is_some_and(|section| section.start <= doc)
        })
    }

    /// The entries of a list for these documents, in pieces to sweep in turn: those of all short sections, then each long section.
    pub fn pieces<'a>(&self, list: WordList<'a>, lengths: &Column<u32>) -> Vec<ListPiece<'a>> {
        let Some(some) = &self.some else {
            return vec![ListPiece::Whole(list)];
        };
        let is_long = |section: &&Range<u32>| section.len() >= LONG_SECTION_DOCS;
        let short: Vec<&Range<u32>> = some.iter().filter(|section| !is_long(section)).collect();
        let mut pieces = vec![ListPiece::Copied(copied(list, &short, lengths))];
        pieces.extend(some.iter().filter(is_long).map(|section| cut(list, section)));
        pieces
    }

    /// How many pieces every list has.
    pub fn piece_count(&self) -> usize {
        self.some.as_ref().map_or(1, |some| {
            1 + some.iter().filter(|section| section.len() >= LONG_SECTION_DOCS).count()
        })
    }
}

/// The entries of a list for some documents.
#[derive(Debug)]
pub enum ListPiece<'a> {
    Whole(WordList<'a>),
    /// Those of one section.
    Cut {
        runs: Vec<ListRun>,
        places: &'a [u16],
        counts: &'a [u16],
    },
    /// Those of many.
    Copied(OpenList),
}

impl ListPiece<'_> {
    pub fn list(&self) -> WordList<'_> {
        match self {
            Self::Whole(list) => *list,
            Self::Cut { runs, places, counts } => WordList { runs, places, counts },
            Self::Copied(list) => list.list(),
        }
    }
}

/// The places of a list that lie in a section.
fn cut<'a>(list: WordList<'a>, section: &Range<u32>) -> ListPiece<'a> {
    let (from, until) = (list.before(section.start), list.before(section.end));
    let span = |doc: u32| doc / SPAN_DOCS as u32;
    let first = list.runs.partition_point(|run| run.span < span(section.start));
    let runs = list.runs[first..].iter();
    let runs = runs.take_while(|run| (run.start as usize) < until && from < until);
    let runs = runs.map(|run| ListRun {
        start: run.start.saturating_sub(from as u32),
        ..*run
    });
    let mut runs: Vec<ListRun> = runs.collect();
    // The first of them may have all its places before the section.
    let empty = runs.windows(2).take_while(|pair| pair[1].start == 0).count();
    runs.drain(..empty);
    ListPiece::Cut {
        runs,
        places: list.places.get(from..until).unwrap_or_default(),
        counts: list.counts.get(from..until).unwrap_or_default(),
    }
}

/// The entries of a list for the documents of many short sections.
fn copied(list: WordList<'_>, sections: &[&Range<u32>], lengths: &Column<u32>) -> OpenList {
    let mut own = OpenList::default();
    let mut take = |doc: u32, count: u16| own.push(doc, count, lengths.get(doc as usize));
    if sections.len() * LOOKUP_STEPS < list.len() {
        for section in sections {
            let places = list.before(section.start)..list.before(section.end);
            let counts = &list.counts[places.clone()];
            list.docs_at(places)
                .zip(counts)
                .for_each(|(doc, &count)| take(doc, count));
        }
    } else {
        let mut rest = sections.iter().peekable();
        for (doc, &count) in list.docs().zip(list.counts) {
            while rest.next_if(|section| section.end <= doc).is_some() {}
            match rest.peek() {
                Some(section) if section.start <= doc => take(doc, count),
                Some(_) => {}
                None => break,
            }
        }
    }
    own
}
