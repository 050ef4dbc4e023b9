//! The network as a walk sees it: one step from an end to those that it is joined to.

use crate::index::{OrderedIndex, field};
use crate::state::{Sight, State, unspelled};
use chronolog::event::faces::Network;
use chronolog::scope::Viewer;

/// Which way a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From source to target.
    Out,
    /// From target to source.
    In,
    /// Either way.
    Both,
}

impl Direction {
    /// The way back.
    #[must_use]
    pub fn back(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
            Self::Both => Self::Both,
        }
    }
}

/// Which steps are taken.
#[derive(Clone, Debug)]
pub struct Steps {
    /// Which way.
    pub direction: Direction,
    /// The kinds of what joins, as canonical JSON; `None` for all.
    pub kinds: Option<Vec<Vec<u8>>>,
    /// The kinds of the ends that are entered, likewise.
    pub end_kinds: Option<Vec<Vec<u8>>>,
}

/// A network in a state, as somebody sees it.
#[derive(Debug)]
pub struct Net<'a> {
    state: &'a State,
    network: &'static Network,
    by_source: &'a OrderedIndex,
    by_target: &'a OrderedIndex,
    ends: &'a OrderedIndex,
    sight: Sight,
    steps: &'a Steps,
}

impl<'a> Net<'a> {
    /// A network over its three indexes, which know the state: by source, by target, and of the ends.
    pub fn new(
        state: &'a State,
        network: &'static Network,
        [by_source, by_target, ends]: [&'a OrderedIndex; 3],
        viewer: &Viewer,
        steps: &'a Steps,
    ) -> Self {
        Self {
            state,
            network,
            by_source,
            by_target,
            ends,
            sight: state.sight(viewer),
            steps,
        }
    }

    /// The slot of an end by how it is called; `None` if it does not count.
    pub fn end(&self, name: &str) -> Option<u32> {
        let slot = self.state.slots.of_id(&format!("{}{name}", self.network.prefix))?;
        self.counts(slot).then_some(slot)
    }

    /// How an end is called.
    pub fn name(&self, slot: u32) -> String {
        let id = self.state.slots.id(slot);
        unspelled(id.strip_prefix(self.network.prefix.as_bytes()).unwrap_or(&id))
    }

    /// The id of the record in a slot.
    pub fn id(&self, slot: u32) -> String {
        unspelled(&self.state.slots.id(slot))
    }

    /// Every end that may be entered.
    pub fn all_ends(&self) -> impl Iterator<Item = u32> {
        self.ends
            .keys
            .all_slots()
            .filter(|&slot| self.sees(slot) && self.may_enter(slot))
    }

    /// Both ends of everything that joins two that may be entered.
    pub fn all_joined(&self) -> impl Iterator<Item = (u32, u32)> {
        let of = |slot, index: &OrderedIndex| self.far_end(slot, index);
        self.by_source
            .keys
            .all_slots()
            .filter(|&slot| self.passes(slot))
            .filter_map(move |slot| Some((of(slot, self.by_source)?, of(slot, self.by_target)?)))
    }

    /// What joins an end to which others, by the names of what joins; from source to target first.
    pub fn steps_from(&self, end: u32, direction: Direction) -> Vec<(u32, u32)> {
        let id = self.state.slots.id(end);
        let name = id.strip_prefix(self.network.prefix.as_bytes()).unwrap_or(&id);
        let value = [b"\"", name, b"\""].concat();
        let mut found = Vec::new();
        let mut follow = |near: &OrderedIndex, far: &OrderedIndex| {
            for joint in near.under(&value).filter(|&joint| self.passes(joint)) {
                found.extend(self.far_end(joint, far).map(|end| (joint, end)));
            }
        };
        if direction != Direction::In {
            follow(self.by_source, self.by_target);
        }
        if direction != Direction::Out {
            follow(self.by_target, self.by_source);
        }
        found
    }

    /// Which way the steps go that are asked for.
    pub fn direction(&self) -> Direction {
        self.steps.direction
    }

    /// The end that a record names in the field of an index, if it may be entered.
    fn far_end(&self, joint: u32, index: &OrderedIndex) -> Option<u32> {
        let path = index.declared.by.first()?;
        let record = self.state.slots.record(joint);
        let value = field(&record, path)?;
        let name = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        let slot = self
            .state
            .slots
            .of_spelled(&[self.network.prefix.as_bytes(), name].concat())?;
        (self.counts(slot) && self.may_enter(slot)).then_some(slot)
    }

    fn sees(&self, slot: u32) -> bool {
        self.sight.sees(self.state.scope_in(slot))
    }

    fn counts(&self, slot: u32) -> bool {
        self.ends.keys.has(slot) && self.sees(slot)
    }

    fn passes(&self, joint: u32) -> bool {
        let is_kind = |kinds: &[Vec<u8>]| is_among(kinds, field(&self.state.slots.record(joint), self.network.kind));
        self.sees(joint) && self.steps.kinds.as_deref().is_none_or(is_kind)
    }

    fn may_enter(&self, end: u32) -> bool {
        let path = self.ends.declared.by.first();
        let is_kind = |kinds: &[Vec<u8>]| {
            let record = self.state.slots.record(end);
            is_among(kinds, path.and_then(|path| field(&record, path)))
        };
        self.steps.end_kinds.as_deref().is_none_or(is_kind)
    }
}

fn is_among(kinds: &[Vec<u8>], kind: Option<&[u8]>) -> bool {
    kind.is_some_and(|kind| kinds.iter().any(|known| known == kind))
}
