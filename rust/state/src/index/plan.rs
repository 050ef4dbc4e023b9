//! Plans which records must be looked at to find all for which a condition holds.

use std::fmt;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::fields::FieldIndexes;
use super::keys::KeyQuery;
use crate::condition::{Condition, with_commas};
use crate::state::{Query, State};
use chronolog::scope::Viewer;

/// Whoever wants only a few records does not count more keys than this to find out which way is shortest.
const MOST_KEYS: usize = 16 * 1024;

/// The cheapest way to the records that a question asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryPlan {
    /// The slots that an index leads to; `None` if all of the right kind and status are looked at.
    pub slots: Option<RoaringBitmap>,
    path: String,
    /// How many records are looked at, of how many, if that was asked for.
    looked_at: u64,
    of: u64,
    tests: usize,
}

impl QueryPlan {
    /// Takes the way with the fewest entries, counting nothing that whoever asks does not see. The indexes must know the state.
    pub fn choose(state: &State, query: &Query, condition: &Condition, indexes: &FieldIndexes) -> Self {
        let sight = state.sight(&query.viewer);
        // An index by value alone serves a question about all records.
        let scopes = (*query.viewer.who() != Viewer::Everyone).then(|| state.scopes().numbers(&sight));
        let scopes = scopes.as_deref();
        let by_class =
            |most: u64| query.count_of(state, |class| condition.may_hold_for(&class.kind, &class.status), most);
        let most_keys = query.limit.map_or(usize::MAX, |_| MOST_KEYS);
        let sees_all = sight.is_all();
        let mut fewest = if sees_all {
            by_class(u64::MAX)
        } else {
            let numbers = state.scopes().numbers(&sight);
            numbers.iter().map(|&scope| state.scopes().slots(scope).len()).sum()
        };
        let mut best = None;
        for way in condition.ways() {
            let path = way.path.to_string();
            let Some(keys) = indexes.keys(&path) else {
                continue;
            };
            let ranges = &way.ranges;
            if let Some(count) = keys.count_below(state, &KeyQuery { ranges, scopes }, fewest, most_keys) {
                (best, fewest) = (Some((path, keys, way.ranges)), count);
            }
        }
        // Of what somebody sees it is not known at once how many there are of a kind: only as many are counted as matter.
        if !sees_all && best.is_some() && by_class(fewest.saturating_add(1)) <= fewest {
            best = None;
        }
        let (path, slots) = match best {
            Some((path, keys, ranges)) => {
                let ranges = &ranges;
                (path, Some(keys.slots(state, &KeyQuery { ranges, scopes })))
            }
            None => (String::new(), None),
        };
        Self {
            looked_at: 0,
            of: 0,
            slots,
            path,
            tests: condition.tests(),
        }
    }

    /// Counts what is looked at, for whoever wants to be told.
    #[must_use]
    pub fn told(mut self, state: &State, query: &Query, condition: &Condition) -> Self {
        let everyone = Query {
            viewer: Arc::clone(&query.viewer),
            faces: query.faces || query.kinds.is_some(),
            ..Query::default()
        };
        self.of = everyone.count_of(state, |_| true, u64::MAX);
        self.looked_at = match &self.slots {
            Some(slots) => slots.len(),
            None => query.count_of(
                state,
                |class| condition.may_hold_for(&class.kind, &class.status),
                u64::MAX,
            ),
        };
        self
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
