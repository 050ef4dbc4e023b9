//! Sorted keys of canonical records, over the fields that stores and faces declare.
//!
//! An index is derived. What segments hold is in a file beside each of them, made when it is first asked; the rest is in memory and
//! follows the state. A face declares what its own records are looked up by, in a table; a store declares fields of all records, in
//! records of its own.

mod fields;
mod keys;
mod list;
mod memory;
mod ordered;
mod plan;
mod sealed;

use std::collections::HashMap;

pub use fields::{FieldIndexes, INDEX_KIND, INDEX_PREFIX, MAX_INDEXES};
pub use list::field;
pub use ordered::{After, IndexLookup, OrderedIndex};
pub use plan::QueryPlan;
pub use sealed::{is_altered, lists_of, origin_in, write_key_file};

use crate::state::State;
use chronolog::event::faces::FaceIndex;

/// The indexes that were asked so far.
#[derive(Debug, Default)]
pub struct Indexes(HashMap<&'static str, OrderedIndex>);

impl Indexes {
    /// A declared index; it knows nothing if nobody asked it before.
    pub fn of(&mut self, declared: &'static FaceIndex) -> &mut OrderedIndex {
        self.0
            .entry(declared.name)
            .or_insert_with(|| OrderedIndex::new(declared))
    }

    /// The same, if somebody asked it before.
    pub fn known(&self, declared: &FaceIndex) -> Option<&OrderedIndex> {
        self.0.get(declared.name)
    }

    /// The index of this name, if it knows this state as it is.
    pub fn fresh(&self, name: &str, state: &State) -> Option<&OrderedIndex> {
        self.0.get(name).filter(|index| !index.keys.is_behind(state))
    }
}
