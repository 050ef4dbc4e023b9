//! Searches for the best rows of several queries: sweep, shortlist, exact scores.

use std::fmt;
use std::ops::Range;
use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use roaring::RoaringBitmap;

use super::companion::{Loss, eights_of, round_down, round_up};
use super::cpu::Cpu;
use super::groups::{GROUP_ROWS, Groups, RowMasks, group_bytes};
use super::lanes::{LANES, has_direction};
use super::rows::{VectorMisfit, VectorRows};
use super::score::Scorer;
use super::sweep::{Panel, Pieces, Survivor, SweepRun};
use super::team::together;
use super::top::{BoundedRow, NO_RANK, RowHit, Shortlist, Top, rank_of, value_of};

/// So much is swept before a thread looks up how far the others have raised the bar.
const PIECE_BYTES: usize = 256 * 1024;
/// A thread is worth starting for so many bytes, times queries.
const BYTES_PER_THREAD: usize = 1024 * 1024;
/// A thread begins with short runs: until there is a bar, everything survives.
const FIRST_RUN_GROUPS: usize = 4;
/// From so many queries on, a product of codes costs much less than one of floats even when both are in the cache.
const MANY_QUERIES: usize = 8;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct RowSearch<'a> {
    /// How many hits are wanted for each query.
    pub k: usize,
    /// Which rows count; all if there is none.
    pub filter: Option<&'a RoaringBitmap>,
    /// The masks of that filter, if they were made before. Too few of them are made anew.
    pub masks: Option<&'a RowMasks>,
    /// Which rows may be scored; all if there is none. Rows that it stops still count where rows are ruled out: whoever
    /// stops one asks again with a filter that leaves it out.
    pub gate: Option<Gate<'a>>,
    /// Who is told of scores that lie outside their bounds; nobody if there is none.
    pub doubt: Option<RowDoubt<'a>>,
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

