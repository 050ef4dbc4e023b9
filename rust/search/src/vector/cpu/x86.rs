//! Makes and multiplies codes with AVX2 and AVX-512.
//!
//! `vpdpbusd` multiplies unsigned codes of rows with signed codes of queries, four products to a sum of 32 bits. Plain AVX2 has only
//! `vpmaddubsw`, two products to a sum of 16 bits: with codes of four bits, eight such sums fit. `vpdpbusd` on registers of 256 bits
//! (AVX-VNNI) was no faster for one query and slower for a batch.

use std::arch::x86_64::{
    _MM_HINT_T0, _mm_loadu_ps, _mm_prefetch, _mm256_add_epi16, _mm256_add_epi32, _mm256_add_pd, _mm256_and_si256,
    _mm256_cvtps_pd, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16,
    _mm256_mul_pd, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_pd, _mm256_setzero_si256,
    _mm256_srli_epi16, _mm256_storeu_pd, _mm256_storeu_si256, _mm512_add_epi32, _mm512_and_si512, _mm512_cvtps_pd,
    _mm512_dpbusd_epi32, _mm512_fmadd_pd, _mm512_loadu_pd, _mm512_loadu_si512, _mm512_maskz_loadu_epi8,
    _mm512_reduce_add_epi32, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_setzero_pd, _mm512_setzero_si512,
    _mm512_srli_epi16, _mm512_storeu_pd, _mm512_storeu_si512,
};

use crate::vector::codes::{Encoder, GROUP_ROWS, Loss, STEP_BYTES};
use crate::vector::lanes::{self, LANES};
use crate::vector::planes::{self, CODE_BYTES, Planes};
use crate::vector::sweep::{self, Candidate, Dots, Refinement, Survivor, SweepRun};

/// See [`lanes::dot_and_square`]. Left alone, a compiler pairs the two sums and stays in small registers.
#[target_feature(enable = "avx2")]
#[allow(unsafe_code)]
pub(super) fn dot_and_square_avx2(query: &[f64], row: &[f32]) -> (f64, f64) {
    let mut dots = [_mm256_setzero_pd(); 2];
    let mut squares = dots;
    lanes::by_eights(query, row, |query, row| {
        for half in 0..2 {
            let (query, row) = (&query.as_chunks::<4>().0[half], &row.as_chunks::<4>().0[half]);
            // SAFETY: there are the four values that are loaded; no alignment is needed.
            let (query, row) = unsafe { (_mm256_loadu_pd(query.as_ptr()), _mm_loadu_ps(row.as_ptr())) };
            let row = _mm256_cvtps_pd(row);
            dots[half] = _mm256_add_pd(dots[half], _mm256_mul_pd(query, row));
            squares[half] = _mm256_add_pd(squares[half], _mm256_mul_pd(row, row));
        }
    });
    let mut lanes = [[0.0; LANES]; 2];
    for half in 0..2 {
        // SAFETY: there is room for the four values that are stored; no alignment is needed.
        unsafe {
            _mm256_storeu_pd(lanes[0].as_chunks_mut::<4>().0[half].as_mut_ptr(), dots[half]);
            _mm256_storeu_pd(lanes[1].as_chunks_mut::<4>().0[half].as_mut_ptr(), squares[half]);
        }
    }
    (lanes::tree(lanes[0]), lanes::tree(lanes[1]))
}

/// See [`lanes::dot_and_square`].
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code)]
pub(super) fn dot_and_square_avx512(query: &[f64], row: &[f32]) -> (f64, f64) {
    let mut sums = [_mm512_setzero_pd(); 2];
    lanes::by_eights(query, row, |query, row| {
        // SAFETY: there are the eight values that are loaded; no alignment is needed.
        let (query, row) = unsafe { (_mm512_loadu_pd(query.as_ptr()), _mm256_loadu_ps(row.as_ptr())) };
        let row = _mm512_cvtps_pd(row);
        sums[0] = _mm512_fmadd_pd(query, row, sums[0]);
        sums[1] = _mm512_fmadd_pd(row, row, sums[1]);
    });
    let mut lanes = [[0.0; LANES]; 2];
    for sum in 0..2 {
        // SAFETY: there is room for the eight values that are stored; no alignment is needed.
        unsafe { _mm512_storeu_pd(lanes[sum].as_mut_ptr(), sums[sum]) }
    }
    (lanes::tree(lanes[0]), lanes::tree(lanes[1]))
}

#[target_feature(enable = "popcnt")]
pub(super) fn best_product_popcnt(parts: &[Planes], codes: &[[u8; CODE_BYTES]]) -> i32 {
    planes::best_product(parts, codes)
}

