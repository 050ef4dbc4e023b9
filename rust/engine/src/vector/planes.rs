//! What is the product of whole numbers with signs, if only bits are counted?
//!
//! The numbers are raised so that none is negative, and taken apart: plane `p` holds bit `p` of each, at the place that its
//! sign has in a code. Bits that a plane and a code have in common count 2^`p` each.

/// How many bytes a code takes.
pub const CODE_BYTES: usize = 16;
/// The numbers lie within -32 to 31.
const PLANES: usize = 6;
const RAISED: i32 = 1 << (PLANES - 1);

/// The numbers of one token of a question. Where there is none, it is 0 as long as the code has no sign there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planes {
    planes: [u128; PLANES],
    sum: i32,
}

impl Planes {
    /// Puts a number in its place, where none is yet.
    pub fn put(&mut self, number: i32, place: usize) {
        let raised = (number + RAISED) as u128;
        for (plane, bits) in self.planes.iter_mut().enumerate() {
            *bits |= (raised >> plane & 1) << place;
        }
        self.sum += number;
    }
}

/// The greatest product of a token of a question with the signs of a record's token, which lie in as many codes as the numbers in
/// planes; 0 if there is none.
#[inline(always)]
pub(super) fn best_product(parts: &[Planes], codes: &[[u8; CODE_BYTES]]) -> i32 {
    let mut best = None;
    for token in codes.chunks_exact(parts.len()) {
        let mut sum = 0;
        for (part, code) in parts.iter().zip(token) {
            let code = u128::from_le_bytes(*code);
            sum -= ones(code) * RAISED;
            for (plane, bits) in part.planes.iter().enumerate() {
                sum += ones(code & bits) << plane;
            }
        }
        best = best.max(Some(sum));
    }
    // What is positive counts once in that sum: what is not counts against it.
    let all: i32 = parts.iter().map(|part| part.sum).sum();
    best.map_or(0, |best| 2 * best - all)
}

#[inline(always)]
fn ones(bits: u128) -> i32 {
    bits.count_ones() as i32
}
