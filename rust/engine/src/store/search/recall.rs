//! Recalls blocks as of every write before the question.
//!
//! The columns of the blocks and the index of the text are brought up to date first and then read without the store, so
//! a recall keeps no writer waiting.

use std::sync::{Arc, PoisonError, RwLock};

use roaring::RoaringBitmap;

use super::follow_text::catch_up;
use super::select::{RecordFilter, StateView, prepare};
use crate::store::Store;
use crate::store::shared::Shared;
use crate::store::vectors::{VectorQuestion, VectorSearch};
use chronolog::error::{Error, Result};
use chronolog::memory::{self, gathered};
use chronolog::scope::Viewer;
use chronomemory_search::blocks::{
    Ask, BLOCK_KIND, BlockAnswer, BlockColumns, BlockReach, BlockVectors, BlockView, Evidence,
};
use chronomemory_search::score::Coded;
use chronomemory_search::text::{TextFilter, asked};
use chronomemory_state::condition::Condition;
use chronomemory_state::state::{Query, StateId};

/// What the columns take for a block while they are made, and more.
const BLOCK_BYTES: usize = 1024;

/// The status of what can be recalled.
const ACTIVE: &str = "active";

/// The columns of the blocks, brought to where the state is. Errors: `OutOfMemory`.
pub(in crate::store) fn columns_now(store: &Store) -> Result<Arc<RwLock<BlockColumns>>> {
    let (blocks, state) = (&store.views.blocks, &store.state);
    let is_behind = |columns: &BlockColumns| columns.is_behind(state);
    if is_behind(&blocks.read().unwrap_or_else(PoisonError::into_inner)) {
        let mut columns = blocks.write().unwrap_or_else(PoisonError::into_inner);
        if is_behind(&columns) {
            memory::could_have(columns.lacks(state) * BLOCK_BYTES)?;
            columns.follow(state);
        }
    }
    Ok(Arc::clone(blocks))
}

/// Answers a question about blocks, by meaning and by words, and hands out the records of those that it found.
///
/// # Errors
/// `Argument` for a question that does not fit the embeddings, `Io`, `Closed`.
pub fn recall(shared: &Shared, ask: &Ask) -> Result<BlockAnswer> {
    if let Some(query) = &ask.query {
        shared.read(|store| store.vectors.check_fits(&store.state, &ask.space, query.len()))?;
    }
    if let Some(tokens) = &ask.tokens {
        shared.read(|store| store.vectors.check_tokens(&store.state, tokens))?;
    }
    let mut answer = match &ask.condition {
        None => answer(shared, ask)?,
        Some(condition) => loop {
            let (slots, state_id) = allowed(shared, &ask.viewer, condition)?;
            let narrowed = Ask {
                slots: Some(slots),
                ..ask.clone()
            };
            let answer = answer(shared, &narrowed)?;
            // Of another state the slots would mean nothing.
            if shared.read_guard().state.changes().state_id() == &state_id {
                break answer;
            }
        },
    };
    answer.look_up(&shared.read_guard().state, ask);
    Ok(answer)
}

