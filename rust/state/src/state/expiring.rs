//! Hides records once they have expired, and tells which will be next.
//!
//! A record that has expired goes over to the twin of its scope, which nobody sees unless asked. So whatever is answered, by
//! scope, leaves it out, and all who follow the state hear of it as of any other change. It costs what is due, when it is due.
//! A tombstone does not expire: it is deleted, and that is what is to be told of it.

use std::collections::BTreeMap;

use super::records::State;
use crate::segment::NEVER;
use chronolog::scope::{SeenAs, Viewer};

impl State {
    /// Whether any record ever expires.
    #[inline]
    pub fn knows_expiries(&self) -> bool {
        !self.expiries.is_empty() || self.slots.sealed().is_some_and(|sealed| sealed.rows.has_expiries())
    }

    /// What expires after a moment and not after another, those first that expire first.
    fn expiring(&self, from: i64, until: i64) -> Vec<u32> {
        let mut due: Vec<(i64, u32)> = self.expiries.between(from, until).collect();
        for segment in self.slots.sealed().iter().flat_map(|sealed| sealed.rows.segments()) {
            let is_current =
                |(moment, slot): &(i64, u32)| self.slots.is_sealed(*slot) && self.slots.get(*slot).expires == *moment;
            due.extend(segment.due(from, until).into_iter().filter(is_current));
        }
        due.sort_unstable();
        due.dedup();
        due.into_iter().map(|(_, slot)| slot).collect()
    }

    /// When the record in a slot expires.
    fn expiry_in(&self, slot: u32) -> Option<i64> {
        Some(self.slots.get(slot).expires).filter(|at| *at != NEVER)
    }

    /// Whether it makes a difference that it is this moment now.
    pub fn is_due(&self, now: i64) -> bool {
        let clock = self.expiries.clock;
        !self.expiring(clock.min(now), clock.max(now)).is_empty()
    }

    /// Says which moment it is: what has expired by then goes over, and what has not comes back.
    pub fn expire(&mut self, now: i64) {
        let clock = self.expiries.clock;
        let mut moving: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for slot in self.expiring(clock.min(now), clock.max(now)) {
            moving.entry(self.scope_in(slot)).or_default().push(slot);
        }
        let is_later = now >= clock;
        // A scope at a time: its list is gone through once, however many go.
        for (before, mut slots) in moving {
            let after = match is_later {
                true => self.scopes.twin_of(before),
                false => self.scopes.living(before),
            };
            if before == after {
                continue;
            }
            slots.sort_unstable();
            self.scopes.move_over(before, after, &slots);
            for &slot in &slots {
                // Both scopes have changed for their viewers.
                for scope in [before, after] {
                    self.changes.note(slot, self.slots.len());
                    if self.is_of_scope(slot) {
                        self.scopes.touch(scope, self.changes.count());
                    }
                }
            }
            self.expiries.moves += slots.len() as u64;
        }
        self.expiries.clock = now;
    }

    /// Whether there is a record of this id that has expired by a moment.
    pub fn has_expired(&self, id: &str, moment: i64) -> bool {
        let at = self.slot_of(id).and_then(|slot| self.expiry_in(slot));
        at.is_some_and(|at| at <= moment)
    }

    /// Tells what has expired from what had before: by how often anything went over or came back.
    pub fn expiry_moves(&self) -> u64 {
        self.expiries.moves
    }

    /// The ids of somebody's own records that have expired at a moment, those first that did first.
    pub fn due_at(&self, viewer: &Viewer, now: i64) -> Vec<String> {
        let due = self.expiring(i64::MIN, now).into_iter();
        let own = due.filter(|&slot| self.scopes.seen_in(viewer, self.scope_in(slot)) == Some(SeenAs::Own));
        own.map(|slot| super::unspelled(&self.spelled_id(slot))).collect()
    }

    /// The slots that have expired and that somebody does not see for that reason; `None` if there are none.
    pub fn hidden_from(&self, viewer: &Viewer) -> Option<roaring::RoaringBitmap> {
        if viewer.sees_expired() || !self.scopes.has_expired() {
            return None;
        }
        Some(self.scopes.expired_slots().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Query;
    use crate::state::slots::tests::says;
    use chronolog::event::Op;

    fn put(state: &mut State, seq: u64, id: &str, expires: &str, status: &str) {
        let record = format!("{{\"data\":{{\"expires_at\":{expires}}},\"id\":\"{id}\",\"status\":\"{status}\"}}");
        says(state, Op::Upsert, seq, id, &record);
    }

    #[test]
    fn it_goes_over_when_it_is_due_and_comes_back_when_it_is_not() {
        let mut state = State::default();
        for (seq, second) in (1..=4).zip(["1", "3", "2", "4"]) {
            put(
                &mut state,
                seq,
                &format!("R{second}"),
                &format!("\"1970-01-01T00:00:0{second}Z\""),
                "active",
            );
        }
        put(&mut state, 5, "stays", "null", "active");
        let count = |state: &State| state.count(&Query::default());
        assert_eq!(count(&state), 5);
        for (now, living) in [(2_000_000, 3), (0, 5), (9_000_000, 1), (3_500_000, 2), (3_999_999, 2)] {
            state.expire(now);
            assert_eq!(count(&state), living, "at {now}");
            assert_eq!(state.query(&Query::default()).expect("memory").len() as u64, living);
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
        assert!(state.get_seen(&Viewer::default(), "R3").is_none());
        assert!(state.get_seen(&Viewer::default().with_expired(), "R3").is_some());
    }
}
