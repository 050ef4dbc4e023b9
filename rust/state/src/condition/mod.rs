//! A condition on the fields of a record: a `where`, parsed once and then asked of canonical records.
//!
//! Of a missing field every test is false but that it is missing, and `ne` is `eq` turned round. So `not` is the
//! complement of what stands in it. Types never convert, and numbers are what they say, however they are spelled.

mod like;
mod narrow;
mod operand;
mod parse;
mod place;
mod print;
mod test;

pub mod key;

pub use narrow::{IndexWay, KeyRange};
pub use operand::FieldValue;
pub use parse::WHERE_KEYS;
pub use place::{Facts, FieldPath, MomentField, indexable, sort_key};

pub(crate) use parse::with_commas;

use operand::{Operand, Operands};
use test::{Clause, Operator, Relation, Test};

use chronolog::error::Result;
use chronolog::json::write_string;

/// What a record must be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    node: Clause,
    tests: usize,
}

impl Condition {
    /// The condition that a where says, as JSON.
    ///
    /// # Errors
    /// `Argument` with the place in it, such as `where.and[1]."data.age".gt`.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let (node, tests) = parse::parse(text)?;
        Ok(Self { node, tests })
    }

    /// The condition that all of several hold.
    #[must_use]
    pub fn joined(parts: impl IntoIterator<Item = Self>) -> Self {
        let (mut nodes, mut tests) = (Vec::new(), 0);
        for part in parts {
            nodes.push(part.node);
            tests += part.tests;
        }
        let node = Clause::All(nodes);
        Self { node, tests }
    }

    /// That a record has all of these tags.
    #[must_use]
    pub fn tagged(tags: &[String]) -> Self {
        let spell = |tag: &String| {
            let mut out = Vec::new();
            write_string(tag, &mut out);
            Operand::of(out)
        };
        Self::of(
            place::TAGS,
            Operator::All(Operands::new(tags.iter().map(spell).collect())),
        )
    }

    /// That what it tells happened not before a moment, in microseconds since 1970.
    #[must_use]
    pub fn since(micros: i64) -> Self {
        Self::of("happened_at", Operator::Order(Relation::Gte, Operand::Moment(micros)))
    }

    /// That it happened not after a moment.
    #[must_use]
    pub fn until(micros: i64) -> Self {
        Self::of("happened_at", Operator::Order(Relation::Lte, Operand::Moment(micros)))
    }

    fn of(path: &str, wanted: Operator) -> Self {
        let place = FieldPath::of_text(path);
        place.map_or_else(
            |_| Self::default(),
            |place| Self {
                node: Clause::Test(Test { place, wanted }),
                tests: 1,
            },
        )
    }

    /// How many tests it has.
    pub fn tests(&self) -> usize {
        self.tests
    }

    /// Whether it holds for a canonical record. What stands beside the record needs only be right if it is asked for.
    pub fn holds(&self, record: &[u8], facts: &Facts) -> bool {
        self.node.holds(record, facts)
    }

    /// Whether it asks for a moment that stands beside the record.
    pub fn asks_for(&self, wanted: MomentField) -> bool {
        let mut asks = false;
        self.node
            .each_test(false, &mut |test| asks |= test.place.stamp() == Some(wanted));
        asks
    }

    /// The ways by which indexes lead to all for which it holds. Each alone is enough.
    pub fn ways(&self) -> Vec<IndexWay<'_>> {
        let mut ways = Vec::new();
        self.node.each_test(true, &mut |test| ways.extend(narrow::ways(test)));
        ways
    }

    /// Whether it may hold for a record of a kind and status, as these stand between quotes in canonical JSON.
    pub fn may_hold_for(&self, kind: &[u8], status: &[u8]) -> bool {
        let mut may = true;
        self.node.each_test(true, &mut |test| {
            // A kind that is no text is counted as the usual one, so only what is asked of texts says anything.
            for (name, value) in [("kind", kind), ("status", status)] {
                if test.place.is_field(name) && test.wanted.is_of_texts() {
                    let held = FieldValue::Value([b"\"", value, b"\""].concat().into());
                    may = may && test.wanted.holds(Some(&held));
                }
            }
        });
        may
    }
}

#[cfg(test)]
mod tests;
