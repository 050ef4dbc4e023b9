//! Makes codes of token vectors, and scores how much of a question's tokens a record says.
//!
//! What a record says of one token of a question is the best likeness among its own tokens; a question asks for all of
//! its tokens.
//!
//! Of a token of a record only signs are kept: its vector is turned by a fixed rotation, and a code holds [`SIGNS`]
//! signs of the result, in four words of 32 bits, of which bit 30 is always zero: so each word is a finite float32, and
//! a row of codes is written, checked, moved and mended like any row. A row has room for a fixed number of codes. Where
//! a record has so few tokens that each can have several codes, it has: the first code of such a row is a heading, the
//! only one with bit 30 set, and says how many tokens there are and how many codes each has. Other rows are filled up
//! with their last code, which changes no best; more tokens than room are brought down to it by adding up neighbours.
//!
//! A token of a question is turned likewise and rounded to whole numbers, so that its product with signs is an integer,
//! the same on every processor; it estimates the cosine of the two vectors.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::cpu::Cpu;
use super::planes::{CODE_BYTES, Planes};
use super::rows::{LARGEST_DIM, VectorMisfit};
use super::team::together;
use super::turn::Rotation;

/// How many float32 that is.
pub const CODE_FLOATS: usize = 4;
/// How many signs of a vector a code holds: all bits of four words but one of each.
pub const SIGNS: usize = 124;
/// The bit of a word that is zero: with it no exponent is all ones.
const SPARED_BIT: usize = 30;
/// What the first word of a heading has beside the number of tokens.
const HEADING: u32 = 1 << SPARED_BIT;
const COUNT_BITS: u32 = 0xFFFF;
/// A token has at most so many codes.
const MOST_PARTS: usize = 4;
/// The rounded components of a question's token lie within this.
const MAX_NUMBER: f64 = 31.0;
/// So many steps of an estimated cosine make 1.
pub const STEPS: f64 = 1_048_576.0;
/// So many records are coded by one thread before it asks for more.
const RECORDS_AT_ONCE: usize = 32;

/// The tokens of a question, ready to be held against rows of codes.
#[derive(Clone, Debug)]
pub struct TokenQuery {
    tokens: Vec<AskedToken>,
    cpu: Cpu,
}

/// A token of a question.
#[derive(Clone, Debug)]
struct AskedToken {
    /// For tokens with one code, and for such with several.
    plain: [Planes; 1],
    parts: Vec<Planes>,
    /// What makes an estimate of a cosine of a product with a token of one code, of two, and so on.
    factors: Vec<f64>,
}

impl AskedToken {
    fn of(turned: &[f64]) -> Self {
        let (first, square) = rounded(&turned[..SIGNS]);
        let several = &turned[..parts_of(turned.len()) * SIGNS];
        let (parts, _) = rounded(several);
        let mut factors = vec![factor(square, SIGNS)];
        for codes in 2..=parts.len() {
            let square = parts[..codes].iter().map(|part| part.1).sum();
            factors.push(factor(square, codes * SIGNS));
        }
        Self {
            plain: [first[0].0],
            parts: parts.into_iter().map(|part| part.0).collect(),
            factors,
        }
    }
}

/// How many codes a token of vectors that have so many components when they are turned may have.
fn parts_of(size: usize) -> usize {
    (size / SIGNS).min(MOST_PARTS)
}

/// The whole numbers of components, by code, with the sum of their squares; and that of all.
fn rounded(turned: &[f64]) -> (Vec<(Planes, i32)>, i32) {
    let top = turned.iter().fold(0.0, |top: f64, value| top.max(value.abs()));
    let mut all = 0;
    let part = |values: &[f64]| {
        let (mut planes, mut square) = (Planes::default(), 0);
        for (at, one) in values.iter().enumerate() {
            let number = if top > 0.0 { to_whole(one / top * MAX_NUMBER) } else { 0 };
            square += number * number;
            planes.put(number, place(at));
        }
        all += square;
        (planes, square)
    };
    let parts = turned.chunks_exact(SIGNS).map(part).collect();
    (parts, all)
}

/// The nearest whole number, ties to even, of a number within 2^31: beyond 2^52 doubles have no fractions.
#[inline(always)]
fn to_whole(value: f64) -> i32 {
    const BEYOND: f64 = 6_755_399_441_055_744.0;
    (value + BEYOND - BEYOND) as i32
}

/// Signs of a vector at an angle to this one add up to sqrt(2/pi) of its cosine, on average.
fn factor(square: i32, signs: usize) -> f64 {
    if square > 0 {
        (std::f64::consts::FRAC_PI_2 / signs as f64).sqrt() / f64::from(square).sqrt()
    } else {
        0.0
    }
}

