//! The slots of a state: rows of sealed segments, and the newer ones in memory.
//!
//! A slot is a number that stays as long as the state lives: how many ids were mentioned before its id. Neighbours in the log mostly
//! have neighbouring slots.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::ops::Bound;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};

use super::{spelled, unspelled};
use crate::segment::{Locator, NEVER, NO_CLASS, NO_EVENT, Sealed, SegmentRow, Source};
use crate::snapshot::{Doubt, Moments, Stamp};
use chronolog::error::Error;
use chronolog::event::IncomingEvents;
use chronolog::json::Span;
use chronolog::memory::{Allowance, Refused};

/// Where the bytes of a record are.
#[derive(Clone, Debug)]
pub(super) enum At {
    Memory(Arc<[u8]>),
    Sealed { segment: u32, row: u32 },
}

/// One id and what is known about it.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub confidence: f64,
    pub at: At,
    pub id: Span,
    pub class: u32,
    /// The scope it was written with, whether it has expired or not.
    pub scope: u32,
    /// The index of the last event of the live log about it, or `NO_EVENT`.
    pub last_event: u32,
    /// The id has another slot by now.
    pub is_gone: bool,
    /// When it expires, or `NEVER`.
    pub expires: i64,
    pub created: Stamp,
    pub updated: Stamp,
}

/// What decides who sees a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotView {
    pub confidence: f64,
    pub class: u32,
    pub scope: u32,
    pub expires: i64,
}

/// Which records damaged or missing lines of the log may have been about.
#[derive(Clone, Debug, Default)]
struct Doubts {
    /// Slots of records that such a line names, or that were only changed in part since.
    named: BTreeSet<u32>,
    /// A line behind this event is lost and names no record.
    lost_behind: Option<u64>,
}

/// All slots.
#[derive(Debug, Default)]
pub struct SlotTable {
    sealed: Option<SealedSlots>,
    /// Sealed slots that changed since.
    changed: HashMap<u32, Slot>,
    /// The slots behind the sealed ones.
    fresh: Vec<Slot>,
    /// Part of the hash of an id in memory, and its slot. With it the table grows without reading the ids.
    ids: HashTable<(u32, u32)>,
    hasher: RandomState,
    /// When slots in memory expire.
    due: BTreeSet<(i64, u32)>,
    /// How many slots are older than the one before them.
    pub(super) inversions: u64,
    /// `None` if no line is lost.
    doubts: Option<Arc<Doubts>>,
    room: Allowance,
}

/// Segments, and what their numbers of classes and scopes mean in this state.
#[derive(Clone, Debug)]
pub(super) struct SealedSlots {
    pub rows: Arc<Sealed>,
    /// For each segment.
    pub classes: Vec<Vec<u32>>,
    /// For each segment.
    pub scopes: Vec<Vec<u32>>,
    /// Whether the log that they are of is the live one.
    pub is_live: bool,
}

impl SealedSlots {
    fn class(&self, (segment, row): (u32, u32)) -> u32 {
        let local = self.rows.segments()[segment as usize].class(row);
        let number = self.classes[segment as usize].get(local as usize);
        number.copied().unwrap_or(NO_CLASS)
    }

    fn scope(&self, segment: u32, local: u32) -> u32 {
        let number = self.scopes[segment as usize].get(local as usize);
        number.copied().unwrap_or(super::scopes::SHARED)
    }

    fn view(&self, slot: u32) -> SlotView {
        let (segment, row) = self.rows.place(slot);
        let part = &self.rows.segments()[segment as usize];
        SlotView {
            confidence: part.confidence(row),
            class: self.class((segment, row)),
            scope: self.scope(segment, part.scope(row)),
            expires: part.expires(row),
        }
    }

    fn get(&self, slot: u32) -> Slot {
        let (segment, row) = self.rows.place(slot);
        let found = self.rows.segments()[segment as usize].row(row);
        let [created, created_at, updated, updated_at] = found.moments;
        Slot {
            confidence: found.confidence,
            at: At::Sealed { segment, row },
            id: found.id,
            class: self.class((segment, row)),
            scope: self.scope(segment, found.scope),
            last_event: if self.is_live { found.last_event } else { NO_EVENT },
            is_gone: found.locator.is_gone,
            expires: found.expires,
            created: Stamp::of_numbers(created, created_at),
            updated: Stamp::of_numbers(updated, updated_at),
        }
    }

