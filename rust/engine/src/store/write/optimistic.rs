//! Commits a change only if nothing was written meanwhile that it was made from.
//!
//! Whoever reads notes where the log ended: the head, and the place behind it. A change made from that is written only if
//! the log still goes on from this head and no event behind it speaks of what was read. A seq would not do: after a restore
//! other events have the same ones.

use super::bookmark::{Bookmark, first_behind};
use crate::store::vectors::Attachment;
use crate::store::vectors::changes::bind::check_attachment;
use crate::store::{Committed, Store};
use chronolog::error::Result;
use chronolog::event::draft::Draft;
use chronomemory_state::state::Edition;

/// What is written as one atomic batch.
#[derive(Clone, Copy, Debug)]
pub struct AtomicBatch<'a> {
    /// The changes.
    pub draft: &'a Draft,
    /// Embeddings, of records that are there or come with the changes.
    pub attachments: &'a [Attachment<'a>],
    /// Where the log ended when it was read, and the ids that were.
    pub unless_changed: Option<(&'a Bookmark, &'a [String])>,
    /// When it happened, in microseconds since 1970, if that is earlier than now: a run that is repeated by a clock of its own
    /// writes the same bytes.
    pub at: Option<i64>,
}

/// What was written, and what the writer saw before and after it.
#[derive(Debug)]
pub struct WrittenBatch {
    /// The events.
    pub committed: Committed,
    /// With everything that others wrote before.
    pub before: Edition,
    /// With this and nothing else.
    pub after: Edition,
}

impl Store {
    /// Where the log ends now; what is read afterwards is at least as new.
    pub fn bookmark(&self) -> Bookmark {
        Bookmark {
            head: self.head(),
            end: self.log.open().map_or(0, |log| log.walk.end),
        }
    }

    /// Writes changes and embeddings as one atomic batch: a record and its embedding are born together or not at all. With
    /// a reading nothing is written, and `None` given, if an event behind its bookmark speaks of one of the ids that were
    /// read, or nobody can say what came after it. Whoever reads anew has a bookmark that can be told.
    ///
    /// # Errors
    /// As `commit` and `attach`.
    pub fn commit_change(&mut self, change: &AtomicBatch<'_>, now: i64) -> Result<Option<WrittenBatch>> {
        for attachment in change.attachments {
            check_attachment(attachment)?;
        }
        self.with_lock(now, |store| {
            // Who has read nothing minds nothing: an act says what happened, whatever else did.
            if let Some((since, read)) = change.unless_changed.filter(|(_, read)| !read.is_empty()) {
                let Some(first) = first_behind(store.live(), since)? else {
                    return Ok(None);
                };
                if read.iter().any(|id| store.state.is_spoken_of_from(id, first)) {
                    return Ok(None);
                }
            }
            let kept = store.check(&[change.draft])?;
            let draft = kept.as_ref().map_or(change.draft, |kept| &kept[0]);
            let writer = change.draft.writer();
            let before = store.state.edition(writer);
            // A stamp that is ahead would stand in all events to come.
            let stamped = change.at.map_or(now, |at| at.min(now));
            let committed = match change.attachments {
                [] => store.write(&[draft], stamped)?,
                attachments => store.write_with(draft, attachments, stamped)?,
            };
            store.sync_if_due(now)?;
            Ok(Some(WrittenBatch {
                committed,
                before,
                after: store.state.edition(writer),
            }))
        })
    }
}
