//! Lists and counts the records of each kind and status.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};

use roaring::RoaringBitmap;

use crate::segment::ClassName;
use chronolog::event::faces::{is_of_store, is_told};

/// A kind and a status that some records share, and whether those belong to a face.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// The kind, as canonical JSON text between quotes.
    pub kind: Box<[u8]>,
    /// The status, likewise.
    pub status: Box<[u8]>,
    /// Whether they belong to a face.
    pub face: bool,
}

impl Class {
    pub(super) fn name(&self) -> ClassName {
        (self.kind.to_vec(), self.status.to_vec(), self.face)
    }

    /// Whether its records are about the store itself: they belong to no scope.
    pub(super) fn is_of_store(&self) -> bool {
        is_of_store(&self.kind, self.face)
    }

    /// Whether viewers who do not see all scopes are told of events about its records.
    pub(super) fn is_told(&self) -> bool {
        is_told(&self.kind, self.face)
    }
}

/// Sets of slots by class. Slots are numbered by insertion, so every set is in insertion order.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    classes: Vec<(Class, RoaringBitmap)>,
    numbers: HashMap<Class, u32>,
    /// Neighbours in the log mostly share their class.
    last: u32,
}

impl Catalog {
    /// The number of a class, new if no record was in it before.
    pub(super) fn number(&mut self, kind: &[u8], status: &[u8], face: bool) -> u32 {
        let last = self.classes.get(self.last as usize);
        if last.is_some_and(|(last, _)| last.face == face && *last.kind == *kind && *last.status == *status) {
            return self.last;
        }
        let class = Class {
            kind: kind.into(),
            status: status.into(),
            face,
        };
        let next = self.classes.len() as u32;
        self.last = *self.numbers.entry(class.clone()).or_insert(next);
        if self.last == next {
            self.classes.push((class, RoaringBitmap::new()));
        }
        self.last
    }

    pub(super) fn class_of(&self, number: u32) -> &Class {
        &self.classes[number as usize].0
    }

    pub(super) fn classes(&self) -> Vec<Class> {
        self.classes.iter().map(|(class, _)| class.clone()).collect()
    }

    pub(super) fn add(&mut self, class: u32, slot: u32) {
        self.classes[class as usize].1.insert(slot);
    }

    /// Takes slots out of all classes, because newer rows of them follow.
    pub(super) fn forget_slots(&mut self, slots: &RoaringBitmap) {
        self.classes.iter_mut().for_each(|(_, members)| *members -= slots);
    }

    /// Puts slots of a segment into a class.
    pub(super) fn add_slots(&mut self, class: u32, slots: &RoaringBitmap) {
        self.classes[class as usize].1 |= slots;
    }

    pub(super) fn remove(&mut self, class: u32, slot: u32) {
        self.classes[class as usize].1.remove(slot);
    }

    /// The slots of all classes that `wanted` accepts, in insertion order.
    pub fn slots<'a>(&'a self, wanted: impl Fn(&Class) -> bool) -> impl Iterator<Item = u32> + 'a {
        Merged::of(self.sets(wanted).map(RoaringBitmap::iter).collect())
    }

    /// Those of them from one on.
    pub(super) fn slots_from<'a>(
        &'a self,
        wanted: impl Fn(&Class) -> bool,
        first: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        Merged::of(self.sets(wanted).map(|slots| slots.range(first..)).collect())
    }

    /// Those of them before one, the last first.
    pub(super) fn slots_before<'a>(
        &'a self,
        wanted: impl Fn(&Class) -> bool,
        end: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        // Of numbers that are turned over the lowest is the last.
        let turned = self
            .sets(wanted)
            .map(|slots| slots.range(..end).rev().map(|slot| !slot));
        Merged::of(turned.collect()).map(|slot| !slot)
    }

    fn sets(&self, wanted: impl Fn(&Class) -> bool) -> impl Iterator<Item = &RoaringBitmap> {
        let wanted = self.classes.iter().filter(move |(class, _)| wanted(class));
        wanted.map(|(_, slots)| slots)
    }

    /// Which classes `wanted` accepts, by their numbers.
    pub(super) fn accepted(&self, wanted: impl Fn(&Class) -> bool) -> Vec<bool> {
        self.classes.iter().map(|(class, _)| wanted(class)).collect()
    }

    /// How many records `wanted` accepts.
    pub fn count(&self, wanted: impl Fn(&Class) -> bool) -> u64 {
        self.sets(wanted).map(RoaringBitmap::len).sum()
    }

    /// How many records each class has, by their numbers.
    pub(super) fn sizes(&self) -> Vec<u64> {
        self.classes.iter().map(|(_, slots)| slots.len()).collect()
    }
}

/// Several sets in one order: a heap of their next members.
struct Merged<I> {
    sets: Vec<I>,
    heads: BinaryHeap<Reverse<(u32, usize)>>,
}

impl<I: Iterator<Item = u32>> Merged<I> {
    fn of(mut sets: Vec<I>) -> Self {
        let heads = sets
            .iter_mut()
            .enumerate()
            .filter_map(|(at, set)| set.next().map(|slot| Reverse((slot, at))))
            .collect();
        Self { sets, heads }
    }
}

impl<I: Iterator<Item = u32>> Iterator for Merged<I> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((slot, at)) = *head;
        match self.sets[at].next() {
            Some(next) => *head = Reverse((next, at)),
            None => {
                PeekMut::pop(head);
            }
        }
        Some(slot)
    }
}
