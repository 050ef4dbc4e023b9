//! How do AVX2, AVX-VNNI and AVX-512 multiply codes?
//!
//! Codes of rows are unsigned, codes of queries signed: that is what `vpdpbusd` multiplies, four products to a sum
//! of 32 bits, without saturation. Plain AVX2 has only `vpmaddubsw`, which saturates at 16 bits; so there both are
//! widened to 16 bits first, and `vpmaddwd` is exact.

use std::arch::x86_64::{
    __m256i, __m512i, _mm_loadu_si128, _mm_set1_epi32, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_cvtepu8_epi16,
    _mm256_dpbusd_avx_epi32, _mm256_hadd_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_permute4x64_epi64,
    _mm256_set1_epi32, _mm256_setzero_si256, _mm256_storeu_si256, _mm512_add_epi32, _mm512_dpbusd_epi32,
    _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_storeu_si512,
};

use crate::vector::companion::{self, GROUP_ROWS, Loss};
use crate::vector::score;
use crate::vector::sweep::{self, Dots, Run, Survivor};

#[target_feature(enable = "avx2")]
pub(super) fn dot_and_square_avx2(query: &[f64], row: &[f32]) -> (f64, f64) {
    score::dot_and_square(query, row)
}

#[target_feature(enable = "avx512f")]
pub(super) fn dot_and_square_avx512(query: &[f64], row: &[f32]) -> (f64, f64) {
    score::dot_and_square(query, row)
}

#[target_feature(enable = "avx2")]
pub(super) fn encode_avx2(row: &[f32], codes: &mut [u8]) -> Loss {
    companion::encode(row, codes)
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn encode_avx512(row: &[f32], codes: &mut [u8]) -> Loss {
    companion::encode(row, codes)
}

#[target_feature(enable = "avx2")]
pub(super) fn sweep_avx2<const W: usize>(run: &Run<'_, W>, found: &mut Vec<Survivor>) {
    sweep::sweep(Avx2, run, found);
}

#[target_feature(enable = "avx2,avxvnni")]
pub(super) fn sweep_avx_vnni<const W: usize>(run: &Run<'_, W>, found: &mut Vec<Survivor>) {
    sweep::sweep(AvxVnni, run, found);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn sweep_avx512_vnni<const W: usize>(run: &Run<'_, W>, found: &mut Vec<Survivor>) {
    sweep::sweep(Avx512Vnni, run, found);
}

/// INVARIANT: these three are used only by the functions above, so only where their instructions exist.
#[derive(Clone, Copy)]
struct Avx2;
#[derive(Clone, Copy)]
struct AvxVnni;
#[derive(Clone, Copy)]
struct Avx512Vnni;

impl Dots for Avx2 {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dots<const W: usize>(
        self,
        codes: &[[u8; 64]],
        words: &[[i32; W]],
        start: &[i32; W],
        dots: &mut [[i32; GROUP_ROWS]; W],
    ) {
        for query in 0..W {
            // SAFETY: the invariant of this type.
            dots[query] = unsafe { dots_avx2(codes, words.iter().map(|words| words[query]), start[query]) };
        }
    }
}

impl Dots for AvxVnni {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dots<const W: usize>(
        self,
        codes: &[[u8; 64]],
        words: &[[i32; W]],
        start: &[i32; W],
        dots: &mut [[i32; GROUP_ROWS]; W],
    ) {
        // Four queries need eight registers: enough to hide the latency, few enough to stay in registers.
        if W >= 4 {
            for first in (0..W).step_by(4) {
                // SAFETY: the invariant of this type.
                unsafe { dots_avx_vnni::<W, 4>(codes, words, start, dots, first) }
            }
        } else {
            for query in 0..W {
                // SAFETY: the invariant of this type.
                unsafe { dots_avx_vnni::<W, 1>(codes, words, start, dots, query) }
            }
        }
    }
}

impl Dots for Avx512Vnni {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dots<const W: usize>(
        self,
        codes: &[[u8; 64]],
        words: &[[i32; W]],
        start: &[i32; W],
        dots: &mut [[i32; GROUP_ROWS]; W],
    ) {
        if W == 1 {
            // SAFETY: the invariant of this type.
            dots[0] = unsafe { dot_avx512_vnni(codes, words.as_flattened(), start[0]) };
        } else {
            // SAFETY: the invariant of this type.
            unsafe { dots_avx512_vnni(codes, words, start, dots) }
        }
    }
}

/// Sums of one query: four rows in a register, two partial sums for each.
#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code)]
fn dots_avx2(codes: &[[u8; 64]], words: impl Iterator<Item = i32>, start: i32) -> [i32; GROUP_ROWS] {
    let mut sums = [_mm256_setzero_si256(); 4];
    for (codes, word) in codes.iter().zip(words) {
        let query = _mm256_cvtepi8_epi16(_mm_set1_epi32(word));
        for (sum, quarter) in sums.iter_mut().zip(codes.as_chunks::<16>().0) {
            // SAFETY: the quarter has the 16 bytes that are loaded; no alignment is needed.
            let rows = _mm256_cvtepu8_epi16(unsafe { _mm_loadu_si128(quarter.as_ptr().cast()) });
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(rows, query));
        }
    }
    let start = _mm256_set1_epi32(start);
    let mut dots = [0; GROUP_ROWS];
    for (half, pair) in dots.as_chunks_mut::<8>().0.iter_mut().zip(sums.as_chunks::<2>().0) {
        // Adding neighbours leaves rows 0 1 4 5 2 3 6 7.
        let rows = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(pair[0], pair[1]));
        // SAFETY: the half has the 32 bytes that are stored; no alignment is needed.
        unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), _mm256_add_epi32(rows, start)) }
    }
    dots
}

