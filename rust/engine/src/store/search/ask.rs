//! Searches as of every write before.
//!
//! A search brings the index up to date, takes from the store what it needs and works without it; only for the records
//! it comes back for a moment. So a writer never waits for a search.

use std::sync::Arc;

use super::follow_text::catch_up;
use super::live_text::check_room;
use super::rank::{RankContext, RecordSearch, SearchHit, rank};
use super::select::{StateView, Verdicts, prepare};
use crate::store::View;
use crate::store::shared::Shared;
use crate::store::vectors::no_past;
use chronolog::error::{Error, Result};
use chronomemory_search::text::{CHOICE_ID, Fields, TextFilter, TextIndex};

/// A search whose records change while it runs begins anew so many times.
const MOST_TRIES: u32 = 8;

/// The best records for a search, as of every write before it.
///
/// # Errors
/// `Argument` if there is nothing to look for or the vector does not fit, `NoSpace`, `Io`, `Closed`.
pub fn search(shared: &Shared, search: &RecordSearch) -> Result<Vec<SearchHit>> {
    check(search)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let live = catch_up(shared)?;
        let (filter, state_id, seen, (nearby, coded), (prepared, hidden)) = shared.read(|store| {
            let filter = filter_of(search);
            let changes = store.state.changes();
            let nearby = match search.vector.as_deref() {
                Some(vector) => {
                    let nearby = store
                        .vectors
                        .start_nearby(store.live(), search.space.as_deref(), vector)?;
                    let recent = live.narrowed.recent(&nearby, &filter, changes);
                    Some((nearby, recent))
                }
                None => None,
            };
            let coded = match &search.tokens {
                Some(tokens) => {
                    let coded = store.vectors.start_nearby(store.live(), Some(tokens.space()), &[])?;
                    let recent = live.narrowed.recent(&coded, &filter, changes);
                    Some((coded, recent, tokens))
                }
                None => None,
            };
            let condition = search.condition.as_ref();
            let prepared = condition.map(|condition| prepare(&store.state, &store.views.field_indexes, condition));
            Ok((
                filter,
                changes.state_id().same(),
                changes.watermark(),
                (nearby, coded),
                (prepared.transpose()?, store.state.hidden_from(&search.viewer)),
            ))
        })?;
        let ask = |look: &mut dyn FnMut(StateView<'_>)| shared.look_at_state(&state_id, look);
        let verdicts = Verdicts::of(prepared, hidden, &ask);
        let allows = |slot: u32| verdicts.as_ref().is_none_or(|verdicts| verdicts.allow(slot));
        let only = verdicts.as_ref().map(|_| &allows as &dyn Fn(u32) -> bool);
        let near = nearby.map(|(nearby, recent)| {
            let narrowed = live.narrow(nearby, &recent, &filter, &state_id);
            narrowed
                .map(|nearby| nearby.only(only).run(search.pool(search.context)))
                .transpose()
        });
        let near = match near {
            Some(found) => match found? {
                Some(near) if shared.still_has(near.nearby())? => Some(near),
                _ => continue,
            },
            None => None,
        };
        let sayings = coded.map(|(coded, recent, tokens)| {
            let narrowed = live.narrow(coded, &recent, &filter, &state_id);
            narrowed.map(|coded| coded.only(only).ask_tokens(tokens)).transpose()
        });
        let sayings = match sayings {
            Some(found) => match found? {
                Some(sayings) if shared.still_has(sayings.nearby())? => Some(sayings),
                _ => continue,
            },
            None => None,
        };
        let kept = live.kept();
        let Some(kept) = kept.as_ref().filter(|kept| kept.mark.is_of(&state_id)) else {
            continue;
        };
        let asker = RankContext {
            ask: &ask,
            verdicts: verdicts.as_ref(),
            // Others may have brought the index further since the first record was judged.
            known: kept.mark.earlier(&seen).same(),
            begins_anew: tries < MOST_TRIES,
        };
        if let Some(hits) = rank(&kept.index, search, &filter, near.as_ref(), sayings.as_ref(), &asker) {
            if kept.index.has_failed() {
                continue;
            }
            if let Some(verdicts) = &verdicts {
                verdicts.check()?;
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

/// The filter of a search, and who asks.
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
            check_room(self.state.slot_count(), self.state.bytes())?;
        }
        let fields = || Fields::chosen(self.state.get(CHOICE_ID).as_deref());
        let index = self.text.get_or_init(|| TextIndex::of_state(fields(), &self.state));
        let filter = filter_of(search);
        let ask = |look: &mut dyn FnMut(StateView<'_>)| {
            look(self.scene());
            Some(())
        };
        let condition = search.condition.as_ref();
        let prepared = condition.map(|condition| prepare(&self.state, &self.field_indexes, condition));
        let verdicts = Verdicts::of(prepared.transpose()?, self.state.hidden_from(&search.viewer), &ask);
        let asker = RankContext {
            ask: &ask,
            verdicts: verdicts.as_ref(),
            known: self.state.changes().watermark(),
            begins_anew: false,
        };
        let hits = rank(index, search, &filter, None, None, &asker).unwrap_or_default();
        if let Some(verdicts) = &verdicts {
            verdicts.check()?;
        }
        Ok(hits)
    }
}
