//! Lists and counts the records of each kind and status.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use roaring::RoaringBitmap;

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

/// How many records are of one kind and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The kind, as canonical JSON text between quotes.
    pub kind: Vec<u8>,
    /// The status, likewise.
    pub status: Vec<u8>,
    /// Whether they belong to a face.
    pub face: bool,
    /// How many there are.
    pub records: u64,
}

/// Sets of slots by class. Slots are numbered by insertion, so every set is in insertion order.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    classes: Vec<(Class, RoaringBitmap)>,
    numbers: HashTable<u32>,
    hasher: RandomState,
    /// Neighbours in the log mostly share their class.
    last: u32,
}

impl Catalog {
    /// The number of a class, new if nobody was in it before.
    pub fn class(&mut self, kind: &[u8], status: &[u8], face: bool) -> u32 {
        if let Some((last, _)) = self.classes.get(self.last as usize)
            && last.face == face
            && *last.kind == *kind
            && *last.status == *status
        {
            return self.last;
        }
        let hash = self.hasher.hash_one((kind, status, face));
        let Self {
            classes,
            numbers,
            hasher,
            ..
        } = self;
        let is_it = |number: &u32| {
            let class = &classes[*number as usize].0;
            class.face == face && *class.kind == *kind && *class.status == *status
        };
        self.last = match numbers.find(hash, is_it) {
            Some(number) => *number,
            None => {
                let number = classes.len() as u32;
                let class = Class {
                    kind: kind.into(),
                    status: status.into(),
                    face,
                };
                classes.push((class, RoaringBitmap::new()));
                numbers.insert_unique(hash, number, |number| {
                    let class = &classes[*number as usize].0;
                    hasher.hash_one((&*class.kind, &*class.status, class.face))
                });
                number
            }
        };
        self.last
    }

    /// The class of this number.
    pub fn class_of(&self, number: u32) -> &Class {
        &self.classes[number as usize].0
    }

    /// All classes by their numbers.
    pub fn classes(&self) -> Vec<Class> {
        self.classes.iter().map(|(class, _)| class.clone()).collect()
    }

    /// Puts a slot into a class.
    pub fn add(&mut self, class: u32, slot: u32) {
        self.classes[class as usize].1.insert(slot);
    }

    /// Takes slots out of all classes, because newer rows of them follow.
    pub fn forget_slots(&mut self, slots: &RoaringBitmap) {
        self.classes.iter_mut().for_each(|(_, members)| *members -= slots);
    }

    /// Puts slots of a segment into a class.
    pub fn add_slots(&mut self, class: u32, slots: &RoaringBitmap) {
        self.classes[class as usize].1 |= slots;
    }

    /// Takes a slot out of a class.
    pub fn remove(&mut self, class: u32, slot: u32) {
        self.classes[class as usize].1.remove(slot);
    }

    /// The slots of all classes that `wanted` accepts, in insertion order.
    pub fn slots<'a>(&'a self, wanted: impl Fn(&[u8], &[u8], bool) -> bool) -> impl Iterator<Item = u32> + 'a {
        Merged::of(self.sets(wanted).map(RoaringBitmap::iter).collect())
    }

    /// Those of them from one on.
    pub fn slots_from<'a>(
        &'a self,
        wanted: impl Fn(&[u8], &[u8], bool) -> bool,
        first: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        Merged::of(self.sets(wanted).map(|slots| slots.range(first..)).collect())
    }

    /// Those of them before one, the last first.
    pub fn slots_before<'a>(
        &'a self,
        wanted: impl Fn(&[u8], &[u8], bool) -> bool,
        end: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        // Of numbers that are turned over the lowest is the last.
        let turned = self
            .sets(wanted)
            .map(|slots| slots.range(..end).rev().map(|slot| !slot));
        Merged::of(turned.collect()).map(|slot| !slot)
    }

    fn sets(&self, wanted: impl Fn(&[u8], &[u8], bool) -> bool) -> impl Iterator<Item = &RoaringBitmap> {
        let classes = self.classes.iter();
        classes
            .filter(move |(class, _)| wanted(&class.kind, &class.status, class.face))
            .map(|(_, slots)| slots)
    }

    /// Which classes `wanted` accepts, by their numbers.
    pub fn accepted(&self, wanted: impl Fn(&[u8], &[u8], bool) -> bool) -> Vec<bool> {
        self.classes
            .iter()
            .map(|(class, _)| wanted(&class.kind, &class.status, class.face))
            .collect()
    }

    /// How many records `wanted` accepts.
    pub fn count(&self, wanted: impl Fn(&[u8], &[u8], bool) -> bool) -> u64 {
        self.classes
            .iter()
            .filter(|(class, _)| wanted(&class.kind, &class.status, class.face))
            .map(|(_, slots)| slots.len())
            .sum()
    }

    /// All classes that have records.
    pub fn tally(&self) -> Vec<Tally> {
        self.classes
            .iter()
            .filter(|(_, slots)| !slots.is_empty())
            .map(|(class, slots)| Tally {
                kind: class.kind.to_vec(),
                status: class.status.to_vec(),
                face: class.face,
                records: slots.len(),
            })
            .collect()
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
