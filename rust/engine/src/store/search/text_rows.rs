//! Rows of a state that are on their way into a text index.

use chronomemory_search::text::{TextIndex, is_searched};
use chronomemory_state::state::{Class, Row, State};

/// A row that outlives the look at the state; without anything held if there is nothing to search any more.
pub(in crate::store) struct CopiedRow {
    slot: u32,
    held: Option<HeldRow>,
}

/// What is held of it.
struct HeldRow {
    id: Vec<u8>,
    record: Vec<u8>,
    class: Class,
    confidence: f64,
    seq: u64,
}

impl CopiedRow {
    /// The row in a slot.
    pub fn of(state: &State, slot: u32) -> Self {
        let held = state.row(slot).filter(|row| is_searched(row.id)).map(|row| HeldRow {
            id: row.id.to_vec(),
            record: row.record.to_vec(),
            class: row.class.clone(),
            confidence: row.confidence,
            seq: row.seq,
        });
        Self { slot, held }
    }

    /// Puts it into an index.
    pub fn put_into(&self, index: &mut TextIndex) {
        match &self.held {
            Some(held) => index.put(&Row {
                slot: self.slot,
                id: &held.id,
                record: &held.record,
                class: &held.class,
                confidence: held.confidence,
                seq: held.seq,
            }),
            None => index.drop_slot(self.slot),
        }
    }
}
