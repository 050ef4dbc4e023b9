//! Ordered indexes over fields of canonical records, as faces and stores declare them.
//!
//! An index is derived: it is made when it is first asked, follows the state from then on, and is never on disk. A face
//! declares what its own records are looked up by, in a table; a store declares fields of all records, in records of its own.

pub mod key;
mod ordered;
mod postings;

use std::collections::HashMap;

pub use ordered::{After, IndexLookup, OrderedIndex, field};
pub use postings::{KeyRange, Postings};

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
        self.0.get(name).filter(|index| !index.is_behind(state))
    }
}
