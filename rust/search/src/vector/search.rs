//! Searches for the best rows of several queries: high plane, low plane, exact scores.

use std::slice::from_ref;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use roaring::RoaringBitmap;

use super::codes::{Codes, GROUP_ROWS, QueryCodes, high_bytes, round_down, round_up};
use super::cpu::Cpu;
use super::lanes::has_direction;
use super::masks::RowMasks;
use super::rows::{VectorMisfit, VectorRows};
use super::score::Scorer;
use super::sweep::{Candidate, Floor, Panel, Pieces, Refinement, SweepRun};
use super::team::together;
use super::top::{NO_RANK, RowHit, Top, rank_of, value_of};
use super::turn::Turn;

/// So many groups are swept before a thread looks up how far the others have raised the bar.
const PIECE_GROUPS: usize = 64;
/// A thread is worth starting for so many bytes, times queries: none is started below 4 MiB.
const BYTES_PER_THREAD: usize = 2 * 1024 * 1024;
/// A thread begins with short runs: until there is a bar, everything survives.
const FIRST_RUN_GROUPS: usize = 4;
/// So few rows are scored in less time than the codes of a query take.
const FEW_ROWS: usize = 256;
/// From so many queries on, a product of codes costs much less than one of floats even when both are in the cache.
const MANY_QUERIES: usize = 8;

/// What is asked.
#[derive(Clone, Copy)]
pub struct RowSearch<'a> {
    /// How many hits are wanted for each query.
    pub k: usize,
    /// Which rows count; all if there is none.
    pub filter: Option<&'a RoaringBitmap>,
    /// The masks of that filter, if they were made before. Too few of them are made anew.
    pub masks: Option<&'a RowMasks>,
    /// Asked once for each row before it is scored, by any thread; all rows pass if there is none.
    pub gate: Option<&'a (dyn Fn(u32) -> bool + Sync)>,
    /// Called by any thread with each row whose score lies outside its bounds: the row or its codes are wrong, and rows may have
    /// been excluded that should not. The caller finds out which it is, and searches again without it.
    pub doubt: Option<&'a (dyn Fn(u32) + Sync)>,
    /// The least score that counts; any if there is none.
    pub min_score: Option<f32>,
    /// How many threads may be used. Fewer are, where it would not pay.
    pub threads: usize,
    /// How to compute. The answer does not depend on it.
    pub cpu: Cpu,
}

impl RowSearch<'_> {
    /// The best `k` of all rows, on one thread.
    #[must_use]
    pub fn best(k: usize) -> Self {
        Self {
            k,
            filter: None,
            masks: None,
            gate: None,
            doubt: None,
            min_score: None,
            threads: 1,
            cpu: Cpu::best(),
        }
    }
}

/// The best rows for each query: score descending, then row ascending. Rows without codes are scored too; codes of rows that are not there
/// are ignored.
///
/// # Errors
/// If codes or queries have another dimension than the rows.
pub fn search(
    rows: VectorRows<'_>,
    codes: Codes<'_>,
    queries: VectorRows<'_>,
    search: &RowSearch<'_>,
) -> Result<Vec<Vec<RowHit>>, VectorMisfit> {
    for found in [codes.dim(), queries.dim()] {
        if found != rows.dim() {
            return Err(VectorMisfit::OtherDimension {
                expected: rows.dim(),
                found,
            });
        }
    }
    let least = search.min_score.map_or(NO_RANK, rank_of);
    let mut answers = vec![Vec::new(); queries.count() as usize];
    if search.k == 0 || rows.count() == 0 || search.min_score.is_some_and(f32::is_nan) {
        return Ok(answers);
    }
    let groups = match rows.count() as usize {
        ..=FEW_ROWS => 0,
        count => codes.count().min(count / GROUP_ROWS),
    };
    let turn = (groups > 0).then(|| Turn::of(rows.dim()));
    let each = (0..queries.count()).map(|row| BoundedQuery::new(queries.row(row), turn.as_ref(), search.cpu));
    let queries: Vec<_> = each.collect();
    let (numbers, directed): (Vec<_>, Vec<_>) = queries.iter().enumerate().filter(|(_, q)| q.has_direction()).unzip();
    let hunt = RunningSearch {
        rows,
        groups,
        codes,
        search,
        least,
    };
    for (number, top) in numbers.into_iter().zip(hunt.best_for(&directed)) {
        answers[number] = top.into_hits();
    }
    for (answer, _) in answers.iter_mut().zip(&queries).filter(|(_, q)| !q.has_direction()) {
        *answer = hunt.first_rows();
    }
    Ok(answers)
}

