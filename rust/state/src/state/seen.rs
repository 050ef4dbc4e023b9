//! What viewers see of a state, and what expires.
//!
//! A record that has expired goes over to the twin of its scope, which viewers see only if they ask for it, and all followers of the
//! state get it as a change. It costs what is due, when it is due. A tombstone does not expire.

use std::collections::BTreeMap;

use super::catalog::Class;
use super::changes::Edition;
use super::records::State;
use super::rows::Dated;
use super::scopes::Sight;
use super::slots::SlotView;
use super::unspelled;
use crate::segment::NEVER;
use crate::snapshot::{Doubt, Stamp};
use chronolog::scope::{SeenAs, Viewer};

impl State {
    /// What a viewer sees.
    pub fn sight(&self, viewer: &Viewer) -> Sight {
        self.scopes.sight(viewer)
    }

    /// Which edition of what a viewer sees this is. Rows of embeddings belong to no scope: a record that is given one says so itself.
    pub fn edition(&self, viewer: &Viewer) -> Edition {
        Edition {
            state_id: self.changes.state_id().clone(),
            changes: self.scopes.last_change(&self.sight(viewer)),
        }
    }

    /// Notes that the record in a slot was changed.
    pub(super) fn note_change(&mut self, slot: u32) {
        self.changes.note(slot, self.slots.len());
        if self.is_of_scope(slot) {
            self.scopes.touch(self.scope_in(slot), self.changes.count());
        }
    }

    /// Notes that an event is about the record in a slot.
    pub(super) fn note_speech(&mut self, slot: u32, stamp: Stamp) {
        if let Some(class) = self.class_in(slot) {
            let scope = class.is_told().then(|| self.scope_in(slot));
            self.scopes.speak(scope, stamp);
        }
    }

    /// Whether the record in a slot belongs to a scope.
    fn is_of_scope(&self, slot: u32) -> bool {
        self.class_in(slot).is_some_and(|class| !class.is_of_store())
    }

    /// The scope of the record in a slot.
    pub fn scope_in(&self, slot: u32) -> u32 {
        self.scope_of(&self.slots.view(slot))
    }

    /// Whether a record that expires at a moment has expired.
    pub(super) fn is_past(&self, expires: i64) -> bool {
        expires != NEVER && Some(expires) <= self.clock
    }

    /// The scope of a slot: that of the expired ones if its record has expired.
    pub(super) fn scope_of(&self, slot: &SlotView) -> u32 {
        match self.is_past(slot.expires) {
            true => self.scopes.known_twin_of(slot.scope),
            false => slot.scope,
        }
    }

    /// Where the record of an id is, which stands as between quotes in canonical JSON, and how a viewer sees it, if so.
    pub fn slot_seen_by(&self, viewer: &Viewer, id: &[u8]) -> Option<(u32, Option<SeenAs>)> {
        let slot = self.slots.of_spelled(id)?;
        Some((slot, self.scopes.seen_in(viewer, self.scope_in(slot))))
    }

    /// The scope of the record of an id, spelled likewise, if it is the viewer's own.
    pub fn own_scope(&self, viewer: &Viewer, id: &[u8]) -> Option<u32> {
        self.own_scope_in(viewer, self.slots.of_spelled(id)?)
    }

    /// The scope of the record in a slot, if it is the viewer's own.
    pub fn own_scope_in(&self, viewer: &Viewer, slot: u32) -> Option<u32> {
        let scope = self.scope_in(slot);
        (self.scopes.seen_in(viewer, scope) == Some(SeenAs::Own)).then_some(scope)
    }

    /// The slot of the record of an id, if a viewer sees it.
    pub fn seen(&self, viewer: &Viewer, id: &str) -> Option<u32> {
        self.slots.of_id(id).filter(|&slot| self.is_seen(viewer, slot))
    }

