//! A part of a condition: tests that are joined by and, or and not.

use super::place::Facts;
use super::test::Test;

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
