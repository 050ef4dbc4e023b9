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
