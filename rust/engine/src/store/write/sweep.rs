//! Deletes all records that have expired.

use crate::store::Store;
use chronolog::error::Result;
use chronolog::event::author::Author;
use chronolog::event::draft::Draft;
use chronolog::event::faces::face_of;

/// Deletes an author's own records that have expired at a moment, as one batch; gives their ids. What somebody writes anew
/// meanwhile lives.
///
/// # Errors
/// As [`Store::commit`].
pub(in crate::store) fn sweep(store: &mut Store, author: &Author, moment: i64, now: i64) -> Result<Vec<String>> {
    store.with_lock(now, |store| {
        store.settle();
        let due = store.state.due_at(&author.writer, moment);
        if due.is_empty() {
            return Ok(due);
        }
        let mut draft = Draft::default();
        draft.by(author);
        for id in &due {
            draft.make_room()?;
            draft.delete(id, face_of(id.as_bytes()))?;
        }
        store.check_and_write(&draft, now)?;
        store.sync_if_due(now)?;
        Ok(due)
    })
}
