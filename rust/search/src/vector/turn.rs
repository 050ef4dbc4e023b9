//! Rotates a vector, so that each of its components says as much as any other.

/// A rotation is this often a flip of signs and a Hadamard transform.
const ROUNDS: u64 = 2;
/// The fewest components that are turned.
const SMALLEST_TURN: usize = 128;
/// So many components are taken apart for the first rounds.
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
    pub fn turn(&self, values: &mut [f64], spare: &mut Vec<f64>) {
        for flips in &self.flips {
            for (value, flip) in values.iter_mut().zip(flips) {
                *value *= flip;
            }
            transform(values, spare);
        }
    }
}

/// The Hadamard transform: only sums and differences of pairs, in a fixed order.
///
/// Pairs that lie close together are many small steps to a processor. So the first three rounds are done with all first of eight
/// beside each other, then all second, and so on: the same sums of the same numbers.
fn transform(values: &mut [f64], spare: &mut Vec<f64>) {
    let eights = values.len() / BESIDE;
    spare.resize(values.len(), 0.0);
    for (at, eight) in values.as_chunks::<BESIDE>().0.iter().enumerate() {
        for (place, value) in eight.iter().enumerate() {
            spare[place * eights + at] = *value;
        }
    }
    rounds(spare, eights);
    for (at, eight) in values.as_chunks_mut::<BESIDE>().0.iter_mut().enumerate() {
        for (place, value) in eight.iter_mut().enumerate() {
            *value = spare[place * eights + at];
        }
    }
    rounds(values, BESIDE);
}

/// The rounds from pairs at this distance on.
fn rounds(values: &mut [f64], first: usize) {
    let mut half = first;
    while half < values.len() {
        for pair in values.chunks_exact_mut(2 * half) {
            let (one, other) = pair.split_at_mut(half);
            for (one, other) in one.iter_mut().zip(other) {
                (*one, *other) = (*one + *other, *one - *other);
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
