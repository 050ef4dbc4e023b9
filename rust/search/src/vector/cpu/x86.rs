//! Makes and multiplies codes with AVX2, AVX-VNNI and AVX-512.
//!
//! `vpdpbusd` multiplies unsigned codes of rows with signed codes of queries, four products to a sum of 32 bits,
//! without saturation. Plain AVX2 has only `vpmaddubsw`, which saturates at 16 bits; so there both are widened first,
//! and `vpmaddwd` is exact.

use std::arch::x86_64::{
    _mm_loadu_ps, _mm_loadu_si128, _mm_set1_epi8, _mm_set1_epi32, _mm_storel_epi64, _mm_xor_si128, _mm256_add_epi32,
    _mm256_add_pd, _mm256_andnot_ps, _mm256_cvtepi8_epi16, _mm256_cvtepu8_epi16, _mm256_cvtps_pd,
    _mm256_dpbusd_avx_epi32, _mm256_hadd_epi32, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_loadu_si256,
    _mm256_madd_epi16, _mm256_max_ps, _mm256_mul_pd, _mm256_permute4x64_epi64, _mm256_set1_epi32, _mm256_set1_ps,
    _mm256_setzero_pd, _mm256_setzero_ps, _mm256_setzero_si256, _mm256_storeu_pd, _mm256_storeu_ps,
    _mm256_storeu_si256, _mm512_add_epi32, _mm512_add_pd, _mm512_castpd_si512, _mm512_cvtepi64_epi8, _mm512_cvtps_pd,
    _mm512_dpbusd_epi32, _mm512_fmadd_pd, _mm512_loadu_pd, _mm512_loadu_si512, _mm512_mul_pd, _mm512_set1_epi32,
    _mm512_set1_pd, _mm512_setzero_pd, _mm512_setzero_si512, _mm512_storeu_pd, _mm512_storeu_si512, _mm512_sub_pd,
};

