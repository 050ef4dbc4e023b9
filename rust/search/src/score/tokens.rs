//! Weighs the tokens of a query, and scores candidates by their token codes.
//!
//! A token that many records match well distinguishes little. Its weight falls with the number of records whose match is at
//! least half way from the average to the best. Matches are integers and sums have a fixed order, so that a score is the same
//! on every machine.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::fusion::POOL_RECORDS;
use crate::text::weight_of;
use crate::vector::tokens::STEPS;

/// Up to this number of records all token codes are compared, not only those found by words and vectors.
pub const SMALL_RECORDS: usize = 1024;

/// The token codes of records, and the tokens of a query.
pub trait Coded {
    /// The number of tokens of the query.
    fn asked(&self) -> usize;

    /// Whether a record has codes; they may still fail their check.
    fn is_coded(&self, record: u32) -> bool;

    /// Appends the product of each token with a record. Returns false if it has no codes that pass their check.
    fn products(&self, record: u32, products: &mut Vec<i32>) -> bool;
}

/// The token scores of a query.
pub struct TokenScores<'a> {
    coded: &'a dyn Coded,
    /// The weight of each token, divided by the steps of a product.
    weights: Vec<f64>,
    /// The scores of the records compared so far, by the key of their codes.
    known: HashMap<u32, f64, RandomState>,
    /// The compared records that have codes, best first.
    pub best: Vec<(u32, f64)>,
}

impl<'a> TokenScores<'a> {
    /// Compares few records, or the best by words and by vector. `code_key` of a record is the key of its codes.
    pub fn of(
        coded: &'a dyn Coded,
        few: Option<Vec<u32>>,
        best: [&[(u32, f64)]; 2],
        code_key: impl Fn(u32) -> u32,
    ) -> Self {
        // The same records for every page, so that the weights do not change between pages.
        let first = || best.iter().flat_map(|best| best.iter().take(POOL_RECORDS));
        let mut records: Vec<u32> = few.unwrap_or_else(|| first().map(|one| one.0).collect());
        records.sort_unstable();
        records.dedup();
        let mut products = Vec::new();
        let compared: Vec<(u32, u32)> = records
            .into_iter()
            .map(|record| (record, code_key(record)))
            .filter(|(_, key)| coded.products(*key, &mut products))
            .collect();
        let weights = weights_of(&products, coded.asked());
        let scores = products
            .chunks_exact(coded.asked())
            .map(|products| score(products, &weights));
        let mut best = Vec::with_capacity(compared.len());
        let mut known = HashMap::with_capacity_and_hasher(compared.len(), RandomState::default());
        for ((record, key), score) in compared.into_iter().zip(scores) {
            best.push((record, score));
            known.insert(key, score);
        }
        best.sort_by(|one: &(u32, f64), other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        Self {
            coded,
            weights,
            known,
            best,
        }
    }

    /// The score of the codes with this key, about 0 to about 1; `None` without codes that pass their check.
    pub fn score(&self, key: u32) -> Option<f64> {
        if let Some(score) = self.known.get(&key) {
            return Some(*score);
        }
        let mut products = Vec::with_capacity(self.weights.len());
        self.coded
            .products(key, &mut products)
            .then(|| score(&products, &self.weights))
    }
}

/// The weights of the tokens, from the products of the compared records, end to end.
fn weights_of(products: &[i32], tokens: usize) -> Vec<f64> {
    let records = products.len() / tokens;
    let weight = |token: usize| {
        let matches = || {
            products
                .iter()
                .skip(token)
                .step_by(tokens)
                .map(|&product| i64::from(product))
        };
        let bar = matches().max().unwrap_or(0) * records as i64 + matches().sum::<i64>();
        let well = matches().filter(|product| 2 * product * records as i64 >= bar).count();
        weight_of(well, records)
    };
    let weights: Vec<f64> = (0..tokens).map(weight).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total / STEPS).collect()
}

fn score(products: &[i32], weights: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (product, weight) in products.iter().zip(weights) {
        sum += f64::from(*product) * weight;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_most_records_match_weighs_little() {
        // Two tokens, four records: three match the first equally, one matches the second.
        let products = [90, 100, 92, 3, 91, 2, 5, 5];
        let weights = weights_of(&products, 2);
        assert!(weights[1] > 2.0 * weights[0], "{weights:?}");
        assert!(((weights[0] + weights[1]) * STEPS - 1.0).abs() < 1e-12);
        // With one record all tokens weigh the same.
        assert_eq!(weights_of(&[7, 9], 2)[0], 0.5 / STEPS);
    }
}
