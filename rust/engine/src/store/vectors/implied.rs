//! What is known of a space whose own record is lost?
//!
//! One damaged line of a log may be the one that binds a space. Its groups say which file their rows lie in and how long
//! they are, so the embeddings can still be found, and nobody writes over them; only the name of the model is gone. Whoever
//! attaches to such a space has to name it, and binds it anew.

use std::collections::BTreeMap;

use super::words::{Bound, dim_in, file_of, names_rows};
use crate::state::State;

/// The spaces that groups speak of and nobody has bound: those of the latest generation of each.
pub fn implied<'a>(
    state: &'a State,
    groups: impl Iterator<Item = &'a u32>,
    is_bound: impl Fn(&str) -> bool,
) -> BTreeMap<&'a str, Bound> {
    let mut found: BTreeMap<&str, Bound> = BTreeMap::new();
    for slot in groups {
        let (id, record) = (state.spelled_id(*slot), state.record_in(*slot));
        let Some((space, generation)) = file_of(id, record).filter(|(space, _)| !is_bound(space)) else {
            continue;
        };
        let is_older = found.get(space).is_some_and(|known| known.generation >= generation);
        if is_older || !names_rows(record) {
            continue;
        }
        if let Some(dim) = dim_in(record) {
            let bound = Bound {
                name: space.to_owned(),
                model: String::new(),
                dim,
                generation,
            };
            found.insert(space, bound);
        }
    }
    found
}
