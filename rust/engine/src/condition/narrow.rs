//! Which keys of an index lead to all that a test lets through?
//!
//! More may be there than the test lets through: whoever goes by an index asks the whole condition again of each record.

use std::ops::Bound;

use super::operand::{Operand, Operands};
use super::place::Place;
use super::test::{Relation, Test, Wanted};
use crate::index::key;

/// Keys between two others.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A way to what a test lets through: some keys of an index of its field.
#[derive(Clone, Debug, PartialEq)]
pub struct Way<'a> {
    /// The field.
    pub place: &'a Place,
    /// The keys; there is a record in one of these for each that the test lets through.
    pub ranges: Vec<KeyRange>,
}

/// The ways to what a test lets through; none where no index helps.
pub fn ways(test: &Test) -> Vec<Way<'_>> {
    let way = |ranges: Option<Vec<KeyRange>>| {
        let place = &test.place;
        ranges.map(|ranges| Way { place, ranges })
    };
    match &test.wanted {
        Wanted::Eq(operand) => way(exactly(operand).map(|range| vec![range])).into_iter().collect(),
        Wanted::In(operands) | Wanted::Any(operands) => way(each(operands)).into_iter().collect(),
        // Any one of them leads to those that have all.
        Wanted::All(operands) => {
            let ranges = operands.each().iter().filter_map(exactly);
            ranges.filter_map(|range| way(Some(vec![range]))).collect()
        }
        Wanted::Order(relation, operand) => way(beside(*relation, operand).map(|range| vec![range]))
            .into_iter()
            .collect(),
        Wanted::Starts(start) => {
            let from = key::text_start(start);
            let until = end_of(&from);
            way(Some(vec![(Bound::Included(from), Bound::Excluded(until))]))
                .into_iter()
                .collect()
        }
        Wanted::Like(_) | Wanted::Under(_) | Wanted::Type(_) | Wanted::Exists(_) => Vec::new(),
    }
}

/// What follows all that begins so: no key has this byte in it where it could tell.
fn end_of(start: &[u8]) -> Vec<u8> {
    [start, &[u8::MAX, u8::MAX]].concat()
}

fn exactly(operand: &Operand) -> Option<KeyRange> {
    let key = operand.scalar_key()?;
    Some((Bound::Included(key.to_vec()), Bound::Excluded(end_of(key))))
}

fn each(operands: &Operands) -> Option<Vec<KeyRange>> {
    operands.each().iter().map(exactly).collect()
}

fn beside(relation: Relation, operand: &Operand) -> Option<KeyRange> {
    let key = operand.scalar_key()?;
    let (first, last) = key::of_same_type(key)?;
    Some(match relation {
        Relation::Gt => (Bound::Excluded(end_of(key)), Bound::Excluded(last)),
        Relation::Gte => (Bound::Included(key.to_vec()), Bound::Excluded(last)),
        Relation::Lt => (Bound::Included(first), Bound::Excluded(key.to_vec())),
        Relation::Lte => (Bound::Included(first), Bound::Excluded(end_of(key))),
    })
}