#[target_feature(enable = "avx2")]
pub(super) fn encode_avx2(row: &[f32], encoder: &mut Encoder) -> Loss {
    encoder.encode(row)
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn encode_avx512(row: &[f32], encoder: &mut Encoder) -> Loss {
    encoder.encode(row)
}

#[target_feature(enable = "avx2")]
pub(super) fn refine_avx2(with: &Refinement<'_>, found: &[Survivor], kept: &mut Vec<Candidate>) {
    sweep::refine(Avx2, with, found, kept);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn refine_avx512_vnni(with: &Refinement<'_>, found: &[Survivor], kept: &mut Vec<Candidate>) {
    sweep::refine(Avx512Vnni, with, found, kept);
}

/// Asks for what lies a page behind some codes: processors foresee no more than the page that is read.
#[inline(always)]
#[allow(unsafe_code)]
fn foresee(codes: &[u8; STEP_BYTES]) {
    const PAGE_BYTES: usize = 4096;
    // SAFETY: a prefetch reads nothing that the program sees, wherever the address leads.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(codes.as_ptr().wrapping_add(PAGE_BYTES).cast()) }
}

/// Asks for bytes that are read soon.
#[inline(always)]
#[allow(unsafe_code)]
fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(64) {
        // SAFETY: a prefetch reads nothing that the program sees.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
}

/// See [`sweep::low_dot`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[allow(unsafe_code)]
fn low_dot_avx512_vnni(row: &[u8], query: [&[i8]; 2]) -> i32 {
    let length = row.len().min(query[0].len()).min(query[1].len());
    let low_bits = _mm512_set1_epi8(0x0F);
    let mut sums = [_mm512_setzero_si512(); 2];
    for at in (0..length).step_by(STEP_BYTES) {
        let mask = u64::MAX >> (STEP_BYTES - STEP_BYTES.min(length - at));
        let load = |bytes: *const i8| {
            // SAFETY: all three slices have the bytes of the mask; no alignment is needed.
            unsafe { _mm512_maskz_loadu_epi8(mask, bytes.add(at)) }
        };
        let both = load(row.as_ptr().cast());
        let halves = [
            _mm512_and_si512(both, low_bits),
            _mm512_and_si512(_mm512_srli_epi16::<4>(both), low_bits),
        ];
        for half in 0..2 {
            sums[half] = _mm512_dpbusd_epi32(sums[half], halves[half], load(query[half].as_ptr()));
        }
    }
    _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1]))
}

