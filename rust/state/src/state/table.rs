//! The slots of a state: rows of sealed segments, and the newer ones in memory.

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashMap;

use super::arena::{Address, Arena};
use super::moments::Order;
use super::records::State;
use super::timeline::EventMark;
use crate::segment::{Locator, NO_CLASS, NO_EVENT, Sealed, Source};
use crate::snapshot::{Moments, Stamp};
use chronolog::json::Span;
use chronolog::memory::Refused;

/// Where the bytes of a record are.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// In memory.
    Arena(Address),
    /// Where a row of a segment says.
    Sealed {
        /// Which segment.
        segment: u32,
        /// Which row of it.
        row: u32,
    },
}

/// One id and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub confidence: f64,
    pub at: At,
    pub id: Span,
    pub class: u32,
    /// The scope it was written with, whether it has expired or not.
    pub scope: u32,
    pub last_event: EventMark,
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

/// All slots. A slot is a number that stays while the state lives.
#[derive(Debug, Default)]
pub(super) struct SlotTable {
    sealed: Option<SealedSlots>,
    /// Sealed slots that changed since.
    changed: HashMap<u32, Slot>,
    /// The slots behind the sealed ones.
    fresh: Vec<Slot>,
}

/// Segments, and what their numbers of classes and scopes mean in this state.
#[derive(Clone, Debug)]
pub(super) struct SealedSlots {
    pub rows: Arc<Sealed>,
    /// For each segment.
    pub classes: Vec<Vec<u32>>,
    /// For each segment.
    pub scopes: Vec<Vec<u32>>,
    /// The mark of the first event of the log; `None` if another log took its place.
    pub first_mark: Option<u32>,
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

    pub fn get(&self, slot: u32) -> Slot {
        let (segment, row) = self.rows.place(slot);
        let found = self.rows.segments()[segment as usize].row(row);
        let [created, created_at, updated, updated_at] = found.moments;
        let last = Some(found.last_event).filter(|last| *last != NO_EVENT);
        Slot {
            confidence: found.confidence,
            at: At::Sealed { segment, row },
            id: found.id,
            class: self.class((segment, row)),
            scope: self.scope(segment, found.scope),
            last_event: EventMark::of_index(self.first_mark, last),
            is_gone: found.locator.is_gone,
            expires: found.expires,
            created: Stamp::of_numbers(created, created_at),
            updated: Stamp::of_numbers(updated, updated_at),
        }
    }
}

impl SlotTable {
    /// A copy that later changes leave as it is.
    fn copy(&self) -> Result<Self, Refused> {
        let (mut changed, mut fresh) = (HashMap::new(), Vec::new());
        changed.try_reserve(self.changed.len())?;
        fresh.try_reserve_exact(self.fresh.len())?;
        changed.extend(&self.changed);
        fresh.extend_from_slice(&self.fresh);
        Ok(Self {
            sealed: self.sealed.clone(),
            changed,
            fresh,
        })
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.sealed_len() as usize + self.fresh.len()
    }

    /// How many of them are sealed.
    pub fn sealed_len(&self) -> u32 {
        self.sealed.as_ref().map_or(0, |sealed| sealed.rows.slots())
    }

    /// The segments.
    pub fn sealed(&self) -> Option<&SealedSlots> {
        self.sealed.as_ref()
    }

    /// One slot.
    #[inline]
    pub fn get(&self, slot: u32) -> Slot {
        let Some(sealed) = &self.sealed else {
            return self.fresh[slot as usize];
        };
        match slot.checked_sub(sealed.rows.slots()) {
            Some(fresh) => self.fresh[fresh as usize],
            None => self.changed.get(&slot).copied().unwrap_or_else(|| sealed.get(slot)),
        }
    }

    /// What is in memory of a slot; `None` if it is sealed and was not changed since.
    #[inline]
    fn in_memory_of(&self, slot: u32) -> Option<&Slot> {
        match slot.checked_sub(self.sealed_len()) {
            Some(fresh) => Some(&self.fresh[fresh as usize]),
            None => self.changed.get(&slot),
        }
    }

