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
use chronomemory_state::state::{Query, SlotSieve, State, Watermark};

/// So many changes are followed; more are as much work as asking everyone.
const MOST_CHANGES: usize = 2048;
/// How many questions are remembered.
const MOST_FILTERS: usize = 128;
/// A viewer that sees less than this share of the rows is asked by what is seen.
const FEW_SEEN: usize = 16;

/// The rows of one question.
#[derive(Debug, Default)]
pub struct RowFilter {
    pub rows: RoaringBitmap,
    /// Whether these are all rows there are.
    pub is_all: bool,
    masks: OnceLock<RowMasks>,
}

impl RowFilter {
    pub fn among(rows: RoaringBitmap, all: u32) -> Self {
        Self {
            is_all: rows.len() == u64::from(all),
            rows,
            masks: OnceLock::new(),
        }
    }

    /// The masks of so many groups; more may come later, those are made on the spot.
    pub fn masks(&self, groups: usize) -> &RowMasks {
        self.masks.get_or_init(|| RowMasks::of(&self.rows, groups))
    }
}

/// What was asked: who asks, the file of the rows, kind, status, confidence; and what had expired, which no event tells.
type FilterKey = (Arc<Viewer>, String, [Option<Vec<String>>; 2], Option<String>, u64, u64);

/// The rows of an earlier question, and how far they follow the state and its index of rows.
struct KeptFilter {
    filter: Arc<RowFilter>,
    mark: Watermark,
    died: usize,
}

/// Rows of earlier questions.
#[derive(Default)]
pub struct Filters(HashMap<FilterKey, KeptFilter>);

impl Filters {
    /// The rows of a space whose records a query asks for.
    pub fn rows_for(&mut self, state: &State, index: &RowIndex, query: &Query) -> Arc<RowFilter> {
        let key: FilterKey = (
            Arc::clone(&query.viewer),
            format::file_name(&index.bound),
            [query.kinds.clone(), query.without_kinds.clone()],
            query.status.clone(),
            query.min_confidence.to_bits(),
            state.expiry_moves,
        );
        let known = self.0.get(&key);
        if let Some(kept) = known.filter(|kept| !kept.mark.is_behind(state.changes())) {
            return Arc::clone(&kept.filter);
        }
        let sieve = query.sieve(state);
        let filter = known
            .and_then(|kept| follow(state, index, &sieve, kept))
            .unwrap_or_else(|| {
                let few = sees_few(state, index, query)
                    .then(|| few_rows(state, index, &sieve, query))
                    .flatten();
                Arc::new(RowFilter::among(
                    few.unwrap_or_else(|| all_rows(state, index, &sieve)),
                    index.rows,
                ))
            });
        if self.0.len() >= MOST_FILTERS {
            self.0.clear();
        }
        let kept = KeptFilter {
            filter: Arc::clone(&filter),
            mark: state.changes().watermark(),
            died: index.died.len(),
        };
        self.0.insert(key, kept);
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
fn few_rows(state: &State, index: &RowIndex, sieve: &SlotSieve, query: &Query) -> Option<RoaringBitmap> {
    let scopes = state.scopes();
    let sight = state.sight(&query.viewer);
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
fn follow(state: &State, index: &RowIndex, sieve: &SlotSieve, kept: &KeptFilter) -> Option<Arc<RowFilter>> {
    let changed = state.changes().since(&kept.mark)?;
    if changed.len() > MOST_CHANGES || kept.died > index.died.len() {
        return None;
    }
    let mut touched: RoaringBitmap = index.died[kept.died..].iter().copied().collect();
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
    let passes = |row: &u32| {
        let owner = index.owner_of(*row).filter(|_| index.is_living(*row));
        owner.is_some_and(|owner| sieve.passes(state, owner))
    };
    let (before, passing) = (
        &kept.filter.rows,
        touched.iter().filter(passes).collect::<RoaringBitmap>(),
    );
    if (before & &touched) == passing && kept.filter.is_all == (before.len() == u64::from(index.rows)) {
        return Some(Arc::clone(&kept.filter));
    }
    Some(Arc::new(RowFilter::among((before - &touched) | passing, index.rows)))
}
