//! Scores rows from their floats, on several threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::gate::Gated;
use super::score::Scorer;
use super::shortlist::BoundedRow;
use super::team::together;
use super::top::Top;

/// How many rows a thread scores before it asks for more.
const PIECE_ROWS: usize = 128;
/// A thread is worth starting for so many products.
const PRODUCTS_PER_THREAD: usize = 300_000;
/// Up to here candidates are sorted.
const FEW_CANDIDATES: usize = 4096;

/// Which rows are scored.
#[derive(Clone, Debug)]
pub(super) enum Wanted<'a> {
    /// All from one to another.
    Range(Range<u32>),
    /// These, each once.
    Listed(&'a [u32]),
    /// These, each once, by what one query knows of them.
    Bounded(&'a [BoundedRow]),
}

impl Wanted<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::Listed(rows) => rows.len(),
            Self::Bounded(rows) => rows.len(),
        }
    }

    #[inline]
    fn get(&self, index: usize) -> BoundedRow {
        let anything = |row| BoundedRow {
            row,
            lower: i32::MIN,
            upper: i32::MAX,
        };
        match self {
            Self::Range(range) => anything(range.start + index as u32),
            Self::Listed(rows) => anything(rows[index]),
            Self::Bounded(rows) => rows[index],
        }
    }
}

/// The best `k` of the wanted rows for each query, by scoring every one of them.
pub(super) fn score_all(
    rows: Gated<'_>,
    wanted: &Wanted<'_>,
    queries: &[(&Scorer, i32)],
    k: usize,
    threads: usize,
) -> Vec<Top> {
    let fresh = || queries.iter().map(|(_, least)| Top::new(k, *least)).collect::<Vec<_>>();
    let count = wanted.len();
    let products = count.saturating_mul(rows.dim()).saturating_mul(queries.len());
    let next = AtomicUsize::new(0);
    let parts = together(threads.min(products / PRODUCTS_PER_THREAD), || {
        let mut tops = fresh();
        loop {
            let from = next.fetch_add(PIECE_ROWS, Ordering::Relaxed);
            if from >= count {
                return tops;
            }
            for index in from..count.min(from + PIECE_ROWS) {
                let candidate = wanted.get(index);
                let Some(floats) = rows.row(candidate.row) else {
                    continue;
                };
                for ((scorer, _), top) in queries.iter().zip(&mut tops) {
                    top.offer(candidate.row, rows.score(scorer, candidate, floats));
                }
            }
        }
    });
    let mut tops = fresh();
    for part in parts {
        for (top, other) in tops.iter_mut().zip(part) {
            top.merge(other);
        }
    }
    tops
}

/// The best `k` of the candidates, together with what `top` holds already; scores only those that may be.
pub(super) fn score_candidates(
    rows: Gated<'_>,
    scorer: &Scorer,
    mut candidates: Vec<BoundedRow>,
    mut top: Top,
    k: usize,
    threads: usize,
) -> Top {
    if candidates.len() <= FEW_CANDIDATES {
        candidates.sort_unstable_by_key(|candidate| (-i64::from(candidate.upper), candidate.row));
        for candidate in candidates {
            if candidate.upper < top.bar() {
                break;
            }
            if let Some(floats) = rows.row(candidate.row) {
                top.offer(candidate.row, rows.score(scorer, candidate, floats));
            }
        }
        return top;
    }
    // So many are not sorted: that would cost more than it saves when they are all alike. The most promising ones raise
    // the bar, and what still reaches it is scored in the order it lies in memory.
    let mut promising = candidates.clone();
    let few = (2 * k + FEW_CANDIDATES / 4).min(promising.len() - 1);
    promising.select_nth_unstable_by_key(few, |candidate| -i64::from(candidate.upper));
    let mut trial = Top::new(k, top.bar());
    for candidate in &promising[..few] {
        if let Some(floats) = rows.row(candidate.row) {
            trial.offer(candidate.row, rows.score(scorer, *candidate, floats));
        }
    }
    let bar = trial.bar();
    candidates.retain(|candidate| candidate.upper >= bar);
    for found in score_all(rows, &Wanted::Bounded(&candidates), &[(scorer, bar)], k, threads) {
        top.merge(found);
    }
    top
}
