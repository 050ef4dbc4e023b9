//! Turns a test of one field into the keys of an index that lead to all that it lets through.
//!
//! They may lead to more: the whole condition is asked again of each record.

use std::ops::Bound;

use super::key;
use super::operand::{Operand, Operands};
use super::place::FieldPath;
use super::test::{Operator, Relation, Test};

/// Keys between two others.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A way to what a test lets through: some keys of an index of its field.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexWay<'a> {
    /// The field.
    pub path: &'a FieldPath,
    /// The keys; there is a record in one of these for each that the test lets through.
    pub ranges: Vec<KeyRange>,
}

/// The ways to what a test lets through; none where no index helps.
pub fn ways(test: &Test) -> Vec<IndexWay<'_>> {
    let way = |ranges: Option<Vec<KeyRange>>| {
        let path = &test.place;
        ranges.map(|ranges| IndexWay { path, ranges })
    };
    match &test.wanted {
        Operator::Eq(operand) => way(exactly(operand).map(|range| vec![range])).into_iter().collect(),
        Operator::In(operands) | Operator::Any(operands) => way(each(operands)).into_iter().collect(),
        // Any one of them leads to those that have all.
        Operator::All(operands) => {
            let ranges = operands.each().iter().filter_map(exactly);
            ranges.filter_map(|range| way(Some(vec![range]))).collect()
        }
        Operator::Order(relation, operand) => way(beside(*relation, operand).map(|range| vec![range]))
            .into_iter()
            .collect(),
        Operator::Starts(start) => {
            let from = key::text_start(start);
            // No text goes on with this byte.
            let until = [&from[..], &[u8::MAX]].concat();
            way(Some(vec![(Bound::Included(from), Bound::Excluded(until))]))
                .into_iter()
                .collect()
        }
        Operator::Like(_) | Operator::Under(_) | Operator::Type(_) | Operator::Exists(_) | Operator::Text(_) => {
            Vec::new()
        }
    }
}

fn exactly(operand: &Operand) -> Option<KeyRange> {
    let key = operand.scalar_key()?;
    Some((Bound::Included(key.to_vec()), Bound::Included(key.to_vec())))
}

fn each(operands: &Operands) -> Option<Vec<KeyRange>> {
    operands.each().iter().map(exactly).collect()
}

fn beside(relation: Relation, operand: &Operand) -> Option<KeyRange> {
    let key = operand.scalar_key()?;
    let (first, last) = key::of_same_type(key)?;
    let key = key.to_vec();
    Some(match relation {
        Relation::Gt => (Bound::Excluded(key), Bound::Excluded(last)),
        Relation::Gte => (Bound::Included(key), Bound::Excluded(last)),
        Relation::Lt => (Bound::Included(first), Bound::Excluded(key)),
        Relation::Lte => (Bound::Included(first), Bound::Included(key)),
    })
}