use super::portable::Portable;
use crate::vector::companion::{self, Eights, Encode, Loss, ROUNDER, ZERO_CODE};
use crate::vector::groups::GROUP_ROWS;
use crate::vector::lanes::{self, LANES};
use crate::vector::planes::{self, CODE_BYTES, Planes};
use crate::vector::sweep::{self, Dots, Survivor, SweepRun};

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
pub(super) fn encode_avx2(row: &[f32], codes: &mut [[u8; LANES]]) -> Loss {
    companion::encode::<Portable>(row, codes)
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn encode_avx512(row: &[f32], codes: &mut [[u8; LANES]]) -> Loss {
    companion::encode::<Avx512Vnni>(row, codes)
}

#[target_feature(enable = "avx2")]
pub(super) fn sweep_avx2<const W: usize>(run: &SweepRun<'_, W>, found: &mut Vec<Survivor>) {
    sweep::sweep(Avx2, run, found);
}

#[target_feature(enable = "avx2,avxvnni")]
pub(super) fn sweep_avx_vnni<const W: usize>(run: &SweepRun<'_, W>, found: &mut Vec<Survivor>) {
    sweep::sweep(AvxVnni, run, found);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn sweep_avx512_vnni<const W: usize>(run: &SweepRun<'_, W>, found: &mut Vec<Survivor>) {
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
            unsafe { dots_avx2(codes, words, start, dots, query) }
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
            unsafe { dot_avx512_vnni(codes, words.as_flattened(), start[0], &mut dots[0]) }
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
fn dots_avx2<const W: usize>(
    codes: &[[u8; 64]],
    words: &[[i32; W]],
    start: &[i32; W],
    dots: &mut [[i32; GROUP_ROWS]; W],
    query: usize,
) {
    let mut sums = [_mm256_setzero_si256(); 4];
    for step in 0..codes.len().min(words.len()) {
        let word = _mm256_cvtepi8_epi16(_mm_set1_epi32(words[step][query]));
        let quarters = codes[step].as_chunks::<16>().0;
        for quarter in 0..4 {
            // SAFETY: the quarter has the 16 bytes that are loaded; no alignment is needed.
            let rows = unsafe { _mm_loadu_si128(quarters[quarter].as_ptr().cast()) };
            let products = _mm256_madd_epi16(_mm256_cvtepu8_epi16(rows), word);
            sums[quarter] = _mm256_add_epi32(sums[quarter], products);
        }
    }
    let halves = dots[query].as_chunks_mut::<8>().0;
    for half in 0..2 {
        // Adding neighbours leaves rows 0 1 4 5 2 3 6 7.
        let rows = _mm256_hadd_epi32(sums[2 * half], sums[2 * half + 1]);
        let rows = _mm256_permute4x64_epi64::<0b11_01_10_00>(rows);
        let rows = _mm256_add_epi32(rows, _mm256_set1_epi32(start[query]));
        // SAFETY: the half has the 32 bytes that are stored; no alignment is needed.
        unsafe { _mm256_storeu_si256(halves[half].as_mut_ptr().cast(), rows) }
    }
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
    let mut sums = [[_mm256_setzero_si256(); 2]; Q];
    for step in 0..codes.len().min(words.len()) {
        let halves = codes[step].as_chunks::<32>().0;
        for half in 0..2 {
            // SAFETY: each half has the 32 bytes that are loaded; no alignment is needed.
            let rows = unsafe { _mm256_loadu_si256(halves[half].as_ptr().cast()) };
            for query in 0..Q {
                let word = _mm256_set1_epi32(words[step][first + query]);
                sums[query][half] = _mm256_dpbusd_avx_epi32(sums[query][half], rows, word);
            }
        }
    }
    for query in 0..Q {
        let halves = dots[first + query].as_chunks_mut::<8>().0;
        for half in 0..2 {
            let sum = _mm256_add_epi32(sums[query][half], _mm256_set1_epi32(start[first + query]));
            // SAFETY: the half has the 32 bytes that are stored; no alignment is needed.
            unsafe { _mm256_storeu_si256(halves[half].as_mut_ptr().cast(), sum) }
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
    let mut sums = [_mm512_setzero_si512(); W];
    for step in 0..codes.len().min(words.len()) {
        // SAFETY: there are the 64 bytes that are loaded; no alignment is needed.
        let rows = unsafe { _mm512_loadu_si512(codes[step].as_ptr().cast()) };
        for query in 0..W {
            sums[query] = _mm512_dpbusd_epi32(sums[query], rows, _mm512_set1_epi32(words[step][query]));
        }
    }
    for query in 0..W {
        let sum = _mm512_add_epi32(sums[query], _mm512_set1_epi32(start[query]));
        // SAFETY: there are the 64 bytes that are stored; no alignment is needed.
        unsafe { _mm512_storeu_si512(dots[query].as_mut_ptr().cast(), sum) }
    }
}

/// Sums of one query, on four registers in turn, so that no addition waits for the one before.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[allow(unsafe_code)]
fn dot_avx512_vnni(codes: &[[u8; 64]], words: &[i32], start: i32, dots: &mut [i32; GROUP_ROWS]) {
    let steps = codes.len().min(words.len());
    let mut sums = [_mm512_setzero_si512(); 4];
    let mut from = 0;
    while from < steps {
        for turn in 0..4 {
            if from + turn < steps {
                // SAFETY: there are the 64 bytes that are loaded; no alignment is needed.
                let rows = unsafe { _mm512_loadu_si512(codes[from + turn].as_ptr().cast()) };
                sums[turn] = _mm512_dpbusd_epi32(sums[turn], rows, _mm512_set1_epi32(words[from + turn]));
            }
        }
        from += 4;
    }
    let [a, b, c, d] = sums;
    let sum = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
    // SAFETY: there are the 64 bytes that are stored; no alignment is needed.
    unsafe {
        _mm512_storeu_si512(
            dots.as_mut_ptr().cast(),
            _mm512_add_epi32(sum, _mm512_set1_epi32(start)),
        )
    }
}

impl Encode for Avx512Vnni {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn measure(eights: Eights<'_>) -> ([f64; LANES], f32) {
        // SAFETY: the invariant of this type.
        unsafe { measure_avx512(eights) }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn quantise(eights: Eights<'_>, step: f64, codes: &mut [[u8; LANES]]) -> [f64; LANES] {
        // SAFETY: the invariant of this type.
        unsafe { quantise_avx512(eights, step, codes) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
#[allow(unsafe_code)]
fn measure_avx512(eights: Eights<'_>) -> ([f64; LANES], f32) {
    let sign = _mm256_set1_ps(-0.0);
    let mut squares = _mm512_setzero_pd();
    let mut tops = _mm256_setzero_ps();
    for at in 0..eights.count() {
        // SAFETY: there are the eight values that are loaded; no alignment is needed.
        let eight = unsafe { _mm256_loadu_ps(eights.get(at).as_ptr()) };
        let wide = _mm512_cvtps_pd(eight);
        squares = _mm512_fmadd_pd(wide, wide, squares);
        tops = _mm256_max_ps(tops, _mm256_andnot_ps(sign, eight));
    }
    let (mut lanes, mut sizes) = ([0.0; LANES], [0f32; LANES]);
    // SAFETY: there is room for the eight values that are stored each time; no alignment is needed.
    unsafe {
        _mm512_storeu_pd(lanes.as_mut_ptr(), squares);
        _mm256_storeu_ps(sizes.as_mut_ptr(), tops);
    }
    let mut top = 0f32;
    for size in &sizes {
        top = size.max(top);
    }
    (lanes, top)
}

/// Here products are not exact, so they are rounded before they are added, as in portable code.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
#[allow(unsafe_code)]
fn quantise_avx512(eights: Eights<'_>, step: f64, codes: &mut [[u8; LANES]]) -> [f64; LANES] {
    let (per_step, step) = (_mm512_set1_pd(1.0 / step), _mm512_set1_pd(step));
    let (rounder, zero) = (_mm512_set1_pd(ROUNDER), _mm_set1_epi8(ZERO_CODE.cast_signed()));
    let mut misses = _mm512_setzero_pd();
    for at in 0..eights.count().min(codes.len()) {
        // SAFETY: there are the eight values that are loaded; no alignment is needed.
        let value = _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(eights.get(at).as_ptr()) });
        let rounded = _mm512_add_pd(_mm512_mul_pd(value, per_step), rounder);
        let low_bytes = _mm_xor_si128(_mm512_cvtepi64_epi8(_mm512_castpd_si512(rounded)), zero);
        // SAFETY: there is room for the eight bytes that are stored; no alignment is needed.
        unsafe { _mm_storel_epi64(codes[at].as_mut_ptr().cast(), low_bytes) }
        let left = _mm512_sub_pd(value, _mm512_mul_pd(_mm512_sub_pd(rounded, rounder), step));
        misses = _mm512_add_pd(misses, _mm512_mul_pd(left, left));
    }
    let mut lanes = [0.0; LANES];
    // SAFETY: there is room for the eight values that are stored; no alignment is needed.
    unsafe { _mm512_storeu_pd(lanes.as_mut_ptr(), misses) }
    lanes
}
