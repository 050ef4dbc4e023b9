//! Tests of fields, their operators, and clauses that join them by and, or and not.

use std::cmp::Ordering;

use super::like::Pattern;
use super::operand::{FieldValue, Operand, Operands, type_of};
use super::place::{Facts, FieldPath};
use super::print::printed;

/// A part of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    All(Vec<Clause>),
    Any(Vec<Clause>),
    Not(Box<Clause>),
    Test(Test),
}

impl Default for Clause {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

impl Clause {
    /// Whether it holds for a canonical record.
    pub fn holds(&self, record: &[u8], facts: &Facts) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.holds(record, facts)),
            Self::Any(nodes) => nodes.iter().any(|node| node.holds(record, facts)),
            Self::Not(node) => !node.holds(record, facts),
            Self::Test(test) => test.holds(record, facts),
        }
    }

    /// Shows the tests that must all hold, or every one.
    pub fn each_test<'a>(&'a self, only_joined: bool, see: &mut dyn FnMut(&'a Test)) {
        match self {
            Self::All(nodes) => nodes.iter().for_each(|node| node.each_test(only_joined, see)),
            Self::Any(nodes) if !only_joined => nodes.iter().for_each(|node| node.each_test(false, see)),
            Self::Not(node) if !only_joined => node.each_test(false, see),
            Self::Test(test) => see(test),
            Self::Any(_) | Self::Not(_) => {}
        }
    }
}

/// An order that a field must have to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Above it.
    Gt,
    /// Above it or equal.
    Gte,
    /// Below it.
    Lt,
    /// Below it or equal.
    Lte,
}

impl Relation {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Gt => order.is_gt(),
            Self::Gte => order.is_ge(),
            Self::Lt => order.is_lt(),
            Self::Lte => order.is_le(),
        }
    }
}

/// What a field must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Operator {
    /// This value.
    Eq(Operand),
    /// One of these.
    In(Operands),
    /// In an order with this.
    Order(Relation, Operand),
    /// A text that begins so.
    Starts(String),
    /// A text that fits this.
    Like(Pattern),
    /// An array with one of these elements.
    Any(Operands),
    /// An array with each of these.
    All(Operands),
    /// An array that begins with these.
    Under(Vec<Operand>),
    /// Of one of these types.
    Type(u8),
    /// There, or missing.
    Exists(bool),
    /// Something that is wanted as a text, whatever it is.
    Text(Box<Operator>),
}

/// One question about one field: the smallest part of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The field.
    pub place: FieldPath,
    /// What it must be.
    pub wanted: Operator,
}

impl Test {
    /// Whether it holds. Of what is missing nothing does, but that it is.
    pub fn holds(&self, record: &[u8], facts: &Facts) -> bool {
        self.wanted.holds(self.place.find(record, facts).as_ref())
    }
}

impl Operator {
    /// Whether what a field holds is wanted.
    pub fn holds(&self, held: Option<&FieldValue<'_>>) -> bool {
        let Some(held) = held else {
            return *self == Self::Exists(false);
        };
        match self {
            Self::Eq(operand) => operand.equals(held),
            Self::In(operands) => operands.have(held),
            Self::Order(relation, operand) => operand.order_of(held).is_some_and(|order| relation.holds(order)),
            Self::Starts(start) => held.text().is_some_and(|text| text.starts_with(start)),
            Self::Like(pattern) => held.text().is_some_and(|text| pattern.fits(&text)),
            Self::Any(operands) => {
                let elements = held.elements();
                elements.is_some_and(|mut elements| elements.any(|element| operands.have(&element)))
            }
            Self::All(operands) => operands.all_in(held).unwrap_or(false),
            Self::Under(operands) => held.elements().is_some_and(|mut elements| {
                let begins = |operand: &Operand| elements.next().is_some_and(|element| operand.equals(&element));
                operands.iter().all(begins)
            }),
            Self::Type(types) => held.value().is_some_and(|value| type_of(value) & types != 0),
            Self::Exists(is_there) => *is_there,
            Self::Text(inner) => {
                let text = held.value().and_then(printed);
                text.is_some_and(|text| inner.holds(Some(&FieldValue::Value(text))))
            }
        }
    }

    /// Whether only texts can be wanted.
    pub fn is_of_texts(&self) -> bool {
        match self {
            Self::Eq(operand) | Self::Order(_, operand) => operand.is_text(),
            Self::In(operands) => operands.each().iter().all(Operand::is_text),
            Self::Starts(_) | Self::Like(_) => true,
            _ => false,
        }
    }
}
