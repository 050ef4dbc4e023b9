//! Sorts many records page by page, on a thread that works ahead of the reader.

use std::borrow::Cow;
use std::hint::black_box;
use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

use super::sorter::{Delta, DeltaSorter};
use chronolog::error::{Error, Result};
use chronolog::event::faces::{Sorting, sorting_of};
use chronomemory_state::snapshot::Moments;
use chronomemory_state::state::Frozen;

/// So many records are sorted at a time.
const PAGE_ROWS: usize = 1_000;
/// So many pages are handed out in one go: more than one are worth a thread.
const MOST_PAGES: usize = 32;
/// So many pages it may be ahead.
const PAGES_AHEAD: usize = 2;
/// Memory comes in lines of so many bytes.
const LINE_BYTES: usize = 64;

/// What was made of some records that follow each other.
pub struct SortedPage<'a> {
    /// How many bytes they have.
    pub bytes: usize,
    /// The names of owners that came up for the first time, in the order of their numbers.
    pub owners: Vec<[String; 2]>,
    /// One for each record.
    pub deltas: Vec<Delta<'a>>,
}

/// A pass over records as they were when it began.
pub struct DeltaPass {
    source: DeltaSource,
    sorter: DeltaSorter,
    at: usize,
}

struct DeltaSource {
    frozen: Frozen,
    after: i64,
    until: i64,
}

/// Pages, one behind the other.
pub struct NextPages<'a>(Coming<'a>);

enum Coming<'a> {
    Here(std::vec::IntoIter<SortedPage<'a>>),
    /// Another thread makes them.
    Made(Receiver<SortedPage<'a>>),
}

impl<'a> NextPages<'a> {
    /// The next page, waited for if need be; `None` behind the last.
    pub fn next_page(&mut self) -> Option<SortedPage<'a>> {
        match &mut self.0 {
            Coming::Here(pages) => pages.next(),
            Coming::Made(pages) => pages.recv().ok(),
        }
    }
}

impl DeltaPass {
    /// A pass over records of a face: over what was written after an event and up to another one.
    ///
    /// # Errors
    /// `Argument` if the face does not declare where its records say what they mean.
    pub fn new(face: &str, frozen: Frozen, after: i64, until: i64) -> Result<Self> {
        let sorting = sorting_of(face)
            .ok_or_else(|| Error::must("face", "be one that declares a sorting", format!("{face:?}")))?;
        Ok(Self {
            source: DeltaSource { frozen, after, until },
            sorter: DeltaSorter::new(sorting),
            at: 0,
        })
    }

    /// What the face declares of the records.
    pub fn sorting(&self) -> &'static Sorting {
        self.sorter.sorting()
    }

    /// As [`Frozen::check`], after some pages.
    ///
    /// # Errors
    /// `Io` if a check failed: what was made of the pages is not to be used.
    pub fn check(&self) -> Result<()> {
        self.source.frozen.check()
    }

    /// Lets somebody work on the next pages; `None` at the end. The next one is sorted meanwhile.
    pub fn next_pages<T>(&mut self, work: impl FnOnce(NextPages<'_>) -> T) -> Option<T> {
        let start = self.at;
        let end = self.source.frozen.len().min(start + MOST_PAGES * PAGE_ROWS);
        if start == end {
            return None;
        }
        self.at = end;
        let Self { source, sorter, .. } = self;
        let records = source.records(start..end);
        if end - start <= PAGE_ROWS {
            let only = vec![sorted(&records, sorter)];
            return Some(work(NextPages(Coming::Here(only.into_iter()))));
        }
        let (records, sorter) = (&records, Mutex::new(sorter));
        let pages = || {
            let mut sorter = sorter.lock().unwrap_or_else(PoisonError::into_inner);
            records.chunks(PAGE_ROWS).map(move |page| sorted(page, &mut sorter))
        };
        let pages = &pages;
        Some(thread::scope(|scope| {
            let (send, receive) = sync_channel(PAGES_AHEAD);
            // Nobody takes a page any more if the work has ended before.
            let sort = move || {
                let _ = pages().try_for_each(|page| send.send(page));
            };
            let coming = match Builder::new().spawn_scoped(scope, sort) {
                Ok(_) => Coming::Made(receive),
                // Where no thread can be had, it takes longer.
                Err(_) => Coming::Here(pages().collect::<Vec<_>>().into_iter()),
            };
            work(NextPages(coming))
        }))
    }
}

impl DeltaSource {
    /// Whether one of the events that are asked for wrote a record. What no event is known for was there before all that are.
    fn wants(&self, moments: Moments) -> bool {
        let seq = moments.updated.seq().map_or(0, |seq| seq as i64);
        seq > self.after && seq <= self.until
    }

    fn records(&self, rows: Range<usize>) -> Vec<Cow<'_, [u8]>> {
        let wants_all = self.after < 0 && self.until == i64::MAX;
        let is_wanted = |place: &usize| {
            let dated = || self.frozen.dated(*place);
            wants_all || dated().is_some_and(|one| self.wants(one.moments))
        };
        let wanted = rows.filter(is_wanted);
        wanted
            .filter_map(|place| Some(self.frozen.dated(place)?.record))
            .collect()
    }
}

fn sorted<'a>(records: &'a [Cow<'_, [u8]>], sorter: &mut DeltaSorter) -> SortedPage<'a> {
    fetch(records);
    let known = sorter.owners().len();
    let deltas = records.iter().filter_map(|record| sorter.sort(record)).collect();
    SortedPage {
        bytes: records.iter().map(|record| record.len()).sum(),
        owners: sorter.owners()[known..].to_vec(),
        deltas,
    }
}

/// Asks memory for all of some records at once. Those of one moment lie far apart, and one at a time each would be waited for.
fn fetch(records: &[Cow<'_, [u8]>]) {
    let lines = records.iter().flat_map(|record| record.iter().step_by(LINE_BYTES));
    black_box(lines.fold(0, |sum, byte| sum ^ byte));
}
