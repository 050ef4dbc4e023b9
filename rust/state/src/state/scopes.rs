//! Numbers the scopes that records carry, and lists the slots of each.
//!
//! Every scope that a record carries has a number and a list of its slots, in their order. What somebody sees is a handful
//! of scopes, or all: so a question costs what these hold, however many others there are.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::LazyLock;

use roaring::RoaringBitmap;

use crate::snapshot::Stamp;
use chronolog::scope::{Carried, Scope, SeenAs, Viewer, carried};

/// The scopes that somebody sees in a state, by their numbers. It is good until the state changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sight {
    /// These, ascending; all if there is no list.
    some: Option<Vec<u32>>,
    /// Of all not these, ascending: what has expired.
    without: Vec<u32>,
}

impl Sight {
    /// Everything.
    pub const ALL: Self = Self {
        some: None,
        without: Vec::new(),
    };

    /// These scopes, ascending.
    pub fn of(scopes: Vec<u32>) -> Self {
        Self {
            some: Some(scopes),
            without: Vec::new(),
        }
    }

    /// Whether there is nothing that is not seen.
    #[inline]
    pub fn is_all(&self) -> bool {
        self.some.is_none() && self.without.is_empty()
    }

    /// Whether there is no scope that is not seen, though what has expired in it may not be.
    pub fn is_of_all_scopes(&self) -> bool {
        self.some.is_none()
    }

    /// Whether records of a scope are seen.
    #[inline]
    pub fn sees(&self, scope: u32) -> bool {
        match &self.some {
            Some(some) => some.binary_search(&scope).is_ok(),
            None => self.without.is_empty() || self.without.binary_search(&scope).is_err(),
        }
    }

    /// The scopes that are seen; `None` if all are, but for what has expired.
    pub fn scopes(&self) -> Option<impl ExactSizeIterator<Item = u32> + '_> {
        self.some.as_ref().map(|some| some.iter().copied())
    }

    /// What has expired and is not seen, where all else is.
    pub(super) fn without(&self) -> &[u32] {
        &self.without
    }
}

pub(super) const SHARED: u32 = 0;
const MALFORMED: u32 = 1;
/// How many numbers are given from the start.
const GIVEN: usize = 2;

/// The name of a scope for a segment.
pub(super) fn name_of(scope: &Carried) -> Vec<u8> {
    match scope {
        Carried::Malformed => b"!".to_vec(),
        Carried::Names(scope) if scope.is_shared() => Vec::new(),
        Carried::Names(scope) => scope.spelled(),
    }
}

/// All scopes of a state.
#[derive(Debug)]
pub struct Directory {
    members: Vec<ScopeMembers>,
    /// Numbers by scope, those of an owner together.
    numbers: BTreeMap<Carried, u32>,
    /// Neighbours in the log mostly carry the same.
    last: (Vec<u8>, u32),
    /// The number of the last change of any record that is somebody's or shared.
    changed: usize,
    /// For each scope of which records have expired, the number of what these are in.
    twins: BTreeMap<u32, u32>,
    /// How many records are in those.
    expired: usize,
    /// The last event that spoke of what belongs to nobody.
    unscoped: Stamp,
}

/// What is known of a scope.
#[derive(Clone, Debug)]
struct ScopeMembers {
    scope: Carried,
    /// The slots that carry it.
    slots: RoaringBitmap,
    /// The number of the last change of one of them.
    changed: usize,
    /// The last event that spoke of one of them.
    spoken: Stamp,
    /// The scope that they are of, if these are the expired ones.
    expired_of: Option<u32>,
}

impl ScopeMembers {
    fn of(scope: Carried) -> Self {
        Self {
            scope,
            slots: RoaringBitmap::new(),
            changed: 0,
            spoken: Stamp::UNKNOWN,
            expired_of: None,
        }
    }
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            members: vec![
                ScopeMembers::of(Carried::shared()),
                ScopeMembers::of(Carried::Malformed),
            ],
            numbers: BTreeMap::from([(Carried::shared(), SHARED), (Carried::Malformed, MALFORMED)]),
            last: Default::default(),
            changed: 0,
            twins: BTreeMap::new(),
            expired: 0,
            unscoped: Stamp::UNKNOWN,
        }
    }
}

impl Directory {
    /// The number of the scope that a canonical record carries.
    #[inline]
    pub(super) fn number(&mut self, record: &[u8]) -> u32 {
        match carried(record) {
            None => SHARED,
            Some(value) if *value == *self.last.0 => self.last.1,
            Some(value) => {
                let number = self.number_of(Carried::of_value(value));
                self.last = (value.to_vec(), number);
                number
            }
        }
    }

    fn number_of(&mut self, scope: Carried) -> u32 {
        let next = self.members.len() as u32;
        let number = *self.numbers.entry(scope.clone()).or_insert(next);
        if number == next {
            self.members.push(ScopeMembers::of(scope));
        }
        number
    }

