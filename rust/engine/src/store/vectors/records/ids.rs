//! The ids of an attachment, end to end in one piece of memory.
//!
//! A million ids as strings of their own cost more than the log that names them, so they lie end to end, as they stand
//! between quotes in canonical JSON.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use chronolog::error::{Error, Result};
use chronolog::json;
use chronolog::ordered::in_order;
use chronolog::scope::Viewer;
use chronomemory_search::text::is_searched;
use chronomemory_state::state::{Query, State, unspelled};

/// So many ids are looked up at a time.
const PIECE_IDS: usize = 8 * 1024;

/// The ids of some records, in order.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    text: Vec<u8>,
    ends: Vec<usize>,
}

/// Embeddings of some records, all of one model.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// The space, or the one that is asked when none is named.
    pub space: Option<&'a str>,
    /// The model they come from; may be left out once the space is bound.
    pub model: Option<&'a str>,
    /// How many components each has.
    pub dim: usize,
    /// How many components the token vectors had whose codes they are; 0 if they are vectors.
    pub tokens: usize,
    /// The records.
    pub ids: &'a Ids,
    /// The vectors, end to end.
    pub rows: &'a [f32],
}

impl Ids {
    /// No ids yet, and room for so many.
    #[must_use]
    pub fn with_capacity(ids: usize) -> Self {
        Self {
            text: Vec::new(),
            ends: Vec::with_capacity(ids),
        }
    }

    /// Adds an id behind the others.
    pub fn push(&mut self, id: &str) {
        json::write_string(id, &mut self.text);
        self.ends.push(self.text.len());
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Some of them, as they stand between quotes.
    pub(in crate::store) fn spelled(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let mut start = range.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends[range].iter().map(move |end| {
            let id = &self.text[start + 1..end - 1];
            start = *end;
            id
        })
    }

    /// One of them as people write it.
    pub(in crate::store) fn shown(&self, number: usize) -> String {
        self.spelled(number..number + 1).map(unspelled).collect()
    }

    /// Whether all of them are records that may have an embedding, once the changes that come with it are made: `coming`
    /// knows whether there is a record of this id then, if they speak of it.
    ///
    /// # Errors
    /// `Invalid` names the first that is not.
    pub(in crate::store) fn check(
        &self,
        state: &State,
        coming: impl Fn(&[u8]) -> Option<bool> + Sync,
        threads: usize,
    ) -> Result<()> {
        let tombstones = state.sieve(&Query {
            status: Some("tombstone".to_owned()),
            faces: true,
            viewer: Arc::new(Viewer::Everyone),
            ..Query::default()
        });
        let refusal = |id: &[u8], slot: Option<u32>| {
            let shown = || unspelled(id);
            let coming = coming(id);
            if !is_searched(id) {
                Some(format!("{:?} keeps the books, and is found by no search", shown()))
            } else if coming == Some(true) {
                None
            } else if coming == Some(false) {
                Some(format!("the record {:?} is deleted by the same change", shown()))
            } else if slot.is_none() {
                Some(format!("there is no record {:?}", shown()))
            } else if slot.is_some_and(|slot| state.passes(&tombstones, slot)) {
                Some(format!("the record {:?} is deleted", shown()))
            } else {
                None
            }
        };
        let work = |piece: u64, refused: &mut Option<String>| {
            let start = piece as usize * PIECE_IDS;
            let mut next = 0;
            *refused = self.spelled(start..self.len().min(start + PIECE_IDS)).find_map(|id| {
                let slot = state.slot_spelled_near(id, next);
                next = slot.map_or(0, |slot| slot + 1);
                refusal(id, slot)
            });
            Ok(())
        };
        let mut refused = None;
        let looked = in_order(
            self.len().div_ceil(PIECE_IDS) as u64,
            threads,
            work,
            |found: &mut Option<String>| {
                refused = found.take();
                Ok::<_, io::Error>(refused.is_none())
            },
        );
        // INVARIANT: to look something up cannot fail.
        debug_assert!(looked.is_ok());
        refused.map_or(Ok(()), |reason| Err(Error::invalid("id", reason)))
    }
}

impl<S: AsRef<str>> FromIterator<S> for Ids {
    fn from_iter<I: IntoIterator<Item = S>>(ids: I) -> Self {
        let ids = ids.into_iter();
        let mut these = Self::with_capacity(ids.size_hint().0);
        ids.for_each(|id| these.push(id.as_ref()));
        these
    }
}
