//! The lists of documents in which a word stands, with how often it does.
//!
//! Documents are numbered and cut into spans of [`SPAN_DOCS`]. A word's list has a [`ListRun`] for each span it occurs in:
//! the places within the span, the counts, and two numbers that bound what any of them can score.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

/// How many documents a span has: their scores fit into the nearest cache.
pub const SPAN_DOCS: usize = 1 << 14;

/// The part of a list that lies in one span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ListRun {
    pub span: u32,
    /// Where its places begin in the list.
    pub start: u32,
    /// The highest count in it.
    pub most: u32,
    /// The shortest document in it.
    pub shortest: u32,
}

/// Where a word stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct WordList<'a> {
    /// By span, ascending.
    pub runs: &'a [ListRun],
    /// The documents, counted from the start of their span.
    pub places: &'a [u16],
    /// How often the word stands there, weighted by field.
    pub counts: &'a [u16],
}

impl<'a> WordList<'a> {
    pub fn bytes(&self) -> usize {
        size_of_val(self.runs) + size_of_val(self.places) + size_of_val(self.counts)
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub fn run(&self, at: usize) -> (&'a [u16], &'a [u16]) {
        let start = self.runs[at].start as usize;
        let end = self
            .runs
            .get(at + 1)
            .map_or(self.places.len(), |next| next.start as usize);
        let some = |all: &'a [u16]| all.get(start..end).unwrap_or_default();
        (some(self.places), some(self.counts))
    }

    /// Whether it is a list of documents below a number: ascending, in runs that lead to all of its places.
    pub fn is_whole(&self, docs: usize) -> bool {
        let starts = self.runs.iter().map(|run| run.start as usize);
        let ends = starts.clone().skip(1).chain([self.places.len()]);
        let is_run = |run: &ListRun, start: usize, end: usize| {
            let places = self.places.get(start..end).unwrap_or_default();
            places.last().is_some_and(|&last| {
                let first = run.span as usize * SPAN_DOCS;
                usize::from(last) < SPAN_DOCS && first + usize::from(last) < docs
            }) && places.is_sorted_by(|one, other| one < other)
        };
        self.counts.len() == self.places.len()
            && self.runs.first().map_or(self.places.is_empty(), |run| run.start == 0)
            && self.runs.is_sorted_by(|one, other| one.span < other.span)
            && self
                .runs
                .iter()
                .zip(starts.zip(ends))
                .all(|(run, (start, end))| is_run(run, start, end))
    }

    /// How often the word stands in a document; 0 if it does not.
    pub fn count_in(&self, doc: u32) -> u16 {
        let span = doc / SPAN_DOCS as u32;
        let Ok(at) = self.runs.binary_search_by_key(&span, |run| run.span) else {
            return 0;
        };
        let (places, counts) = self.run(at);
        let place = (doc as usize % SPAN_DOCS) as u16;
        places.binary_search(&place).map_or(0, |found| counts[found])
    }

    /// How many of its documents come before this one.
    pub fn before(&self, doc: u32) -> usize {
        let span = doc / SPAN_DOCS as u32;
        let at = self.runs.partition_point(|run| run.span < span);
        match self.runs.get(at) {
            Some(run) if run.span == span => {
                let place = (doc as usize % SPAN_DOCS) as u16;
                run.start as usize + self.run(at).0.partition_point(|&other| other < place)
            }
            Some(run) => run.start as usize,
            None => self.places.len(),
        }
    }

    /// The documents at these places of the list, ascending.
    pub fn docs_at(self, places: Range<usize>) -> impl Iterator<Item = u32> + 'a {
        let behind = self.runs.partition_point(|run| run.start as usize <= places.start);
        let mut run = behind.saturating_sub(1);
        places.map(move |at| {
            while self.runs.get(run + 1).is_some_and(|next| next.start as usize <= at) {
                run += 1;
            }
            self.runs[run].span * SPAN_DOCS as u32 + u32::from(self.places[at])
        })
    }

    pub fn docs(self) -> impl Iterator<Item = u32> + 'a {
        (0..self.runs.len()).flat_map(move |at| {
            let base = self.runs[at].span * SPAN_DOCS as u32;
            self.run(at).0.iter().map(move |&place| base + u32::from(place))
        })
    }
}

/// A stem or key, the number of its list in its part, and the list.
pub type NumberedList<'a> = (&'a [u8], u32, WordList<'a>);

/// A list that still grows.
#[derive(Clone, Debug, Default)]
pub struct OpenList {
    runs: Vec<ListRun>,
    places: Vec<u16>,
    counts: Vec<u16>,
}

impl OpenList {
    pub fn clear(&mut self) {
        self.runs.clear();
        self.places.clear();
        self.counts.clear();
    }

    /// Adds a document behind all others.
    pub fn push(&mut self, doc: u32, count: u16, length: u32) {
        let span = doc / SPAN_DOCS as u32;
        match self.runs.last_mut().filter(|run| run.span == span) {
            Some(run) => {
                run.most = run.most.max(u32::from(count));
                run.shortest = run.shortest.min(length);
            }
            None => self.runs.push(ListRun {
                span,
                start: self.places.len() as u32,
                most: u32::from(count),
                shortest: length,
            }),
        }
        self.places.push((doc as usize % SPAN_DOCS) as u16);
        self.counts.push(count);
    }

    pub fn list(&self) -> WordList<'_> {
        WordList {
            runs: &self.runs,
            places: &self.places,
            counts: &self.counts,
        }
    }
}