/// The slots of the blocks for which a condition holds, and the id of the state that they are of. This is asked before the
/// columns are held: who waits for columns may hold the store.
fn allowed(shared: &Shared, viewer: &Arc<Viewer>, condition: &Condition) -> Result<(RoaringBitmap, StateId)> {
    loop {
        let (slots, state_id, condition) = shared.read(|store| {
            let active = Query {
                kinds: Some(vec![BLOCK_KIND.to_owned()]),
                status: Some(ACTIVE.to_owned()),
                viewer: Arc::clone(viewer),
                ..Query::default()
            };
            let slots = gathered(active.slots_of(&store.state, |_| true))?;
            let prepared = prepare(&store.state, &store.views.field_indexes, condition)?;
            Ok((slots, store.state.changes().state_id().clone(), prepared))
        })?;
        let ask = |look: &mut dyn FnMut(StateView<'_>)| shared.look_at_state(&state_id, look);
        let record_filter = RecordFilter::new(Some(condition), None, &ask);
        let found = slots.into_iter().filter(|&slot| record_filter.passes(slot)).collect();
        record_filter.check()?;
        if ask(&mut |_| {}).is_some() {
            return Ok((found, state_id));
        }
    }
}

/// The spaces that a question is about; `None` for one that the store does not have.
fn spaces_of(store: &Store, ask: &Ask) -> Result<[Option<VectorSearch>; 2]> {
    let start = |space: &str| match store
        .vectors
        .start_search(&store.state, &VectorQuestion::of_space(Some(space)))
    {
        Err(Error::NoSpace { .. }) => Ok(None),
        outcome => outcome.map(Some),
    };
    let vectors = start(&ask.space)?;
    let tokens = ask.tokens.as_ref().map(|tokens| start(tokens.space()));
    Ok([vectors, tokens.transpose()?.flatten()])
}

fn answer(shared: &Shared, ask: &Ask) -> Result<BlockAnswer> {
    let text = ask.text.as_deref().filter(|_| ask.query.is_some());
    let stems = text.map(asked).unwrap_or_default();
    let filter = TextFilter {
        viewer: Arc::clone(&ask.viewer),
        ..TextFilter::default()
    };
    loop {
        let live = (!stems.is_empty()).then(|| catch_up(shared)).transpose()?;
        let (columns, view, state_id, threads, [vectors, tokens]) = shared.read(|store| {
            let view = BlockView::of(&store.state, &ask.viewer);
            let state_id = store.state.changes().state_id().clone();
            let spaces = spaces_of(store, ask)?;
            Ok((columns_now(store)?, view, state_id, store.options.threads, spaces))
        })?;
        let vectors = vectors.map(VectorSearch::open).transpose()?;
        let tokens = ask.tokens.as_ref().zip(tokens);
        let tokens = tokens.map(|(tokens, space)| space.ask_tokens(tokens)).transpose()?;
        // The index before the columns: a thread that waits for the columns may hold the store, and a search waits for the
        // store while it holds the index.
        let kept = live.as_ref().map(|live| live.kept());
        let kept = kept.as_deref().and_then(Option::as_ref);
        let columns = columns.read().unwrap_or_else(PoisonError::into_inner);
        let is_current = kept.is_none_or(|kept| kept.mark.is_of(&state_id)) && columns.is_of(&state_id);
        if !is_current || (live.is_some() && kept.is_none()) {
            continue;
        }
        let words = kept.map(|kept| kept.index.question(&stems, &filter));
        let evidence = Evidence {
            words: words.as_ref(),
            vectors: vectors.as_ref().map(|vectors| vectors as &dyn BlockVectors),
            tokens: tokens.as_ref().map(|tokens| tokens as &dyn Coded),
        };
        let answer = columns.recall(ask, &view, evidence, threads)?;
        drop(columns);
        if kept.is_some_and(|kept| kept.index.has_failed()) {
            continue;
        }
        let spaces = [vectors.as_ref(), tokens.as_ref().map(|tokens| &tokens.space)];
        if shared.still_have(spaces)? {
            return Ok(answer);
        }
    }
}

/// For each of several vectors, end to end, the active blocks within reach that a viewer sees, the nearest first.
///
/// # Errors
/// `Argument` for vectors of another dimension or that are not finite, `Io`, `Closed`.
pub fn nearest_blocks(
    shared: &Shared,
    viewer: &Viewer,
    space: &str,
    vectors: &[f32],
    dim: usize,
    reach: BlockReach,
) -> Result<Vec<Vec<(String, f32)>>> {
    loop {
        let (columns, view, state_id, rows) = shared.read(|store| {
            let rows = store
                .vectors
                .start_search(&store.state, &VectorQuestion::of_space(Some(space)));
            let state_id = store.state.changes().state_id().clone();
            Ok((columns_now(store)?, BlockView::of(&store.state, viewer), state_id, rows))
        })?;
        let blocks = match rows {
            Err(Error::NoSpace { .. }) => return Ok(vec![Vec::new(); vectors.len() / dim.max(1)]),
            rows => rows?.open()?,
        };
        let columns_of = || columns.read().unwrap_or_else(PoisonError::into_inner);
        let slots = columns_of().active_slots(&view.sight);
        let found = blocks.near_each(vectors, dim, reach.number, Some(reach.least), &slots)?;
        let columns = columns_of();
        let is_current = columns.is_of(&state_id);
        let name = |&(slot, cosine): &(u32, f32)| Some((columns.id_in(slot)?.to_owned(), cosine));
        let named = found
            .iter()
            .map(|hits| hits.iter().filter_map(name).collect())
            .collect();
        drop(columns);
        if is_current && shared.still_have([Some(&blocks), None])? {
            return Ok(named);
        }
    }
}
