//! Which blocks are there to be recalled?

use std::sync::{Arc, PoisonError, RwLock};

use super::Store;
use crate::blocks::Columns;
use crate::error::Result;

impl Store {
    /// What recalls of blocks are made from, as of now. It can be read without the store: a recall keeps no writer waiting.
    ///
    /// # Errors
    /// `Io`, where rows cannot be read.
    pub fn blocks(&self) -> Result<Arc<RwLock<Columns>>> {
        let is_behind = |columns: &Columns| columns.is_behind(&self.state);
        if is_behind(&self.blocks.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut columns = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
            if is_behind(&columns) {
                columns.follow(&self.state);
                self.tell_embeddings(&mut columns)?;
            }
        }
        Ok(Arc::clone(&self.blocks))
    }
}
