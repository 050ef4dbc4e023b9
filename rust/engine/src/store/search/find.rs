//! Looks records up by a declared index, as of every write before the question.

use std::sync::{PoisonError, RwLock};

use crate::store::View;
use chronolog::error::{Error, Result};
use chronolog::event::faces::index_named;
use chronolog::memory;
use chronomemory_state::index::{IndexLookup, Indexes};
use chronomemory_state::state::{Dated, State};

/// What an index takes for a record while it is made, and more.
const ENTRY_BYTES: usize = 512;

impl View {
    /// The same as it was then.
    ///
    /// # Errors
    /// As [`Store::find`](crate::store::Store::find).
    pub fn find(&self, index: &str, lookup: &IndexLookup<'_>) -> Result<Vec<Dated<'_>>> {
        find(&self.indexes, &self.state, index, lookup)
    }
}

/// The records that a declared index leads to.
///
/// # Errors
/// As [`Store::find`](crate::store::Store::find).
pub(in crate::store) fn find<'a>(
    indexes: &RwLock<Indexes>,
    state: &'a State,
    name: &str,
    lookup: &IndexLookup<'_>,
) -> Result<Vec<Dated<'a>>> {
    let declared =
        index_named(name).ok_or_else(|| Error::must("index", "be one that a face declares", format!("{name:?}")))?;
    if lookup.key.len() != declared.by.len() {
        let (given, wanted) = (lookup.key.len(), declared.by.len());
        return Err(Error::must("key", format!("have the {wanted} fields of {name}"), given));
    }
    let records = |slots: Vec<u32>| slots.into_iter().map(|slot| state.dated_in(slot)).collect();
    if let Some(index) = indexes
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .fresh(declared.name, state)
    {
        return Ok(records(index.find(state, lookup)));
    }
    let mut indexes = indexes.write().unwrap_or_else(PoisonError::into_inner);
    let index = indexes.of(declared);
    memory::could_have(index.lacks(state) * ENTRY_BYTES)?;
    index.follow(state);
    Ok(records(index.find(state, lookup)))
}
