//! Derives what can be known of a space whose own record is lost from its groups.
//!
//! One damaged line of a log may be the one that binds a space, or says that it has moved to another generation. Its groups
//! say which file their rows lie in and how long they are, so the embeddings can still be found, and nobody writes over
//! them. What becomes of rows that the lost line would have taken along is the business of
//! [`crate::store::vectors::changes::left_behind`]. If it was the first binding, the name of the model is gone: whoever attaches to
//! such a space has to name it, and binds it anew.

use std::collections::BTreeMap;

use super::format::{Bound, dim_in, file_of, names_rows};
use chronomemory_state::state::State;

/// The spaces that groups speak of in a later generation than their own records do; `known` is that of the records.
pub fn implied<'a>(
    state: &'a State,
    groups: impl Iterator<Item = &'a u32>,
    known: impl Fn(&str) -> Option<u64>,
) -> BTreeMap<&'a str, Bound> {
    let mut found: BTreeMap<&str, Bound> = BTreeMap::new();
    for slot in groups {
        let (id, record) = (state.spelled_id(*slot), state.record_in(*slot));
        let Some((space, generation)) = file_of(id, record) else {
            continue;
        };
        let known = found.get(space).map(|bound| bound.generation).or_else(|| known(space));
        if known.is_some_and(|known| known >= generation) || !names_rows(record) {
            continue;
        }
        if let Some(dim) = dim_in(record) {
            let bound = Bound {
                name: space.to_owned(),
                model: String::new(),
                dim,
                generation,
                tokens: 0,
            };
            found.insert(space, bound);
        }
    }
    found
}
