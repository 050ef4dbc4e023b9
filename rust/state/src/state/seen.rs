//! Finds and counts the records that somebody sees.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::catalog::Tally;
use super::changes::Edition;
use super::records::State;
use super::scopes::Directory;
use super::sight::Sight;
use super::spelling::unspelled;
use super::table::{Slot, SlotView};
use crate::segment::{NEVER, NO_CLASS};
use crate::snapshot::{Doubt, Stamp};
use chronolog::event::faces::{is_of_store, is_told};
use chronolog::scope::{SeenAs, Viewer};

impl State {
    /// All scopes.
    pub fn scopes(&self) -> &Directory {
        &self.scopes
    }

    /// What somebody sees.
    pub fn sight(&self, viewer: &Viewer) -> Sight {
        self.scopes.sight(viewer)
    }

    /// Which edition of what somebody sees this is. What the log says of rows of embeddings belongs to nobody: whoever gives a
    /// record one says so in the record.
    pub fn edition(&self, viewer: &Viewer) -> Edition {
        Edition::of(self.changes.state_id(), self.scopes.last_change(&self.sight(viewer)))
    }

    /// Which edition of all that there is this is, what nobody sees included.
    pub fn whole_edition(&self) -> Edition {
        Edition::of(self.changes.state_id(), self.changes.count())
    }

    /// Tells what somebody sees from what that one saw before, also in another life of the state: the seq and the moment of the
    /// last event that spoke of any of it.
    pub fn seen_version(&self, viewer: &Viewer) -> (u64, i64) {
        let last = self.scopes.last_spoken(&self.sight(viewer));
        (last.seq().unwrap_or(0), last.micros().unwrap_or(0))
    }

    /// Notes that the record in a slot was changed.
    pub(super) fn note_change(&mut self, slot: u32) {
        self.changes.note(slot, self.slots.len());
        if let Some(scope) = self.scope_of_change(slot) {
            self.scopes.touch(scope, self.changes.count());
        }
    }

    /// Notes that an event spoke of the record in a slot.
    pub(super) fn note_speech(&mut self, slot: u32, stamp: Stamp) {
        let slot = self.slots.view(slot);
        if slot.class != NO_CLASS {
            let class = self.catalog.class_of(slot.class);
            let scope = is_told(&class.kind, class.face).then(|| self.scope_of(&slot));
            self.scopes.speak(scope, stamp);
        }
    }

    fn scope_of_change(&self, slot: u32) -> Option<u32> {
        self.is_of_scope(slot).then(|| self.scope_in(slot))
    }

    /// Whether the record in a slot is one that belongs to a scope.
    pub(super) fn is_of_scope(&self, slot: u32) -> bool {
        let class = self.slots.class(slot);
        class != NO_CLASS && {
            let class = self.catalog.class_of(class);
            !is_of_store(&class.kind, class.face)
        }
    }

    /// For each segment, the numbers of its scopes in this state.
    pub fn sealed_scopes(&self) -> &[Vec<u32>] {
        self.slots.sealed().map_or(&[], |sealed| &sealed.scopes)
    }

    /// The scope itself of what may have expired.
    pub fn living_scope(&self, scope: u32) -> u32 {
        self.scopes.living(scope)
    }

    /// Whether any record has expired.
    pub fn has_expired_scopes(&self) -> bool {
        self.scopes.has_expired()
    }

    /// The scope of the record in a slot.
    pub fn scope_in(&self, slot: u32) -> u32 {
        self.scope_of(&self.slots.view(slot))
    }

    /// The scope of a slot: that of the expired ones if its record has expired.
    pub(super) fn scope_of(&self, slot: &SlotView) -> u32 {
        match slot.expires <= self.expiries.clock && slot.expires != NEVER {
            true => self.scopes.known_twin_of(slot.scope),
            false => slot.scope,
        }
    }

    /// The same for a record that is about to be added.
    pub(super) fn scope_to_be(&mut self, slot: &Slot) -> u32 {
        match slot.expires <= self.expiries.clock && slot.expires != NEVER {
            true => self.scopes.twin_of(slot.scope),
            false => slot.scope,
        }
    }

    /// How somebody sees the record of an id, which stands as between quotes in canonical JSON. Outside: whether there is
    /// one; inside: whether it is seen.
    pub fn seen_by(&self, viewer: &Viewer, id: &[u8]) -> Option<Option<SeenAs>> {
        self.slot_seen_by(viewer, id).map(|(_, seen)| seen)
    }