impl TokenQuery {
    /// Takes in the token vectors of a question, end to end.
    #[must_use]
    pub fn new(vectors: &[f32], dim: usize, cpu: Cpu) -> Self {
        let turn = Rotation::of(dim);
        let mut values = vec![0.0; turn.size()];
        let token = |vector: &[f32]| {
            values.fill(0.0);
            for (value, given) in values.iter_mut().zip(vector) {
                *value = f64::from(*given);
            }
            turn.turn(&mut values);
            AskedToken::of(&values)
        };
        Self {
            tokens: vectors.chunks_exact(dim).map(token).collect(),
            cpu,
        }
    }

    /// How many tokens there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Adds what a row says of each token: the best estimate of a cosine, in whole [`STEPS`].
    pub fn best(&self, row: &[u8], said: &mut Vec<i32>) {
        let codes = row.as_chunks::<CODE_BYTES>().0;
        let (codes, parts) = headed(codes).unwrap_or_else(|| (unfilled(codes), 1));
        said.extend(self.tokens.iter().map(|token| {
            let planes = if parts == 1 { &token.plain[..] } else { &token.parts };
            let planes = &planes[..parts.min(planes.len())];
            let product = self.cpu.best_product(planes, codes);
            to_whole(f64::from(product) * token.factors[planes.len() - 1] * STEPS)
        }));
    }
}

/// The codes behind a heading, and how many of them a token has.
fn headed(codes: &[[u8; CODE_BYTES]]) -> Option<(&[[u8; CODE_BYTES]], usize)> {
    let (heading, codes) = codes.split_first()?;
    let [first, second, ..] = heading.as_chunks::<4>().0 else {
        return None;
    };
    let (first, parts) = (u32::from_le_bytes(*first), u32::from_le_bytes(*second) as usize);
    let count = (first & COUNT_BITS) as usize;
    let is_heading = first & HEADING != 0 && (1..=MOST_PARTS).contains(&parts);
    is_heading.then(|| (codes.get(..count * parts).unwrap_or(codes), parts))
}

/// The codes of a row without what it is filled up with, which is there already.
fn unfilled(mut codes: &[[u8; CODE_BYTES]]) -> &[[u8; CODE_BYTES]] {
    while let [others @ .., before, last] = codes
        && u128::from_le_bytes(*before) == u128::from_le_bytes(*last)
    {
        codes = &codes[..=others.len()];
    }
    codes
}

/// Makes a row of codes for each record, end to end, with room for so many; the token vectors of all records lie end to end,
/// and it is given how many each has. So many threads share the work.
///
/// # Errors
/// `VectorMisfit` if a record has none, the numbers do not go together, or a row would be too long.
pub fn token_rows(
    vectors: &[f32],
    dim: usize,
    counts: &[usize],
    most: usize,
    threads: usize,
) -> Result<Vec<f32>, VectorMisfit> {
    let is_dim = |dim: usize| (1..=LARGEST_DIM).contains(&dim);
    if !is_dim(dim) || !is_dim(most.saturating_mul(CODE_FLOATS)) {
        return Err(VectorMisfit::Dimension(if is_dim(dim) { most } else { dim }));
    }
    let expected = counts.iter().try_fold(0usize, |all, count| all.checked_add(*count));
    let expected = expected.and_then(|all| all.checked_mul(dim)).unwrap_or(usize::MAX);
    if expected != vectors.len() || counts.contains(&0) {
        let found = vectors.len();
        return Err(VectorMisfit::Length { expected, found });
    }
    let turn = Rotation::of(dim);
    let pieces: Vec<&[usize]> = counts.chunks(RECORDS_AT_ONCE).collect();
    let starts: Vec<usize> = pieces
        .iter()
        .scan(0, |start, piece| {
            let own = *start;
            *start += piece.iter().sum::<usize>() * dim;
            Some(own)
        })
        .collect();
    let next = AtomicUsize::new(0);
    let code = || {
        let mut made = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(piece), Some(start)) = (pieces.get(at), starts.get(at)) else {
                return made;
            };
            let mut rows = Vec::with_capacity(piece.len() * most * CODE_FLOATS);
            let mut rest = &vectors[*start..];
            for count in *piece {
                let (own, others) = rest.split_at(count * dim);
                encode_row(own, &turn, most, &mut rows);
                rest = others;
            }
            made.push((at, rows));
        }
    };
    let mut made: Vec<(usize, Vec<f32>)> = together(threads.min(pieces.len()), code)
        .into_iter()
        .flatten()
        .collect();
    made.sort_unstable_by_key(|(at, _)| *at);
    Ok(made.into_iter().flat_map(|(_, rows)| rows).collect())
}

