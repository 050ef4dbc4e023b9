//! The keys of the records in memory, which follow the state.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::list::KeyList;
use crate::condition::KeyRange;
use crate::segment::Sealed;
use crate::state::{State, Watermark};
use chronolog::memory::{self, Refused};

/// What a record takes in memory while it is taken in, and more.
const ENTRY_BYTES: usize = 512;

/// The keys of the records that changed since the last segment, each with the slots that have it.
#[derive(Debug, Default)]
pub struct MemoryKeys {
    mark: Watermark,
    /// The segments behind which this begins.
    sealed: Option<Arc<Sealed>>,
    /// The slots that were looked at: what segments have of them is superseded.
    owned: RoaringBitmap,
    sorted: BTreeMap<Arc<[u8]>, RoaringBitmap>,
    /// What a slot has among the keys.
    by_slot: HashMap<u32, Vec<Arc<[u8]>>>,
}

impl MemoryKeys {
    /// Whether the state has gone on.
    pub fn is_behind(&self, state: &State) -> bool {
        self.mark.is_behind(state.changes()) || !is_same(self.sealed.as_ref(), state.slots.sealed())
    }

    /// Takes in what changed in the state.
    ///
    /// # Errors
    /// `Refused` if there is no memory for it.
    pub fn follow(&mut self, state: &State, list: &KeyList) -> Result<(), Refused> {
        let is_same = is_same(self.sealed.as_ref(), state.slots.sealed());
        match state.changes().since(&self.mark).filter(|_| is_same) {
            Some(slots) => self.take_all(state, slots.iter().copied(), list)?,
            None => {
                *self = Self::default();
                self.take_all(state, state.slots.in_memory().into_iter(), list)?;
            }
        }
        self.sealed = state.slots.sealed().cloned();
        self.mark = state.changes().watermark();
        Ok(())
    }

    fn take_all(
        &mut self,
        state: &State,
        slots: impl ExactSizeIterator<Item = u32>,
        list: &KeyList,
    ) -> Result<(), Refused> {
        memory::could_have(slots.len() * ENTRY_BYTES)?;
        for slot in slots {
            self.forget(slot);
            self.owned.insert(slot);
            self.take(state, slot, list);
        }
        Ok(())
    }

    fn forget(&mut self, slot: u32) {
        for key in self.by_slot.remove(&slot).into_iter().flatten() {
            if let Some(slots) = self.sorted.get_mut(&key) {
                slots.remove(slot);
                if slots.is_empty() {
                    self.sorted.remove(&key);
                }
            }
        }
    }

    fn take(&mut self, state: &State, slot: u32, list: &KeyList) {
        let mut own = Vec::new();
        for key in keys_in(state, slot, list) {
            // One copy of a key serves all who have it.
            let known = self.sorted.get_key_value(&key[..]).map(|(known, _)| Arc::clone(known));
            let key = known.unwrap_or_else(|| Arc::from(key));
            self.sorted.entry(Arc::clone(&key)).or_default().insert(slot);
            own.push(key);
        }
        if !own.is_empty() {
            self.by_slot.insert(slot, own);
        }
    }

    /// Whether what segments have of a slot is superseded.
    pub fn owns(&self, slot: u32) -> bool {
        self.owned.contains(slot)
    }

    /// Whether that is so of any slot before this one.
    pub fn owns_before(&self, end: u32) -> bool {
        self.owned.min().is_some_and(|first| first < end)
    }

    /// The slots that have keys.
    pub fn slots(&self) -> impl Iterator<Item = u32> {
        self.by_slot.keys().copied()
    }

    /// Whether a slot has a key.
    pub fn has(&self, slot: u32) -> bool {
        self.by_slot.contains_key(&slot)
    }

    /// The keys between two others, each with its slots.
    pub fn between<'a>(
        &'a self,
        (from, until): &KeyRange,
    ) -> impl DoubleEndedIterator<Item = (&'a [u8], &'a RoaringBitmap)> + use<'a> {
        let is_empty = match (from, until) {
            (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(until)) => from >= until,
            (Bound::Included(from), Bound::Included(until)) => from > until,
            (Bound::Excluded(from), Bound::Included(until)) => from >= until,
            _ => false,
        };
        let bounds = (from.as_ref().map(|key| &key[..]), until.as_ref().map(|key| &key[..]));
        let range = (!is_empty).then(|| self.sorted.range::<[u8], _>(bounds));
        range.into_iter().flatten().map(|(key, slots)| (&**key, slots))
    }
}

fn keys_in(state: &State, slot: u32, list: &KeyList) -> Vec<Vec<u8>> {
    let class = state.class_in(slot);
    match class.is_some_and(|class| list.may_hold(&class.kind, &class.status, class.face)) {
        true => list.keys_of(&state.slots.record(slot)),
        false => Vec::new(),
    }
}

/// Whether these are the same segments.
pub(super) fn is_same(one: Option<&Arc<Sealed>>, other: Option<&Arc<Sealed>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}