    /// The record of an id with its moments, if a viewer sees it.
    pub fn dated(&self, viewer: &Viewer, id: &str) -> Option<Dated<'_>> {
        self.seen(viewer, id).map(|slot| self.dated_in(slot))
    }

    /// Whether a viewer sees the record in a slot.
    pub fn is_seen(&self, viewer: &Viewer, slot: u32) -> bool {
        let scope = self.scope_in(slot);
        self.scopes.seen_in(viewer, scope).is_some()
            && (!self.scopes.is_expired(scope) || viewer.sees_expired())
            && (self.is_of_scope(slot) || self.sight(viewer).is_of_all_scopes())
    }

    /// The slots that have expired and are not seen, where all else is.
    pub(super) fn hidden_in<'a>(&'a self, sight: &'a Sight) -> impl Iterator<Item = u32> + 'a {
        sight.without().iter().flat_map(|&scope| self.scopes.slots(scope))
    }

    /// How many of the records that a viewer sees are in doubt, and the ids of those that lost events name.
    pub fn in_doubt(&self, viewer: &Viewer) -> (u64, Vec<String>) {
        let (mut records, mut named) = (0, Vec::new());
        let end = if self.slots.is_in_doubt() {
            self.slots.len() as u32
        } else {
            0
        };
        for slot in (0..end).filter(|&slot| self.slots.is_record(slot) && self.is_seen(viewer, slot)) {
            let doubt = self.slots.moments(slot).doubt;
            records += u64::from(doubt != Doubt::None);
            if doubt == Doubt::Named {
                named.push(unspelled(&self.slots.id(slot)));
            }
        }
        (records, named)
    }

    /// How many records of each kind and status a viewer sees.
    pub fn tally(&self, viewer: &Viewer) -> Vec<(Class, u64)> {
        let sight = self.sight(viewer);
        let sizes = match self.scopes.seen(&sight) {
            None => {
                let mut sizes = self.catalog.sizes();
                let hidden = self.hidden_in(&sight);
                hidden.for_each(|slot| sizes[self.slots.class(slot) as usize] -= 1);
                sizes
            }
            Some(seen) => {
                let mut sizes = vec![0; self.catalog.classes().len()];
                let counted = seen.into_iter().filter(|&slot| self.is_of_scope(slot));
                counted.for_each(|slot| sizes[self.slots.class(slot) as usize] += 1);
                sizes
            }
        };
        let counted = (0..).zip(sizes).filter(|(_, records)| *records > 0);
        let named = counted.map(|(class, records)| (self.catalog.class_of(class).clone(), records));
        named.collect()
    }

    /// Whether it makes a difference that it is this moment now.
    pub fn is_due(&self, now: i64) -> bool {
        let clock = self.clock.unwrap_or(i64::MIN);
        !self.slots.expiring(clock.min(now), clock.max(now)).is_empty()
    }

    /// Sets the clock: what has expired by then goes over, and what has not comes back.
    pub fn expire(&mut self, now: i64) {
        let clock = self.clock.unwrap_or(i64::MIN);
        let mut moving: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for slot in self.slots.expiring(clock.min(now), clock.max(now)) {
            moving.entry(self.scope_in(slot)).or_default().push(slot);
        }
        for (before, mut slots) in moving {
            let after = match now >= clock {
                true => self.scopes.twin_of(before),
                false => self.scopes.living(before),
            };
            if before == after {
                continue;
            }
            slots.sort_unstable();
            for &slot in &slots {
                self.scopes.remove(before, slot);
                self.scopes.add(after, slot);
                // Both scopes have changed for their viewers.
                for scope in [before, after] {
                    self.changes.note(slot, self.slots.len());
                    if self.is_of_scope(slot) {
                        self.scopes.touch(scope, self.changes.count());
                    }
                }
            }
            self.expiry_moves += slots.len() as u64;
        }
        self.clock = Some(now);
    }

    /// The ids of a viewer's own records that have expired at a moment, those first that did first.
    pub fn due_at(&self, viewer: &Viewer, now: i64) -> Vec<String> {
        let due = self.slots.expiring(i64::MIN, now).into_iter();
        let own = due.filter(|&slot| self.scopes.seen_in(viewer, self.scope_in(slot)) == Some(SeenAs::Own));
        own.map(|slot| unspelled(&self.slots.id(slot))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Query;
    use crate::state::tests::says;
    use chronolog::event::Op;

    fn put(state: &mut State, seq: u64, id: &str, expires: &str, status: &str) {
        let record = format!("{{\"data\":{{\"expires_at\":{expires}}},\"id\":\"{id}\",\"status\":\"{status}\"}}");
        says(state, Op::Upsert, seq, id, &record);
    }

    #[test]
    fn it_goes_over_when_it_is_due_and_comes_back_when_it_is_not() {
        let mut state = State::default();
        for (seq, second) in (1..=4).zip(["1", "3", "2", "4"]) {
            let expires = format!("\"1970-01-01T00:00:0{second}Z\"");
            put(&mut state, seq, &format!("R{second}"), &expires, "active");
        }
        put(&mut state, 5, "stays", "null", "active");
        let count = |state: &State| Query::default().records(state).expect("memory").len() as u64;
        assert_eq!(count(&state), 5);
        for (now, living) in [(2_000_000, 3), (0, 5), (9_000_000, 1), (3_500_000, 2), (3_999_999, 2)] {
            state.expire(now);
            assert_eq!(count(&state), living, "at {now}");
            assert_eq!(Query::default().count_of(&state, |_| true, u64::MAX), living);
            assert_eq!(state.due_at(&Viewer::default(), now).len() as u64, 5 - living);
            assert!(!state.is_due(now));
        }
        assert_eq!(state.due_at(&Viewer::default(), 3_500_000), ["R1", "R2", "R3"]);
        // What is written anew lives as long as it says, and a tombstone is a tombstone.
        put(&mut state, 6, "R1", "null", "active");
        put(&mut state, 7, "R2", "\"1970-01-01T00:00:02Z\"", "tombstone");
        put(&mut state, 8, "R4", "\"1970-01-01T00:00:01Z\"", "active");
        assert_eq!(count(&state), 3, "R1, R2 and what stays");
        assert_eq!(state.due_at(&Viewer::default(), 3_500_000), ["R4", "R3"]);
        assert!(state.seen(&Viewer::default(), "R3").is_none());
        assert!(state.seen(&Viewer::default().with_expired(), "R3").is_some());
    }
}
