//! What is in the log that the state has not seen yet?
//!
//! A large batch is acknowledged when it is written. Whoever looks at the state next shows it the batch first; if that
//! is the next large batch, it happens on another thread while its records are drafted.

use std::sync::Arc;

use crate::event::draft::Draft;
use crate::memory::gathered;
use crate::wal::writer::Lines;

use super::spell::{Place, take_in};
use crate::store::Store;

/// A larger batch is shown to the state at once: a reader should not have to wait for it.
const LATER_LINES: usize = 16 * 1024;

/// A batch that is written and not yet shown to the state.
pub(in crate::store) struct Pending {
    parts: Vec<Arc<Draft>>,
    base: u64,
    starts: Vec<usize>,
    next_seq: u64,
}

impl Store {
    /// Shows the state a batch that stands at `base`, now or later.
    pub(in crate::store) fn take_in_later(&mut self, parts: &[Arc<Draft>], lines: &Lines, base: u64) {
        // INVARIANT: batches are shown in their order.
        self.settle();
        let next_seq = lines.link.next_seq;
        let kept = (lines.starts.len() <= LATER_LINES).then(|| gathered(lines.starts.iter().copied()));
        // What nobody may have to wait for is shown at once, and so is what there is no memory for until later.
        let Some(Ok(starts)) = kept else {
            let starts = &lines.starts;
            take_in(&mut self.state, parts, Place { base, starts, next_seq });
            self.seen = parts.to_vec();
            return;
        };
        self.pending = Some(Pending {
            parts: parts.to_vec(),
            base,
            starts,
            next_seq,
        });
    }

    /// Whether the state has seen everything that this store wrote.
    pub(in crate::store) fn is_settled(&self) -> bool {
        self.pending.is_none()
    }

    /// Shows the state what it has not seen; nobody may look at it before.
    pub(in crate::store) fn settle(&mut self) {
        if let Some(pending) = self.pending.take() {
            let place = Place {
                base: pending.base,
                starts: &pending.starts,
                next_seq: pending.next_seq,
            };
            take_in(&mut self.state, &pending.parts, place);
            self.seen = pending.parts;
        }
    }

    /// The drafts that the state saw last: their memory can be used again.
    pub(in crate::store) fn take_seen(&mut self) -> Vec<Draft> {
        let seen = std::mem::take(&mut self.seen).into_iter();
        seen.filter_map(Arc::into_inner).collect()
    }
}
