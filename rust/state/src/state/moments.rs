//! When records were made and changed last, and which of them a lost line may have been about.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::records::State;
use crate::snapshot::{Doubt, Moments, Stamp};

/// What is known about the moments of all slots together.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// How many slots are older than the one before them.
    pub inversions: u64,
    /// Which records a lost line of the log may have been about; `None` if no line is lost.
    pub doubts: Option<Arc<Doubts>>,
}

/// Which records lines of the log may have been about that cannot be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubts {
    /// Slots of records that such a line names, or that were only changed in part since.
    pub named: BTreeSet<u32>,
    /// Behind this event a line is lost that names no record.
    pub lost_behind: Option<u64>,
}

impl Order {
    /// The doubts, to be changed.
    pub fn doubts_mut(&mut self) -> &mut Doubts {
        Arc::make_mut(self.doubts.get_or_insert_default())
    }

    /// Whether no slot is older than one before it: then an event can be looked for by halves.
    pub fn is_ordered(&self) -> bool {
        self.inversions == 0
    }

    /// Whether a lost line may have been about the record of a slot, which was changed last by this event.
    pub fn doubt(&self, slot: u32, updated: Stamp) -> Doubt {
        let Some(doubts) = &self.doubts else {
            return Doubt::None;
        };
        let is_before = |seq| updated.seq().is_none_or(|updated| updated <= seq);
        match doubts.named.contains(&slot) {
            true => Doubt::Named,
            false if doubts.lost_behind.is_some_and(is_before) => Doubt::Possible,
            false => Doubt::None,
        }
    }
}

impl State {
    /// The moments of a slot.
    pub fn moments_of(&self, slot: u32) -> Moments {
        let held = self.slots.get(slot);
        Moments {
            created: held.created,
            updated: held.updated,
            doubt: self.order.doubt(slot, held.updated),
        }
    }

    /// Which event made the record of a slot.
    pub(super) fn created_in(&self, slot: u32) -> Stamp {
        self.slots.get(slot).created
    }

    /// Whether a slot is older than the one before it.
    fn is_inverted(&self, slot: u32) -> bool {
        let is_there = slot > 0 && (slot as usize) < self.slots.len();
        is_there && self.created_in(slot - 1).seq() > self.created_in(slot).seq()
    }

    /// Counts a slot that was just added.
    pub(super) fn note_added(&mut self, slot: u32) {
        self.order.inversions += u64::from(self.is_inverted(slot));
    }

    /// All that is known about when the record of a slot was made and changed.
    pub(super) fn put_moments(&mut self, slot: u32, created: Stamp, updated: Stamp) {
        if self.created_in(slot) != created {
            let inverted = |state: &Self| {
                (slot..=slot.saturating_add(1))
                    .filter(|&slot| state.is_inverted(slot))
                    .count() as u64
            };
            self.order.inversions -= inverted(self);
            self.slot_mut(slot).created = created;
            self.order.inversions += inverted(self);
        }
        self.slot_mut(slot).updated = updated;
    }

    /// An event is about the record of a slot. One that restates all of it ends any doubt; one that changes a part does not.
    pub(super) fn touch_moments(&mut self, slot: u32, stamp: Stamp, restates: bool) {
        if self.order.doubts.is_some() && (restates || self.moments_of(slot).doubt != Doubt::None) {
            let named = &mut self.order.doubts_mut().named;
            _ = match restates {
                true => named.remove(&slot),
                false => named.insert(slot),
            };
        }
        let slot = self.slot_mut(slot);
        slot.updated = stamp.not_before(slot.created);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::slots::tests::hears;
    use chronolog::event::Op;

    fn stamp(seq: u64) -> Stamp {
        Stamp::new(seq, seq as i64 * 10)
    }

    #[test]
    fn an_older_slot_behind_a_newer_one_is_counted() {
        let mut state = State::default();
        for seq in 0..5 {
            hears(&mut state, Op::Upsert, seq, &format!("r{seq}"));
        }
        assert!(state.order.is_ordered());
        state.put_moments(2, stamp(9), stamp(9));
        assert!(!state.order.is_ordered(), "slot 3 is older than slot 2 now");
        state.put_moments(3, stamp(9), stamp(9));
        state.put_moments(4, stamp(9), stamp(10));
        assert!(state.order.is_ordered());
        state.put_moments(0, Stamp::UNKNOWN, stamp(3));
        assert!(state.order.is_ordered(), "what is not known counts as the oldest");
        assert_eq!(state.moments_of(4), Moments::of_stamps(stamp(9), stamp(10)));
    }

    #[test]
    fn a_record_is_never_changed_before_it_was_made() {
        let mut state = State::default();
        hears(&mut state, Op::Upsert, 7, "r");
        state.put_moments(0, Stamp::new(7, 70), Stamp::new(7, 70));
        state.touch_moments(0, Stamp::new(3, 1000), true);
        assert_eq!(state.moments_of(0).updated, Stamp::new(7, 1000));
    }
}