    /// What decides who sees a slot.
    #[inline]
    pub fn view(&self, slot: u32) -> SlotView {
        match (self.in_memory_of(slot), &self.sealed) {
            (None, Some(sealed)) => sealed.view(slot),
            (held, _) => held.unwrap_or(&Slot::NOTHING).view(),
        }
    }

    /// Where the bytes of a record are.
    #[inline]
    pub fn at(&self, slot: u32) -> At {
        match (self.in_memory_of(slot), &self.sealed) {
            (None, Some(sealed)) => {
                let (segment, row) = sealed.rows.place(slot);
                At::Sealed { segment, row }
            }
            (held, _) => held.unwrap_or(&Slot::NOTHING).at,
        }
    }

    /// Where the bytes of a record are, and where its id is in them.
    pub fn id_at(&self, slot: u32) -> (At, Span) {
        match (self.at(slot), &self.sealed, self.is_sealed(slot)) {
            (at @ At::Sealed { segment, row }, Some(sealed), true) => {
                (at, sealed.rows.segments()[segment as usize].id_span(row))
            }
            (at, ..) => (at, self.get(slot).id),
        }
    }

    /// The class of a slot.
    #[inline]
    pub fn class(&self, slot: u32) -> u32 {
        match &self.sealed {
            None => self.fresh[slot as usize].class,
            Some(sealed) if self.is_sealed(slot) => sealed.class(sealed.rows.place(slot)),
            Some(_) => self.get(slot).class,
        }
    }

    /// Whether a slot is sealed and was not changed since.
    pub fn is_sealed(&self, slot: u32) -> bool {
        slot < self.sealed_len() && !self.changed.contains_key(&slot)
    }

    /// One slot, to be changed. A sealed one is copied first.
    pub fn get_mut(&mut self, slot: u32) -> &mut Slot {
        match slot.checked_sub(self.sealed_len()) {
            Some(fresh) => &mut self.fresh[fresh as usize],
            None => {
                let sealed = &self.sealed;
                let copy = || sealed.as_ref().map(|sealed| sealed.get(slot));
                self.changed
                    .entry(slot)
                    .or_insert_with(|| copy().unwrap_or(Slot::NOTHING))
            }
        }
    }

    /// Adds a slot.
    pub fn push(&mut self, slot: Slot) {
        self.fresh.push(slot);
    }

    /// Asks for memory for further slots.
    pub fn make_room(&mut self, slots: usize) -> Result<(), Refused> {
        if self.sealed.is_some() {
            self.changed.try_reserve(slots)?;
        }
        Ok(self.fresh.try_reserve(slots)?)
    }

    /// The log starts anew; `all` if marks of events have to be taken back.
    pub fn forget_events(&mut self, all: bool) {
        if let Some(sealed) = &mut self.sealed {
            sealed.first_mark = None;
        }
        if all {
            let slots = self.changed.values_mut().chain(&mut self.fresh);
            slots.for_each(|slot| slot.last_event = EventMark::NONE);
        }
    }

    /// The first sealed slot whose id may be this one and that `is_it` accepts.
    pub fn find_sealed(&self, id: &[u8], is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut found = None;
        if let Some(sealed) = &self.sealed {
            sealed.rows.find(id, |slot| {
                let is_gone = self.changed.get(&slot).is_some_and(|changed| changed.is_gone);
                found = (!is_gone && is_it(slot)).then_some(slot);
                found.is_some()
            });
        }
        found
    }

    /// The hash of the id of a slot that is sealed and was not changed since.
    pub fn sealed_hash(&self, slot: u32) -> Option<u64> {
        let sealed = self.sealed.as_ref().filter(|_| self.is_sealed(slot))?;
        Some(sealed.rows.id_hash_of(slot))
    }

    /// The hash of an id, as segments keep it.
    pub fn hash_sealed(&self, id: &[u8]) -> Option<u64> {
        self.sealed.as_ref().map(|sealed| sealed.rows.hash(id))
    }

