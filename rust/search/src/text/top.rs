//! Finds the best documents among some, exactly, in an order of the caller.

use std::cmp::Ordering;

use super::answer::TextQuestion;
use super::index::NO_SPAN;
use super::sweep::sweep;

/// The greatest relative error of rounding to single precision.
const ROUNDED: f64 = 1.0 + 1e-7;

impl<'a> TextQuestion<'a> {
    /// Adds a filter by slot, which is evaluated last.
    #[must_use]
    pub fn only(mut self, allows: &'a dyn Fn(u32) -> bool) -> Self {
        for filter in &mut self.filters {
            filter.allows = Some(allows);
        }
        self
    }
}

impl TextQuestion<'_> {
    /// The best documents that are wanted, best first, with their scores rounded to single precision. `named` gets a slot
    /// and gives what the document is called here, or nothing; `order` says which of equals comes first.
    pub fn best_where<T>(
        &self,
        limit: usize,
        named: impl Fn(u32) -> Option<T>,
        wanted: impl Fn(&T) -> bool,
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
                Some(worst) if best.len() == limit => f64::from(worst.1) / ROUNDED,
                _ => 0.0,
            };
            let (start, mut span) = (bar(&best), NO_SPAN);
            sweep(&asked, &part.columns.lengths, self.norm, start, |own, score| {
                let slot = part.slot_near(own, &mut span);
                let doc = own + part.first;
                // A dead document has another one in its place, or none.
                if self.index.doc_of(slot) == Some(doc)
                    && let Some(name) = named(slot)
                {
                    let score = score as f32;
                    let comes_before =
                        |other: &(T, f32)| other.1.total_cmp(&score).then_with(|| order(&name, &other.0)).is_ge();
                    // Most come behind the worst of those that are kept, whether they are wanted or not.
                    let is_good = best.len() < limit || !best.last().is_some_and(comes_before);
                    if is_good && wanted(&name) {
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

    /// The document of a slot.
    pub fn doc_of(&self, slot: u32) -> Option<u32> {
        self.index.doc_of(slot)
    }
}
