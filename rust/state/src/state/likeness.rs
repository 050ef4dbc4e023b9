//! Recognises records that are in memory already, so that taking in the past does not copy them.
//!
//! Whoever takes in the past of a store has most of its records in memory already, as they are now and in the same order. What
//! comes is compared with them byte for byte: nothing is believed.

use std::sync::Arc;

use super::arena::{Address, Arena};
use super::table::{At, View};

/// So far from the place where a record is awaited it is looked for.
const MOST_STEPS: i64 = 8;

/// Records of another state, in insertion order.
#[derive(Debug)]
pub struct Likeness {
    pub(super) arena: Arena,
    pub(super) records: Vec<(u32, Address)>,
}

impl Likeness {
    /// The records in some slots, as far as they are in memory.
    pub(super) fn of(view: View, slots: &[u32]) -> Self {
        let held = |slot: &u32| match view.get(*slot).at {
            At::Arena(address) => Some((*slot, address)),
            At::Sealed { .. } => None,
        };
        let records = slots.iter().filter_map(held).collect();
        Self {
            records,
            arena: view.into_arena(),
        }
    }
}

/// Those records, and where the next one is awaited.
#[derive(Debug)]
pub(super) struct Awaited {
    likeness: Arc<Likeness>,
    /// How far ahead of its own slot a record was found last.
    shift: i64,
}

impl Awaited {
    /// Nothing has come yet.
    pub fn of(likeness: &Arc<Likeness>) -> Self {
        Self {
            likeness: Arc::clone(likeness),
            shift: 0,
        }
    }

    /// Where the record of a slot lies already, if it is there as it comes.
    pub fn find(&mut self, slot: u32, record: &[u8]) -> Option<Address> {
        let Likeness { arena, records } = &*self.likeness;
        let awaited = i64::from(slot) + self.shift;
        for step in (0..=MOST_STEPS).flat_map(|step| [step, -step]) {
            let place = usize::try_from(awaited + step).ok();
            if let Some(&(_, at)) = place.and_then(|place| records.get(place))
                && arena.get(at) == record
            {
                self.shift += step;
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::state::State;
    use crate::state::slots::tests::says;
    use chronolog::event::Op;

    /// Lets a state hear that a record says something.
    fn hears(state: &mut State, op: Op, seq: u64, id: usize, text: &str) {
        let (id, record) = (format!("r{id}"), format!("{{\"id\":\"r{id}\",\"label\":\"{text}\"}}"));
        says(state, op, seq, &id, &record);
    }

    #[test]
    fn a_state_is_the_same_whatever_is_awaited() {
        let filler = "x".repeat(200);
        let (mut now, mut plain) = (State::default(), State::default());
        for id in 0..2000 {
            hears(&mut now, Op::Upsert, id as u64, id, &format!("{id} {filler}"));
        }
        let likeness = Arc::new(now.freeze().expect("memory").likeness());
        let mut awaiting = State::awaiting(&likeness);
        let mut seq = 0;
        let mut both = |op: Op, id: usize, text: &str| {
            seq += 1;
            hears(&mut plain, op, seq, id, text);
            hears(&mut awaiting, op, seq, id, text);
        };
        // Some are missing, some said something else first, some are patched or deleted, and some are said time and again.
        for id in (0..2000).filter(|id| id % 97 != 5) {
            if id % 13 == 0 {
                both(Op::Delete, id + 5000, "nothing yet");
                both(Op::Upsert, id, "something else");
            }
            both(Op::Upsert, id, &format!("{id} {filler}"));
        }
        for round in 0..40 {
            for id in (0..2000).filter(|id| id % 7 == 0) {
                both(Op::Upsert, id, &format!("{round} {filler}"));
            }
        }
        both(Op::Patch, 1, "patched");
        both(Op::Delete, 2, "gone");
        both(Op::Upsert, 9000, "another");
        assert!(awaiting.in_order().eq(plain.in_order()));
        let told = now.in_order().count();
        assert_eq!(told, 2000, "whose records they were has them still");
        assert!(awaiting.bytes() < plain.bytes());
    }
}
