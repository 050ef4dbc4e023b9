//! The reference score: how alike two vectors are, to the last bit.
//!
//! Products and sums in float64; lane `j` of eight adds the components `i ≡ j (mod 8)` in order; the lanes are added as
//! a fixed tree; the sum is divided by the product of both norms, which are roots of sums of the same shape; the
//! quotient is rounded once to float32. A product of two float32 is exact in float64, so a fused multiply-add gives the
//! same bits and a compiler may use any registers.
//!
//! A vector without a direction, zero or with a component that is not finite, scores 0 with everything. No score is a
//! NaN or a negative zero.

use super::cpu::Cpu;
use super::lanes::has_direction;

/// A query, ready to be held against rows.
#[derive(Clone, Debug)]
pub struct Scorer {
    query: Vec<f64>,
    norm: f64,
    cpu: Cpu,
}

impl Scorer {
    /// Takes in a query.
    #[must_use]
    pub fn new(query: &[f32], cpu: Cpu) -> Self {
        let wide: Vec<f64> = query.iter().map(|&value| f64::from(value)).collect();
        let (_, square) = cpu.dot_and_square(&wide, query);
        Self {
            query: wide,
            norm: square.sqrt(),
            cpu,
        }
    }

    /// The norm of the query.
    #[must_use]
    pub fn norm(&self) -> f64 {
        self.norm
    }

    /// The reference score of the query and a row of the same dimension.
    #[inline]
    #[must_use]
    pub fn score(&self, row: &[f32]) -> f32 {
        let (dot, square) = self.cpu.dot_and_square(&self.query, row);
        let norm = square.sqrt();
        if has_direction(self.norm) && has_direction(norm) {
            // Adding zero turns a negative zero into a positive one and changes nothing else.
            (dot / (self.norm * norm)) as f32 + 0.0
        } else {
            0.0
        }
    }
}
