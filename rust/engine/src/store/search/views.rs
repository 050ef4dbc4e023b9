//! Holds what is derived from the state, so that a question need not go through all of it.

use std::sync::{Arc, PoisonError, RwLock};

use super::live_text::LiveTextIndex;
use chronolog::error::Result;
use chronomemory_search::blocks::BlockColumns;
use chronomemory_state::condition::FieldIndexes;
use chronomemory_state::index::Indexes;
use chronomemory_state::state::State;

/// What follows the state, each when it is asked.
#[derive(Default)]
pub(in crate::store) struct Views {
    /// The text index, once it was asked.
    pub text: Arc<LiveTextIndex>,
    /// What faces look records up by; each follows when it is asked.
    pub indexes: RwLock<Indexes>,
    /// What the store looks all records up by; likewise.
    pub field_indexes: RwLock<FieldIndexes>,
    /// What recalls of blocks are made from; it follows when it is asked for.
    pub blocks: Arc<RwLock<BlockColumns>>,
}

impl Views {
    /// The paths that a store declares indexes of, the oldest first.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn declared(&self, state: &State) -> Result<Vec<String>> {
        let mut known = self.field_indexes.write().unwrap_or_else(PoisonError::into_inner);
        known.follow(state, &[], true)?;
        Ok(known.declared())
    }
}
