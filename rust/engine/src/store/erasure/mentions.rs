//! Lists the records that are kept and named an erased one.

use std::collections::BTreeSet;

use chronolog::event::faces::ties_of;
use chronolog::event::tie::Bond;
use chronolog::json::{self, Value};
use chronomemory_state::state::{Row, State, unspelled};

use super::chosen::{Chosen, said_by};

/// Their ids. What was derived from one of them is listed too: `derived` would erase it.
pub(in crate::store) fn mentions(chosen: &Chosen, state: &State) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = chosen.kept().collect();
    let rows = chosen.tied().iter().filter_map(|&slot| state.row(slot));
    let others = rows.filter(|row| !row.id.is_empty() && !chosen.doomed.has(row.id));
    let mut derived: Vec<(String, Vec<String>)> = others
        .map(|row| (unspelled(row.id), origins_of(&row)))
        .filter(|(_, origins)| !origins.is_empty())
        .collect();
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

/// The records that one was derived from.
fn origins_of(row: &Row<'_>) -> Vec<String> {
    let said = said_by(row);
    let mut ties = ties_of(&said).filter(|tie| tie.bond == Bond::Derived).peekable();
    let value = ties
        .peek()
        .and_then(|_| json::parse(row.record).ok())
        .unwrap_or(Value::Null);
    ties.flat_map(|tie| tie.names(&value)).collect()
}
