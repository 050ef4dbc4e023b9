//! How does a change come in that was made from what somebody has read?

use super::{Committed, Store};
use crate::error::Result;
use crate::event::draft::Draft;

impl Store {
    /// Writes a draft as one atomic batch, unless an event after `seq` speaks of one of the ids that it was made from,
    /// or the log was set back: `None` then.
    ///
    /// # Errors
    /// As `commit`.
    pub fn commit_unless_changed(
        &mut self,
        draft: &Draft,
        read: &[String],
        seq: u64,
        now: i64,
    ) -> Result<Option<Committed>> {
        self.with_lock(now, |store| {
            let is_changed = |id: &String| store.state.is_spoken_of_since(id, seq + 1);
            // A log that ends before what was read is another one: somebody has restored an earlier state.
            let is_another = store.last_seq() < seq;
            if is_another || (store.last_seq() > seq && read.iter().any(is_changed)) {
                return Ok(None);
            }
            store.check_patches(&[draft])?;
            let committed = store.write(&[draft], now)?;
            store.sync_if_due(now)?;
            Ok(Some(committed))
        })
    }
}