/// The best rows for each query: score descending, then row ascending. Rows that the companion does not know yet are
/// scored too; groups of rows that are not there are ignored.
///
/// # Errors
/// If companion or queries have another dimension than the rows.
pub fn search(
    rows: VectorRows<'_>,
    companion: Groups<'_>,
    queries: VectorRows<'_>,
    search: &RowSearch<'_>,
) -> Result<Vec<Vec<RowHit>>, VectorMisfit> {
    for found in [companion.dim(), queries.dim()] {
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
    let queries = BoundedQuery::all(queries, search.cpu);
    let (numbers, directed): (Vec<_>, Vec<_>) = queries.iter().enumerate().filter(|(_, q)| q.has_direction()).unzip();
    let hunt = RunningSearch {
        rows,
        gated: Gated {
            rows,
            gate: search.gate,
            doubt: search.doubt,
        },
        groups: companion.count().min(rows.count() as usize / GROUP_ROWS),
        companion,
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
    gated: Gated<'a>,
    companion: Groups<'a>,
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
        let admitted = |row: &u32| self.gated.row(*row).is_some();
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
                return self.score(&Wanted::Range(0..count), queries);
            }
            let behind = Wanted::Range((self.groups * GROUP_ROWS) as u32..count);
            return self.funnel(queries, None, &behind, |lost| {
                self.score(&Wanted::Range(0..count), lost)
            });
        };
        let listed = |from: u32| filter.range(from..self.rows.count()).collect::<Vec<_>>();
        let kept = filter.range_cardinality(0..self.rows.count()) as usize;
        if self.k_is_most_of(kept) {
            return self.score(&Wanted::Listed(&listed(0)), queries);
        }
        let made;
        let masks = match self.search.masks.filter(|masks| masks.groups() >= self.groups) {
            Some(masks) => masks,
            None => {
                made = RowMasks::of(filter, self.groups);
                &made
            }
        };
        // A group is as many bytes as four rows of floats.
        if queries.len() < MANY_QUERIES && kept <= masks.touched() * 4 {
            return self.score(&Wanted::Listed(&listed(0)), queries);
        }
        let behind = listed((self.groups * GROUP_ROWS) as u32);
        self.funnel(queries, Some(masks), &Wanted::Listed(&behind), |lost| {
            self.score(&Wanted::Listed(&listed(0)), lost)
        })
    }

    /// Bounds do not help to find most of the rows.
    fn k_is_most_of(&self, rows: usize) -> bool {
        self.search.k >= rows / 4
    }

    fn score(&self, wanted: &Wanted<'_>, queries: &[&BoundedQuery]) -> Vec<Top> {
        let queries: Vec<_> = queries.iter().map(|query| (&query.scorer, self.least)).collect();
        score_all(self.gated, wanted, &queries, self.search.k, self.search.threads)
    }

    /// Sweeps the groups and scores what is left, and the rows `behind` the groups. Queries for which bounds rule out too
    /// little are left to `score_all`.
    fn funnel(
        &self,
        queries: &[&BoundedQuery],
        masks: Option<&RowMasks>,
        behind: &Wanted<'_>,
        score_all: impl FnOnce(&[&BoundedQuery]) -> Vec<Top>,
    ) -> Vec<Top> {
        let mut tops = self.score(behind, queries);
        let bars: Vec<_> = tops.iter().map(|top| Bar::new(top.bar())).collect();
        let lists = match queries.len() {
            0 => Vec::new(),
            1 => self.sweep::<1>(queries, masks, &bars),
            2..=4 => self.sweep::<4>(queries, masks, &bars),
            _ => self.sweep::<16>(queries, masks, &bars),
        };
        let (mut lost, mut work) = (Vec::new(), Vec::new());
        for (number, (list, bar)) in lists.into_iter().zip(&bars).enumerate() {
            if bar.hopeless.load(Ordering::Relaxed) {
                lost.push(number);
            } else {
                let top = std::mem::replace(&mut tops[number], Top::new(0, NO_RANK));
                work.push((number, list.into_candidates(top.bar()), top));
            }
        }
        if !lost.is_empty() {
            let queries: Vec<_> = lost.iter().map(|number| queries[*number]).collect();
            for (number, top) in lost.into_iter().zip(score_all(&queries)) {
                tops[number] = top;
            }
        }
        // Many queries are shared out; one or two are better helped by all threads.
        let (at_once, each) = match self.search.threads {
            threads if work.len() < threads => (1, threads),
            threads => (threads, 1),
        };
        let work = Mutex::new(work.into_iter());
        let parts = together(at_once, || {
            let mut done = Vec::new();
            loop {
                let next = work.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((number, list, top)) = next else {
                    return done;
                };
                let scorer = &queries[number].scorer;
                done.push((
                    number,
                    score_candidates(self.gated, scorer, list, top, self.search.k, each),
                ));
            }
        });
        for (number, top) in parts.into_iter().flatten() {
            tops[number] = top;
        }
        tops
    }

    /// Sweeps all groups that count, `W` queries at a time, and returns what may be among the best for each.
    fn sweep<const W: usize>(
        &self,
        queries: &[&BoundedQuery],
        masks: Option<&RowMasks>,
        bars: &[Bar],
    ) -> Vec<Shortlist> {
        let panels: Vec<Panel<W>> = queries.chunks(W).map(Panel::new).collect();
        let each = group_bytes(self.rows.dim());
        let all = 0..self.groups;
        let pieces = Pieces::new(
            masks.map_or(from_ref(&all), RowMasks::runs),
            self.groups,
            (PIECE_BYTES / each).max(1),
        );
        let bytes = (pieces.groups() * each).saturating_mul(queries.len());
        let fresh = || {
            bars.iter()
                .map(|_| Shortlist::new(self.search.k, self.least))
                .collect::<Vec<_>>()
        };
        let parts = together(self.search.threads.min(bytes / BYTES_PER_THREAD), || {
            let mut lists = fresh();
            let mut floors = vec![[f32::INFINITY; W]; panels.len()];
            let mut found = Vec::new();
            let mut longest = FIRST_RUN_GROUPS;
            let mut seen = 0;
            while let Some(piece) = pieces.next() {
                if bars.iter().all(|bar| bar.hopeless.load(Ordering::Relaxed)) {
                    break;
                }
                let mut from = piece.start;
                while from < piece.end {
                    for (number, (query, bar)) in queries.iter().zip(bars).enumerate() {
                        floors[number / W][number % W] = bar.floor(query);
                    }
                    let to = piece.end.min(from + longest);
                    let masks = masks.map(|masks| masks.within(from..to));
                    let run = SweepRun {
                        groups: self.companion,
                        from,
                        to,
                        masks,
                        panels: &panels,
                        floors: &floors,
                    };
                    self.search.cpu.sweep(&run, &mut found);
                    self.take(&mut found, queries, &mut lists, bars);
                    seen += masks.map_or((run.to - from) * GROUP_ROWS, |masks| {
                        masks.iter().map(|mask| mask.count_ones() as usize).sum()
                    });
                    for (list, bar) in lists.iter_mut().zip(bars).filter(|(list, _)| list.is_hopeless(seen)) {
                        bar.hopeless.store(true, Ordering::Relaxed);
                        *list = Shortlist::new(self.search.k, self.least);
                    }
                    from = run.to;
                    longest = pieces.each.min(2 * longest);
                }
            }
            lists
        });
        let mut lists = fresh();
        for part in parts {
            for (list, other) in lists.iter_mut().zip(part) {
                list.merge(other);
            }
        }
        lists
    }

    fn take(&self, found: &mut Vec<Survivor>, queries: &[&BoundedQuery], lists: &mut [Shortlist], bars: &[Bar]) {
        for survivor in found.drain(..) {
            let group = self.companion.group(survivor.group);
            let list = &mut lists[survivor.query];
            let mut rows = survivor.rows;
            while rows != 0 {
                let place = rows.trailing_zeros() as usize;
                rows &= rows - 1;
                let loss = Loss {
                    scale: group.scales[place],
                    residual: group.residuals[place],
                };
                let bounds = queries[survivor.query].bounds(survivor.dots[place], loss);
                list.offer((survivor.group * GROUP_ROWS + place) as u32, bounds);
            }
            bars[survivor.query].rank.fetch_max(list.bar(), Ordering::Relaxed);
        }
    }
}