#[target_feature(enable = "avx2")]
pub(super) fn sweep_avx2<const W: usize>(run: &SweepRun<'_, W>, found: &mut Vec<Survivor>) {
    sweep::sweep(Avx2, run, found);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn sweep_avx512_vnni<const W: usize>(run: &SweepRun<'_, W>, found: &mut Vec<Survivor>) {
    sweep::sweep(Avx512Vnni, run, found);
}

/// INVARIANT: these two are used only by the functions above, so only where their instructions exist.
#[derive(Clone, Copy)]
struct Avx2;
#[derive(Clone, Copy)]
struct Avx512Vnni;

impl Dots for Avx2 {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dots<const W: usize>(
        self,
        codes: &[[u8; STEP_BYTES]],
        words: &[[[i32; W]; 2]],
        dots: &mut [[i32; GROUP_ROWS]; W],
    ) {
        for query in 0..W {
            // SAFETY: the invariant of this type.
            unsafe { dots_avx2(codes, words, dots, query) }
        }
    }

    #[inline(always)]
    fn prefetch(self, bytes: &[u8]) {
        prefetch(bytes);
    }
}

impl Dots for Avx512Vnni {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dots<const W: usize>(
        self,
        codes: &[[u8; STEP_BYTES]],
        words: &[[[i32; W]; 2]],
        dots: &mut [[i32; GROUP_ROWS]; W],
    ) {
        if W == 1 {
            // SAFETY: the invariant of this type.
            unsafe { dot_avx512_vnni(codes, words.as_flattened().as_flattened(), &mut dots[0]) }
        } else {
            // SAFETY: the invariant of this type.
            unsafe { dots_avx512_vnni(codes, words, dots) }
        }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn low_dot(self, row: &[u8], query: [&[i8]; 2]) -> i32 {
        // SAFETY: the invariant of this type.
        unsafe { low_dot_avx512_vnni(row, query) }
    }

    #[inline(always)]
    fn prefetch(self, bytes: &[u8]) {
        prefetch(bytes);
    }
}

/// Sums of one query: eight rows in a register.
#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code)]
fn dots_avx2<const W: usize>(
    codes: &[[u8; STEP_BYTES]],
    words: &[[[i32; W]; 2]],
    dots: &mut [[i32; GROUP_ROWS]; W],
    query: usize,
) {
    /// So many steps are added up in 16 bits: two sums of two products of at most 15 and 127 each.
    const SHORT_STEPS: usize = 4;
    let (low_bits, ones) = (_mm256_set1_epi8(0x0F), _mm256_set1_epi16(1));
    let steps = codes.len().min(words.len());
    let mut sums = [_mm256_setzero_si256(); 2];
    let mut from = 0;
    while from < steps {
        let to = steps.min(from + SHORT_STEPS);
        let mut short = [_mm256_setzero_si256(); 2];
        for step in from..to {
            let pair = words[step].map(|word| _mm256_set1_epi32(word[query]));
            let halves = codes[step].as_chunks::<32>().0;
            for half in 0..2 {
                // SAFETY: each half has the 32 bytes that are loaded; no alignment is needed.
                let both = unsafe { _mm256_loadu_si256(halves[half].as_ptr().cast()) };
                let low = _mm256_maddubs_epi16(_mm256_and_si256(both, low_bits), pair[0]);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(both), low_bits);
                let high = _mm256_maddubs_epi16(high, pair[1]);
                short[half] = _mm256_add_epi16(short[half], _mm256_add_epi16(low, high));
            }
        }
        for half in 0..2 {
            sums[half] = _mm256_add_epi32(sums[half], _mm256_madd_epi16(short[half], ones));
        }
        from = to;
    }
    let halves = dots[query].as_chunks_mut::<8>().0;
    for half in 0..2 {
        // SAFETY: the half has the 32 bytes that are stored; no alignment is needed.
        unsafe { _mm256_storeu_si256(halves[half].as_mut_ptr().cast(), sums[half]) }
    }
}

/// Sums of `W` queries: all sixteen rows in a register.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[allow(unsafe_code)]
fn dots_avx512_vnni<const W: usize>(
    codes: &[[u8; STEP_BYTES]],
    words: &[[[i32; W]; 2]],
    dots: &mut [[i32; GROUP_ROWS]; W],
) {
    let low_bits = _mm512_set1_epi8(0x0F);
    let mut sums = [_mm512_setzero_si512(); W];
    for step in 0..codes.len().min(words.len()) {
        // SAFETY: there are the 64 bytes that are loaded; no alignment is needed.
        let both = unsafe { _mm512_loadu_si512(codes[step].as_ptr().cast()) };
        let low = _mm512_and_si512(both, low_bits);
        let high = _mm512_and_si512(_mm512_srli_epi16::<4>(both), low_bits);
        for query in 0..W {
            sums[query] = _mm512_dpbusd_epi32(sums[query], low, _mm512_set1_epi32(words[step][0][query]));
        }
        for query in 0..W {
            sums[query] = _mm512_dpbusd_epi32(sums[query], high, _mm512_set1_epi32(words[step][1][query]));
        }
    }
    for query in 0..W {
        // SAFETY: there are the 64 bytes that are stored; no alignment is needed.
        unsafe { _mm512_storeu_si512(dots[query].as_mut_ptr().cast(), sums[query]) }
    }
}

/// Sums of one query, on four registers in turn, so that no addition waits for the one before.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[allow(unsafe_code)]
fn dot_avx512_vnni(codes: &[[u8; STEP_BYTES]], words: &[i32], dots: &mut [i32; GROUP_ROWS]) {
    let words = words.as_chunks::<2>().0;
    let steps = codes.len().min(words.len());
    let low_bits = _mm512_set1_epi8(0x0F);
    let mut sums = [_mm512_setzero_si512(); 4];
    let mut from = 0;
    while from < steps {
        for turn in 0..2 {
            if from + turn < steps {
                let [low, high] = words[from + turn];
                // SAFETY: there are the 64 bytes that are loaded; no alignment is needed.
                let both = unsafe { _mm512_loadu_si512(codes[from + turn].as_ptr().cast()) };
                foresee(&codes[from + turn]);
                let rows = _mm512_and_si512(both, low_bits);
                sums[turn] = _mm512_dpbusd_epi32(sums[turn], rows, _mm512_set1_epi32(low));
                let rows = _mm512_and_si512(_mm512_srli_epi16::<4>(both), low_bits);
                sums[2 + turn] = _mm512_dpbusd_epi32(sums[2 + turn], rows, _mm512_set1_epi32(high));
            }
        }
        from += 2;
    }
    let [a, b, c, d] = sums;
    let sum = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
    // SAFETY: there are the 64 bytes that are stored; no alignment is needed.
    unsafe { _mm512_storeu_si512(dots.as_mut_ptr().cast(), sum) }
}
