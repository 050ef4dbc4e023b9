//! Which documents of a choice score highest, exactly, and in an order that the caller gives?
//!
//! A sweep adds in single precision. Whatever comes as near to the worst of the best as its sums may be off is scored again
//! in double precision, so neither the choice nor its order depends on how the index happens to be cut into parts.

use std::cmp::Ordering;

use super::answer::TextQuestion;
use super::lists::ListCursor;
use super::sweep::{SLACK, sweep};

impl<'a> TextQuestion<'a> {
    /// Lets only records pass that are allowed, asked by their slots after all else.
    #[must_use]
    pub fn only(mut self, allows: &'a dyn Fn(u32) -> bool) -> Self {
        for sieve in &mut self.sieves {
            sieve.allows = Some(allows);
        }
        self
    }
}

impl TextQuestion<'_> {
    /// The best documents that are wanted, best first, with their scores rounded to single precision. `wanted` gets a slot
    /// and gives what the document is called here, or nothing; `order` says which of equals comes first.
    pub fn best_where<T>(
        &self,
        limit: usize,
        wanted: impl Fn(u32) -> Option<T>,
        order: impl Fn(&T, &T) -> Ordering,
    ) -> Vec<(T, f32)> {
        let mut best: Vec<(T, f32)> = Vec::new();
        if limit == 0 {
            return best;
        }
        let parts = self.index.parts();
        let pieces = parts.iter().enumerate();
        for (part, asked) in pieces.flat_map(|(at, part)| self.asked_of(at).map(move |asked| (part, asked))) {
            let bar = |best: &[(T, f32)]| match best.last() {
                Some(worst) if best.len() == limit => worst.1 / SLACK,
                _ => 0.0,
            };
            let start = bar(&best);
            let mut cursors = vec![ListCursor::default(); asked.len()];
            let mut score = |own: u32| {
                let length = part.columns.lengths[own as usize];
                asked.iter().zip(&mut cursors).fold(0.0, |sum, (word, cursor)| {
                    match u32::from(word.list.count_after(cursor, own)) {
                        0 => sum,
                        count => sum + self.norm.score(word.weight, count, length),
                    }
                })
            };
            sweep(&asked, &part.columns.lengths, self.norm, start, |own, _| {
                let slot = part.columns.slots[own as usize];
                let doc = own + part.first;
                // A dead document has another one in its place, or none.
                if self.index.doc_of(slot) == Some(doc)
                    && let Some(name) = wanted(slot)
                {
                    let score = score(own) as f32;
                    let comes_before =
                        |other: &(T, f32)| other.1.total_cmp(&score).then_with(|| order(&name, &other.0)).is_ge();
                    // Most come behind the worst of those that are kept.
                    if best.len() < limit || !best.last().is_some_and(comes_before) {
                        let place = best.partition_point(comes_before);
                        best.truncate(limit - 1);
                        best.insert(place, (name, score));
                    }
                }
                bar(&best)
            });
        }
        best
    }

    /// What the document of a slot scores; 0 if there is none.
    pub fn score_in(&self, slot: u32) -> f64 {
        self.index.doc_of(slot).map_or(0.0, |doc| self.score(doc))
    }

    /// The places of the words that the document of a slot has.
    pub fn words_in(&self, slot: u32) -> Vec<usize> {
        self.index.doc_of(slot).map_or_else(Vec::new, |doc| self.words_of(doc))
    }
}
