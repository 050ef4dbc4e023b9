//! Turns a vector into codes, and measures how much they miss.

use super::lanes::{LANES, has_direction, tree};

/// What a code of zero is stored as.
pub(super) const ZERO_CODE: u8 = 128;
const LARGEST_CODE: f64 = 127.0;
/// What codes leave out, relative to the norm of the vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// How much a code of one stands for.
    pub scale: f32,
    /// At least the norm of what the codes miss.
    pub residual: f32,
}

/// Added to a small number, it leaves the number's nearest integer in the low bits.
pub(super) const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// How a vector becomes codes, eight components at a time; the last eight are filled up with zeros.
pub(super) trait Encode {
    /// The lanes of its square, and its largest component.
    fn measure(eights: Eights<'_>) -> ([f64; LANES], f32);
    /// Writes the codes; returns the lanes of the square of what they miss.
    fn quantise(eights: Eights<'_>, step: f64, codes: &mut [[u8; LANES]]) -> [f64; LANES];
}

/// A vector in steps of eight components.
#[derive(Clone, Copy)]
pub(super) struct Eights<'a> {
    whole: &'a [[f32; LANES]],
    last: [f32; LANES],
}

impl<'a> Eights<'a> {
    #[inline(always)]
    fn new(vector: &'a [f32]) -> Self {
        let (whole, rest) = vector.as_chunks::<LANES>();
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        Self { whole, last }
    }

    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.whole.len() + 1
    }

    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> &[f32; LANES] {
        if at < self.whole.len() {
            &self.whole[at]
        } else {
            &self.last
        }
    }
}

/// How many eights a vector takes, when one more is always there.
pub(super) const fn eights_of(dim: usize) -> usize {
    dim / LANES + 1
}

/// Codes of a vector, as they are stored, and zeros behind them, up to [`eights_of`].
///
/// A vector without direction becomes zeros without a loss, as its score is zero.
#[inline(always)]
pub(super) fn encode<E: Encode>(vector: &[f32], codes: &mut [[u8; LANES]]) -> Loss {
    let eights = Eights::new(vector);
    let (squares, top) = E::measure(eights);
    let norm = tree(squares).sqrt();
    if !has_direction(norm) {
        codes.fill([ZERO_CODE; LANES]);
        return Loss {
            scale: 0.0,
            residual: 0.0,
        };
    }
    let scale = (f64::from(top) / LARGEST_CODE / norm) as f32;
    let misses = E::quantise(eights, f64::from(scale) * norm, codes);
    // Rounding in float64 falsifies each difference by less than 2^-50 of the norm taken together, and the sum and its
    // root by less than one part in 2^34 for every dimension that is allowed.
    let residual = tree(misses).sqrt() / norm * (1.0 + 2f64.powi(-34)) + 2f64.powi(-50);
    Loss {
        scale,
        residual: round_up(residual),
    }
}

/// The least float32 that is not below.
#[inline(always)]
pub(super) fn round_up(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// The greatest float32 that is not above.
#[inline(always)]
pub(super) fn round_down(value: f64) -> f32 {
    -round_up(-value)
}
