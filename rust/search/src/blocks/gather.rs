//! Gathers the candidates of a recall: blocks similar to the query, and blocks linked to them.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::ask::Ask;
use super::columns::BlockColumns;
use super::filter::BlockFilter;
use super::vectors::{BlockVectors, Comparison};
use super::wording::Wording;
use crate::score::{Coded, GroupWords, POOL_RECORDS, SMALL_RECORDS, Scale, Ties, TokenScores, lifted};
use crate::text::{NamedDays, TextQuestion, asked};
use chronolog::error::Result;

/// The best by vector, by words and by tokens that are taken for each result; for ten results as many as a search takes.
const SEEDS_PER_RESULT: usize = 10;

/// If one block reaches `min_similarity`, others are relevant that reach this share of it.
pub const RELEVANT_SHARE: f64 = 1.0 / 3.0;
/// The share of a cosine that counts for vectors made of words and parts of words, since unrelated texts share parts.
const PARTS_SHARE: f64 = 0.75;
/// A block this close to a time that the query names is relevant.
const CLOSE_TO_TIME: f64 = 0.5;

/// The sources of the scores of a query.
#[derive(Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The words of the query, for an index of the state that the columns follow.
    pub words: Option<&'a TextQuestion<'a>>,
    /// The space of the embeddings.
    pub vectors: Option<&'a dyn BlockVectors>,
    /// The token codes, by the slots of records.
    pub tokens: Option<&'a dyn Coded>,
}

type Similarities = HashMap<u32, f64, RandomState>;

/// The candidates of a recall.
#[derive(Default)]
pub struct Gathered<'a> {
    /// Every candidate once.
    pub candidates: Vec<u32>,
    /// The similarity of each candidate to the query; empty without a query.
    pub similarities: Vec<f64>,
    /// The candidates that were added by a link or as neighbours in a conversation, ascending.
    pub expanded: Vec<u32>,
    /// `None` without a query.
    pub(super) relevance: Option<Relevance<'a>>,
}

/// The relevance of blocks: the greater of the share of the query's words and the cosine.
pub(super) struct Relevance<'a> {
    wording: &'a Wording<'a>,
    comparison: Option<Comparison<'a>>,
    known_cosines: Similarities,
    /// The share of a cosine that counts.
    cosine_share: f64,
}

impl Relevance<'_> {
    fn cosine(&self, row: u32) -> Option<f64> {
        let known = self.known_cosines.get(&row).copied();
        known.or_else(|| self.comparison.as_ref()?.cosine(row))
    }

    fn is_comparable(&self, row: u32) -> bool {
        let compares = |comparison: &Comparison<'_>| comparison.has(row);
        self.known_cosines.contains_key(&row) || self.comparison.as_ref().is_some_and(compares)
    }

    fn of(&self, row: u32) -> f64 {
        let cosine = self.cosine(row).unwrap_or(0.0);
        self.wording.coverage(row).max(self.cosine_share * cosine)
    }

    /// Whether a block has at least this relevance, which is above 0. Known cosines are examined first.
    fn reaches(&self, row: u32, least: f64) -> bool {
        let known = self.known_cosines.get(&row).copied();
        let is_near = |cosine: Option<f64>| cosine.is_some_and(|cosine| self.cosine_share * cosine >= least);
        is_near(known) || self.wording.coverage(row) >= least || (known.is_none() && is_near(self.cosine(row)))
    }
}

impl Gathered<'_> {
    /// The relevance of a candidate; 1 without a query.
    pub fn relevance_of(&self, row: u32) -> f64 {
        self.relevance.as_ref().map_or(1.0, |relevance| relevance.of(row))
    }

    /// Keeps relevant candidates, those adjacent to a relevant one, and those for which `is_kept` holds. If no candidate reaches
    /// `least`, none is relevant; else those that reach [`RELEVANT_SHARE`] of it.
    fn keep_relevant(
        &mut self,
        columns: &BlockColumns,
        filter: &BlockFilter<'_>,
        least: f64,
        put_forward: usize,
        is_kept: impl Fn(u32) -> bool,
    ) {
        let reaches = |row: u32, least: f64| self.relevance.as_ref().is_none_or(|one| one.reaches(row, least));
        let rows = &self.candidates;
        let is_any = rows.iter().any(|&row| reaches(row, least));
        let relevant: Vec<bool> = rows
            .iter()
            .map(|&row| is_any && reaches(row, RELEVANT_SHARE * least))
            .collect();
        let is_adjacent = |row: u32| {
            let linked = columns.edges.of(row, filter.sight());
            let linked = linked
                .filter(|(link, _)| !link.of_likeness)
                .map(|(link, _)| link.across(row));
            let mut others = linked.chain(columns.circumstances.next_to(row));
            is_any && others.any(|other| place_of(rows, put_forward, other).is_some_and(|place| relevant[place]))
        };
        let each = rows.iter().zip(&relevant);
        let kept: Vec<bool> = each
            .map(|(&row, &is_relevant)| is_relevant || is_kept(row) || is_adjacent(row))
            .collect();
        let mut places = kept.iter();
        self.candidates.retain(|_| places.next() == Some(&true));
        let mut places = kept.iter();
        self.similarities.retain(|_| places.next() == Some(&true));
    }
}