/// Sums of `Q` queries from the first on: eight rows in a register.
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
#[allow(unsafe_code)]
fn dots_avx_vnni<const W: usize, const Q: usize>(
    codes: &[[u8; 64]],
    words: &[[i32; W]],
    start: &[i32; W],
    dots: &mut [[i32; GROUP_ROWS]; W],
    first: usize,
) {
    let mut sums: [[__m256i; 2]; Q] = std::array::from_fn(|query| [_mm256_set1_epi32(start[first + query]); 2]);
    for (codes, words) in codes.iter().zip(words) {
        // SAFETY: each half has the 32 bytes that are loaded; no alignment is needed.
        let halves: [__m256i; 2] =
            std::array::from_fn(|half| unsafe { _mm256_loadu_si256(codes[half * 32..][..32].as_ptr().cast()) });
        for (query, sums) in sums.iter_mut().enumerate() {
            let word = _mm256_set1_epi32(words[first + query]);
            for half in 0..2 {
                sums[half] = _mm256_dpbusd_avx_epi32(sums[half], halves[half], word);
            }
        }
    }
    for (query, sums) in sums.into_iter().enumerate() {
        for (half, sum) in dots[first + query].as_chunks_mut::<8>().0.iter_mut().zip(sums) {
            // SAFETY: the half has the 32 bytes that are stored; no alignment is needed.
            unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), sum) }
        }
    }
}

/// Sums of `W` queries: all sixteen rows in a register.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[allow(unsafe_code)]
fn dots_avx512_vnni<const W: usize>(
    codes: &[[u8; 64]],
    words: &[[i32; W]],
    start: &[i32; W],
    dots: &mut [[i32; GROUP_ROWS]; W],
) {
    let mut sums: [__m512i; W] = std::array::from_fn(|query| _mm512_set1_epi32(start[query]));
    for (codes, words) in codes.iter().zip(words) {
        // SAFETY: there are the 64 bytes that are loaded; no alignment is needed.
        let rows = unsafe { _mm512_loadu_si512(codes.as_ptr().cast()) };
        for query in 0..W {
            sums[query] = _mm512_dpbusd_epi32(sums[query], rows, _mm512_set1_epi32(words[query]));
        }
    }
    for (dots, sum) in dots.iter_mut().zip(sums) {
        // SAFETY: there are the 64 bytes that are stored; no alignment is needed.
        unsafe { _mm512_storeu_si512(dots.as_mut_ptr().cast(), sum) }
    }
}

/// Sums of one query, on four registers in turn, so that no addition waits for the one before.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[allow(unsafe_code)]
fn dot_avx512_vnni(codes: &[[u8; 64]], words: &[i32], start: i32) -> [i32; GROUP_ROWS] {
    let mut sums = [_mm512_setzero_si512(); 4];
    let (codes_fours, codes_rest) = codes.as_chunks::<4>();
    let (words_fours, words_rest) = words.as_chunks::<4>();
    let add = |sum: &mut __m512i, codes: &[u8; 64], word: i32| {
        // SAFETY: there are the 64 bytes that are loaded; no alignment is needed.
        let rows = unsafe { _mm512_loadu_si512(codes.as_ptr().cast()) };
        *sum = _mm512_dpbusd_epi32(*sum, rows, _mm512_set1_epi32(word));
    };
    for (codes, words) in codes_fours.iter().zip(words_fours) {
        for turn in 0..4 {
            add(&mut sums[turn], &codes[turn], words[turn]);
        }
    }
    for (turn, (codes, word)) in codes_rest.iter().zip(words_rest).enumerate() {
        add(&mut sums[turn], codes, *word);
    }
    let [a, b, c, d] = sums;
    let sum = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
    let mut dots = [0; GROUP_ROWS];
    // SAFETY: there are the 64 bytes that are stored; no alignment is needed.
    unsafe {
        _mm512_storeu_si512(
            dots.as_mut_ptr().cast(),
            _mm512_add_epi32(sum, _mm512_set1_epi32(start)),
        )
    }
    dots
}
