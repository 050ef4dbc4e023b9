//! Which records must be looked at to find all for which a condition holds?

use std::fmt;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::Condition;
use super::indexes::FieldIndexes;
use super::parse::with_commas;
use crate::state::{Query, State};

/// Whoever wants only a few records does not count more keys than this to find out which way is shortest.
const MOST_KEYS: usize = 16 * 1024;

/// The cheapest way to the records that a question asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryPlan {
    /// The slots that an index leads to; `None` if all of the right kind and status are looked at.
    pub slots: Option<RoaringBitmap>,
    path: String,
    /// How many records are looked at, of how many.
    looked_at: u64,
    of: u64,
    tests: usize,
}

impl QueryPlan {
    /// Takes the way with the fewest entries. The indexes must know the state.
    pub fn choose(state: &State, query: &Query, condition: &Condition, indexes: &FieldIndexes) -> Self {
        let everyone = Query {
            viewer: Arc::clone(&query.viewer),
            faces: query.faces || query.kind.is_some(),
            ..Query::default()
        };
        // An index leads to the records of all; whoever sees little goes through that.
        let sees_all = state.sight(&query.viewer).is_all();
        let of = state.count_of(&everyone, |_, _| true);
        let by_class = state.count_of(query, |kind, status| condition.may_hold_for(kind, status));
        let most_keys = query.limit.map_or(usize::MAX, |_| MOST_KEYS);
        let (mut best, mut fewest) = (None, by_class);
        for way in condition.ways().into_iter().filter(|_| sees_all) {
            let path = way.path.to_string();
            let Some(postings) = indexes.postings(&path) else {
                continue;
            };
            if let Some(count) = postings.count_below(&way.ranges, fewest, most_keys) {
                (best, fewest) = (Some((path, postings, way.ranges)), count);
            }
        }
        let (path, slots) = match best {
            Some((path, postings, ranges)) => (path, Some(postings.slots(&ranges))),
            None => (String::new(), None),
        };
        Self {
            looked_at: slots.as_ref().map_or(by_class, RoaringBitmap::len),
            slots,
            path,
            of,
            tests: condition.tests(),
        }
    }
}

/// The plan in a line.
impl fmt::Display for QueryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: u64| with_commas(usize::try_from(number).unwrap_or(usize::MAX));
        let (looked_at, of) = (number(self.looked_at), number(self.of));
        let tests = match self.tests {
            1 => "1 test each".to_owned(),
            more => format!("{} tests each", with_commas(more)),
        };
        let records = if self.of == 1 { "record" } else { "records" };
        match &self.slots {
            Some(_) => write!(f, "index {}: {looked_at} of {of} {records}, {tests}", self.path),
            None if self.looked_at < self.of => {
                write!(f, "kind and status: {looked_at} of {of} {records}, {tests}")
            }
            None => write!(f, "no index: {of} {records} of the scope"),
        }
    }
}
