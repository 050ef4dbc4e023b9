//! Multiplies signed whole numbers with codes of signs by counting bits.
//!
//! The numbers are taken apart: plane `p` holds bit `p` of each in two's complement, at the place that its sign has in a code. Bits
//! that a plane and a code have in common count 2^`p` each, and those of the last plane as much less.

/// How many bytes a code takes.
pub const CODE_BYTES: usize = 16;
/// The numbers lie within -32 to 31.
const PLANES: usize = 6;
const LAST: usize = PLANES - 1;

/// The numbers of one token of a question; where there is none, it is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planes {
    planes: [[u64; 2]; PLANES],
    sum: i32,
}

impl Planes {
    /// Puts a number in its place, where none is yet.
    pub fn put(&mut self, number: i32, place: usize) {
        let bits = number as u32;
        for (at, plane) in self.planes.iter_mut().enumerate() {
            plane[place / 64] |= u64::from(bits >> at & 1) << (place % 64);
        }
        self.sum += number;
    }
}

/// The greatest product of a token of a question with the signs of the tokens of a record; 0 if there is none.
#[inline(always)]
pub(super) fn best_product(parts: &[Planes], codes: &[[u8; CODE_BYTES]]) -> i32 {
    // Plain loops: what a closure does is compiled by itself, without the instructions of whoever calls it.
    let mut best = None;
    if let [only] = parts {
        for code in codes {
            best = better(best, sum_of(only, code));
        }
    } else {
        for token in codes.chunks_exact(parts.len()) {
            let (mut sum, mut at) = (0, 0);
            while at < parts.len() {
                sum += sum_of(&parts[at], &token[at]);
                at += 1;
            }
            best = better(best, sum);
        }
    }
    let mut all = 0;
    for part in parts {
        all += part.sum;
    }
    // What is positive counts once in that sum: what is not counts against it.
    match best {
        Some(best) => 2 * best - all,
        None => 0,
    }
}

#[inline(always)]
fn better(best: Option<i32>, sum: i32) -> Option<i32> {
    match best {
        Some(best) if best >= sum => Some(best),
        _ => Some(sum),
    }
}

/// The sum of the numbers whose signs are positive.
#[inline(always)]
fn sum_of(part: &Planes, code: &[u8; CODE_BYTES]) -> i32 {
    let code = u128::from_le_bytes(*code);
    let (low, high) = (code as u64, (code >> 64) as u64);
    let (mut sum, mut at) = (-(ones(low, high, part.planes[LAST]) << LAST), 0);
    while at < LAST {
        sum += ones(low, high, part.planes[at]) << at;
        at += 1;
    }
    sum
}

#[inline(always)]
fn ones(low: u64, high: u64, plane: [u64; 2]) -> i32 {
    ((low & plane[0]).count_ones() + (high & plane[1]).count_ones()) as i32
}
