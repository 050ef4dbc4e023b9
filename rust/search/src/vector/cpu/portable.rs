//! Multiplies codes on any processor.

use crate::vector::codes::{GROUP_ROWS, STEP_BYTES};
use crate::vector::sweep::Dots;

/// Plain integers; what the compiler makes of them.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Dots for Portable {
    #[inline(always)]
    fn dots<const W: usize>(
        self,
        codes: &[[u8; STEP_BYTES]],
        words: &[[[i32; W]; 2]],
        dots: &mut [[i32; GROUP_ROWS]; W],
    ) {
        *dots = [[0; GROUP_ROWS]; W];
        for step in 0..codes.len().min(words.len()) {
            let codes = codes[step].as_chunks::<4>().0;
            for query in 0..W {
                let words = words[step].map(|word| word[query].to_le_bytes());
                for row in 0..GROUP_ROWS {
                    let mut sum = 0;
                    for component in 0..4 {
                        let code = codes[row][component];
                        sum += i32::from(code & 0x0F) * i32::from(words[0][component].cast_signed());
                        sum += i32::from(code >> 4) * i32::from(words[1][component].cast_signed());
                    }
                    dots[query][row] += sum;
                }
            }
        }
    }
}
