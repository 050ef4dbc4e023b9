//! Weighs each token of a question, and scores how much of all of them a candidate says.
//!
//! A token that half of the records say as well as the best tells nothing apart. So it is counted how many say it well:
//! at least half way from the average to the best. Only integers are counted and compared there, and sums have a fixed
//! order: a score is the same everywhere.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::fusion::POOL_RECORDS;
use crate::text::weight_of;
use crate::vector::tokens::STEPS;

/// The tokens of so many records are looked at, whatever words and vectors say of them.
pub const SMALL_RECORDS: usize = 1024;

/// Who knows the codes of records, and the tokens of a question.
pub trait Coded {
    /// How many tokens the question has.
    fn asked(&self) -> usize;

    /// Whether a record has codes; they may fail their check.
    fn is_coded(&self, record: u32) -> bool;

    /// Adds the product of each of them with a record; whether it has codes that can be believed.
    fn products(&self, record: u32, products: &mut Vec<i32>) -> bool;
}

/// What the records say that words, vectors and tokens put forward.
pub struct TokenScores<'a> {
    coded: &'a dyn Coded,
    /// What a step of likeness to each token adds to a score.
    worth: Vec<f64>,
    /// What those that were looked at say, by the name that their codes go by: most are asked for once more.
    said: HashMap<u32, f64, RandomState>,
    /// Those that were looked at and have codes, best first.
    pub best: Vec<(u32, f64)>,
}

impl<'a> TokenScores<'a> {
    /// Looks at all records, where these are few, else at the best by words and by vector. The name that its codes go by is
    /// `coded_name` of a record.
    pub fn of(
        coded: &'a dyn Coded,
        few: Option<Vec<u32>>,
        best: [&[(u32, f64)]; 2],
        coded_name: impl Fn(u32) -> u32,
    ) -> Self {
        // The same for every page: what a token is worth must not change from one to the next.
        let first = || best.iter().flat_map(|best| best.iter().take(POOL_RECORDS));
        let mut records: Vec<u32> = few.unwrap_or_else(|| first().map(|one| one.0).collect());
        records.sort_unstable();
        records.dedup();
        let mut products = Vec::new();
        let known: Vec<(u32, u32)> = records
            .into_iter()
            .map(|record| (record, coded_name(record)))
            .filter(|(_, record)| coded.products(*record, &mut products))
            .collect();
        let worth = worth(&products, coded.asked());
        let scores = products
            .chunks_exact(coded.asked())
            .map(|products| score(products, &worth));
        let mut best = Vec::with_capacity(known.len());
        let mut said = HashMap::with_capacity_and_hasher(known.len(), RandomState::default());
        for ((name, record), score) in known.into_iter().zip(scores) {
            best.push((name, score));
            said.insert(record, score);
        }
        best.sort_by(|one: &(u32, f64), other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        Self {
            coded,
            worth,
            said,
            best,
        }
    }

    /// How much of the question a record says, from about 0 to about 1; none without codes that can be believed.
    pub fn score(&self, record: u32) -> Option<f64> {
        if let Some(score) = self.said.get(&record) {
            return Some(*score);
        }
        let mut products = Vec::with_capacity(self.worth.len());
        self.coded
            .products(record, &mut products)
            .then(|| score(&products, &self.worth))
    }
}

/// What each token is worth, by the products of the records that were looked at, end to end.
fn worth(products: &[i32], tokens: usize) -> Vec<f64> {
    let records = products.len() / tokens;
    let weight = |token: usize| {
        let said = || products.iter().skip(token).step_by(tokens).map(|&said| i64::from(said));
        let bar = said().max().unwrap_or(0) * records as i64 + said().sum::<i64>();
        let well = said().filter(|said| 2 * said * records as i64 >= bar).count();
        weight_of(well, records)
    };
    let weights: Vec<f64> = (0..tokens).map(weight).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total / STEPS).collect()
}

fn score(products: &[i32], worth: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (product, worth) in products.iter().zip(worth) {
        sum += f64::from(*product) * worth;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_says_is_worth_little() {
        // Two tokens, four records: three say the first alike, one says the second.
        let products = [90, 100, 92, 3, 91, 2, 5, 5];
        let worth = worth(&products, 2);
        assert!(worth[1] > 2.0 * worth[0], "{worth:?}");
        assert!(((worth[0] + worth[1]) * STEPS - 1.0).abs() < 1e-12);
        // One record alone says each token best.
        assert_eq!(super::worth(&[7, 9], 2)[0], 0.5 / STEPS);
    }
}
