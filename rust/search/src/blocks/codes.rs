//! Keeps the token codes of blocks in memory, and scores them against the tokens of a question.
//!
//! Rows of codes in memory, side by side, one list for each space. They come from the files of rows, each checked against the
//! log. All rows of a space have the same length, so what is said anew takes the place of what was.

use crate::score::Coded;
use crate::vector::tokens::TokenQuery;
use crate::vector::{Cpu, TokenQuestion};

/// No row of codes.
const NONE: u32 = u32::MAX;

/// The codes of all blocks.
#[derive(Default)]
pub struct BlockCodes {
    spaces: Vec<CodeSpace>,
}

/// The codes of one space.
struct CodeSpace {
    name: String,
    /// How many components the token vectors had.
    dim: usize,
    stride: usize,
    data: Vec<u8>,
    /// Where the codes of a block lie.
    place_of: Vec<u32>,
    /// Places that no block has any more.
    free: Vec<u32>,
}

impl CodeSpace {
    fn codes(&self, row: u32) -> Option<&[u8]> {
        let place = *self.place_of.get(row as usize).filter(|&&place| place != NONE)? as usize;
        self.data.get(place * self.stride..(place + 1) * self.stride)
    }

    fn forget(&mut self, row: u32) {
        if let Some(place) = self.place_of.get_mut(row as usize).filter(|place| **place != NONE) {
            self.free.push(std::mem::replace(place, NONE));
        }
    }
}

impl BlockCodes {
    /// Says which codes a block has in a space of token vectors of so many components; none takes them away.
    pub fn set(&mut self, row: u32, name: &str, dim: usize, codes: Option<&[u8]>) {
        let at = match (self.spaces.iter().position(|space| space.name == name), codes) {
            (Some(at), _) => at,
            (None, Some(codes)) => {
                self.spaces.push(CodeSpace {
                    name: name.to_owned(),
                    dim,
                    stride: codes.len(),
                    data: Vec::new(),
                    place_of: Vec::new(),
                    free: Vec::new(),
                });
                self.spaces.len() - 1
            }
            (None, None) => return,
        };
        let space = &mut self.spaces[at];
        space.forget(row);
        let Some(codes) = codes.filter(|codes| codes.len() == space.stride && space.dim == dim) else {
            return;
        };
        let place = space.free.pop().unwrap_or_else(|| {
            space.data.resize(space.data.len() + space.stride, 0);
            (space.data.len() / space.stride - 1) as u32
        });
        space.data[place as usize * space.stride..][..space.stride].copy_from_slice(codes);
        if space.place_of.len() <= row as usize {
            space.place_of.resize(row as usize + 1, NONE);
        }
        space.place_of[row as usize] = place;
    }

    /// The codes of a space, ready to be held against the tokens of a question.
    pub fn asked(&self, tokens: &TokenQuestion) -> Option<AskedCodes<'_>> {
        let fits = |space: &&CodeSpace| space.name == tokens.space() && space.dim == tokens.dim;
        let space = self.spaces.iter().find(fits).filter(|_| !tokens.vectors.is_empty())?;
        Some(AskedCodes {
            space,
            query: TokenQuery::new(&tokens.vectors, tokens.dim, Cpu::best()),
        })
    }
}

/// The codes of a space, and what is asked of them.
pub struct AskedCodes<'a> {
    space: &'a CodeSpace,
    query: TokenQuery,
}

impl AskedCodes<'_> {
    /// The blocks that pass and have codes, unless these are more.
    pub fn few(&self, most: usize, passes: impl Fn(u32) -> bool) -> Option<Vec<u32>> {
        let there = (0..).zip(&self.space.place_of);
        let rows = there.filter(|&(row, place)| *place != NONE && passes(row));
        let found: Vec<u32> = rows.map(|(row, _)| row).take(most + 1).collect();
        (found.len() <= most).then_some(found)
    }
}

impl Coded for AskedCodes<'_> {
    fn asked(&self) -> usize {
        self.query.len()
    }

    fn products(&self, row: u32, products: &mut Vec<i32>) -> bool {
        let codes = self.space.codes(row);
        codes.inspect(|codes| self.query.best(codes, products)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_anew_takes_the_place_of_what_was() {
        let of = |space: &str, dim: usize| TokenQuestion {
            space: Some(space.to_owned()),
            vectors: vec![1.0; dim],
            dim,
        };
        let mut codes = BlockCodes::default();
        codes.set(0, "a", 4, None);
        codes.set(3, "a", 4, Some(&[1; 32]));
        codes.set(5, "a", 4, Some(&[2; 32]));
        codes.set(3, "a", 4, Some(&[3; 32]));
        codes.set(5, "a", 4, None);
        codes.set(6, "a", 4, Some(&[9; 16]));
        let asked = codes.asked(&of("a", 4)).expect("a space");
        assert_eq!(asked.few(9, |_| true), Some(vec![3]));
        assert_eq!(
            (asked.few(0, |_| true), asked.few(0, |row| row != 3)),
            (None, Some(vec![]))
        );
        assert_eq!((asked.space.codes(3), asked.space.codes(5)), (Some(&[3; 32][..]), None));
        let mut products = Vec::new();
        assert!(asked.products(3, &mut products) && !asked.products(5, &mut products));
        assert_eq!(products.len(), 1);
        codes.set(7, "a", 4, Some(&[4; 32]));
        assert_eq!(codes.spaces[0].data.len(), 2 * 32);
        assert!(codes.asked(&of("a", 2)).is_none() && codes.asked(&of("b", 4)).is_none());
    }
}