/// What all threads know about one query.
struct Bar {
    /// The rank that a row must reach.
    rank: AtomicI32,
    /// Whether bounds rule out too little to go on with.
    hopeless: AtomicBool,
}

impl Bar {
    fn new(rank: i32) -> Self {
        Self {
            rank: AtomicI32::new(rank),
            hopeless: AtomicBool::new(false),
        }
    }

    fn floor(&self, query: &BoundedQuery) -> f32 {
        if self.hopeless.load(Ordering::Relaxed) {
            f32::INFINITY
        } else {
            query.floor(value_of(self.rank.load(Ordering::Relaxed)))
        }
    }
}

/// Asked once for each row before it is scored, by any thread.
#[derive(Clone, Copy)]
pub struct Gate<'a>(pub &'a (dyn Fn(u32) -> bool + Sync));

impl fmt::Debug for Gate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

/// Told each row whose score lies outside its bounds, by any thread: the row or its companion is wrong, and rows may have
/// been ruled out that should not. Whoever is told finds out which it is, and asks again without it.
#[derive(Clone, Copy)]
pub struct RowDoubt<'a>(pub &'a (dyn Fn(u32) + Sync));

impl fmt::Debug for RowDoubt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Doubt")
    }
}

/// Rows behind a gate.
#[derive(Clone, Copy)]
pub(super) struct Gated<'a> {
    pub(super) rows: VectorRows<'a>,
    pub(super) gate: Option<Gate<'a>>,
    pub(super) doubt: Option<RowDoubt<'a>>,
}

impl<'a> Gated<'a> {
    pub(super) fn dim(&self) -> usize {
        self.rows.dim()
    }

