//! Makes and multiplies codes on any processor.

use crate::vector::companion::{Eights, Encode, ROUNDER, ZERO_CODE};
use crate::vector::groups::GROUP_ROWS;
use crate::vector::lanes::LANES;
use crate::vector::sweep::Dots;

/// Plain integers; what the compiler makes of them.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Dots for Portable {
    #[inline(always)]
    fn dots<const W: usize>(
        self,
        codes: &[[u8; 64]],
        words: &[[i32; W]],
        start: &[i32; W],
        dots: &mut [[i32; GROUP_ROWS]; W],
    ) {
        for query in 0..W {
            dots[query] = [start[query]; GROUP_ROWS];
        }
        for step in 0..codes.len().min(words.len()) {
            let codes = codes[step].as_chunks::<4>().0;
            for query in 0..W {
                let word = words[step][query].to_le_bytes();
                for row in 0..GROUP_ROWS {
                    let mut sum = 0;
                    for component in 0..4 {
                        sum += i32::from(codes[row][component]) * i32::from(word[component].cast_signed());
                    }
                    dots[query][row] += sum;
                }
            }
        }
    }
}

impl Encode for Portable {
    #[inline(always)]
    fn measure(eights: Eights<'_>) -> ([f64; LANES], f32) {
        // One kind of sum in a loop: a compiler that is given two pairs them, and stays in small registers.
        let mut squares = [0.0; LANES];
        for at in 0..eights.count() {
            let eight = eights.get(at);
            for lane in 0..LANES {
                squares[lane] += f64::from(eight[lane]) * f64::from(eight[lane]);
            }
        }
        let mut tops = [0f32; LANES];
        for at in 0..eights.count() {
            let eight = eights.get(at);
            for lane in 0..LANES {
                let size = eight[lane].abs();
                tops[lane] = if size > tops[lane] { size } else { tops[lane] };
            }
        }
        let mut top = 0.0;
        for lane in &tops {
            top = lane.max(top);
        }
        (squares, top)
    }

    #[inline(always)]
    fn quantise(eights: Eights<'_>, step: f64, codes: &mut [[u8; LANES]]) -> [f64; LANES] {
        let per_step = 1.0 / step;
        let mut misses = [0.0; LANES];
        for at in 0..eights.count().min(codes.len()) {
            let eight = eights.get(at);
            let mut rounded = [0.0; LANES];
            for lane in 0..LANES {
                rounded[lane] = f64::from(eight[lane]) * per_step + ROUNDER;
            }
            for lane in 0..LANES {
                codes[at][lane] = (rounded[lane].to_bits() as u8) ^ ZERO_CODE;
            }
            for lane in 0..LANES {
                let left = f64::from(eight[lane]) - (rounded[lane] - ROUNDER) * step;
                misses[lane] += left * left;
            }
        }
        misses
    }
}
