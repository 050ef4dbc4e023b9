//! Computes SHA-256 of many byte runs at the same time, with AVX-512.
//!
//! The steps of one SHA-256 wait for each other, so sixteen runs take the same step together, a lane each; a lane whose
//! run has ended takes the next run. The result is checked against `ring` before it is relied on.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_permutex2var_epi32, _mm512_ror_epi32, _mm512_set_epi32,
    _mm512_set1_epi32, _mm512_set4_epi64, _mm512_shuffle_epi8, _mm512_srli_epi32, _mm512_storeu_si512,
    _mm512_ternarylogic_epi32,
};
use std::sync::LazyLock;

use super::sha256_raw;

/// How many runs are hashed at once.
pub const LANES: usize = 16;
const BLOCK_BYTES: usize = 64;
/// The last block of a run ends with the number of its bits.
const COUNT_BYTES: usize = 8;

type HashBlock = [u8; BLOCK_BYTES];
/// The eight words of a digest, each for all lanes.
type LaneWords = [[u32; LANES]; 8];

/// What a digest begins with (FIPS 180-4, 5.3.3).
const BEGINNING: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// What is added in each of the 64 rounds (FIPS 180-4, 4.2.2).
#[rustfmt::skip]
const ROUNDS: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// Whether this processor can, and does it right: in every lane, and around the end of a block.
pub static IS_THERE: LazyLock<bool> = LazyLock::new(|| {
    if !is_x86_feature_detected!("avx512f") || !is_x86_feature_detected!("avx512bw") {
        return false;
    }
    let bytes: Vec<u8> = (0..1024_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let runs: Vec<&[u8]> = (0..160).map(|number| &bytes[number..number * 4 + 1]).collect();
    let mut digests = vec![[0; 32]; runs.len()];
    // SAFETY: the processor was just asked.
    unsafe { hash_with_avx512(&runs, &mut digests) };
    runs.iter().map(|run| sha256_raw(run)).eq(digests)
});

/// The digests of some runs; [`IS_THERE`] must be true.
pub fn hash(runs: &[&[u8]], digests: &mut [[u8; 32]]) {
    assert!(*IS_THERE, "the caller checks that first");
    // SAFETY: the processor has what is needed, or it would not be there.
    unsafe { hash_with_avx512(runs, digests) };
}

/// A run that is hashed beside others.
struct Lane<'a> {
    /// Which of them it is; `None` if there is no further one.
    run: Option<usize>,
    whole: &'a [HashBlock],
    /// The last block with its padding, and one more if that has no room for the count.
    own: [HashBlock; 2],
    /// How many blocks there are, and which comes next.
    blocks: usize,
    next: usize,
}

impl<'a> Lane<'a> {
    fn of(number: usize, run: &'a [u8]) -> Self {
        let (whole, rest) = run.as_chunks();
        let mut own = [[0; BLOCK_BYTES]; 2];
        own[0][..rest.len()].copy_from_slice(rest);
        own[0][rest.len()] = 0x80;
        let ends = if rest.len() < BLOCK_BYTES - COUNT_BYTES { 1 } else { 2 };
        own[ends - 1][BLOCK_BYTES - COUNT_BYTES..].copy_from_slice(&(8 * run.len() as u64).to_be_bytes());
        Self {
            run: Some(number),
            whole,
            own,
            blocks: whole.len() + ends,
            next: 0,
        }
    }

    /// One that has nothing to do.
    fn idle() -> Self {
        Self {
            run: None,
            whole: &[],
            own: [[0; BLOCK_BYTES]; 2],
            blocks: usize::MAX,
            next: 0,
        }
    }