    /// The bytes of a sealed record. If they cannot be read, the segments are marked as failed, and this is a record without fields.
    pub fn read_sealed(&self, segment: u32, row: u32) -> Cow<'_, [u8]> {
        let sealed = self.sealed.as_ref();
        let bytes = sealed.and_then(|sealed| sealed.rows.read_row(segment, row));
        bytes.map_or(Cow::Borrowed(b"{}"), Cow::Owned)
    }

    /// How many slots are in memory.
    pub fn in_memory_len(&self) -> usize {
        self.changed.len() + self.fresh.len()
    }

    /// The slots in memory, each with its number.
    pub fn in_memory(&self) -> impl Iterator<Item = (u32, Slot)> + '_ {
        let fresh = (self.sealed_len()..).zip(self.fresh.iter().copied());
        self.changed.iter().map(|(slot, held)| (*slot, *held)).chain(fresh)
    }

    /// The same, to be changed.
    pub fn in_memory_mut(&mut self) -> impl Iterator<Item = (u32, &mut Slot)> {
        let fresh = (self.sealed_len()..).zip(&mut self.fresh);
        self.changed.iter_mut().map(|(slot, held)| (*slot, held)).chain(fresh)
    }

    /// Takes other segments, which hold all slots up to a later one, and forgets the slots in memory for which `is_in` holds.
    pub fn adopt(&mut self, sealed: SealedSlots, is_in: impl Fn(u32, &Slot) -> bool) {
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
    }
}

impl Slot {
    /// What decides who sees it.
    pub fn view(&self) -> SlotView {
        SlotView {
            confidence: self.confidence,
            class: self.class,
            scope: self.scope,
            expires: self.expires,
        }
    }

    /// What stands in for a slot that is not there.
    pub(super) const NOTHING: Self = Self {
        confidence: 0.0,
        at: At::Arena(Address::NOTHING),
        id: Span { start: 0, end: 0 },
        class: NO_CLASS,
        scope: super::scopes::SHARED,
        last_event: EventMark::NONE,
        is_gone: false,
        expires: crate::segment::NEVER,
        created: Stamp::UNKNOWN,
        updated: Stamp::UNKNOWN,
    };
}

/// All slots and their bytes as they were at one moment.
#[derive(Debug)]
pub(super) struct View {
    slots: SlotTable,
    arena: Arena,
    order: Order,
}

impl View {
    /// One slot.
    pub fn get(&self, slot: u32) -> Slot {
        self.slots.get(slot)
    }

    /// The bytes of a record.
    pub fn bytes_at(&self, at: At) -> Cow<'_, [u8]> {
        match at {
            At::Arena(address) => Cow::Borrowed(self.arena.get(address)),
            At::Sealed { segment, row } => self.slots.read_sealed(segment, row),
        }
    }

    /// The moments of a slot.
    pub fn moments_of(&self, slot: u32) -> Moments {
        let held = self.slots.get(slot);
        Moments {
            created: held.created,
            updated: held.updated,
            doubt: self.order.doubt(slot, held.updated),
        }
    }

    /// Where a segment says that a record is in log or base.
    pub fn locator(&self, at: At) -> Option<Locator> {
        let (At::Sealed { segment, row }, Some(sealed)) = (at, &self.slots.sealed) else {
            return None;
        };
        let locator = sealed.rows.segments().get(segment as usize)?.row(row).locator;
        (locator.source != Source::Inline).then_some(locator)
    }

    /// The bytes in memory.
    pub fn into_arena(self) -> Arena {
        self.arena
    }

    /// Whether a check of a segment failed.
    pub fn has_failed(&self) -> bool {
        self.slots
            .sealed
            .as_ref()
            .is_some_and(|sealed| sealed.rows.has_failed())
    }
}

impl State {
    /// All slots and their bytes as they are now.
    ///
    /// # Errors
    /// `Refused` if there is no memory for the slots that are not sealed.
    pub(super) fn view(&mut self) -> Result<View, Refused> {
        Ok(View {
            slots: self.slots.copy()?,
            arena: self.arena.freeze(),
            order: self.order.clone(),
        })
    }
}
