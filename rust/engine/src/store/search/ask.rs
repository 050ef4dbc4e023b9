//! Searches that include every earlier write.
//!
//! A search brings the index up to date, copies what it needs from the store and releases it; it holds the store again only to
//! read single records. A writer never waits for a search.

use std::sync::Arc;

use super::follow_text::catch_up;
use super::live_text::check_room;
use super::rank::{RankContext, RecordSearch, SearchHit, rank};
use super::select::{RecordFilter, StateView, prepare};
use crate::store::View;
use crate::store::shared::Shared;
use crate::store::vectors::{VectorQuestion, VectorSearch, no_past};
use chronolog::error::{Error, Result};
use chronomemory_search::text::{CHOICE_ID, Fields, TextFilter, TextIndex};
use chronomemory_state::state::Query;

/// How often a search begins anew because its records change while it runs.
const MOST_TRIES: u32 = 8;

/// The best records for a search, as of every write before it.
///
/// # Errors
/// `Argument` if there is nothing to look for or the vector does not fit, `NoSpace`, `Io`, `Closed`.
pub fn search(shared: &Shared, search: &RecordSearch) -> Result<Vec<SearchHit>> {
    check(search)?;
    let filter = filter_of(search);
    let mut tries = 0;
    loop {
        tries += 1;
        let live = catch_up(shared)?;
        let (state_id, seen, vectors, tokens, (prepared, hidden)) = shared.read(|store| {
            let changes = store.state.changes();
            let start = |space: Option<&str>| {
                let query = query_of(&filter);
                let question = VectorQuestion {
                    space,
                    query,
                    ..VectorQuestion::default()
                };
                store.vectors.start_search(&store.state, &question)
            };
            let vectors = search.vector.as_ref().map(|_| start(search.space.as_deref()));
            let tokens = search.tokens.as_ref().map(|tokens| start(Some(tokens.space())));
            let condition = search.condition.as_ref();
            let prepared = condition.map(|condition| prepare(&store.state, &store.views.field_indexes, condition));
            Ok((
                changes.state_id().clone(),
                changes.watermark(),
                vectors.transpose()?,
                tokens.transpose()?,
                (prepared.transpose()?, store.state.scopes().hidden_from(&search.viewer)),
            ))
        })?;
        let ask = |look: &mut dyn FnMut(StateView<'_>)| shared.look_at_state(&state_id, look);
        let record_filter = RecordFilter::of(prepared, hidden, &ask);
        let select = |mut rows: VectorSearch| {
            if let Some(record_filter) = &record_filter {
                rows.keep(&|slot| record_filter.passes(slot));
            }
            live.keep_tagged(&mut rows, &filter, &state_id).then_some(rows)
        };
        let near = match search.vector.as_deref().zip(vectors) {
            Some((vector, rows)) => match select(rows) {
                Some(rows) => Some(rows.near(vector, search.pool(search.context))?),
                None => continue,
            },
            None => None,
        };
        let coded = match search.tokens.as_ref().zip(tokens) {
            Some((tokens, rows)) => match select(rows) {
                Some(rows) => Some(rows.ask_tokens(tokens)?),
                None => continue,
            },
            None => None,
        };
        let spaces = [
            near.as_ref().map(|near| &near.space),
            coded.as_ref().map(|coded| &coded.space),
        ];
        if !shared.still_have(spaces)? {
            continue;
        }
        let kept = live.kept();
        let Some(kept) = kept.as_ref().filter(|kept| kept.mark.is_of(&state_id)) else {
            continue;
        };
        let asker = RankContext {
            ask: &ask,
            record_filter: record_filter.as_ref(),
            // Another thread may have updated the index since the first record was filtered.
            known: kept.mark.earlier(&seen).clone(),
            begins_anew: tries < MOST_TRIES,
        };
        if let Some(hits) = rank(&kept.index, search, &filter, near.as_ref(), coded.as_ref(), &asker) {
            if kept.index.has_failed() {
                continue;
            }
            if let Some(record_filter) = &record_filter {
                record_filter.check()?;
            }
            return Ok(hits);
        }
    }
}

fn check(search: &RecordSearch) -> Result<()> {
    if search.asked() == 0 {
        return Err(Error::argument("text", "a search needs a text or a vector, or tokens"));
    }
    Ok(())
}

/// The query of a filter, its tags aside.
fn query_of(filter: &TextFilter) -> Query {
    let some = |kinds: &[String]| (!kinds.is_empty()).then(|| kinds.to_vec());
    Query {
        viewer: Arc::clone(&filter.viewer),
        kinds: some(&filter.kinds),
        without_kinds: some(&filter.without_kinds),
        status: filter.status.clone(),
        min_confidence: filter.min_confidence,
        faces: true,
        limit: None,
    }
}

/// The filter of a search, with its viewer.
fn filter_of(search: &RecordSearch) -> TextFilter {
    TextFilter {
        viewer: Arc::clone(&search.viewer),
        ..search.filter.clone()
    }
}

impl View {
    /// The best records for a search, as they were.
    ///
    /// # Errors
    /// `Argument` if there is nothing to look for or a vector is, `Io`.
    pub fn search(&self, search: &RecordSearch) -> Result<Vec<SearchHit>> {
        check(search)?;
        if search.vector.is_some() || search.tokens.is_some() {
            return Err(no_past());
        }
        if self.text.get().is_none() {
            check_room(self.state.slots.len(), self.state.slots.bytes())?;
        }
        let fields = || Fields::chosen(self.state.get(CHOICE_ID).as_deref());
        let index = self.text.get_or_init(|| TextIndex::of_state(fields(), &self.state));
        let filter = filter_of(search);
        let ask = |look: &mut dyn FnMut(StateView<'_>)| {
            look(self.state_view());
            Some(())
        };
        let condition = search.condition.as_ref();
        let prepared = condition.map(|condition| prepare(&self.state, &self.field_indexes, condition));
        let record_filter = RecordFilter::of(
            prepared.transpose()?,
            self.state.scopes().hidden_from(&search.viewer),
            &ask,
        );
        let asker = RankContext {
            ask: &ask,
            record_filter: record_filter.as_ref(),
            known: self.state.changes().watermark(),
            begins_anew: false,
        };
        let hits = rank(index, search, &filter, None, None, &asker).unwrap_or_default();
        if let Some(record_filter) = &record_filter {
            record_filter.check()?;
        }
        Ok(hits)
    }
}
