//! Vector searches and embeddings of a store that threads share, as of every write before the question.

use super::select::{RecordFilter, StateView, prepare};
use crate::store::Shared;
use crate::store::vectors::{Neighbour, OpenSpace, VectorQuestion, VectorSearch};
use chronolog::error::{Error, Result};
use chronolog::scope::Viewer;

/// How often a search begins anew because the files were replaced under it.
const MOST_STARTS: usize = 4;

impl Shared {
    /// The records nearest to each of these vectors, which lie end to end: score descending, then row ascending. Nobody
    /// waits while the search runs.
    ///
    /// # Errors
    /// `NoSpace`, `Argument` for vectors of another dimension or that are not finite, `Io`, `Closed`.
    pub fn nearest(&self, question: &VectorQuestion<'_>, queries: &[f32], dim: usize) -> Result<Vec<Vec<Neighbour>>> {
        let mut search = self.start_search(question)?;
        for _ in 0..MOST_STARTS {
            let found = search.run(queries, dim)?;
            self.look_again_if_damaged(&search)?;
            let store = self.read_guard();
            if let Some(named) = store.vectors.end_search(&store.state, &search, &found) {
                return Ok(named);
            }
            drop(store);
            search = self.start_search(question)?;
        }
        Err(Error::busy("the rows keep being replaced by other writers"))
    }

    /// Takes along what a search needs: the rows of those records that it may find.
    fn start_search(&self, question: &VectorQuestion<'_>) -> Result<VectorSearch> {
        loop {
            let (mut search, state_id, prepared) = self.read(|store| {
                let search = store.vectors.start_search(&store.state, question)?;
                let prepared = question
                    .condition
                    .map(|condition| prepare(&store.state, &store.views.field_indexes, condition));
                Ok((search, store.state.changes().state_id().clone(), prepared.transpose()?))
            })?;
            let Some(condition) = prepared else {
                return Ok(search);
            };
            let ask = |look: &mut dyn FnMut(StateView<'_>)| self.look_at_state(&state_id, look);
            let record_filter = RecordFilter::new(Some(condition), None, &ask);
            search.keep(&|slot| record_filter.passes(slot));
            record_filter.check()?;
            // Of another state the slots would mean nothing.
            if ask(&mut |_| {}).is_some() {
                return Ok(search);
            }
        }
    }

    /// Rows that are not there, or not right, may have been moved since the log was read: then the log says so by now.
    pub(in crate::store) fn look_again_if_damaged(&self, search: &VectorSearch) -> Result<()> {
        if search.is_damaged() {
            return self.read(|_| Ok(()));
        }
        Ok(())
    }

    /// Whether the rows of these searches are still those of their spaces.
    pub(in crate::store) fn still_have(&self, spaces: [Option<&OpenSpace>; 2]) -> Result<bool> {
        for space in spaces.into_iter().flatten() {
            self.look_again_if_damaged(space.search())?;
            let store = self.read_guard();
            if !store.vectors.has_rows_of(&store.state, space.search()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As [`Store::embedding`]. A compaction may take the file away between the look at the log and the look at the row, so
    /// damage is told only if a second look, at the log as it is then, finds the same.
    pub fn embedding(&self, viewer: &Viewer, space: Option<&str>, id: &str) -> Result<Option<Vec<u8>>> {
        let mut seen = None;
        for _ in 0..MOST_STARTS {
            match self.read(|store| store.vectors.embedding(&store.state, viewer, space, id)) {
                Err(Error::Corrupted(damage)) if seen.as_ref() != Some(&damage) => seen = Some(damage),
                outcome => return outcome,
            }
        }
        Err(Error::busy("the rows keep being replaced by other writers"))
    }
}
