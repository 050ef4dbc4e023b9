//! Batches that are in the log and that the state has not seen yet.
//!
//! A large batch is acknowledged when it is written. Whoever looks at the state next shows it the batch first; if that
//! is the next large batch, it happens on another thread while its records are drafted.

use std::sync::Arc;

use crate::event::draft::Draft;
use crate::memory::gathered;
use crate::state::State;
use crate::wal::writer::Lines;

use super::spell::{WrittenAt, take_in};

/// A larger batch is shown to the state at once: a reader should not have to wait for it.
const LATER_LINES: usize = 16 * 1024;

/// What the state has not seen yet, and what it saw last of that.
#[derive(Default)]
pub(in crate::store) struct Pending {
    /// Nobody looks at the state before it has seen this.
    batch: Option<UnseenBatch>,
    seen: Vec<Arc<Draft>>,
}

/// A batch that is written and not yet shown to the state.
struct UnseenBatch {
    parts: Vec<Arc<Draft>>,
    base: u64,
    starts: Vec<usize>,
    next_seq: u64,
    micros: i64,
}

impl Pending {
    /// Shows the state a batch, now or later, that stands at a place and was written at a moment.
    pub fn take_in_later(&mut self, state: &mut State, parts: &[Arc<Draft>], lines: &Lines, at: (u64, i64)) {
        let (base, micros) = at;
        // INVARIANT: batches are shown in their order.
        self.settle(state);
        let next_seq = lines.link.next_seq;
        let kept = (lines.starts.len() <= LATER_LINES).then(|| gathered(lines.starts.iter().copied()));
        // What nobody may have to wait for is shown at once, and so is what there is no memory for until later.
        let Some(Ok(starts)) = kept else {
            let place = WrittenAt {
                base,
                starts: &lines.starts,
                next_seq,
                micros,
            };
            take_in(state, parts, place);
            self.seen = parts.to_vec();
            return;
        };
        self.batch = Some(UnseenBatch {
            parts: parts.to_vec(),
            base,
            starts,
            next_seq,
            micros,
        });
    }

    /// Whether the state has seen everything that was written.
    pub fn is_settled(&self) -> bool {
        self.batch.is_none()
    }

    /// Shows the state what it has not seen; nobody may look at it before.
    pub fn settle(&mut self, state: &mut State) {
        if let Some(batch) = self.batch.take() {
            let place = WrittenAt {
                base: batch.base,
                starts: &batch.starts,
                next_seq: batch.next_seq,
                micros: batch.micros,
            };
            take_in(state, &batch.parts, place);
            self.seen = batch.parts;
        }
    }

    /// The drafts that the state saw last: their memory can be used again.
    pub fn take_seen(&mut self) -> Vec<Draft> {
        let seen = std::mem::take(&mut self.seen).into_iter();
        seen.filter_map(Arc::into_inner).collect()
    }
}
