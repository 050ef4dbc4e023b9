//! Keeps the rows that pass a filter, and asks only for changed records again.
//!
//! To ask every record again would cost more than the search.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use roaring::RoaringBitmap;

use crate::store::history::lines::LiveLog;
use crate::store::vectors::records::format;
use crate::store::vectors::records::index::RowIndex;
use chronolog::error::Result;
use chronolog::event::act::each_subject;
use chronolog::event::line::{Event, Trust};
use chronolog::scope::Viewer;
use chronomemory_search::vector::RowMasks;
use chronomemory_state::state::{Edition, Query, SlotSieve};

/// So many changes are followed; more are as much work as asking everyone.
const MOST_CHANGES: u64 = 2048;
/// How many questions are remembered.
const MOST_FILTERS: usize = 16;
/// How many of those who see little: theirs are short.
const MOST_FEW: usize = 256;

/// The rows of one question.
#[derive(Clone, Debug, Default)]
pub struct RowFilter {
    /// The rows.
    pub rows: RoaringBitmap,
    /// Whether these are all rows there are.
    pub is_all: bool,
    masks: OnceLock<RowMasks>,
    seq: u64,
    died: usize,
}

impl RowFilter {
    /// Some rows that are asked for once.
    pub fn of(rows: RoaringBitmap) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// The masks of so many groups; more may come later, those are made on the spot.
    pub fn masks(&self, groups: usize) -> &RowMasks {
        self.masks.get_or_init(|| RowMasks::of(&self.rows, groups))
    }
}

/// Whoever sees less than this share of the rows is asked by what is seen.
pub(in crate::store) const FEW_SEEN: usize = 16;

/// What was asked: who asks, the file of the rows, kind, status, confidence; and what had expired, which no event tells.
type FilterKey = (Arc<Viewer>, String, Option<Vec<String>>, Option<String>, u64, u64);

/// What the rows of one who sees little depend on: what is seen, and how many rows there are, died and are gone.
#[derive(PartialEq)]
struct FewSeen(Edition, u32, usize, u64);

/// Rows of earlier questions.
#[derive(Default)]
pub struct Filters {
    kept: HashMap<FilterKey, Arc<RowFilter>>,
    /// Those who see little are many, and each asks again while others write.
    few: HashMap<FilterKey, (FewSeen, Arc<RowFilter>)>,
}

impl Filters {
    /// The rows of a space whose records a query asks for.
    pub fn rows_for(&mut self, live: LiveLog<'_>, index: &RowIndex, query: &Query) -> Result<Arc<RowFilter>> {
        let key: FilterKey = (
            Arc::clone(&query.viewer),
            format::file_name(&index.bound),
            query.kinds.clone(),
            query.status.clone(),
            query.min_confidence.to_bits(),
            live.state.expiry_moves(),
        );
        if sees_few(live, index, query) {
            let edition = live.state.edition(&query.viewer);
            let seen = FewSeen(edition, index.rows, index.died.len(), index.gone.len());
            if let Some((_, filter)) = self.few.get(&key).filter(|(then, _)| *then == seen) {
                return Ok(Arc::clone(filter));
            }
            let filter = Arc::new(RowFilter::of(few_rows(live, index, query).unwrap_or_default()));
            if self.few.len() >= MOST_FEW {
                self.few.clear();
            }
            self.few.insert(key, (seen, Arc::clone(&filter)));
            return Ok(filter);
        }
        let seq = live.last_seq();
        let known = self.kept.get(&key);
        if let Some(filter) = known.filter(|filter| filter.seq == seq) {
            return Ok(Arc::clone(filter));
        }
        let sieve = live.state.sieve(query);
        let mut filter = match known {
            Some(filter) if filter.died <= index.died.len() => follow(live, index, &sieve, filter)?,
            _ => None,
        }
        .unwrap_or_else(|| RowFilter::of(all_rows(live, index, &sieve)));
        filter.seq = seq;
        filter.died = index.died.len();
        filter.is_all = filter.rows.len() == u64::from(index.rows);
        if self.kept.len() >= MOST_FILTERS {
            self.kept.clear();
        }
        let filter = Arc::new(filter);
        self.kept.insert(key, Arc::clone(&filter));
        Ok(filter)
    }
}

/// Whether somebody sees little.
fn sees_few(live: LiveLog<'_>, index: &RowIndex, query: &Query) -> bool {
    let scopes = live.state.scopes();
    let sight = live.state.sight(&query.viewer);
    let seen: Option<usize> = sight
        .scopes()
        .map(|seen| seen.map(|scope| scopes.slots(scope).len() as usize).sum());
    seen.is_some_and(|seen| seen < index.rows as usize / FEW_SEEN)
}

/// The rows of whoever sees little; `None` of one who sees all.
fn few_rows(live: LiveLog<'_>, index: &RowIndex, query: &Query) -> Option<RoaringBitmap> {
    let scopes = live.state.scopes();
    let sight = live.state.sight(&query.viewer);
    let sieve = live.state.sieve(query);
    let slots = sight.scopes()?.flat_map(|scope| scopes.slots(scope));
    let slots = slots.filter(|&slot| live.state.passes(&sieve, slot));
    let rows = slots.filter_map(|slot| index.row_of(slot).filter(|&row| index.is_living(row)));
    Some(rows.collect())
}

fn all_rows(live: LiveLog<'_>, index: &RowIndex, sieve: &SlotSieve) -> RoaringBitmap {
    let mut rows = RoaringBitmap::new();
    // Mostly all of them are wanted: runs are quicker to put in than rows.
    let mut run = 0..0;
    for (row, owner) in index.living_rows() {
        if !live.state.passes(sieve, owner) {
            continue;
        }
        if run.end != row {
            rows.insert_range(run);
            run = row..row;
        }
        run.end = row + 1;
    }
    rows.insert_range(run);
    rows
}

fn is_wanted(live: LiveLog<'_>, index: &RowIndex, sieve: &SlotSieve, row: u32) -> bool {
    let owner = index.owner_of(row).filter(|_| index.is_living(row));
    owner.is_some_and(|owner| live.state.passes(sieve, owner))
}

/// The rows of an earlier question, put right; `None` if too much happened, or it cannot be told what.
fn follow(live: LiveLog<'_>, index: &RowIndex, sieve: &SlotSieve, before: &RowFilter) -> Result<Option<RowFilter>> {
    let since = live.state.timeline().since(before.seq + 1);
    let events: u64 = since.iter().map(|range| range.len() as u64).sum();
    // A log that was compacted since does not tell all.
    if events > MOST_CHANGES || events != live.last_seq().saturating_sub(before.seq) {
        return Ok(None);
    }
    let mut rows = before.rows.clone();
    for row in &index.died[before.died..] {
        rows.remove(*row);
    }
    let mut touched = RoaringBitmap::new();
    for range in since {
        live.each_line(range, |line| {
            let Ok(event) = Event::read(line, Trust::Hashes) else {
                return;
            };
            each_subject(event.op, event.record_id(line), event.record(line), |id| {
                if let Some(slot) = live.state.slot_spelled(id) {
                    touched.extend(index.row_of(slot));
                    if format::group_space(id) == Some(&index.bound.name)
                        && let Some(first) = format::group_row(id)
                    {
                        let length = index.groups.get(&first).copied().unwrap_or(0);
                        touched.insert_range(first..first + length);
                    }
                }
            });
        })?;
    }
    for row in touched {
        if is_wanted(live, index, sieve, row) {
            rows.insert(row);
        } else {
            rows.remove(row);
        }
    }
    Ok(Some(RowFilter::of(rows)))
}