/// The place of a row among candidates: the first `put_forward` are sorted, and so are the others.
fn place_of(rows: &[u32], put_forward: usize, row: u32) -> Option<usize> {
    let (first, others) = rows.split_at(put_forward);
    let behind = || Some(put_forward + others.binary_search(&row).ok()?);
    first.binary_search(&row).ok().or_else(behind)
}

/// The distinct rows, ascending.
fn once_each(rows: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut rows: Vec<u32> = rows.collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

fn is_in(rows: &[u32], row: u32) -> bool {
    rows.binary_search(&row).is_ok()
}

/// Finds the candidates for a query, with the guaranteed ones.
pub fn gather<'a>(
    columns: &'a BlockColumns,
    ask: &Ask,
    query: &[f32],
    wording: &'a Wording<'a>,
    evidence: Evidence<'a>,
    filter: &BlockFilter<'_>,
    guaranteed: &[u32],
) -> Result<Gathered<'a>> {
    let number = SEEDS_PER_RESULT * ask.k;
    let pool = number.max(POOL_RECORDS);
    let mut best_words = wording.best(pool, filter);
    let has_words = !best_words.is_empty();
    let passing = filter.rows();
    let compare = |vectors| Comparison::with(columns, vectors, query);
    let comparison = evidence.vectors.map(compare);
    let mut nearest: Vec<(u32, f64)> = match (evidence.vectors, &comparison) {
        (Some(_), Some(comparison)) if filter.is_of_few() => {
            let cosine = |row: u32| Some((row, comparison.cosine(row)?));
            passing.iter().filter_map(|&row| cosine(row)).collect()
        }
        (Some(vectors), _) => {
            let slots = columns.slots_of(passing.iter().copied());
            let found = vectors.nearest(query, pool, slots)?.into_iter();
            found
                .filter_map(|(slot, cosine)| Some((columns.row_in(slot)?, cosine)))
                .collect()
        }
        _ => Vec::new(),
    };
    cut(columns, &mut nearest, pool);
    let has_meaning = !nearest.is_empty();
    let slot_of = |row: u32| columns.slot_of(row).unwrap_or(u32::MAX);
    let tokens = evidence.tokens.map(|coded| {
        let all = passing.iter().copied().filter(|&row| coded.is_coded(slot_of(row)));
        let few: Vec<u32> = all.take(SMALL_RECORDS + 1).collect();
        let few = (few.len() <= SMALL_RECORDS).then_some(few);
        TokenScores::of(coded, few, [&best_words, &nearest], slot_of)
    });
    // Tokens do not count if no record has codes.
    let tokens = tokens.filter(|tokens| !tokens.best.is_empty());
    let mut by_tokens = tokens.as_ref().map_or_else(Vec::new, |tokens| tokens.best.clone());
    let scale = Scale::of(&best_words, &nearest, &by_tokens);
    cut(columns, &mut by_tokens, number);
    let known_words = best_words.iter().copied().collect::<Similarities>();
    let relevance = Relevance {
        wording,
        comparison,
        known_cosines: nearest.iter().copied().collect(),
        cosine_share: if ask.by_words { PARTS_SHARE } else { 1.0 },
    };
    // The cosine of a block without a vector is 0, which may be among the best.
    if nearest.len() < number || nearest[number - 1].1 <= 0.0 {
        let without = passing.into_iter().filter(|&row| !relevance.is_comparable(row));
        nearest.extend(without.map(|row| (row, 0.0)));
    }
    cut(columns, &mut nearest, number);
    best_words.truncate(number);

    let best = nearest.iter().chain(&best_words).chain(&by_tokens);
    let seeds = once_each(best.map(|&(row, _)| row));
    let mut rows = once_each(seeds.iter().chain(guaranteed).copied());
    let linked = |seed: u32| {
        let links = columns.edges.of(seed, filter.sight());
        links.map(move |(link, strength)| (link.across(seed), strength))
    };
    let mut expanded = around(columns, filter, &seeds, linked, |row| is_in(&rows, row), ask.expansion);

    let counts_cosine = if tokens.is_some() { has_meaning } else { !ask.by_words };
    let similarity = |&row: &u32| {
        if tokens.is_none() && !has_words {
            return relevance.cosine(row).unwrap_or(0.0);
        }
        let words = has_words.then(|| known_words.get(&row).copied().unwrap_or_else(|| wording.of(row)));
        // Cosines do not count if no candidate has one.
        let cosine = counts_cosine.then(|| relevance.cosine(row).filter(|_| has_meaning));
        let by_tokens = tokens.as_ref().map(|tokens| tokens.score(slot_of(row)));
        scale.shares(words, cosine, by_tokens).fused()
    };
    let mut similarities: Vec<f64> = rows.iter().map(similarity).collect();
    let put_forward = rows.len();
    // The neighbours of a seed in its conversation. Where likeness decides, all of them are added.
    let neighbours = |seed: u32| {
        let alone = rows.binary_search(&seed).map_or(0.0, |place| similarities[place]);
        columns.circumstances.next_to(seed).map(move |other| (other, alone))
    };
    let most = if ask.likeness_decides() {
        usize::MAX
    } else {
        ask.expansion
    };
    let is_known = |row| is_in(&rows, row) || is_in(&expanded, row);
    let beside = around(columns, filter, &seeds, neighbours, is_known, most);
    expanded = once_each(expanded.into_iter().chain(beside));
    // Added blocks have a similarity of their own too.
    similarities.extend(expanded.iter().map(similarity));
    rows.extend(&expanded);
    let words = tokens
        .is_some()
        .then(|| GroupWords::of(wording.weights(), rows.iter().map(|&row| wording.words_of(row))));
    let timed = lift(columns, ask, filter, &rows, put_forward, words, &mut similarities);
    let mut gathered = Gathered {
        candidates: rows,
        similarities,
        expanded,
        relevance: Some(relevance),
    };
    if ask.min_similarity > 0.0 {
        let is_kept = |row: u32| guaranteed.contains(&row) || timed.contains(&row);
        gathered.keep_relevant(columns, filter, ask.min_similarity, put_forward, is_kept);
    }
    Ok(gathered)
}