/// One call of [`search`].
struct RunningSearch<'a> {
    rows: VectorRows<'a>,
    codes: Codes<'a>,
    /// How many groups are swept; the rows behind them are scored.
    groups: usize,
    search: &'a RowSearch<'a>,
    least: i32,
}

impl RunningSearch<'_> {
    /// For a query without direction: every row scores zero.
    fn first_rows(&self) -> Vec<RowHit> {
        if self.least > rank_of(0.0) {
            return Vec::new();
        }
        let zero = |row| RowHit { row, score: 0.0 };
        let admitted = |row: &u32| self.row(*row).is_some();
        match self.search.filter {
            None => {
                let there = (0..self.rows.count()).filter(admitted);
                there.take(self.search.k).map(zero).collect()
            }
            Some(filter) => {
                let there = filter.iter().take_while(|row| *row < self.rows.count());
                there.filter(admitted).take(self.search.k).map(zero).collect()
            }
        }
    }

    fn best_for(&self, queries: &[&BoundedQuery]) -> Vec<Top> {
        let Some(filter) = self.search.filter else {
            let count = self.rows.count();
            if self.k_is_most_of(count as usize) {
                return self.score(0..count, queries);
            }
            return self.funnel(queries, None, (self.groups * GROUP_ROWS) as u32..count);
        };
        let listed = |from: u32| filter.range(from..self.rows.count());
        let kept = filter.range_cardinality(0..self.rows.count()) as usize;
        if self.k_is_most_of(kept) {
            return self.score(listed(0), queries);
        }
        let made;
        let masks = match self.search.masks.filter(|masks| masks.groups >= self.groups) {
            Some(masks) => masks,
            None => {
                made = RowMasks::of(filter, self.groups);
                &made
            }
        };
        // A group is as many bytes as two rows of floats.
        if queries.len() < MANY_QUERIES && kept <= masks.touched * 2 {
            return self.score(listed(0), queries);
        }
        self.funnel(queries, Some(masks), listed((self.groups * GROUP_ROWS) as u32))
    }

    /// Bounds do not help to find most of the rows.
    fn k_is_most_of(&self, rows: usize) -> bool {
        self.search.k >= rows / 4
    }

    /// A row, if it may be scored.
    #[inline]
    fn row(&self, row: u32) -> Option<&[f32]> {
        let is_admitted = self.search.gate.is_none_or(|admits| admits(row));
        is_admitted.then(|| self.rows.row(row))
    }

    fn fresh(&self, queries: &[&BoundedQuery]) -> Vec<Top> {
        let fresh = queries.iter().map(|_| Top::new(self.search.k, self.least));
        fresh.collect()
    }

    /// The best of the wanted rows for each query, by scoring every one of them.
    fn score(&self, wanted: impl Iterator<Item = u32>, queries: &[&BoundedQuery]) -> Vec<Top> {
        let wanted: Vec<u32> = wanted.collect();
        let products = wanted
            .len()
            .saturating_mul(self.rows.dim())
            .saturating_mul(queries.len());
        let next = AtomicUsize::new(0);
        let parts = together(self.search.threads.min(products / PRODUCTS_PER_THREAD), || {
            let mut tops = self.fresh(queries);
            loop {
                let from = next.fetch_add(PIECE_ROWS, Ordering::Relaxed);
                if from >= wanted.len() {
                    return tops;
                }
                for &row in &wanted[from..wanted.len().min(from + PIECE_ROWS)] {
                    let Some(floats) = self.row(row) else {
                        continue;
                    };
                    for (query, top) in queries.iter().zip(&mut tops) {
                        top.offer(row, query.scorer.score(floats));
                    }
                }
            }
        });
        let mut tops = self.fresh(queries);
        merge(&mut tops, parts);
        tops
    }

    /// Scores the rows `behind` the groups, and sweeps the groups.
    fn funnel(
        &self,
        queries: &[&BoundedQuery],
        masks: Option<&RowMasks>,
        behind: impl Iterator<Item = u32>,
    ) -> Vec<Top> {
        let mut tops = self.score(behind, queries);
        let bars: Vec<_> = tops.iter().map(|top| AtomicI32::new(top.bar())).collect();
        let parts = match queries.len() {
            0 => Vec::new(),
            1 => self.sweep::<1>(queries, masks, &bars),
            2..=4 => self.sweep::<4>(queries, masks, &bars),
            _ => self.sweep::<16>(queries, masks, &bars),
        };
        merge(&mut tops, parts);
        tops
    }

    /// Sweeps all groups that count, `W` queries at a time, and returns the best that each thread found for each query.
    fn sweep<const W: usize>(
        &self,
        queries: &[&BoundedQuery],
        masks: Option<&RowMasks>,
        bars: &[AtomicI32],
    ) -> Vec<Vec<Top>> {
        let panels: Vec<Panel<W>> = queries.chunks(W).map(Panel::new).collect();
        let all = 0..self.groups;
        let pieces = Pieces::new(
            masks.map_or(from_ref(&all), |masks| &masks.runs),
            self.groups,
            PIECE_GROUPS,
        );
        let bytes = (pieces.groups() * high_bytes(self.rows.dim())).saturating_mul(queries.len());
        together(self.search.threads.min(bytes / BYTES_PER_THREAD), || {
            let mut tops = self.fresh(queries);
            let mut floors = vec![[Floor::NOTHING; W]; panels.len()];
            let (mut found, mut candidates) = (Vec::new(), Vec::new());
            let mut longest = FIRST_RUN_GROUPS;
            while let Some(piece) = pieces.next() {
                let mut from = piece.start;
                while from < piece.end {
                    for (number, (query, bar)) in queries.iter().zip(bars).enumerate() {
                        floors[number / W][number % W] = query.floor(value_of(bar.load(Ordering::Relaxed)));
                    }
                    let to = piece.end.min(from + longest);
                    let run = SweepRun {
                        codes: self.codes,
                        from,
                        to,
                        masks: masks.map(|masks| masks.within(from..to)),
                        panels: &panels,
                        floors: &floors,
                    };
                    self.search.cpu.sweep(&run, &mut found);
                    let scores = bars.iter().map(|bar| f64::from(value_of(bar.load(Ordering::Relaxed))));
                    let scores: Vec<f64> = scores.collect();
                    let refinement = Refinement {
                        codes: self.codes,
                        queries,
                        bars: &scores,
                    };
                    self.search.cpu.refine(&refinement, &found, &mut candidates);
                    found.clear();
                    self.take(&mut candidates, queries, &mut tops, bars);
                    from = to;
                    longest = pieces.each.min(2 * longest);
                }
            }
            tops
        })
    }

    /// Scores candidates.
    fn take(&self, candidates: &mut Vec<Candidate>, queries: &[&BoundedQuery], tops: &mut [Top], bars: &[AtomicI32]) {
        for Candidate { query, row, near, far } in candidates.drain(..) {
            let (top, bar) = (&mut tops[query], &bars[query]);
            if near + far < f64::from(value_of(bar.load(Ordering::Relaxed))) {
                continue;
            }
            let Some(floats) = self.row(row) else {
                continue;
            };
            let score = queries[query].scorer.score(floats);
            if (f64::from(score) - near).abs() > far
                && let Some(tell) = self.search.doubt
            {
                tell(row);
            }
            top.offer(row, score);
            bar.fetch_max(top.bar(), Ordering::Relaxed);
        }
    }
}

