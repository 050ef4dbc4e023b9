//! Keeps the rows that pass a filter, and asks only for changed records again.
//!
//! To ask every record again would cost more than the search.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use roaring::RoaringBitmap;

use crate::store::vectors::records::format;
use crate::store::vectors::records::index::RowIndex;
use chronolog::scope::Viewer;
use chronomemory_search::vector::RowMasks;
use chronomemory_state::state::{Edition, Query, SlotSieve, State, Watermark};

/// So many changes are followed; more are as much work as asking everyone.
const MOST_CHANGES: usize = 2048;
/// How many questions are remembered.
const MOST_FILTERS: usize = 16;
/// How many of those who see little: theirs are short.
const MOST_FEW: usize = 256;

/// The rows of one question.
#[derive(Debug, Default)]
pub struct RowFilter {
    /// The rows.
    pub rows: RoaringBitmap,
    /// Whether these are all rows there are.
    pub is_all: bool,
    masks: OnceLock<RowMasks>,
    mark: Watermark,
    died: usize,
}

impl RowFilter {
    /// Some of so many rows, that are asked for once.
    pub fn among(rows: RoaringBitmap, all: u32) -> Self {
        Self {
            is_all: rows.len() == u64::from(all),
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
const FEW_SEEN: usize = 16;

/// What was asked: who asks, the file of the rows, kind, status, confidence; and what had expired, which no event tells.
type FilterKey = (Arc<Viewer>, String, [Option<Vec<String>>; 2], Option<String>, u64, u64);

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
    pub fn rows_for(&mut self, state: &State, index: &RowIndex, query: &Query) -> Arc<RowFilter> {
        let key: FilterKey = (
            Arc::clone(&query.viewer),
            format::file_name(&index.bound),
            [query.kinds.clone(), query.without_kinds.clone()],
            query.status.clone(),
            query.min_confidence.to_bits(),
            state.expiry_moves(),
        );
        if sees_few(state, index, query) {
            let edition = state.edition(&query.viewer);
            let seen = FewSeen(edition, index.rows, index.died.len(), index.gone.len());
            if let Some((_, filter)) = self.few.get(&key).filter(|(then, _)| *then == seen) {
                return Arc::clone(filter);
            }
            let rows = few_rows(state, index, query).unwrap_or_default();
            let filter = Arc::new(RowFilter::among(rows, index.rows));
            if self.few.len() >= MOST_FEW {
                self.few.clear();
            }
            self.few.insert(key, (seen, Arc::clone(&filter)));
            return filter;
        }
        let known = self.kept.get(&key);
        if let Some(filter) = known.filter(|filter| !filter.mark.is_behind(state.changes())) {
            return Arc::clone(filter);
        }
        let sieve = query.sieve(state);
        let rows = known.and_then(|filter| follow(state, index, &sieve, filter));
        let filter = RowFilter {
            mark: state.changes().watermark(),
            died: index.died.len(),
            ..RowFilter::among(rows.unwrap_or_else(|| all_rows(state, index, &sieve)), index.rows)
        };
        if self.kept.len() >= MOST_FILTERS {
            self.kept.clear();
        }
        let filter = Arc::new(filter);
        self.kept.insert(key, Arc::clone(&filter));
        filter
    }
}

/// Whether somebody sees little.
fn sees_few(state: &State, index: &RowIndex, query: &Query) -> bool {
    let scopes = state.scopes();
    let sight = state.sight(&query.viewer);
    let seen: Option<usize> = sight
        .scopes()
        .map(|seen| seen.map(|scope| scopes.slots(scope).len() as usize).sum());
    seen.is_some_and(|seen| seen < index.rows as usize / FEW_SEEN)
}

/// The rows of whoever sees little; `None` of one who sees all.
fn few_rows(state: &State, index: &RowIndex, query: &Query) -> Option<RoaringBitmap> {
    let scopes = state.scopes();
    let sight = state.sight(&query.viewer);
    let sieve = query.sieve(state);
    let slots = sight.scopes()?.flat_map(|scope| scopes.slots(scope));
    let slots = slots.filter(|&slot| sieve.passes(state, slot));
    let rows = slots.filter_map(|slot| index.row_of(slot).filter(|&row| index.is_living(row)));
    Some(rows.collect())
}

fn all_rows(state: &State, index: &RowIndex, sieve: &SlotSieve) -> RoaringBitmap {
    let mut rows = RoaringBitmap::new();
    // Mostly all of them are wanted: runs are quicker to put in than rows.
    let mut run = 0..0;
    for (row, owner) in index.living_rows() {
        if !sieve.passes(state, owner) {
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

/// The rows of an earlier question, with those of changed records asked again; `None` if too much changed.
fn follow(state: &State, index: &RowIndex, sieve: &SlotSieve, before: &RowFilter) -> Option<RoaringBitmap> {
    let changed = state.changes().since(&before.mark)?;
    if changed.len() > MOST_CHANGES || before.died > index.died.len() {
        return None;
    }
    let mut rows = before.rows.clone();
    for row in &index.died[before.died..] {
        rows.remove(*row);
    }
    let mut touched = RoaringBitmap::new();
    for &slot in changed {
        touched.extend(index.row_of(slot));
        let id = state.slots.id(slot);
        if format::group_space(&id) == Some(&index.bound.name)
            && let Some(first) = format::group_row(&id)
        {
            let length = index.groups.get(&first).copied().unwrap_or(0);
            touched.insert_range(first..first + length);
        }
    }
    for row in touched {
        let owner = index.owner_of(row).filter(|_| index.is_living(row));
        if owner.is_some_and(|owner| sieve.passes(state, owner)) {
            rows.insert(row);
        } else {
            rows.remove(row);
        }
    }
    Some(rows)
}