    /// The block that comes next.
    fn block(&self) -> &HashBlock {
        match self.next.checked_sub(self.whole.len()) {
            None => &self.whole[self.next],
            Some(end) => &self.own[end.min(1)],
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn hash_with_avx512(runs: &[&[u8]], digests: &mut [[u8; 32]]) {
    let mut waiting = runs.iter().copied().enumerate();
    let mut words = [[0; LANES]; 8];
    let mut lanes: [Lane<'_>; LANES] = std::array::from_fn(|place| begin(place, waiting.next(), &mut words));
    while lanes.iter().any(|lane| lane.run.is_some()) {
        // No lane ends before the shortest does.
        let steps = lanes.iter().map(|lane| lane.blocks - lane.next).min();
        for _ in 0..steps.unwrap_or_default() {
            compress(&mut words, &lanes.each_ref().map(Lane::block));
            lanes.iter_mut().for_each(|lane| lane.next += 1);
        }
        for (place, lane) in lanes
            .iter_mut()
            .enumerate()
            .filter(|(_, lane)| lane.next == lane.blocks)
        {
            if let Some(digest) = lane.run.and_then(|run| digests.get_mut(run)) {
                for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(&words) {
                    *bytes = word[place].to_be_bytes();
                }
            }
            *lane = begin(place, waiting.next(), &mut words);
        }
    }
}

/// Lets a lane begin with another run.
fn begin<'a>(place: usize, next: Option<(usize, &'a [u8])>, words: &mut LaneWords) -> Lane<'a> {
    for (word, beginning) in words.iter_mut().zip(BEGINNING) {
        word[place] = beginning;
    }
    next.map_or_else(Lane::idle, |(number, run)| Lane::of(number, run))
}

/// Takes one block of each lane (FIPS 180-4, 6.2.2).
#[target_feature(enable = "avx512f,avx512bw")]
fn compress(words: &mut LaneWords, blocks: &[&HashBlock; LANES]) {
    // SAFETY: a block has the 64 bytes that are loaded, and so have the words of all lanes; no alignment is needed.
    let mut message = turned(blocks.map(|block| unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }));
    let before = words
        .each_ref()
        .map(|word| unsafe { _mm512_loadu_si512(word.as_ptr().cast()) });
    let mut now = before;
    for (sixteen, added) in ROUNDS.as_chunks::<16>().0.iter().enumerate() {
        for at in 0..16 {
            if sixteen > 0 {
                let (near, far) = (message[(at + 1) % 16], message[(at + 14) % 16]);
                let near = xor(
                    _mm512_ror_epi32::<7>(near),
                    _mm512_ror_epi32::<18>(near),
                    _mm512_srli_epi32::<3>(near),
                );
                let far = xor(
                    _mm512_ror_epi32::<17>(far),
                    _mm512_ror_epi32::<19>(far),
                    _mm512_srli_epi32::<10>(far),
                );
                message[at] = sum(sum(message[at], near), sum(message[(at + 9) % 16], far));
            }
            let [a, b, c, d, e, f, g, h] = now;
            let of_e = xor(
                _mm512_ror_epi32::<6>(e),
                _mm512_ror_epi32::<11>(e),
                _mm512_ror_epi32::<25>(e),
            );
            let of_a = xor(
                _mm512_ror_epi32::<2>(a),
                _mm512_ror_epi32::<13>(a),
                _mm512_ror_epi32::<22>(a),
            );
            // Where a bit of `e` is set that of `f`, else that of `g`; and what most of `a`, `b` and `c` say.
            let (choice, majority) = (
                _mm512_ternarylogic_epi32::<0xca>(e, f, g),
                _mm512_ternarylogic_epi32::<0xe8>(a, b, c),
            );
            let given = sum(message[at], _mm512_set1_epi32(added[at] as i32));
            let first = sum(sum(h, given), sum(of_e, choice));
            now = [sum(first, sum(of_a, majority)), a, b, c, sum(d, first), e, f, g];
        }
    }
    for ((word, before), now) in words.iter_mut().zip(before).zip(now) {
        // SAFETY: there is room for the sixteen words that are stored; no alignment is needed.
        unsafe { _mm512_storeu_si512(word.as_mut_ptr().cast(), sum(before, now)) };
    }
}

/// The sixteen words of each block become sixteen vectors of one word of every block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn turned(blocks: [__m512i; LANES]) -> [__m512i; LANES] {
    // Words are spelled with the largest byte first.
    let (high, low) = (0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let mut rows = blocks.map(|block| _mm512_shuffle_epi8(block, _mm512_set4_epi64(high, low, high, low)));
    let first_halves = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    let second_halves = _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
    // Shuffled four times as two halves of a deck are, 256 cards have changed their rows for their columns.
    for _ in 0..4 {
        let before = rows;
        for at in 0..LANES / 2 {
            let (one, other) = (before[at], before[at + LANES / 2]);
            rows[2 * at] = _mm512_permutex2var_epi32(one, first_halves, other);
            rows[2 * at + 1] = _mm512_permutex2var_epi32(one, second_halves, other);
        }
    }
    rows
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sum(one: __m512i, other: __m512i) -> __m512i {
    _mm512_add_epi32(one, other)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor(one: __m512i, other: __m512i, third: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0x96>(one, other, third)
}
