//! Runs a recall: filter, gather, rate and choose.

use super::ask::{Ask, BlockAnswer, BlockView, FoundBlock};
use super::choose::{Pool, fill_places};
use super::columns::BlockColumns;
use super::filter::{BlockFilter, guaranteed};
use super::gather::{Evidence, Gathered, gather};
use super::rate::{Measure, Rated, better_first, keep_best};
use super::wording::Wording;
use chronolog::error::Result;
use chronolog::ordered::in_order;

/// Rated candidates kept for each result.
const POOL_PER_RESULT: usize = 2;
/// Candidates scored at a time; fewer are not worth a thread.
const ROWS_PER_PIECE: usize = 50_000;

impl BlockColumns {
    /// Finds the best blocks, on up to `threads` threads.
    ///
    /// # Errors
    /// `Io`, if vectors cannot be read.
    pub fn recall(&self, ask: &Ask, view: &BlockView, evidence: Evidence<'_>, threads: usize) -> Result<BlockAnswer> {
        let filter = BlockFilter::new(self, view, ask);
        let mut sure = guaranteed(self, &view.sight, ask);
        let wording = Wording::new(self, evidence.words);
        let gathered = match &ask.query {
            Some(query) => gather(self, ask, query, &wording, evidence, &filter, &sure)?,
            None => self.everything(&filter, &sure),
        };
        let measure = Measure::new(self, view, ask, &gathered.candidates);
        sure.sort_unstable();
        let is_sure = |row: u32| sure.binary_search(&row).is_ok();
        let (mut always, best) = self.rate_all(ask, &measure, &gathered, &sure, threads);
        let places = ask.k.saturating_sub(always.len());
        let pool = if ask.likeness_decides() {
            Pool::most_alike(self, best, places, ask.further())
        } else {
            Pool::best(best)
        };
        let mut answer = BlockAnswer {
            candidates: gathered.candidates.len(),
            ..BlockAnswer::default()
        };
        let found = |rated: &Rated| FoundBlock {
            id: self.ids.name(rated.row).to_owned(),
            slot: self.slot_of(rated.row),
            score: rated.score,
            components: rated.components,
            relevance: gathered.relevance_of(rated.row),
            expanded: gathered.expanded.binary_search(&rated.row).is_ok(),
            guaranteed: is_sure(rated.row),
            newer_than: None,
            record: None,
            own_scope: None,
        };
        if !ask.frame {
            let ranked = if ask.diversify {
                pool.unlike(self, evidence.vectors, &[])
            } else {
                pool.by_score()
            };
            let (results, further) = ranked.split_at(ask.k.min(ranked.len()));
            answer.results = results.iter().map(found).collect();
            answer.further = further.iter().take(ask.further()).map(found).collect();
            return Ok(answer);
        }
        always.sort_unstable_by(|one, other| better_first(self, one, other));
        let order = pool.unlike(self, evidence.vectors, &always);
        let shown = fill_places(self, &measure, always, order, ask.k);
        let name = |row: u32| self.ids.name(row).to_owned();
        answer.suppressed = shown.suppressed.iter().map(|&row| name(row)).collect();
        answer.clashes = shown
            .clashes
            .iter()
            .map(|&(one, other)| sorted(name(one), name(other)))
            .collect();
        answer.clashes.sort_unstable();
        answer.results = shown.results.iter().map(found).collect();
        answer.further = shown.further.iter().take(ask.further()).map(found).collect();
        Ok(answer)
    }

    /// Scores all candidates: returns the guaranteed ones of a frame, and the best others in order.
    fn rate_all(
        &self,
        ask: &Ask,
        measure: &Measure<'_>,
        gathered: &Gathered<'_>,
        sure: &[u32],
        threads: usize,
    ) -> (Vec<Rated>, Vec<Rated>) {
        let (rows, similarities) = (&gathered.candidates, &gathered.similarities);
        let limit = match ask.likeness_decides() {
            true => rows.len(),
            false => (POOL_PER_RESULT * ask.k).max(ask.k + ask.further()),
        };
        let rate_piece = |piece: u64, rated: &mut (Vec<Rated>, Vec<Rated>)| {
            let first = piece as usize * ROWS_PER_PIECE;
            let piece = &rows[first..rows.len().min(first + ROWS_PER_PIECE)];
            let rate = |(at, &row)| measure.rate(at, row, similarities.get(at).copied().unwrap_or(0.0));
            let each = (first..).zip(piece).map(rate);
            *rated = each.partition(|one: &Rated| ask.frame && sure.binary_search(&one.row).is_ok());
            keep_best(self, &mut rated.1, limit);
            Ok(())
        };
        let (mut always, mut best) = (Vec::new(), Vec::new());
        let rated = in_order(
            rows.len().div_ceil(ROWS_PER_PIECE) as u64,
            threads,
            rate_piece,
            |rated| {
                always.append(&mut rated.0);
                best.append(&mut rated.1);
                keep_best(self, &mut best, limit);
                Ok(true)
            },
        );
        rated.unwrap_or_else(|fault: std::io::Error| std::panic::resume_unwind(Box::new(fault)));
        best.sort_unstable_by(|one, other| better_first(self, one, other));
        (always, best)
    }

    /// The candidates without a query: every block that passes, and the guaranteed ones.
    fn everything(&self, filter: &BlockFilter<'_>, sure: &[u32]) -> Gathered<'static> {
        let mut rows = filter.rows();
        if !sure.is_empty() {
            rows.extend(sure.iter().filter(|&&row| !filter.passes(row)));
            rows.sort_unstable();
        }
        Gathered {
            candidates: rows,
            ..Gathered::default()
        }
    }
}

fn sorted(one: String, other: String) -> (String, String) {
    if one <= other { (one, other) } else { (other, one) }
}
