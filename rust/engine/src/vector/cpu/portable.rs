//! How does a processor multiply codes of which nothing is known?

use crate::vector::companion::GROUP_ROWS;
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
        for (dots, start) in dots.iter_mut().zip(start) {
            dots.fill(*start);
        }
        for (codes, words) in codes.iter().zip(words) {
            for (word, dots) in words.iter().zip(dots.iter_mut()) {
                let [a, b, c, d] = word.to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
                for (code, dot) in codes.as_chunks::<4>().0.iter().zip(dots) {
                    let [x, y, z, w] = code.map(i32::from);
                    *dot += a * x + b * y + c * z + d * w;
                }
            }
        }
    }
}
