//! Finds the records that stay and speak of one that goes.

use std::collections::BTreeSet;

use crate::event::faces::ties_of;
use crate::event::tie::Bond;
use crate::json::{self, Value};
use crate::state::{Row, State, unspelled};

use super::chosen::{Chosen, said_by};

/// Their ids, in the present that is known. What was derived from one by way of another that keeps the steps between them speaks
/// of it too: it would go with what is derived.
pub(in crate::store) fn mentions(chosen: &Chosen, state: &State) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // What is derived from others, if it says nothing of those that go itself.
    let mut derived: Vec<(String, Vec<String>)> = Vec::new();
    let rows = chosen.tied().iter().filter_map(|&slot| state.row(slot));
    for row in rows.filter(|row| !row.id.is_empty() && !chosen.doomed.has(row.id)) {
        let (named, origins) = names_in(&row);
        if named.iter().any(|name| chosen.has_whole(name)) {
            found.insert(unspelled(row.id));
        } else if !origins.is_empty() {
            derived.push((unspelled(row.id), origins));
        }
    }
    let mut grew = !found.is_empty();
    while grew {
        let before = derived.len();
        derived.retain(|(id, origins)| {
            let is_it = origins.iter().any(|name| found.contains(name));
            if is_it {
                found.insert(id.clone());
            }
            !is_it
        });
        grew = derived.len() < before;
    }
    found
}

/// The records that one names, and of these the ones that it was derived from.
fn names_in(row: &Row<'_>) -> (Vec<String>, Vec<String>) {
    let value = json::parse(row.record).unwrap_or(Value::Null);
    let (mut named, mut origins) = (Vec::new(), Vec::new());
    for tie in ties_of(&said_by(row)) {
        let names = tie.names(&value);
        if tie.bond == Bond::Derived {
            origins.extend_from_slice(&names);
        }
        named.extend(names);
    }
    (named, origins)
}