    /// The bytes of a record. If they cannot be read, the segments are marked as failed, and this is a record without fields.
    fn read(&self, segment: u32, row: u32) -> Vec<u8> {
        self.rows.read_row(segment, row).unwrap_or_else(|| b"{}".to_vec())
    }
}

/// All bits that the table of ids wants, from those that are kept.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl SlotTable {
    /// A copy that later changes leave as it is. It does not find slots by their ids.
    pub(super) fn copy(&self) -> Result<Self, Refused> {
        let (mut changed, mut fresh) = (HashMap::new(), Vec::new());
        changed.try_reserve(self.changed.len())?;
        fresh.try_reserve_exact(self.fresh.len())?;
        changed.extend(self.changed.iter().map(|(number, slot)| (*number, slot.clone())));
        fresh.extend_from_slice(&self.fresh);
        Ok(Self {
            sealed: self.sealed.clone(),
            doubts: self.doubts.clone(),
            changed,
            fresh,
            ..Self::default()
        })
    }

    pub(super) fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        let touched = coming.events + coming.further;
        self.room.take(coming.bytes)?;
        if self.sealed.is_some() {
            self.changed.try_reserve(touched)?;
        }
        self.fresh.try_reserve(touched)?;
        Ok(self.ids.try_reserve(touched, |entry| spread(entry.0))?)
    }

    /// How many slots there are, those without a record included.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a state that is empty is asked for its records"
    )]
    pub fn len(&self) -> usize {
        self.sealed_len() as usize + self.fresh.len()
    }

    pub(super) fn sealed_len(&self) -> u32 {
        self.sealed().map_or(0, |sealed| sealed.slots())
    }

    /// The segments.
    pub fn sealed(&self) -> Option<&Arc<Sealed>> {
        self.sealed.as_ref().map(|sealed| &sealed.rows)
    }

    /// For each segment, the numbers of its scopes in this state.
    pub(crate) fn sealed_scopes(&self) -> &[Vec<u32>] {
        self.sealed.as_ref().map_or(&[], |sealed| &sealed.scopes)
    }

    /// Whether a check of a segment or of a record failed: nothing that was read is to be used then.
    pub fn has_failed(&self) -> bool {
        self.sealed().is_some_and(|sealed| sealed.has_failed())
    }

    /// Whether all that was read so far is as it was sealed.
    ///
    /// # Errors
    /// `Io` if not: nothing of it is to be used.
    pub fn check(&self) -> Result<(), Error> {
        if !self.has_failed() {
            return Ok(());
        }
        let reason = "a segment, or a record that it leads to, is damaged; the next call reads the log instead";
        let fault = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
        Err(Error::io(std::path::Path::new("index/state"), fault))
    }

    /// What is in memory of a slot; `None` if it is sealed and was not changed since.
    #[inline]
    fn in_memory_of(&self, slot: u32) -> Option<&Slot> {
        match slot.checked_sub(self.sealed_len()) {
            Some(fresh) => Some(&self.fresh[fresh as usize]),
            None => self.changed.get(&slot),
        }
    }

    /// The segments, if they have the newest row of a slot, else what is in memory of it.
    #[inline]
    fn place_of(&self, slot: u32) -> Result<&Slot, &SealedSlots> {
        match (self.in_memory_of(slot), &self.sealed) {
            (Some(held), _) => Ok(held),
            (None, Some(sealed)) => Err(sealed),
            (None, None) => Ok(&Slot::NOTHING),
        }
    }

    pub(super) fn get(&self, slot: u32) -> Cow<'_, Slot> {
        match self.place_of(slot) {
            Ok(held) => Cow::Borrowed(held),
            Err(sealed) => Cow::Owned(sealed.get(slot)),
        }
    }

    #[inline]
    pub(super) fn view(&self, slot: u32) -> SlotView {
        self.place_of(slot).map_or_else(|sealed| sealed.view(slot), Slot::view)
    }

    #[inline]
    pub(super) fn class(&self, slot: u32) -> u32 {
        let in_segments = |sealed: &SealedSlots| sealed.class(sealed.rows.place(slot));
        self.place_of(slot).map_or_else(in_segments, |held| held.class)
    }

    pub(super) fn is_record(&self, slot: u32) -> bool {
        (slot as usize) < self.len() && self.class(slot) != NO_CLASS
    }

    pub(super) fn bytes_at<'a>(&'a self, at: &'a At) -> Cow<'a, [u8]> {
        match (at, &self.sealed) {
            (At::Memory(bytes), _) => Cow::Borrowed(bytes),
            (At::Sealed { segment, row }, Some(sealed)) => Cow::Owned(sealed.read(*segment, *row)),
            (At::Sealed { .. }, None) => Cow::Borrowed(b"{}"),
        }
    }

    /// The canonical record in a slot.
    pub fn record(&self, slot: u32) -> Cow<'_, [u8]> {
        match self.place_of(slot) {
            Ok(held) => self.bytes_at(&held.at),
            Err(sealed) => {
                let (segment, row) = sealed.rows.place(slot);
                Cow::Owned(sealed.read(segment, row))
            }
        }
    }

    /// The id of a slot, as it stands between quotes in canonical JSON.
    pub fn id(&self, slot: u32) -> Cow<'_, [u8]> {
        let (record, id) = match self.place_of(slot) {
            Ok(held) => (self.bytes_at(&held.at), held.id),
            Err(sealed) => {
                let (segment, row) = sealed.rows.place(slot);
                let id = sealed.rows.segments()[segment as usize].id_span(row);
                (Cow::Owned(sealed.read(segment, row)), id)
            }
        };
        match record {
            Cow::Borrowed(record) => Cow::Borrowed(id.of(record)),
            Cow::Owned(record) => Cow::Owned(id.of(&record).to_vec()),
        }
    }

    /// The slot of a record.
    pub fn of_id(&self, id: &str) -> Option<u32> {
        self.of_spelled(&spelled(id))
    }

    /// The same, the id given as it stands between quotes in canonical JSON.
    pub fn of_spelled(&self, id: &[u8]) -> Option<u32> {
        self.find(id).filter(|&slot| self.class(slot) != NO_CLASS)
    }

    /// The same for who can guess the slot: it is far quicker to look there than to look anywhere.
    pub fn of_spelled_near(&self, id: &[u8], guess: u32) -> Option<u32> {
        let is_it = self.is_record(guess) && *self.id(guess) == *id;
        if is_it { Some(guess) } else { self.of_spelled(id) }
    }

    /// The slot of an id, whether there is a record of it or not.
    pub(super) fn find(&self, id: &[u8]) -> Option<u32> {
        let hash = self.hash(id);
        let is_it = |entry: &(u32, u32)| entry.0 == hash && *self.id(entry.1) == *id;
        if let Some((_, slot)) = self.ids.find(spread(hash), is_it) {
            return Some(*slot);
        }
        let mut found = None;
        if let Some(sealed) = self.sealed() {
            sealed.find(id, |slot| {
                let is_gone = self.changed.get(&slot).is_some_and(|changed| changed.is_gone);
                found = (!is_gone && *self.id(slot) == *id).then_some(slot);
                found.is_some()
            });
        }
        found
    }

    fn hash(&self, id: &[u8]) -> u32 {
        (self.hasher.hash_one(id) >> 32) as u32
    }

    /// Whether the record in a slot has an id, spelled as between quotes in canonical JSON; of a sealed record the hash decides.
    pub fn is_of(&self, slot: u32, id: &[u8]) -> bool {
        self.is_record(slot)
            && match self.sealed() {
                Some(sealed) if self.is_sealed(slot) => sealed.id_hash_of(slot) == sealed.hash(id),
                _ => *self.id(slot) == *id,
            }
    }

    /// Whether a slot is sealed and was not changed since.
    pub(super) fn is_sealed(&self, slot: u32) -> bool {
        slot < self.sealed_len() && !self.changed.contains_key(&slot)
    }

    /// One slot, to be changed. A sealed one is copied first.
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Slot {
        if let Some(fresh) = slot.checked_sub(self.sealed_len()) {
            return &mut self.fresh[fresh as usize];
        }
        let (sealed, due) = (&self.sealed, &mut self.due);
        self.changed.entry(slot).or_insert_with(|| {
            let copy = sealed.as_ref().map_or(Slot::NOTHING, |sealed| sealed.get(slot));
            // INVARIANT: what expires among the slots in memory is listed.
            if copy.expires != NEVER {
                due.insert((copy.expires, slot));
            }
            copy
        })
    }

    /// Puts a record in the place of the one in a slot. What events said of the slot stays.
    pub(super) fn replace(&mut self, number: u32, new: Slot) {
        let old = self.get_mut(number);
        let old_expiry = old.expires;
        *old = Slot {
            last_event: old.last_event,
            created: old.created,
            updated: old.updated,
            ..new
        };
        let expires = old.expires;
        self.due.remove(&(old_expiry, number));
        if expires != NEVER {
            self.due.insert((expires, number));
        }
    }

    pub(super) fn push(&mut self, id: &[u8], slot: Slot) -> u32 {
        let (number, hash) = (self.len() as u32, self.hash(id));
        if slot.expires != NEVER {
            self.due.insert((slot.expires, number));
        }
        self.fresh.push(slot);
        self.inversions += u64::from(self.is_inverted(number));
        self.ids
            .insert_unique(spread(hash), (hash, number), |entry| spread(entry.0));
        number
    }

    /// A slot is not found by its id any more.
    pub(super) fn forget_id(&mut self, number: u32) {
        let hash = self.hash(&self.id(number));
        if let Ok(entry) = self.ids.find_entry(spread(hash), |entry| entry.1 == number) {
            entry.remove();
        }
    }

    /// The log starts anew: no event of it is about any slot.
    pub(super) fn forget_events(&mut self) {
        if let Some(sealed) = &mut self.sealed {
            sealed.is_live = false;
        }
        let slots = self.changed.values_mut().chain(&mut self.fresh);
        slots.for_each(|slot| slot.last_event = NO_EVENT);
    }

    pub(super) fn in_memory_len(&self) -> usize {
        self.changed.len() + self.fresh.len()
    }

    /// The slots in memory, ascending.
    pub(crate) fn in_memory(&self) -> Vec<u32> {
        let mut slots: Vec<u32> = self.changed.keys().copied().collect();
        slots.sort_unstable();
        slots.extend(self.sealed_len()..self.len() as u32);
        slots
    }

    /// How many bytes the records in memory have.
    pub fn bytes(&self) -> usize {
        let slots = self.changed.values().chain(&self.fresh);
        let bytes = slots.map(|slot| match &slot.at {
            At::Memory(bytes) => bytes.len(),
            At::Sealed { .. } => 0,
        });
        bytes.sum()
    }

    /// Takes other segments, which hold all slots up to a later one, and forgets the slots in memory for which `is_in` holds.
    pub(super) fn adopt(&mut self, sealed: SealedSlots, is_in: impl Fn(u32, &Slot) -> bool) {
        let (before, now) = (self.sealed_len(), sealed.rows.slots());
        let sealed_now = (now.saturating_sub(before) as usize).min(self.fresh.len());
        let later = self.fresh.split_off(sealed_now);
        let fresh = (before..).zip(std::mem::replace(&mut self.fresh, later));
        self.changed.extend(fresh);
        self.changed.retain(|number, slot| !is_in(*number, slot));
        self.changed.shrink_to_fit();
        self.fresh.shrink_to_fit();
        for (number, slot) in &mut self.changed {
            if let At::Sealed { .. } = slot.at {
                let (segment, row) = sealed.rows.place(*number);
                slot.at = At::Sealed { segment, row };
            }
        }
        self.sealed = Some(sealed);
        self.ids.retain(|entry| entry.1 >= now);
        self.ids.shrink_to(0, |entry| spread(entry.0));
        let mut due = std::mem::take(&mut self.due);
        due.retain(|(_, slot)| !self.is_sealed(*slot));
        self.due = due;
    }

    /// Where a segment says that a record is in log or base.
    pub(super) fn locator(&self, at: &At) -> Option<Locator> {
        let (At::Sealed { segment, row }, Some(sealed)) = (at, self.sealed()) else {
            return None;
        };
        let locator = sealed.segments().get(*segment as usize)?.row(*row).locator;
        (locator.source != Source::Inline).then_some(locator)
    }

    /// Whether any record ever expires.
    #[inline]
    pub fn knows_expiries(&self) -> bool {
        !self.due.is_empty() || self.sealed().is_some_and(|sealed| sealed.has_expiries())
    }

    /// What expires after a moment and not after another, those first that expire first.
    pub(super) fn expiring(&self, from: i64, until: i64) -> Vec<u32> {
        let range = (Bound::Excluded((from, u32::MAX)), Bound::Included((until, u32::MAX)));
        let mut due: Vec<(i64, u32)> = self.due.range(range).copied().collect();
        for segment in self.sealed().iter().flat_map(|sealed| sealed.segments()) {
            let is_current = |(moment, slot): &(i64, u32)| self.is_sealed(*slot) && self.get(*slot).expires == *moment;
            due.extend(segment.due(from, until).into_iter().filter(is_current));
        }
        due.sort_unstable();
        due.dedup();
        due.into_iter().map(|(_, slot)| slot).collect()
    }

    /// When the record of an id expires.
    pub fn expiry(&self, id: &str) -> Option<i64> {
        let expires = self.get(self.of_id(id)?).expires;
        Some(expires).filter(|at| *at != NEVER)
    }

    /// The moments of a slot.
    pub fn moments(&self, slot: u32) -> Moments {
        let held = self.get(slot);
        Moments {
            created: held.created,
            updated: held.updated,
            doubt: self.doubt_of(slot, held.updated),
        }
    }

    /// Which event made the record of a slot.
    pub(super) fn created(&self, slot: u32) -> Stamp {
        self.get(slot).created
    }

    /// Whether no slot is older than one before it: then an event can be looked for by halves.
    pub(super) fn is_ordered(&self) -> bool {
        self.inversions == 0
    }

    /// Whether a slot is older than the one before it.
    fn is_inverted(&self, slot: u32) -> bool {
        let is_there = slot > 0 && (slot as usize) < self.len();
        is_there && self.created(slot - 1).seq() > self.created(slot).seq()
    }

    /// All that is known about when the record of a slot was made and changed.
    pub(super) fn set_moments(&mut self, slot: u32, created: Stamp, updated: Stamp) {
        if self.created(slot) != created {
            let inverted = |slots: &Self| {
                (slot..=slot.saturating_add(1))
                    .filter(|&slot| slots.is_inverted(slot))
                    .count()
            };
            self.inversions -= inverted(self) as u64;
            self.get_mut(slot).created = created;
            self.inversions += inverted(self) as u64;
        }
        self.get_mut(slot).updated = updated;
    }

    /// An event is about the record of a slot. One that restates all of it ends any doubt; one that changes a part does not.
    pub(super) fn touch(&mut self, slot: u32, stamp: Stamp, restates: bool) {
        if self.doubts.is_some() && (restates || self.moments(slot).doubt != Doubt::None) {
            let named = &mut self.doubts_mut().named;
            _ = match restates {
                true => named.remove(&slot),
                false => named.insert(slot),
            };
        }
        let slot = self.get_mut(slot);
        slot.updated = stamp.not_before(slot.created);
    }

    fn doubts_mut(&mut self) -> &mut Doubts {
        Arc::make_mut(self.doubts.get_or_insert_default())
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubts.is_some()
    }

    /// A lost line behind an event may have been about any record that was written before.
    pub(super) fn doubt_behind(&mut self, seq: u64) {
        let lost_behind = &mut self.doubts_mut().lost_behind;
        *lost_behind = (*lost_behind).max(Some(seq));
    }

    /// An event about an id, spelled as between quotes in canonical JSON, is lost. An id without a record is passed over.
    pub fn doubt(&mut self, id: &[u8]) {
        if let Some(slot) = self.of_spelled(id) {
            self.doubts_mut().named.insert(slot);
        }
    }

    /// Whether a lost line may have been about the record of a slot, which was changed last by this event.
    fn doubt_of(&self, slot: u32, updated: Stamp) -> Doubt {
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

    /// The ids of all records that a lost event names.
    pub fn named_by_lost_events(&self) -> Vec<String> {
        let named = self.doubts.iter().flat_map(|doubts| &doubts.named);
        named.map(|&slot| unspelled(&self.id(slot))).collect()
    }
}