/// Lifts each candidate by what surrounds it, as a search does, and scales the result so that the best similarity stays the same.
/// Returns the rows with a stated time that the query names.
fn lift(
    columns: &BlockColumns,
    ask: &Ask,
    filter: &BlockFilter<'_>,
    rows: &[u32],
    put_forward: usize,
    words: Option<GroupWords>,
    similarities: &mut [f64],
) -> Vec<u32> {
    let text = ask.text.as_deref().unwrap_or_default();
    let known = &columns.circumstances;
    let mut links = Vec::new();
    for (at, &row) in rows[..put_forward].iter().enumerate() {
        // Words and vectors already count similarity.
        let linked = columns
            .edges
            .of(row, filter.sight())
            .filter(|(link, _)| !link.of_likeness);
        let others = linked.map(|(link, _)| link.across(row)).chain(known.next_to(row));
        links.extend(others.filter_map(|other| Some((at, place_of(rows, put_forward, other)?))));
    }
    let ties = Ties {
        links,
        groups: known.groups(rows),
        times: known.times(rows, &NamedDays::of(text, ask.now)),
        speakers: known.spoken(rows, &asked(text)),
        words,
    };
    let close = ties.times.iter().filter(|(_, closeness)| *closeness >= CLOSE_TO_TIME);
    let timed = close.map(|&(at, _)| rows[at]).filter(|&row| known.states_time(row));
    let timed = timed.collect();
    if ties.is_empty() {
        return timed;
    }
    let best = |scores: &[f64]| scores.iter().copied().fold(0.0, f64::max);
    let alone = best(similarities);
    let lifts = lifted(similarities, &ties);
    for (similarity, lift) in similarities.iter_mut().zip(lifts) {
        *similarity += lift.sum();
    }
    let highest = best(similarities);
    if highest > alone {
        similarities
            .iter_mut()
            .for_each(|similarity| *similarity *= alone / highest);
    }
    timed
}

/// Keeps the best `number` in order; ties by id.
fn cut(columns: &BlockColumns, scores: &mut Vec<(u32, f64)>, number: usize) {
    scores.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then_with(|| columns.by_id(one.0, other.0)));
    scores.truncate(number);
}

/// The new rows one step away from the seeds, at most the `most` strongest, ascending.
fn around<I: Iterator<Item = (u32, f64)>>(
    columns: &BlockColumns,
    filter: &BlockFilter<'_>,
    seeds: &[u32],
    others: impl Fn(u32) -> I,
    is_known: impl Fn(u32) -> bool,
    most: usize,
) -> Vec<u32> {
    let mut strengths = Similarities::default();
    for (there, strength) in seeds.iter().flat_map(|&seed| others(seed)) {
        if !is_known(there) && filter.passes_at_any_age(there) {
            let best = strengths.entry(there).or_insert(f64::NEG_INFINITY);
            *best = best.max(strength);
        }
    }
    let mut found: Vec<(u32, f64)> = strengths.into_iter().collect();
    cut(columns, &mut found, most);
    once_each(found.into_iter().map(|(row, _)| row))
}
