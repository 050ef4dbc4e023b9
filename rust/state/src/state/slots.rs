//! Finds records by the number of their slot, and slots by face, kind or query.
//!
//! A record keeps its slot as long as the state lives.

use std::borrow::Cow;

use super::changes::Watermark;
use super::query::{Query, wanted};
use super::records::State;
use super::sight::Sight;
use crate::segment::NO_CLASS;
use chronolog::event::faces::{face_of, is_of_store};
use chronolog::memory::{Refused, gathered};

/// Which slots a query asks for, to be asked one by one.
#[derive(Clone, Debug)]
pub struct SlotSieve {
    classes: Vec<bool>,
    least: f64,
    sight: Sight,
}

impl State {
    /// The same for whoever can guess the slot. Records that came together are mostly spoken of together: then the guess
    /// is one more than the slot before, and to look at what lies next is far quicker than to look anywhere.
    pub fn slot_spelled_near(&self, id: &[u8], guess: u32) -> Option<u32> {
        let is_it =
            (guess as usize) < self.slots.len() && self.slots.class(guess) != NO_CLASS && *self.id_of(guess) == *id;
        if is_it { Some(guess) } else { self.slot_spelled(id) }
    }

    /// The id of a slot, as it stands between quotes in canonical JSON.
    pub fn spelled_id(&self, slot: u32) -> Cow<'_, [u8]> {
        self.id_of(slot)
    }

    /// How many slots there are, those without a record included.
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// The canonical records that a query asks for, in insertion order.
    pub fn query(&self, query: &Query) -> Result<Vec<Cow<'_, [u8]>>, Refused> {
        gathered(self.matches(query).take(query.limit.unwrap_or(usize::MAX)))
    }

    /// The same one by one, its limit aside.
    pub fn matches<'a>(&'a self, query: &Query) -> impl Iterator<Item = Cow<'a, [u8]>> + use<'a> {
        self.matching_slots(query).map(|slot| self.record_in(slot))
    }

    /// How many records a query would find, its limit aside.
    pub fn count(&self, query: &Query) -> u64 {
        let sight = self.sight(&query.viewer);
        if query.min_confidence <= 0.0 && sight.is_of_all_scopes() {
            return self.count_classes(&sight, wanted(query));
        }
        self.matching_slots(query).count() as u64
    }

    /// How many records of faces there are.
    pub fn faces_len(&self) -> usize {
        usize::try_from(self.catalog.count(|_, _, face| face)).unwrap_or(usize::MAX)
    }

    /// The slots of the records of all faces, in insertion order.
    pub fn face_slots(&self) -> impl Iterator<Item = u32> {
        self.catalog.slots(|_, _, of_a_face| of_a_face)
    }

    /// Whether a slot holds a record of a face. The record is not read.
    pub fn is_of_a_face(&self, slot: u32) -> bool {
        let class = self.slots.class(slot);
        class != NO_CLASS && self.catalog.class_of(class).face
    }

    /// The slots of the records of a face, in insertion order.
    pub fn of_face<'a>(&'a self, face: &'a str) -> impl Iterator<Item = u32> + use<'a> {
        self.face_slots()
            .filter(move |&slot| face_of(&self.id_of(slot)) == Some(face))
    }

    /// Those of them that are of some kinds; what is of others is not looked at.
    pub fn of_kinds<'a>(&'a self, face: &'a str, kinds: &'a [&'a [u8]]) -> impl Iterator<Item = u32> + use<'a> {
        let is_wanted = move |kind: &[u8], _: &[u8], of_a_face: bool| of_a_face && kinds.contains(&kind);
        let slots = self.catalog.slots(is_wanted);
        slots.filter(move |&slot| face_of(&self.id_of(slot)) == Some(face))
    }

    /// Those of a face that changed since then, each once; all of them, if that is another state or too long ago.
    pub fn of_face_since(&self, face: &str, mark: &Watermark) -> Vec<u32> {
        let Some(changed) = self.changes.since(mark) else {
            return self.of_face(face).collect();
        };
        // Most changes are of plain records: they are passed by without a look at their ids.
        let is_of_face = |slot: u32| self.is_of_a_face(slot) && face_of(&self.id_of(slot)) == Some(face);
        let mut slots: Vec<u32> = changed.iter().copied().filter(|&slot| is_of_face(slot)).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// The slots of the kinds and statuses that a query asks for and that fit, in insertion order; its confidence and limit
    /// aside. Both stand there as they do between quotes in canonical JSON.
    pub fn slots_of<'a>(
        &'a self,
        query: &Query,
        fits: impl Fn(&[u8], &[u8]) -> bool,
    ) -> impl Iterator<Item = u32> + 'a {
        let wanted = wanted(query);
        let fits = move |kind: &[u8], status: &[u8], face: bool| wanted(kind, status, face) && fits(kind, status);
        let sight = self.sight(&query.viewer);
        let seen = self.scopes.seen(&sight);
        let accepted = seen.as_ref().map(|_| self.catalog.accepted(&fits)).unwrap_or_default();
        let classes = seen.is_none().then(|| self.catalog.slots(fits));
        let is_accepted = move |slot: &u32| accepted[self.slots.class(*slot) as usize];
        let seen = seen.into_iter().flatten().filter(is_accepted);
        let classes = classes.into_iter().flatten();
        seen.chain(classes.filter(move |&slot| sight.sees(self.scope_in(slot))))
    }

    /// How many there are.
    pub fn count_of(&self, query: &Query, fits: impl Fn(&[u8], &[u8]) -> bool) -> u64 {
        let sight = self.sight(&query.viewer);
        if !sight.is_of_all_scopes() {
            return self.slots_of(query, fits).count() as u64;
        }
        let wanted = wanted(query);
        let fits = |kind: &[u8], status: &[u8], face: bool| wanted(kind, status, face) && fits(kind, status);
        self.count_classes(&sight, fits)
    }

    /// How many records of some kinds and statuses there are, but for those that have expired and are not seen.
    pub(super) fn count_classes(&self, sight: &Sight, fits: impl Fn(&[u8], &[u8], bool) -> bool) -> u64 {
        let hidden = self.hidden_in(sight).filter(|&slot| {
            let class = self.catalog.class_of(self.slots.class(slot));
            fits(&class.kind, &class.status, class.face)
        });
        let hidden = hidden.count() as u64;
        self.catalog.count(fits) - hidden
    }

    /// The same, but no more than so many are counted.
    pub fn count_of_upto(&self, query: &Query, fits: impl Fn(&[u8], &[u8]) -> bool, most: u64) -> u64 {
        let sight = self.sight(&query.viewer);
        if sight.is_of_all_scopes() {
            return self.count_of(query, fits);
        }
        let wanted = wanted(query);
        let accepted = self
            .catalog
            .accepted(|kind, status, face| wanted(kind, status, face) && fits(kind, status));
        let numbers = self.scopes.numbers(&sight);
        let seen = numbers.iter().flat_map(|&scope| self.scopes.slots(scope));
        let counted = seen.filter(|&slot| accepted[self.slots.class(slot) as usize]);
        counted.take(usize::try_from(most).unwrap_or(usize::MAX)).count() as u64
    }

    /// How many records there are of all kinds in what somebody sees, those that name rows included.
    pub fn seen_count(&self, sight: &Sight) -> u64 {
        let numbers = self.scopes.numbers(sight);
        numbers.iter().map(|&scope| self.scopes.slots(scope).len()).sum()
    }

    /// A query, ready to be asked of single slots. It is good until the state changes.
    pub fn sieve(&self, query: &Query) -> SlotSieve {
        let (wanted, sight) = (wanted(query), self.sight(&query.viewer));
        let sees_all = sight.is_of_all_scopes();
        let is_wanted = |kind: &[u8], status: &[u8], face: bool| {
            wanted(kind, status, face) && (sees_all || !is_of_store(kind, face))
        };
        SlotSieve {
            classes: self.catalog.accepted(is_wanted),
            least: query.min_confidence,
            sight,
        }
    }

    /// Whether a query asks for the record in a slot.
    pub fn passes(&self, sieve: &SlotSieve, slot: u32) -> bool {
        let slot = self.slots.view(slot);
        let is_of_class = sieve.classes.get(slot.class as usize).copied().unwrap_or(false);
        is_of_class && slot.confidence >= sieve.least && sieve.sight.sees(self.scope_of(&slot))
    }

    /// The slots that whoever put a query sees, ascending; `None` if that one sees everything.
    pub(super) fn seen_slots(&self, sieve: &SlotSieve) -> Option<Vec<u32>> {
        self.scopes.seen(&sieve.sight)
    }

    /// The slots of the records that a query asks for, in insertion order.
    pub(super) fn matching_slots<'a>(&'a self, query: &Query) -> impl Iterator<Item = u32> + use<'a> {
        self.matching_among(query, None)
    }

    /// The same among some, which ascend, if given.
    pub(super) fn matching_among<'a>(
        &'a self,
        query: &Query,
        among: Option<Vec<u32>>,
    ) -> impl Iterator<Item = u32> + use<'a> {
        let sieve = self.sieve(query);
        // Whoever sees little goes through that; whoever sees all, through those of a kind and status.
        let some = among.or_else(|| self.seen_slots(&sieve));
        let classes = some.is_none().then(|| self.catalog.slots(wanted(query)));
        let slots = some.into_iter().flatten().chain(classes.into_iter().flatten());
        slots.filter(move |&slot| self.passes(&sieve, slot))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use chronolog::event::draft_value::defaults;
    use chronolog::event::{Known, Op};
    use chronolog::json;

    /// Lets a state hear what is said of a record.
    pub(in crate::state) fn says(state: &mut State, op: Op, seq: u64, id: &str, record: &str) {
        let known = Known {
            op,
            seq,
            hash: b"",
            offset: seq,
            id: id.as_bytes(),
            record: record.as_bytes(),
            fields: json::scan_record(record.as_bytes()).expect("a record"),
        };
        state.apply(known, 0);
    }

    /// Lets a state hear of a record that says nothing.
    pub(in crate::state) fn hears(state: &mut State, op: Op, seq: u64, id: &str) {
        let record = format!("{{\"id\":\"{id}\",\"kind\":\"{}\"}}", defaults::KIND);
        says(state, op, seq, id, &record);
    }

    #[test]
    fn a_guess_is_believed_only_where_it_is_right() {
        let mut state = State::default();
        for (seq, id) in (0..).zip(["a", "b", "ab"]) {
            hears(&mut state, Op::Upsert, seq, id);
        }
        // Of `gone` events spoke before it was a record: the slot it had then is nobody's.
        hears(&mut state, Op::Delete, 3, "gone");
        let mention = state.find(b"gone").expect("it was spoken of");
        assert_eq!(state.slot_spelled_near(b"gone", mention), None);
        hears(&mut state, Op::Upsert, 4, "gone");
        for id in ["a", "b", "ab", "gone", "nobody", ""] {
            let known = state.slot_of(id);
            for guess in (0..=state.slot_count() as u32).chain([u32::MAX]) {
                assert_eq!(
                    state.slot_spelled_near(id.as_bytes(), guess),
                    known,
                    "{id} from {guess}"
                );
            }
        }
        assert_ne!(state.slot_of("gone"), Some(mention));
    }
}
