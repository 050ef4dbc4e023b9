//! Finds the documents that score highest, without scoring all of them.
//!
//! One span after the other: the words that could alone lift a document over the threshold add their scores into an array
//! that fits the cache; only documents that got far enough are then looked up in the lists of the other words. The words
//! come in one order everywhere and are added in double precision, so a sum is the score itself: it depends neither on who
//! else is there nor on how the index happens to be cut into parts.

use super::lists::{SPAN_DOCS, WordList};
use chronomemory_state::segment::Column;

/// How soon a second occurrence counts less, and how much the length of a document counts (Anserini's values).
pub const K1: f64 = 0.9;
pub const B: f64 = 0.4;
/// A look-up costs about as much as so many steps along a list.
pub const LOOKUP_STEPS: usize = 16;
/// Where fewer than one in so many documents of a span have a word, they are gone through one by one, and not the span.
const SPARSE: usize = 16;
/// Sums of the same numbers in another order are off by less than this.
const SLACK: f64 = 1.0 + 1e-9;

/// What the length of a document does to its counts.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    fixed: f64,
    per_word: f64,
}

impl Norm {
    /// For documents of this length on average.
    pub fn of(average_length: f64) -> Self {
        Self {
            fixed: K1 * (1.0 - B),
            per_word: K1 * B / average_length.max(f64::MIN_POSITIVE),
        }
    }

    /// What a word that stands `count` times in a document of `length` adds to its score.
    pub fn score(self, weight: f64, count: u32, length: u32) -> f64 {
        let count = f64::from(count);
        weight * count * (K1 + 1.0) / (count + self.fixed + self.per_word * f64::from(length))
    }
}

/// What a rare word is worth.
pub fn weight_of(docs_with: usize, docs: usize) -> f64 {
    let (with, all) = (docs_with as f64, docs as f64);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// A word of a question in one part of an index.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub weight: f64,
    pub list: WordList<'a>,
}

/// Where a word stands in the span at hand.
struct Here<'a> {
    places: &'a [u16],
    counts: &'a [u16],
    weight: f64,
    bound: f64,
}

/// Shows the documents of a part that may be among the best: the first reach `threshold`, the next what `see` answers.
pub fn sweep(
    asked: &[Asked<'_>],
    lengths: &Column<u32>,
    norm: Norm,
    mut threshold: f64,
    mut see: impl FnMut(u32, f64) -> f64,
) {
    let mut next_runs = vec![0_usize; asked.len()];
    let mut scores = vec![0.0; SPAN_DOCS.min(lengths.len())];
    let mut candidates: Vec<u16> = Vec::new();
    loop {
        let heads = asked
            .iter()
            .zip(&next_runs)
            .filter_map(|(word, &at)| word.list.runs.get(at));
        let Some(span) = heads.map(|run| run.span).min() else {
            return;
        };
        let here: Vec<Here<'_>> = asked
            .iter()
            .zip(&mut next_runs)
            .map(|(word, at)| here(word, at, span, norm))
            .collect();
        // What the words from each one on can add at most.
        let mut rest = vec![0.0; here.len() + 1];
        for at in (0..here.len()).rev() {
            rest[at] = rest[at + 1] + here[at].bound;
        }
        if rest[0] * SLACK < threshold {
            continue;
        }
        let base = span as usize * SPAN_DOCS;
        let lengths = lengths.slice(base..lengths.len().min(base + SPAN_DOCS));
        // A place without a length is one of a file that failed a check.
        let add = |scores: &mut [f64], word: &Here<'_>| {
            let known = lengths.len().min(scores.len());
            let (scores, lengths) = (&mut scores[..known], &lengths[..known]);
            for (&place, &count) in word.places.iter().zip(word.counts) {
                let place = usize::from(place);
                if place < known {
                    scores[place] += norm.score(word.weight, u32::from(count), lengths[place]);
                }
            }
        };
        let essential = (0..here.len())
            .take_while(|&at| rest[at] * SLACK >= threshold)
            .count()
            .max(1);
        let (mut added, others) = here.split_at(essential);
        added.iter().for_each(|word| add(&mut scores, word));
        candidates.clear();
        let least = threshold / SLACK - rest[essential];
        if is_sparse(added) {
            gather(added, &scores, least, &mut candidates);
        } else {
            collect(&scores[..lengths.len()], least, &mut candidates);
        }
        for (at, word) in others.iter().enumerate() {
            let most = rest[essential + at];
            candidates.retain(|&place| (scores[usize::from(place)] + most) * SLACK >= threshold);
            if candidates.len() * LOOKUP_STEPS > word.places.len() {
                add(&mut scores, word);
                added = &here[..=essential + at];
                continue;
            }
            for &place in &candidates {
                if let Ok(found) = word.places.binary_search(&place) {
                    let (place, count) = (usize::from(place), u32::from(word.counts[found]));
                    scores[place] += norm.score(word.weight, count, lengths[place]);
                }
            }
        }
        for &place in &candidates {
            let score = scores[usize::from(place)];
            if score >= threshold {
                threshold = threshold.max(see((base + usize::from(place)) as u32, score));
            }
        }
        if is_sparse(added) {
            for word in added {
                let places = word.places.iter().map(|&place| usize::from(place));
                places.for_each(|place| scores.get_mut(place).into_iter().for_each(|score| *score = 0.0));
            }
        } else {
            scores.fill(0.0);
        }
    }
}

/// Whether few documents of a span have one of these words.
fn is_sparse(words: &[Here<'_>]) -> bool {
    words.iter().map(|word| word.places.len()).sum::<usize>() * SPARSE < SPAN_DOCS
}

fn here<'a>(word: &Asked<'a>, at: &mut usize, span: u32, norm: Norm) -> Here<'a> {
    let Some(run) = word.list.runs.get(*at).filter(|run| run.span == span) else {
        return Here {
            places: &[],
            counts: &[],
            weight: 0.0,
            bound: 0.0,
        };
    };
    let (places, counts) = word.list.run(*at);
    *at += 1;
    Here {
        places,
        counts,
        weight: word.weight,
        bound: norm.score(word.weight, run.most, run.shortest),
    }
}

/// What [`collect`] finds, where the scores that are above nothing are those of these words.
fn gather(words: &[Here<'_>], scores: &[f64], least: f64, candidates: &mut Vec<u16>) {
    let least = least.max(f64::MIN_POSITIVE);
    for word in words {
        let places = word.places.iter().copied();
        candidates.extend(places.filter(|&place| scores.get(usize::from(place)).is_some_and(|&score| score >= least)));
    }
    candidates.sort_unstable();
    candidates.dedup();
}

/// The places whose scores are above nothing and at least this; eight at a time, because most are not.
fn collect(scores: &[f64], least: f64, candidates: &mut Vec<u16>) {
    let least = least.max(f64::MIN_POSITIVE);
    let (eights, tail) = scores.as_chunks::<8>();
    for (at, eight) in eights.iter().enumerate() {
        if eight.iter().fold(false, |any, &score| any | (score >= least)) {
            let found = (0..8).filter(|&one| eight[one] >= least);
            candidates.extend(found.map(|one| (at * 8 + one) as u16));
        }
    }
    let start = eights.len() * 8;
    let found = (0..tail.len()).filter(|&one| tail[one] >= least);
    candidates.extend(found.map(|one| (start + one) as u16));
}
