//! Which records must be looked at to find all for which a condition holds?

use std::fmt;

use super::Condition;
use super::indexes::FieldIndexes;
use super::narrow::Way;
use super::parse::with_commas;
use crate::index::Entries;
use crate::state::{Query, State};

/// The cheapest way to the records that a question asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The slots that an index leads to, ascending; `None` if all of the right kind and status are looked at.
    pub slots: Option<Vec<u32>>,
    path: String,
    /// How many records are looked at, of how many.
    looked_at: u64,
    of: u64,
    tests: usize,
}

impl Plan {
    /// Takes the way with the fewest entries. The indexes must know the state.
    pub fn choose(state: &State, query: &Query, condition: &Condition, indexes: &FieldIndexes) -> Self {
        let everyone = Query {
            faces: query.faces || query.kind.is_some(),
            ..Query::default()
        };
        let of = state.count_of(&everyone, |_, _| true);
        let by_class = state.count_of(query, |kind, status| condition.may_hold_for(kind, status));
        let mut best: Option<(String, Way<'_>)> = None;
        let mut fewest = usize::try_from(by_class).unwrap_or(usize::MAX);
        for way in condition.ways() {
            let path = way.place.to_string();
            let Some(entries) = indexes.entries(&path) else {
                continue;
            };
            // No more are counted than would be too many.
            let count = slots(entries, &way).take(fewest).count();
            if count < fewest {
                (best, fewest) = (Some((path, way)), count);
            }
        }
        let by_index = best.and_then(|(path, way)| {
            let mut found: Vec<u32> = slots(indexes.entries(&path)?, &way).collect();
            found.sort_unstable();
            found.dedup();
            Some((path, found))
        });
        let (path, slots) = by_index.map_or((String::new(), None), |(path, slots)| (path, Some(slots)));
        Self {
            looked_at: slots.as_ref().map_or(by_class, |slots| slots.len() as u64),
            slots,
            path,
            of,
            tests: condition.tests(),
        }
    }
}

/// The slots that a way leads to; one may come several times.
fn slots<'a>(entries: &'a Entries, way: &'a Way<'_>) -> impl Iterator<Item = u32> + 'a {
    way.ranges
        .iter()
        .flat_map(move |(from, until)| entries.between(from, until))
}

/// The plan in a line.
impl fmt::Display for Plan {
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
            None => write!(f, "no index: {of} {records} of the store"),
        }
    }
}