    /// Where the records of a scope are that have expired.
    pub(super) fn twin_of(&mut self, scope: u32) -> u32 {
        if self.members[scope as usize].expired_of.is_some() {
            return scope;
        }
        let next = self.members.len() as u32;
        let twin = *self.twins.entry(scope).or_insert(next);
        if twin == next {
            let expired = ScopeMembers {
                expired_of: Some(scope),
                ..ScopeMembers::of(self.members[scope as usize].scope.clone())
            };
            self.members.push(expired);
        }
        twin
    }

    /// The same where there is one already.
    pub(super) fn known_twin_of(&self, scope: u32) -> u32 {
        self.twins.get(&scope).copied().unwrap_or(scope)
    }

    /// The number of a scope as a segment names it.
    pub(super) fn number_of_name(&mut self, name: &[u8]) -> u32 {
        match name {
            b"" => SHARED,
            b"!" => MALFORMED,
            name => self.number_of(Carried::of_value(name)),
        }
    }

    /// The name of a scope for a segment, and the last event about any of its records.
    pub(super) fn name_of(&self, number: u32) -> (Vec<u8>, Stamp) {
        let members = &self.members[number as usize];
        let twin = self.twins.get(&number).map(|twin| self.members[*twin as usize].spoken);
        let spoken = twin
            .filter(|twin| twin.seq() > members.spoken.seq())
            .unwrap_or(members.spoken);
        (name_of(&members.scope), spoken)
    }

    /// How many records each scope has, expired ones included.
    pub(super) fn sizes(&self) -> BTreeMap<Carried, u64> {
        let mut sizes = BTreeMap::new();
        for members in self.members.iter().filter(|members| !members.slots.is_empty()) {
            *sizes.entry(members.scope.clone()).or_default() += members.slots.len();
        }
        sizes
    }

    /// The last event about a record that only who sees all scopes hears of.
    pub(super) fn unscoped(&self) -> Stamp {
        self.unscoped
    }

    /// Takes slots out of all scopes, because newer rows of them follow.
    pub(super) fn forget_slots(&mut self, slots: &RoaringBitmap) {
        self.members.iter_mut().for_each(|members| members.slots -= slots);
    }

    /// Puts slots of a segment into a scope.
    pub(super) fn add_slots(&mut self, scope: u32, slots: &RoaringBitmap) {
        self.members[scope as usize].slots |= slots;
    }

    /// The scope itself of what may have expired.
    pub(crate) fn living(&self, scope: u32) -> u32 {
        self.members[scope as usize].expired_of.unwrap_or(scope)
    }

    /// Whether the records of this number have expired.
    #[inline]
    pub(super) fn is_expired(&self, scope: u32) -> bool {
        self.members[scope as usize].expired_of.is_some()
    }

    /// Whether any record has expired.
    #[inline]
    pub(crate) fn has_expired(&self) -> bool {
        self.expired > 0
    }

    /// Notes that a slot belongs to a scope.
    pub(super) fn add(&mut self, scope: u32, slot: u32) {
        self.expired += usize::from(self.is_expired(scope));
        self.members[scope as usize].slots.insert(slot);
    }

    /// Notes that a slot belongs to it no more.
    pub(super) fn remove(&mut self, scope: u32, slot: u32) {
        self.expired -= usize::from(self.is_expired(scope));
        self.members[scope as usize].slots.remove(slot);
    }

    /// Notes that a change, of this number, is of a record that belongs to it.
    #[inline]
    pub(super) fn touch(&mut self, scope: u32, change: usize) {
        self.members[scope as usize].changed = change;
        self.changed = change;
    }

    /// Notes that an event spoke of a record that belongs to a scope, or of one that only who sees all scopes hears of.
    #[inline]
    pub(super) fn speak(&mut self, scope: Option<u32>, stamp: Stamp) {
        let spoken = match scope {
            Some(scope) => &mut self.members[scope as usize].spoken,
            None => &mut self.unscoped,
        };
        if stamp.seq() >= spoken.seq() {
            *spoken = stamp;
        }
    }

    /// The number of the last change of what is seen; for a viewer of everything it does not depend on which scopes there are.
    pub fn last_change(&self, sight: &Sight) -> usize {
        match sight.scopes() {
            Some(seen) => seen
                .map(|scope| self.members[scope as usize].changed)
                .max()
                .unwrap_or(0),
            None => self.changed,
        }
    }

    /// The slots of the records of a scope, ascending.
    pub fn slots(&self, scope: u32) -> &RoaringBitmap {
        static NONE: LazyLock<RoaringBitmap> = LazyLock::new(RoaringBitmap::new);
        self.members.get(scope as usize).map_or(&NONE, |members| &members.slots)
    }

    /// The numbers of the scopes that are seen.
    pub fn numbers(&self, sight: &Sight) -> Vec<u32> {
        let all = (0..self.members.len() as u32).filter(|&scope| sight.sees(scope));
        sight.scopes().map_or_else(|| all.collect(), Iterator::collect)
    }