/// How many rows a thread scores before it asks for more.
const PIECE_ROWS: usize = 128;
/// A thread is worth starting for so many products.
const PRODUCTS_PER_THREAD: usize = BYTES_PER_THREAD / 4;

/// Adds what threads have found to the best for each query.
fn merge(tops: &mut [Top], parts: Vec<Vec<Top>>) {
    for (top, found) in parts.into_iter().flat_map(|part| part.into_iter().enumerate()) {
        tops[top].merge(found);
    }
}

/// What the float32 arithmetic of the sieve may lose: at most eight roundings of numbers below 8.
const SIEVE_SLACK: f64 = 1.0 / (1u64 << 18) as f64;
/// Below this score the high plane excludes nothing.
const LEAST_BAR: f64 = -0.5;

/// A query with its codes.
#[derive(Debug)]
pub(super) struct BoundedQuery {
    scorer: Scorer,
    scale: f32,
    /// At least the norm of the codes with their scale.
    reach: f64,
    /// At least what is rounded in a score.
    rounded: f64,
    /// The same, and what the query's own codes miss.
    miss: f64,
    /// The codes of each step: for the lower halves of bytes, then for the upper.
    words: Vec<[i32; 2]>,
    /// The same, apart.
    pub(super) halves: [Vec<i8>; 2],
    sum: i32,
}

