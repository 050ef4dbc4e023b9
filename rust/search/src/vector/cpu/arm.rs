//! Multiplies codes with NEON's `sdot`: signed bytes, four products to a sum of 32 bits.
//!
//! Codes of four bits are positive as signed bytes too. The intrinsic is not stable yet, the instruction is.

use std::arch::aarch64::{int32x4_t, vandq_u8, vdupq_n_s32, vdupq_n_u8, vld1q_u8, vshrq_n_u8, vst1q_s32};
use std::arch::asm;

use crate::vector::codes::{GROUP_ROWS, STEP_BYTES};
use crate::vector::sweep::{self, Dots, Survivor, SweepRun};

#[target_feature(enable = "neon,dotprod")]
pub(super) fn sweep_dot_prod<const W: usize>(run: &SweepRun<'_, W>, found: &mut Vec<Survivor>) {
    sweep::sweep(DotProd, run, found);
}

/// INVARIANT: used only by the function above, so only where the instruction exists.
#[derive(Clone, Copy)]
struct DotProd;

impl Dots for DotProd {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dots<const W: usize>(
        self,
        codes: &[[u8; STEP_BYTES]],
        words: &[[[i32; W]; 2]],
        dots: &mut [[i32; GROUP_ROWS]; W],
    ) {
        // Four queries need sixteen of the 32 registers for their sums.
        if W >= 4 {
            for first in (0..W).step_by(4) {
                // SAFETY: the invariant of this type.
                unsafe { dots_dot_prod::<W, 4>(codes, words, dots, first) }
            }
        } else {
            for query in 0..W {
                // SAFETY: the invariant of this type.
                unsafe { dots_dot_prod::<W, 1>(codes, words, dots, query) }
            }
        }
    }
}

/// Sums of `Q` queries from the first on: four rows in a register.
#[inline]
#[target_feature(enable = "neon,dotprod")]
#[allow(unsafe_code)]
fn dots_dot_prod<const W: usize, const Q: usize>(
    codes: &[[u8; STEP_BYTES]],
    words: &[[[i32; W]; 2]],
    dots: &mut [[i32; GROUP_ROWS]; W],
    first: usize,
) {
    let mut sums = [[vdupq_n_s32(0); 4]; Q];
    let low_bits = vdupq_n_u8(0x0F);
    for step in 0..codes.len().min(words.len()) {
        let quarters = codes[step].as_chunks::<16>().0;
        for quarter in 0..4 {
            // SAFETY: the quarter has the 16 bytes that are loaded.
            let both = unsafe { vld1q_u8(quarters[quarter].as_ptr()) };
            let halves = [vandq_u8(both, low_bits), vshrq_n_u8::<4>(both)];
            for query in 0..Q {
                let mut sum: int32x4_t = sums[query][quarter];
                for half in 0..2 {
                    // SAFETY: the instruction reads and writes nothing but these registers, and this function is called
                    // only where it exists.
                    unsafe {
                        asm!(
                            "sdot {sum:v}.4s, {rows:v}.16b, {word:v}.16b",
                            sum = inout(vreg) sum,
                            rows = in(vreg) halves[half],
                            word = in(vreg) vdupq_n_s32(words[step][half][first + query]),
                            options(pure, nomem, nostack, preserves_flags),
                        );
                    }
                }
                sums[query][quarter] = sum;
            }
        }
    }
    for query in 0..Q {
        let quarters = dots[first + query].as_chunks_mut::<4>().0;
        for quarter in 0..4 {
            // SAFETY: the quarter has the 16 bytes that are stored.
            unsafe { vst1q_s32(quarters[quarter].as_mut_ptr(), sums[query][quarter]) }
        }
    }
}
