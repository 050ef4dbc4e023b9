//! Rotates a vector, so that each of its components says as much as any other.

use std::ops::{Add, Sub};

/// A rotation is this often a flip of signs and a Hadamard transform.
const ROUNDS: u64 = 2;
/// The fewest components that are turned.
const SMALLEST_TURN: usize = 128;
/// So many components are taken together for the first rounds.
const BESIDE: usize = 8;

/// The rotation of vectors of one length. It is part of what bytes mean, and never changes.
pub(super) struct Rotation {
    /// How many components they have.
    pub dim: usize,
    /// The signs of each round.
    flips: Vec<Vec<f64>>,
}

impl Rotation {
    /// Of vectors of this length.
    pub fn of(dim: usize) -> Self {
        let size = dim.next_power_of_two().max(SMALLEST_TURN);
        let flip = |round: u64, at: usize| {
            let bits = mixed(round * 4096 + at as u64 / 64 + 1);
            if bits >> (at % 64) & 1 == 1 { 1.0 } else { -1.0 }
        };
        Self {
            dim,
            flips: (0..ROUNDS)
                .map(|round| (0..size).map(|at| flip(round, at)).collect())
                .collect(),
        }
    }

    /// How many components a turned vector has: a power of two, at least 128.
    pub fn size(&self) -> usize {
        self.flips[0].len()
    }

    /// Turns a vector in its place, behind which there is room for zeros; the result is stretched by a constant.
    pub fn turn(&self, values: &mut [f64]) {
        for flips in &self.flips {
            for (value, flip) in values.iter_mut().zip(flips) {
                *value *= flip;
            }
            transform(values);
        }
    }
}

/// An orthogonal transform of vectors of any length, which keeps their length. It is part of what codes of rows mean.
///
/// Each round flips signs and takes the Hadamard transform of a window: the largest power of two that fits, at the beginning and at the end
/// in turn.
pub(super) struct Turn {
    window: usize,
    scale: f32,
    flips: Vec<Vec<f32>>,
}

impl Turn {
    /// Of vectors of this length.
    pub fn of(dim: usize) -> Self {
        let window = 1 << dim.ilog2();
        let rounds = if window == dim { 2 } else { 4 };
        let flip = |round: u64, at: usize| {
            let bits = mixed(round * 4096 + at as u64 / 64 + 1);
            if bits >> (at % 64) & 1 == 1 { 1.0 } else { -1.0 }
        };
        Self {
            window,
            scale: (window as f32).sqrt().recip(),
            flips: (0..rounds)
                .map(|round| (0..window).map(|at| flip(round, at)).collect())
                .collect(),
        }
    }

    /// Turns a vector in its place.
    #[inline(always)]
    pub fn turn(&self, values: &mut [f32]) {
        for (round, flips) in self.flips.iter().enumerate() {
            let start = if round % 2 == 0 { 0 } else { values.len() - self.window };
            let window = &mut values[start..start + self.window];
            for (value, flip) in window.iter_mut().zip(flips) {
                *value *= flip * self.scale;
            }
            transform(window);
        }
    }
}

/// The Hadamard transform: only sums and differences of pairs, in a fixed order.
///
/// Pairs that lie close together are many small steps to a processor. So the first three rounds are done in eight components at a time.
#[inline(always)]
fn transform<T: Number>(values: &mut [T]) {
    if values.len() < BESIDE {
        return rounds(values, 1);
    }
    for eight in values.as_chunks_mut::<BESIDE>().0 {
        pairs::<T, 1>(eight);
        pairs::<T, 2>(eight);
        pairs::<T, 4>(eight);
    }
    rounds(values, BESIDE);
}

/// One round in eight components.
#[inline(always)]
fn pairs<T: Number, const HALF: usize>(eight: &mut [T; BESIDE]) {
    let old = *eight;
    for at in 0..BESIDE {
        eight[at] = match at & HALF {
            0 => old[at] + old[at ^ HALF],
            _ => old[at ^ HALF] - old[at],
        };
    }
}

/// A number that can be added and subtracted.
trait Number: Copy + Add<Output = Self> + Sub<Output = Self> {}
impl Number for f32 {}
impl Number for f64 {}

/// The rounds from pairs at this distance on.
#[inline(always)]
fn rounds<T: Number>(values: &mut [T], first: usize) {
    let mut half = first;
    while half < values.len() {
        for pair in values.chunks_exact_mut(2 * half) {
            let (one, other) = pair.split_at_mut(half);
            for at in 0..half {
                (one[at], other[at]) = (one[at] + other[at], one[at] - other[at]);
            }
        }
        half *= 2;
    }
}

/// 64 bits that look like any others (SplitMix64 at this place of its sequence).
pub(super) fn mixed(place: u64) -> u64 {
    let mut bits = place.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}
