//! How much of a question's tokens does a record say?
//!
//! A model can give a vector for each token of a text instead of one for all of it. What a record says of one token of a
//! question is the best likeness among its own tokens; a question asks for all of its tokens.
//!
//! Of a token of a record only signs are kept: its vector is turned by a fixed rotation, and of [`SIGNS`] components of the
//! result it is known which are positive. They lie in four words of 32 bits, of which bit 30 is always zero: so each word is
//! a finite float32, and a row of codes is a row like any other to whoever writes, checks, moves and mends rows. A row has room
//! for a fixed number of codes. Fewer are filled up with the last one, which changes no best; more are brought down to that
//! number by adding up neighbours.
//!
//! A token of a question keeps more: it is turned likewise and rounded to whole numbers, so that its product with signs is
//! an integer, the same on every processor. That product estimates the cosine of the two vectors.

use super::cpu::Cpu;
use super::planes::{CODE_BYTES, Planes};
use super::rows::{LARGEST_DIM, Misfit};

/// How many float32 that is.
pub const CODE_FLOATS: usize = 4;
/// How many signs of a vector a code holds: all bits of four words but one of each.
pub const SIGNS: usize = 124;
/// The bit of a word that is zero: with it no exponent is all ones.
const SPARED_BIT: usize = 30;
/// The rounded components of a question's token lie within this.
const LARGEST: f64 = 31.0;
/// A rotation is this often a flip of signs and a Hadamard transform.
const ROUNDS: u64 = 2;
/// The fewest components that are turned.
const SMALLEST_TURN: usize = 128;

/// The tokens of a question, ready to be held against rows of codes.
#[derive(Clone, Debug)]
pub struct TokenQuery {
    tokens: Vec<Planes>,
    /// What makes an estimate of a cosine of each product.
    factors: Vec<f64>,
    cpu: Cpu,
}