/// Makes a row of so many codes of the token vectors of a record, end to end; there must be one.
fn encode_row(vectors: &[f32], turn: &Rotation, most: usize, row: &mut Vec<f32>) {
    let count = vectors.len() / turn.dim;
    let kept = count.min(most);
    let parts = ((most - 1) / kept).min(parts_of(turn.size()));
    let end = row.len() + most * CODE_FLOATS;
    let parts = if parts > 1 && kept <= COUNT_BITS as usize {
        row.extend([HEADING | kept as u32, parts as u32, 0, 0].map(f32::from_bits));
        parts
    } else {
        1
    };
    let mut sum = vec![0.0; turn.size()];
    for at in 0..kept {
        sum.fill(0.0);
        for vector in vectors[at * count / kept * turn.dim..(at + 1) * count / kept * turn.dim].chunks(turn.dim) {
            for (sum, value) in sum.iter_mut().zip(vector) {
                *sum += f64::from(*value);
            }
        }
        turn.turn(&mut sum);
        for signs in sum.chunks_exact(SIGNS).take(parts) {
            row.extend(code_of(signs));
        }
    }
    let last: [f32; CODE_FLOATS] = match parts {
        1 => std::array::from_fn(|word| row[row.len() - CODE_FLOATS + word]),
        _ => [0.0; CODE_FLOATS],
    };
    while row.len() < end {
        row.extend(last);
    }
}

/// The code of a vector that was turned.
fn code_of(turned: &[f64]) -> [f32; CODE_FLOATS] {
    let mut code = 0u128;
    for (at, value) in turned.iter().enumerate() {
        code |= u128::from(*value > 0.0) << place(at);
    }
    std::array::from_fn(|word| f32::from_bits((code >> (32 * word)) as u32))
}

/// The bit of a sign.
fn place(sign: usize) -> usize {
    let (word, bit) = (sign / (SIGNS / CODE_FLOATS), sign % (SIGNS / CODE_FLOATS));
    32 * word + bit + usize::from(bit >= SPARED_BIT)
}

/// The space that is asked for tokens when none is named.
const TOKEN_SPACE: &str = "tokens";

/// The token vectors of a question.
#[derive(Clone, Debug, Default)]
pub struct TokenQuestion {
    /// The space that they are compared with, or `tokens`.
    pub space: Option<String>,
    /// The vectors, end to end.
    pub vectors: Vec<f32>,
    /// How many components each has.
    pub dim: usize,
}

impl TokenQuestion {
    /// The space that they are compared with.
    pub fn space(&self) -> &str {
        self.space.as_deref().unwrap_or(TOKEN_SPACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::turn::mixed;

    /// Vectors that look like any others.
    fn vectors(count: usize, dim: usize, seed: u64) -> Vec<f32> {
        let value = |at: usize| (mixed(seed + at as u64) >> 40) as f32 / (1 << 23) as f32 - 1.0;
        (0..count * dim).map(value).collect()
    }

    fn row(vectors: &[f32], dim: usize, most: usize) -> Vec<u8> {
        let mut row = Vec::new();
        encode_row(vectors, &Rotation::of(dim), most, &mut row);
        assert_eq!(row.len(), most * CODE_FLOATS);
        row.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn said(query: &TokenQuery, row: &[u8]) -> Vec<i32> {
        let mut found = Vec::new();
        query.best(row, &mut found);
        found
    }

    #[test]
    fn every_way_finds_the_same_products_as_adding_up() {
        let dim = 384;
        let asked = vectors(5, dim, 1);
        for most in [9, 16, 20, 48] {
            let codes = row(&vectors(9, dim, 7000), dim, most);
            let plain = said(&TokenQuery::new(&asked, dim, Cpu::every()[0]), &codes);
            for cpu in Cpu::every() {
                assert_eq!(said(&TokenQuery::new(&asked, dim, cpu), &codes), plain, "{cpu:?}");
            }
        }
    }

    #[test]
    fn any_number_of_threads_makes_the_same_rows() {
        let (dim, counts) = (96, Vec::from_iter((0..200).map(|at| 1 + at % 7)));
        let given = vectors(counts.iter().sum(), dim, 5);
        let one = token_rows(&given, dim, &counts, 8, 1).expect("rows");
        assert_eq!(one.len(), counts.len() * 8 * CODE_FLOATS);
        assert!(token_rows(&given, dim, &counts, 8, 3).expect("rows") == one);
    }
}
