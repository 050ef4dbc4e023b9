//! What is known of a query so that its score with a row can be bounded.
//!
//! With query and row divided by their norms, `q = s·d + f` and `x = a·c + e` in codes `d` and `c`,
//!
//! ```text
//! q·x = s·a·⟨d,c⟩ + (s·d)·e + f·x,    so    |q·x - s·a·⟨d,c⟩| ≤ ‖s·d‖·‖e‖ + ‖f‖·‖x‖
//! ```
//!
//! where `‖x‖` is 1. To this comes what rounding may do to the reference score: less than 2^-24 when it becomes a
//! float32 of at most about 1, and `dim`·2^-53 in the sums. A slack of 2^-23 + `dim`·2^-53 leaves half of it for the
//! arithmetic of the bound itself, in float64.

use super::codes::{Loss, eights_of, round_down, round_up};
use super::cpu::Cpu;
use super::lanes::{LANES, has_direction};
use super::rows::VectorRows;
use super::score::Scorer;
use super::sweep::Panel;
use super::top::rank_of;

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