    /// The same, and where the record lies.
    pub fn slot_seen_by(&self, viewer: &Viewer, id: &[u8]) -> Option<(u32, Option<SeenAs>)> {
        let slot = self.slot_spelled(id)?;
        Some((slot, self.scopes.seen_in(viewer, self.scope_in(slot))))
    }

    /// The scope of the record of an id, spelled likewise, if it is somebody's own.
    pub fn own_scope(&self, viewer: &Viewer, id: &[u8]) -> Option<u32> {
        let scope = self.scope_in(self.slot_spelled(id)?);
        (self.scopes.seen_in(viewer, scope) == Some(SeenAs::Own)).then_some(scope)
    }

    /// The canonical record of an id, if somebody sees it.
    pub fn get_seen(&self, viewer: &Viewer, id: &str) -> Option<Cow<'_, [u8]>> {
        let slot = self.slot_of(id)?;
        self.is_seen(viewer, slot).then(|| self.record_in(slot))
    }

    /// Whether somebody sees the record in a slot.
    pub(super) fn is_seen(&self, viewer: &Viewer, slot: u32) -> bool {
        let class = self.catalog.class_of(self.slots.class(slot));
        let scope = self.scope_in(slot);
        self.scopes.seen_in(viewer, scope).is_some()
            && (!self.scopes.is_expired(scope) || viewer.sees_expired())
            && (!is_of_store(&class.kind, class.face) || self.sight(viewer).is_of_all_scopes())
    }

    /// The slots that have expired and are not seen, where all else is.
    pub(super) fn hidden_in<'a>(&'a self, sight: &'a Sight) -> impl Iterator<Item = u32> + 'a {
        sight.without().iter().flat_map(|&scope| self.scopes.slots(scope))
    }

    /// How many of the records that somebody sees are in doubt, and the ids of those that lost events name.
    pub fn in_doubt(&self, viewer: &Viewer) -> (u64, Vec<String>) {
        let (mut records, mut named) = (0, Vec::new());
        let slots = self.order.doubts.iter().flat_map(|_| 0..self.slots.len() as u32);
        for slot in slots.filter(|&slot| self.slots.class(slot) != NO_CLASS && self.is_seen(viewer, slot)) {
            let doubt = self.moments_of(slot).doubt;
            records += u64::from(doubt != Doubt::None);
            if doubt == Doubt::Named {
                named.push(unspelled(&self.id_of(slot)));
            }
        }
        (records, named)
    }

    /// The ids of all records that a lost event names.
    pub fn named_by_lost_events(&self) -> Vec<String> {
        let slots = self.order.doubts.iter().flat_map(|_| 0..self.slots.len() as u32);
        let is_named = |slot: &u32| self.moments_of(*slot).doubt == Doubt::Named;
        slots
            .filter(is_named)
            .map(|slot| unspelled(&self.id_of(slot)))
            .collect()
    }

    /// How many records of each kind and status somebody sees.
    pub fn tally(&self, viewer: &Viewer) -> Vec<Tally> {
        let sight = self.sight(viewer);
        let Some(seen) = self.scopes.seen(&sight) else {
            let mut tally = self.catalog.tally();
            for slot in self.hidden_in(&sight) {
                let class = self.catalog.class_of(self.slots.class(slot));
                let is_it = |one: &&mut Tally| {
                    *one.kind == *class.kind && *one.status == *class.status && one.face == class.face
                };
                if let Some(one) = tally.iter_mut().find(is_it) {
                    one.records -= 1;
                }
            }
            tally.retain(|one| one.records > 0);
            return tally;
        };
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        let is_counted = |slot: &u32| {
            let class = self.catalog.class_of(self.slots.class(*slot));
            !is_of_store(&class.kind, class.face)
        };
        for slot in seen.into_iter().filter(is_counted) {
            *counts.entry(self.slots.class(slot)).or_default() += 1;
        }
        let tally = counts.into_iter().map(|(class, records)| {
            let class = self.catalog.class_of(class);
            Tally {
                kind: class.kind.to_vec(),
                status: class.status.to_vec(),
                face: class.face,
                records,
            }
        });
        tally.collect()
    }
}
