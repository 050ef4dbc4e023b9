//! Recalls blocks as of every write before the question.
//!
//! The columns of the blocks and the index of the text are brought up to date first and then read without the store, so
//! a recall keeps no writer waiting.

use std::sync::{Arc, PoisonError, RwLock};

use roaring::RoaringBitmap;

use super::follow_text::catch_up;
use super::select::{StateView, Verdicts, prepare};
use crate::store::Store;
use crate::store::shared::Shared;
use chronolog::error::Result;
use chronolog::memory::{self, gathered};
use chronolog::scope::Viewer;
use chronomemory_search::blocks::{Ask, BLOCK_KIND, BlockAnswer, BlockColumns, Outlook};
use chronomemory_search::text::{TextFilter, asked};
use chronomemory_state::condition::Condition;
use chronomemory_state::state::{Query, StateId};

/// What the columns take for a block while they are made, and more.
const BLOCK_BYTES: usize = 1024;

/// The status of what can be recalled.
const ACTIVE: &str = "active";

/// The columns of the blocks, brought to where the state is. Errors: `Io`, where rows cannot be read; `OutOfMemory`.
pub(in crate::store) fn columns_now(store: &Store) -> Result<Arc<RwLock<BlockColumns>>> {
    let (blocks, state, vectors) = (&store.views.blocks, &store.state, &store.vectors);
    let is_behind = |columns: &BlockColumns| columns.is_behind(state);
    if is_behind(&blocks.read().unwrap_or_else(PoisonError::into_inner)) {
        let mut columns = blocks.write().unwrap_or_else(PoisonError::into_inner);
        if is_behind(&columns) {
            memory::could_have(columns.lacks(state) * BLOCK_BYTES)?;
            columns.follow(state);
            vectors.feed(state, &mut columns)?;
        }
    }
    Ok(Arc::clone(blocks))
}

/// What recalls are made from, as of now. Rows that were not there may have been moved since the log was read: then the
/// log says so by now.
fn columns_of(shared: &Shared, viewer: &Viewer) -> Result<(Arc<RwLock<BlockColumns>>, Outlook)> {
    let look = |store: &Store| Ok((columns_now(store)?, Outlook::of(&store.state, viewer)));
    let (columns, outlook) = shared.read(look)?;
    let lacks = |columns: &RwLock<BlockColumns>| {
        let columns = columns.read().unwrap_or_else(PoisonError::into_inner);
        columns.lacks_embeddings().then(|| columns.embeddings_seen())
    };
    let mut seen = lacks(&columns);
    while seen.is_some() {
        let again = lacks(&*shared.read(columns_now)?);
        if again == seen {
            break;
        }
        seen = again;
    }
    Ok((columns, outlook))
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
            if shared.read_guard().state.changes().state_id().is(&state_id) {
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
        let (slots, state_id, (judge, among)) = shared.read(|store| {
            let active = Query {
                kinds: Some(vec![BLOCK_KIND.to_owned()]),
                status: Some(ACTIVE.to_owned()),
                viewer: Arc::clone(viewer),
                ..Query::default()
            };
            let slots = gathered(store.state.slots_of(&active, |_, _| true))?;
            let prepared = prepare(&store.state, &store.views.field_indexes, condition)?;
            Ok((slots, store.state.changes().state_id().same(), prepared))
        })?;
        let ask = |look: &mut dyn FnMut(StateView<'_>)| shared.look_at_state(&state_id, look);
        let verdicts = Verdicts::new(judge, among, &ask);
        let found = slots.into_iter().filter(|&slot| verdicts.allow(slot)).collect();
        verdicts.check()?;
        if ask(&mut |_| {}).is_some() {
            return Ok((found, state_id));
        }
    }
}

fn answer(shared: &Shared, ask: &Ask) -> Result<BlockAnswer> {
    let threads = shared.read_guard().options.threads;
    let text = ask.text.as_deref().filter(|_| ask.query.is_some());
    let stems = text.map(asked).unwrap_or_default();
    if stems.is_empty() {
        let (columns, outlook) = columns_of(shared, &ask.viewer)?;
        let columns = columns.read().unwrap_or_else(PoisonError::into_inner);
        return Ok(columns.recall(ask, &outlook, None, threads));
    }
    loop {
        let live = catch_up(shared)?;
        let (columns, outlook) = columns_of(shared, &ask.viewer)?;
        // The index before the columns: who waits for columns to be free may hold the store, and a search waits for the
        // store with the index in its hands.
        let kept = live.kept();
        let Some(kept) = kept.as_ref() else { continue };
        let columns = columns.read().unwrap_or_else(PoisonError::into_inner);
        if columns.is_of_same_state(&kept.mark) {
            let filter = TextFilter {
                viewer: Arc::clone(&ask.viewer),
                ..TextFilter::default()
            };
            let question = kept.index.question(&stems, &filter);
            let answer = columns.recall(ask, &outlook, Some(&question), threads);
            if !kept.index.has_failed() {
                return Ok(answer);
            }
        }
    }
}