impl TokenQuery {
    /// Takes in the token vectors of a question, end to end.
    #[must_use]
    pub fn new(vectors: &[f32], dim: usize, cpu: Cpu) -> Self {
        let turn = Turn::of(dim);
        let mut query = Self {
            tokens: Vec::new(),
            factors: Vec::new(),
            cpu,
        };
        for vector in vectors.chunks_exact(dim) {
            let wide: Vec<f64> = vector.iter().map(|&value| f64::from(value)).collect();
            let turned = turn.turned(&wide);
            let top = turned.iter().fold(0.0, |top: f64, value| top.max(value.abs()));
            let mut planes = Planes::default();
            let mut square = 0;
            for (at, value) in turned.iter().enumerate() {
                let number = if top > 0.0 {
                    (value / top * LARGEST).round_ties_even() as i32
                } else {
                    0
                };
                square += number * number;
                planes.put(number, place(at));
            }
            // Signs of a vector at an angle to this one add up to sqrt(2/pi) of its cosine, on average.
            let scale = (std::f64::consts::FRAC_PI_2 / SIGNS as f64).sqrt();
            let factor = if square > 0 {
                scale / f64::from(square).sqrt()
            } else {
                0.0
            };
            query.tokens.push(planes);
            query.factors.push(factor);
        }
        query
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

    /// Adds the best product of each token with the codes of a row.
    pub fn best(&self, row: &[u8], products: &mut Vec<i32>) {
        let mut codes = row.as_chunks::<CODE_BYTES>().0;
        // What a row is filled up with is there already.
        while let [others @ .., before, last] = codes
            && before == last
        {
            codes = &codes[..=others.len()];
        }
        products.extend(self.tokens.iter().map(|token| self.cpu.best_product(token, codes)));
    }

    /// What makes an estimate of a cosine of the product with each token.
    #[must_use]
    pub fn factors(&self) -> &[f64] {
        &self.factors
    }
}

/// Makes a row of codes for each record, end to end, with room for so many; the token vectors of all records lie end to end,
/// and it is given how many each has.
///
/// # Errors
/// `Misfit` if a record has none, the numbers do not go together, or a row would be too long.
pub fn token_rows(vectors: &[f32], dim: usize, counts: &[usize], most: usize) -> Result<Vec<f32>, Misfit> {
    let is_dim = |dim: usize| (1..=LARGEST_DIM).contains(&dim);
    if !is_dim(dim) || !is_dim(most.saturating_mul(CODE_FLOATS)) {
        return Err(Misfit::Dimension(if is_dim(dim) { most } else { dim }));
    }
    let expected = counts.iter().try_fold(0usize, |all, count| all.checked_add(*count));
    let expected = expected.and_then(|all| all.checked_mul(dim)).unwrap_or(usize::MAX);
    if expected != vectors.len() || counts.contains(&0) {
        let found = vectors.len();
        return Err(Misfit::Length { expected, found });
    }
    let turn = Turn::of(dim);
    let mut rows = Vec::with_capacity(counts.len() * most * CODE_FLOATS);
    let mut rest = vectors;
    for count in counts {
        let (own, others) = rest.split_at(count * dim);
        encode_row(own, &turn, most, &mut rows);
        rest = others;
    }
    Ok(rows)
}

/// Makes a row of so many codes of the token vectors of a record, end to end; there must be one.
fn encode_row(vectors: &[f32], turn: &Turn, most: usize, row: &mut Vec<f32>) {
    let count = vectors.len() / turn.dim;
    let kept = count.min(most);
    let mut sum = vec![0.0; turn.dim];
    let mut code = [0.0; CODE_FLOATS];
    for at in 0..most {
        if at < kept {
            sum.fill(0.0);
            for vector in vectors[at * count / kept * turn.dim..(at + 1) * count / kept * turn.dim].chunks(turn.dim) {
                for (sum, value) in sum.iter_mut().zip(vector) {
                    *sum += f64::from(*value);
                }
            }
            code = code_of(&turn.turned(&sum));
        }
        row.extend_from_slice(&code);
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

/// The rotation of vectors of one length. It is part of what bytes mean, and never changes.
struct Turn {
    dim: usize,
    /// The signs of each round.
    flips: Vec<Vec<f64>>,
}

impl Turn {
    /// Of vectors of this length.
    fn of(dim: usize) -> Self {
        let size = dim.next_power_of_two().max(SMALLEST_TURN);
        let flip = |round: u64, at: usize| {
            let bits = mixed(round * 4096 + at as u64 / 64 + 1);
            if bits >> (at % 64) & 1 == 1 { 1.0 } else { -1.0 }
        };
        Self {
            dim,
            flips: (0..ROUNDS)
                .map(|round| (0..size).map(|at| flip(round, at)).collect())
                .collect(),
        }
    }

    /// The first components of a vector that is turned, stretched by a constant.
    fn turned(&self, vector: &[f64]) -> Vec<f64> {
        let mut turned = vector.to_vec();
        for flips in &self.flips {
            turned.resize(flips.len(), 0.0);
            for (value, flip) in turned.iter_mut().zip(flips) {
                *value *= flip;
            }
            transform(&mut turned);
        }
        turned.truncate(SIGNS);
        turned
    }
}

/// The Hadamard transform: only sums and differences of pairs, in a fixed order.
fn transform(values: &mut [f64]) {
    let mut half = 1;
    while half < values.len() {
        for pair in values.chunks_exact_mut(2 * half) {
            let (one, other) = pair.split_at_mut(half);
            for (one, other) in one.iter_mut().zip(other) {
                (*one, *other) = (*one + *other, *one - *other);
            }
        }
        half *= 2;
    }
}

/// 64 bits that look like any others (SplitMix64 at this place of its sequence).
fn mixed(place: u64) -> u64 {
    let mut bits = place.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors that look like any others.
    fn vectors(count: usize, dim: usize, seed: u64) -> Vec<f32> {
        let value = |at: usize| (mixed(seed + at as u64) >> 40) as f32 / (1 << 23) as f32 - 1.0;
        (0..count * dim).map(value).collect()
    }

    fn row(vectors: &[f32], dim: usize, most: usize) -> Vec<u8> {
        let mut row = Vec::new();
        encode_row(vectors, &Turn::of(dim), most, &mut row);
        row.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn every_way_finds_the_same_products_as_adding_up() {
        let dim = 384;
        let asked = vectors(5, dim, 1);
        let codes = row(&vectors(9, dim, 7000), dim, 16);
        let turn = Turn::of(dim);
        for cpu in Cpu::every() {
            let query = TokenQuery::new(&asked, dim, cpu);
            let mut found = Vec::new();
            query.best(&codes, &mut found);
            let plain: Vec<i32> = asked
                .chunks(dim)
                .map(|vector| plain_best(vector, &turn, &codes))
                .collect();
            assert_eq!(found, plain, "{cpu:?}");
        }
    }

    fn plain_best(vector: &[f32], turn: &Turn, codes: &[u8]) -> i32 {
        let wide: Vec<f64> = vector.iter().map(|&value| f64::from(value)).collect();
        let turned = turn.turned(&wide);
        let top = turned.iter().fold(0.0, |top: f64, value| top.max(value.abs()));
        let product = |code: &[u8]| {
            let signs = turned.iter().enumerate().map(|(at, value)| {
                let number = (value / top * LARGEST).round_ties_even() as i32;
                let is_set = code[place(at) / 8] >> (place(at) % 8) & 1 == 1;
                if is_set { number } else { -number }
            });
            signs.sum::<i32>()
        };
        codes.chunks(CODE_BYTES).map(product).max().expect("a code")
    }

    #[test]
    fn a_code_is_four_finite_numbers_and_knows_its_own_vector() {
        for dim in [1, 96, 128, 384, 1024] {
            let many = vectors(40, dim, 3);
            let codes = row(&many, dim, 40);
            for word in codes.chunks(4) {
                assert!(f32::from_le_bytes(word.try_into().expect("four bytes")).is_finite());
            }
            if dim < 96 {
                continue;
            }
            let query = TokenQuery::new(&many[..dim], dim, Cpu::best());
            let products = codes.chunks(CODE_BYTES).map(|code| {
                let mut found = Vec::new();
                query.best(code, &mut found);
                f64::from(found[0]) * query.factors()[0]
            });
            let products: Vec<f64> = products.collect();
            assert!(products[0] > 0.9, "{}", products[0]);
            assert!(products[1..].iter().all(|other| *other < 0.6), "{products:?}");
        }
    }

    #[test]
    fn fewer_are_filled_up_and_more_are_added_up() {
        let dim = 128;
        let some = vectors(6, dim, 11);
        let (few, room) = (row(&some, dim, 6), row(&some, dim, 9));
        assert_eq!(few, room[..few.len()]);
        assert!(
            room[few.len()..]
                .chunks(CODE_BYTES)
                .all(|code| code == &few[5 * CODE_BYTES..])
        );
        let query = TokenQuery::new(&vectors(3, dim, 90), dim, Cpu::best());
        let (mut one, mut other) = (Vec::new(), Vec::new());
        query.best(&few, &mut one);
        query.best(&room, &mut other);
        assert_eq!(one, other);
        let pairs: Vec<f32> = some
            .chunks(2 * dim)
            .flat_map(|pair| (0..dim).map(|at| pair[at] + pair[dim + at]))
            .collect();
        let (added, paired) = (row(&some, dim, 3), row(&pairs, dim, 3));
        let differing: u32 = added
            .iter()
            .zip(&paired)
            .map(|(one, other)| (one ^ other).count_ones())
            .sum();
        // Sums in float32 and float64 may differ in a sign that is nearly zero.
        assert!(differing <= 1, "{differing}");
    }

    #[test]
    fn a_vector_without_a_direction_is_like_nothing() {
        let query = TokenQuery::new(&[0.0; 128], 128, Cpu::best());
        assert_eq!(query.factors(), [0.0]);
        let mut found = Vec::new();
        query.best(&row(&vectors(2, 128, 5), 128, 2), &mut found);
        assert_eq!(found, [0]);
    }
}
