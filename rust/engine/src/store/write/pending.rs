//! Batches that are in the log and that the state has not seen yet.
//!
//! A large batch is acknowledged when it is written. Whoever looks at the state next shows it the batch first; if that
//! is the next large batch, it happens on another thread while its records are drafted.

use std::borrow::Borrow;
use std::sync::Arc;

use chronolog::event::draft::{Draft, RecordChange};
use chronolog::event::{Known, Op};
use chronolog::json::RecordSpans;
use chronolog::memory::gathered;
use chronolog::wal::writer::Lines;
use chronomemory_state::state::State;

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

/// An event of the log's own, as far as the state is concerned: it only has a place.
pub(in crate::store) fn system_event(offset: u64, seq: u64) -> Known<'static> {
    Known {
        op: Op::Other,
        id: b"",
        record: b"{}",
        fields: RecordSpans::default(),
        hash: b"",
        offset,
        seq,
    }
}

/// Where the lines of a batch stand in the log.
pub(in crate::store) struct WrittenAt<'a> {
    pub(in crate::store) base: u64,
    /// Where each of them begins, from `base` on.
    pub(in crate::store) starts: &'a [usize],
    pub(in crate::store) next_seq: u64,
    /// When they were written, in microseconds.
    pub(in crate::store) micros: i64,
}

/// Shows the state what was written.
pub(in crate::store) fn take_in(state: &mut State, parts: &[impl Borrow<Draft>], place: WrittenAt<'_>) {
    let WrittenAt {
        base,
        starts,
        next_seq,
        micros,
    } = place;
    let (system, written) = starts.split_at(starts.len() - count(parts));
    let mut seq = next_seq - starts.len() as u64;
    for start in system {
        state.note(system_event(base + *start as u64, seq), micros);
        seq += 1;
    }
    for ((draft, change), start) in changes(parts).zip(written) {
        let known = Known {
            op: change.op,
            id: draft.id(change),
            record: draft.record(change),
            fields: change.fields,
            hash: b"",
            offset: base + *start as u64,
            seq,
        };
        state.apply_drafted(known, micros, change.is_plain);
        seq += 1;
    }
}

/// How many changes the parts of a batch have.
pub(super) fn count(parts: &[impl Borrow<Draft>]) -> usize {
    parts.iter().map(|part| part.borrow().changes().len()).sum()
}

/// The changes of all parts, each with the draft that holds it.
pub(in crate::store) fn changes(parts: &[impl Borrow<Draft>]) -> impl Iterator<Item = (&Draft, &RecordChange)> {
    let drafts = parts.iter().map(Borrow::borrow);
    drafts.flat_map(|draft: &Draft| draft.changes().iter().map(move |change| (draft, change)))
}