impl Slot {
    /// What stands in for a slot that is not there.
    pub const NOTHING: Self = Self {
        confidence: 0.0,
        at: At::Sealed {
            segment: u32::MAX,
            row: 0,
        },
        id: Span { start: 0, end: 0 },
        class: NO_CLASS,
        scope: super::scopes::SHARED,
        last_event: NO_EVENT,
        is_gone: false,
        expires: NEVER,
        created: Stamp::UNKNOWN,
        updated: Stamp::UNKNOWN,
    };

    /// Its row in a segment in which the class and the scope have these numbers.
    pub fn row(&self, ordinal: u32, locator: Locator, id_hash: u64, [class, scope]: [u32; 2]) -> SegmentRow {
        let ([created, created_at], [updated, updated_at]) = (self.created.numbers(), self.updated.numbers());
        SegmentRow {
            ordinal,
            locator,
            id: self.id,
            id_hash,
            class,
            scope,
            confidence: self.confidence,
            moments: [created, created_at, updated, updated_at],
            last_event: self.last_event,
            expires: self.expires,
        }
    }

    /// What decides who sees it.
    pub fn view(&self) -> SlotView {
        SlotView {
            confidence: self.confidence,
            class: self.class,
            scope: self.scope,
            expires: self.expires,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;
    use crate::state::tests::hears;
    use chronolog::event::Op;

    fn stamp(seq: u64) -> Stamp {
        Stamp::new(seq, seq as i64 * 10)
    }

    #[test]
    fn a_guess_is_believed_only_where_it_is_right() {
        let mut state = State::default();
        for (seq, id) in (0..).zip(["a", "b", "ab"]) {
            hears(&mut state, Op::Upsert, seq, id);
        }
        // Events were about `gone` before it was a record: the slot that it had then holds none.
        hears(&mut state, Op::Delete, 3, "gone");
        let slots = |state: &State| 0..=state.slots.len() as u32;
        let mention = state.slots.find(b"gone").expect("it was mentioned");
        assert_eq!(state.slots.of_spelled_near(b"gone", mention), None);
        hears(&mut state, Op::Upsert, 4, "gone");
        for id in ["a", "b", "ab", "gone", "nobody", ""] {
            let known = state.slots.of_id(id);
            for guess in slots(&state).chain([u32::MAX]) {
                let found = state.slots.of_spelled_near(id.as_bytes(), guess);
                assert_eq!(found, known, "{id} from {guess}");
            }
        }
        assert_ne!(state.slots.of_id("gone"), Some(mention));
    }

    #[test]
    fn an_older_slot_behind_a_newer_one_is_counted() {
        let mut state = State::default();
        for seq in 0..5 {
            hears(&mut state, Op::Upsert, seq, &format!("r{seq}"));
        }
        let slots = &mut state.slots;
        assert!(slots.is_ordered());
        slots.set_moments(2, stamp(9), stamp(9));
        assert!(!slots.is_ordered(), "slot 3 is older than slot 2 now");
        slots.set_moments(3, stamp(9), stamp(9));
        slots.set_moments(4, stamp(9), stamp(10));
        assert!(slots.is_ordered());
        slots.set_moments(0, Stamp::UNKNOWN, stamp(3));
        assert!(slots.is_ordered(), "what is not known counts as the oldest");
        assert_eq!(slots.moments(4), Moments::of_stamps(stamp(9), stamp(10)));
        slots.set_moments(0, Stamp::new(7, 70), Stamp::new(7, 70));
        slots.touch(0, Stamp::new(3, 1000), true);
        assert_eq!(slots.moments(0).updated, Stamp::new(7, 1000), "not before it was made");
    }
}