    /// The slots of all scopes that are seen, ascending; `None` if everything is, but for what has expired.
    pub fn seen(&self, sight: &Sight) -> Option<Vec<u32>> {
        let mut slots: Vec<u32> = sight.scopes()?.flat_map(|scope| self.slots(scope)).collect();
        // Some runs that are sorted already: this sort finds them.
        slots.sort();
        Some(slots)
    }

    /// The scopes with records behind this one, in their order, each with the number of its records.
    pub fn listed(&self, after: Option<Scope>) -> impl Iterator<Item = (&Scope, usize)> {
        let start = after.map_or(Bound::Unbounded, |after| Bound::Excluded(Carried::Names(after)));
        let known = self.numbers.range((start, Bound::Unbounded));
        known.filter_map(|(carried, &number)| match carried {
            Carried::Names(scope) => {
                Some((scope, self.slots(number).len() as usize)).filter(|(_, records)| *records > 0)
            }
            Carried::Malformed => None,
        })
    }

    /// How somebody sees the records of a scope; `None` if not at all.
    #[inline]
    pub(super) fn seen_in(&self, viewer: &Viewer, scope: u32) -> Option<SeenAs> {
        // Mostly nobody gives names, and what is asked for carries none.
        if scope == SHARED && viewer.is_plain() {
            return Some(SeenAs::Own);
        }
        viewer.sees(&self.members[scope as usize].scope)
    }

    /// Whether nothing carries a scope, and nothing ever did.
    #[inline]
    pub fn are_all_shared(&self) -> bool {
        self.members.len() == GIVEN + self.twins.len()
            && self.slots(MALFORMED).is_empty()
            && !self.twins.contains_key(&MALFORMED)
    }

    /// Whether there is a record that is somebody's own.
    pub fn knows(&self, viewer: &Viewer) -> bool {
        let has_any = |number: u32| {
            let expired = self
                .twins
                .get(&number)
                .is_some_and(|&twin| !self.slots(twin).is_empty());
            expired || !self.slots(number).is_empty()
        };
        let is_known = |number: &u32| self.seen_in(viewer, *number) == Some(SeenAs::Own) && has_any(*number);
        match viewer.choose(&self.numbers) {
            Some(seen) => seen.iter().any(is_known),
            // Whoever sees all need not gather it: the first will do.
            None => self.numbers.values().any(is_known),
        }
    }

    /// The scopes of somebody's own that name a session, ascending.
    pub fn in_sessions(&self, viewer: &Viewer) -> Vec<u32> {
        let mut numbers = self.numbers(&self.sight(viewer));
        numbers.sort_unstable();
        numbers.retain(|&number| {
            let scope = &self.members[number as usize].scope;
            matches!(scope, Carried::Names(scope) if scope.names()[2].is_some())
                && self.seen_in(viewer, number) == Some(SeenAs::Own)
        });
        numbers
    }

    /// Seq and moment of the last event about anything that a viewer sees. Another version has others, also after the state was loaded again.
    pub fn seen_version(&self, viewer: &Viewer) -> (u64, i64) {
        let sight = self.sight(viewer);
        let spoken = self.numbers(&sight).into_iter();
        let spoken = spoken.map(|scope| self.members[scope as usize].spoken);
        let unscoped = sight.is_of_all_scopes().then_some(self.unscoped);
        let last = spoken.chain(unscoped).max_by_key(Stamp::seq).unwrap_or(Stamp::UNKNOWN);
        (last.seq().unwrap_or(0), last.micros().unwrap_or(0))
    }

    /// The slots that have expired and that a viewer does not see for that reason; `None` if there are none.
    pub fn hidden_from(&self, viewer: &Viewer) -> Option<RoaringBitmap> {
        let hides = !viewer.sees_expired() && self.has_expired();
        hides.then(|| self.twins.values().flat_map(|&twin| self.slots(twin)).collect())
    }

    /// The slots of the records whose scope is meant, also of those that have expired.
    pub fn slots_within(&self, is_meant: impl Fn(&Scope) -> bool) -> Vec<u32> {
        let meant = self.members.iter().filter(|members| match &members.scope {
            Carried::Names(scope) => is_meant(scope),
            Carried::Malformed => false,
        });
        meant.flat_map(|members| &members.slots).collect()
    }

    /// What somebody sees.
    pub fn sight(&self, viewer: &Viewer) -> Sight {
        let is_all = viewer.is_plain() && self.are_all_shared();
        let seen = if is_all { None } else { viewer.choose(&self.numbers) };
        let Some(mut seen) = seen else {
            return match self.has_expired() && !viewer.sees_expired() {
                true => {
                    let mut without: Vec<u32> = self.twins.values().copied().collect();
                    without.sort_unstable();
                    Sight { some: None, without }
                }
                false => Sight::ALL,
            };
        };
        if viewer.sees_expired() {
            let twins: Vec<u32> = seen.iter().filter_map(|scope| self.twins.get(scope)).copied().collect();
            seen.extend(twins);
        }
        seen.sort_unstable();
        Sight::of(seen)
    }
}