impl BoundedQuery {
    fn new(query: &[f32], turn: Option<&Turn>, cpu: Cpu) -> Self {
        let coded = turn.map(|turn| QueryCodes::of(query, turn));
        let QueryCodes { codes, scale, residual } = coded.unwrap_or_default();
        let rounded = 2f64.powi(-22) + query.len() as f64 * 2f64.powi(-52);
        let square: i32 = codes.iter().map(|&code| i32::from(code) * i32::from(code)).sum();
        let fours = codes.as_chunks::<4>().0;
        let words = fours.as_chunks::<2>().0.iter();
        let half = |at: usize| fours.iter().skip(at).step_by(2).flatten().copied().collect();
        Self {
            scorer: Scorer::new(query, cpu),
            scale,
            reach: f64::from(scale) * f64::from(square).sqrt() * (1.0 + 2f64.powi(-50)),
            rounded,
            miss: residual + rounded,
            words: words
                .map(|pair| pair.map(|word| i32::from_le_bytes(word.map(i8::cast_unsigned))))
                .collect(),
            halves: [half(0), half(1)],
            sum: codes.iter().map(|&code| i32::from(code)).sum(),
        }
    }

    /// Whether it points anywhere.
    pub(super) fn has_direction(&self) -> bool {
        has_direction(self.scorer.norm())
    }

    /// The score that both planes of a row stand for, and how far from it the score may lie; no number if nothing is known.
    #[inline(always)]
    pub(super) fn bounds(&self, high: i32, low: i32, scale: f32, residual: f32) -> (f64, f64) {
        let dot = f64::from(high) * 16.0 + f64::from(low) - f64::from(self.sum) * 127.5;
        let near = dot * (f64::from(self.scale) * f64::from(scale));
        (near, self.reach * f64::from(residual) + self.miss)
    }

    /// What the high plane of a row must reach, so that the score may reach `bar`.
    #[inline]
    fn floor(&self, bar: f32) -> Floor {
        let bar = f64::from(bar).min(1.0);
        // INVARIANT: rows with a bound are at most 54 degrees from their codes: with the angle of the bar, that stays below 180.
        if bar < LEAST_BAR {
            return Floor::EVERYTHING;
        }
        // A score is the cosine, rounded.
        let cosine = (bar - self.rounded).max(0.0);
        Floor {
            least: round_down(bar - self.miss - SIEVE_SLACK),
            cosine: round_up(bar.max(0.0)),
            sine: round_up((1.0 - cosine * cosine).sqrt()),
        }
    }
}

impl<const W: usize> Panel<W> {
    /// Puts at most `W` queries side by side.
    pub(super) fn new(queries: &[&BoundedQuery]) -> Self {
        let steps = queries.first().map_or(0, |query| query.words.len());
        let mut panel = Self {
            words: vec![[[0; W]; 2]; steps],
            excess: [0; W],
            scales: [0.0; W],
        };
        for (place, query) in queries.iter().enumerate().take(W) {
            for (words, pair) in panel.words.iter_mut().zip(&query.words) {
                words[0][place] = pair[0];
                words[1][place] = pair[1];
            }
            panel.excess[place] = 15 * query.sum;
            panel.scales[place] = query.scale;
        }
        panel
    }
}