    #[inline]
    pub(super) fn row(&self, row: u32) -> Option<&'a [f32]> {
        match self.gate {
            Some(Gate(admits)) if !admits(row) => None,
            _ => Some(self.rows.row(row)),
        }
    }

    /// The score of a candidate, held against its bounds.
    #[inline]
    pub(super) fn score(&self, scorer: &Scorer, candidate: BoundedRow, floats: &[f32]) -> f32 {
        let score = scorer.score(floats);
        if !(candidate.lower..=candidate.upper).contains(&rank_of(score))
            && let Some(RowDoubt(tell)) = self.doubt
        {
            tell(candidate.row);
        }
        score
    }
}

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

/// What the float32 arithmetic of the sieve may lose: at most eight roundings of numbers below 8.
const SIEVE_SLACK: f64 = 1.0 / (1u64 << 18) as f64;

/// A query with its codes.
#[derive(Debug)]
pub(super) struct BoundedQuery {
    pub(super) scorer: Scorer,
    pub(super) scale: f32,
    /// At least the norm of the codes with their scale.
    pub(super) reach: f32,
    /// At least what the query's own codes miss, and all that is rounded.
    miss: f64,
    /// The codes, four to a word.
    pub(super) words: Vec<i32>,
    /// What unsigned codes of rows add too much to a product.
    pub(super) excess: i32,
}

impl BoundedQuery {
    fn new(query: &[f32], cpu: Cpu) -> Self {
        let dim = query.len();
        let mut codes = vec![[0; LANES]; eights_of(dim)];
        let Loss { scale, residual } = cpu.encode(query, &mut codes);
        let codes = &codes.as_flattened()[..dim.next_multiple_of(4)];
        let signed: Vec<i8> = codes.iter().map(|code| code.wrapping_sub(128).cast_signed()).collect();
        let square: i32 = signed.iter().map(|&code| i32::from(code) * i32::from(code)).sum();
        let sum: i32 = signed.iter().map(|&code| i32::from(code)).sum();
        let words = signed.as_chunks::<4>().0.iter();
        Self {
            scorer: Scorer::new(query, cpu),
            scale,
            reach: round_up(f64::from(scale) * f64::from(square).sqrt() * (1.0 + 2f64.powi(-50))),
            miss: f64::from(residual) * (1.0 + 2f64.powi(-36)) + 2f64.powi(-23) + dim as f64 * 2f64.powi(-53),
            words: words
                .map(|word| i32::from_le_bytes(word.map(i8::cast_unsigned)))
                .collect(),
            excess: 128 * sum,
        }
    }

    /// Prepares each row of a matrix as a query.
    pub(super) fn all(queries: VectorRows<'_>, cpu: Cpu) -> Vec<Self> {
        let each = (0..queries.count()).map(|row| queries.row(row));
        each.map(|query| Self::new(query, cpu)).collect()
    }

    /// Whether it points anywhere.
    pub(super) fn has_direction(&self) -> bool {
        has_direction(self.scorer.norm())
    }

    /// The ranks between which the score with a row must lie.
    #[inline]
    pub(super) fn bounds(&self, dot: i32, row: Loss) -> (i32, i32) {
        let near = f64::from(dot) * (f64::from(self.scale) * f64::from(row.scale));
        let far = f64::from(self.reach) * f64::from(row.residual) + self.miss;
        (rank_of(round_down(near - far)), rank_of(round_up(near + far)))
    }

    /// What scale·scale·dot + reach·residual must reach in float32, so that the score may reach `bar`.
    #[inline]
    pub(super) fn floor(&self, bar: f32) -> f32 {
        round_down(f64::from(bar) - self.miss - SIEVE_SLACK)
    }
}

impl<const W: usize> Panel<W> {
    /// Puts at most `W` queries side by side.
    pub(super) fn new(queries: &[&BoundedQuery]) -> Self {
        let steps = queries.first().map_or(0, |query| query.words.len());
        let mut panel = Self {
            words: vec![[0; W]; steps],
            start: [0; W],
            scales: [0.0; W],
            reaches: [0.0; W],
        };
        for (place, query) in queries.iter().enumerate().take(W) {
            for (words, word) in panel.words.iter_mut().zip(&query.words) {
                words[place] = *word;
            }
            panel.start[place] = -query.excess;
            panel.scales[place] = query.scale;
            panel.reaches[place] = query.reach;
        }
        panel
    }
}
