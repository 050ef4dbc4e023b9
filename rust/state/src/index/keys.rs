//! One list of keys over all records of a state: what the key files of segments have, and what is in memory.
//!
//! An entry of a segment counts if no newer segment has a row of its slot and the memory has not looked at it.

use std::iter::Peekable;
use std::ops::{Bound, Range};
use std::sync::{Arc, OnceLock};

use roaring::RoaringBitmap;

use super::list::KeyList;
use super::memory::{MemoryKeys, is_same};
use super::sealed::{KEYS, SealedKeys, names_in, names_to_bytes};
use crate::condition::KeyRange;
use crate::segment::Sealed;
use crate::state::State;
use chronolog::memory::Refused;

/// One list of keys. It knows nothing until it follows a state.
#[derive(Debug)]
pub struct KeyIndex {
    list: KeyList,
    sealed: Option<Arc<Sealed>>,
    parts: Vec<Part>,
    of_all: MemoryKeys,
    /// The same keys behind the number of the scope; empty until it is needed.
    by_scope: MemoryKeys,
    /// The slots with keys in segments, superseded ones included.
    members: OnceLock<RoaringBitmap>,
}

/// The keys of one segment.
#[derive(Debug)]
struct Part {
    segment: u32,
    keys: SealedKeys,
    /// The scopes of the state, each with its place in the names of the segment.
    scopes: Vec<(u32, u32)>,
}

/// A key and a slot that has it.
type Entry<'a> = (&'a [u8], u32);

impl KeyIndex {
    /// A list that knows nothing yet.
    pub fn new(list: KeyList) -> Self {
        Self {
            list,
            sealed: None,
            parts: Vec::new(),
            of_all: MemoryKeys::default(),
            by_scope: MemoryKeys::default(),
            members: OnceLock::new(),
        }
    }

    fn memory(&self, is_by_scope: bool) -> &MemoryKeys {
        if is_by_scope { &self.by_scope } else { &self.of_all }
    }

    /// Whether the state has gone on.
    pub fn is_behind(&self, state: &State, is_by_scope: bool) -> bool {
        self.memory(is_by_scope).is_behind(state)
    }

    /// Takes in what changed in the state. Where the keys of a segment are not in a file yet, they are written together with those of the
    /// lists `beside` this one.
    ///
    /// # Errors
    /// `Refused` if there is no memory for it.
    pub fn follow(&mut self, state: &State, is_by_scope: bool, beside: &[KeyList]) -> Result<(), Refused> {
        if !is_same(self.sealed.as_ref(), state.sealed()) {
            self.parts = self.parts_of(state, beside)?;
            self.sealed = state.sealed().cloned();
            self.members = OnceLock::new();
        }
        match is_by_scope {
            true => self.by_scope.follow(state, &self.list, true),
            false => self.of_all.follow(state, &self.list, false),
        }
    }

    /// The keys of each segment. If a check fails some are missing, and the mark of the state is set.
    fn parts_of(&self, state: &State, beside: &[KeyList]) -> Result<Vec<Part>, Refused> {
        let Some(sealed) = state.sealed() else {
            return Ok(Vec::new());
        };
        let name = self.list.name();
        let choose = |known: Option<&[u8]>| {
            let mut names = known.map_or_else(Vec::new, names_in);
            if names.contains(&name) {
                return None;
            }
            // Fields of which no index is declared any more are left out.
            let is_field = |name: &str| KeyList::named(name).is_none_or(|list| list.is_of_field());
            names.retain(|name| !self.list.is_of_field() || !is_field(name));
            names.extend(beside.iter().map(KeyList::name).chain([name.clone()]));
            names.sort_unstable();
            names.dedup();
            Some(names_to_bytes(&names))
        };
        let mut parts = Vec::new();
        for (number, scopes) in state.sealed_scopes().iter().enumerate() {
            let file = sealed.family(number, &KEYS, &choose)?;
            let Some(keys) = file.and_then(|file| SealedKeys::open(file, &name)) else {
                continue;
            };
            let mut scopes: Vec<(u32, u32)> = scopes.iter().copied().zip(0..).collect();
            scopes.sort_unstable();
            parts.push(Part {
                segment: number as u32,
                keys,
                scopes,
            });
        }
        Ok(parts)
    }

    /// Whether an entry of a segment is not superseded.
    fn counts(&self, part: &Part, slot: u32, is_by_scope: bool) -> bool {
        let sealed = self.sealed.as_ref();
        sealed.is_some_and(|sealed| sealed.place(slot).0 == part.segment) && !self.memory(is_by_scope).owns(slot)
    }

    /// Whether no entry of any segment is superseded.
    fn is_whole(&self, is_by_scope: bool) -> bool {
        let sealed = self.sealed.as_ref();
        sealed.is_none_or(|sealed| !sealed.has_replaced() && !self.memory(is_by_scope).owns_before(sealed.slots()))
    }

    /// The slots that have a key in some ranges, in some scopes or in all, together with where they are found.
    fn places<'a>(&'a self, state: &'a State, ranges: &'a [KeyRange], scopes: Option<&'a [u32]>) -> Places<'a> {
        Places {
            index: self,
            state,
            ranges,
            scopes,
        }
    }

    /// How many slots stand in some ranges of keys, one in several of them counted for each; `None` if it is `most` or more, or takes more
    /// than so many keys to tell. Only those of some scopes count, if scopes are given.
    pub fn count_below(
        &self,
        state: &State,
        ranges: &[KeyRange],
        scopes: Option<&[u32]>,
        most: u64,
        most_keys: usize,
    ) -> Option<u64> {
        self.places(state, ranges, scopes).count_below(most, most_keys)
    }

    /// The slots that stand in some ranges of keys, of some scopes if scopes are given.
    pub fn slots(&self, state: &State, ranges: &[KeyRange], scopes: Option<&[u32]>) -> RoaringBitmap {
        self.places(state, ranges, scopes).slots()
    }

    /// All entries from one key to before another, in order, or the other way round.
    pub fn entries<'a>(&'a self, range: &KeyRange, reverse: bool) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let mut sources = Vec::new();
        for part in &self.parts {
            let keys = part.keys.keys_in(range);
            let slots_of = move |at: u32| {
                let key = part.keys.key(at);
                let places = part.keys.places_of(&(at..at + 1));
                directed(places, reverse).map(move |place| (key, part.keys.slot(place)))
            };
            let entries = directed(keys, reverse).flat_map(slots_of);
            let entries: Entries<'_> = Box::new(entries.filter(|(_, slot)| self.counts(part, *slot, false)));
            sources.push(entries.peekable());
        }
        let slots_of = move |(key, slots): (&'a [u8], &'a RoaringBitmap)| {
            directed(slots.iter(), reverse).map(move |slot| (key, slot))
        };
        let entries: Entries<'_> = Box::new(directed(self.of_all.between(range), reverse).flat_map(slots_of));
        sources.push(entries.peekable());
        Merged { sources, reverse }
    }

    /// Whether a slot has a key.
    pub fn has(&self, slot: u32) -> bool {
        self.of_all.has(slot) || (!self.of_all.owns(slot) && self.members().contains(slot))
    }

    /// Every slot that has a key, in no order.
    pub fn all_slots(&self) -> impl Iterator<Item = u32> {
        let sealed = self.members().iter().filter(|slot| !self.of_all.owns(*slot));
        sealed.chain(self.of_all.slots())
    }

    fn members(&self) -> &RoaringBitmap {
        self.members.get_or_init(|| {
            let of_part = |part: &Part| {
                let slots = (0..part.keys.len()).map(|place| part.keys.slot(place));
                gathered(slots.filter(|slot| self.sealed_in(part, *slot)).collect())
            };
            self.parts
                .iter()
                .map(of_part)
                .fold(RoaringBitmap::new(), |all, own| all | own)
        })
    }

    fn sealed_in(&self, part: &Part, slot: u32) -> bool {
        let sealed = self.sealed.as_ref();
        sealed.is_some_and(|sealed| sealed.place(slot).0 == part.segment)
    }
}

type Entries<'a> = Box<dyn Iterator<Item = Entry<'a>> + 'a>;

/// An iterator, or the same backwards.
fn directed<I: DoubleEndedIterator>(items: I, reverse: bool) -> impl Iterator<Item = I::Item> {
    let (mut forward, mut back) = match reverse {
        false => (Some(items), None),
        true => (None, Some(items)),
    };
    std::iter::from_fn(move || match &mut forward {
        Some(items) => items.next(),
        None => back.as_mut()?.next_back(),
    })
}

fn gathered(mut slots: Vec<u32>) -> RoaringBitmap {
    slots.sort_unstable();
    slots.dedup();
    slots.into_iter().collect()
}

/// Entries of several sources in their order.
struct Merged<'a> {
    sources: Vec<Peekable<Entries<'a>>>,
    reverse: bool,
}

impl<'a> Iterator for Merged<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let mut first: Option<(usize, Entry<'a>)> = None;
        for (at, source) in self.sources.iter_mut().enumerate() {
            if let Some(&entry) = source.peek()
                && first.is_none_or(|(_, before)| (entry < before) != self.reverse)
            {
                first = Some((at, entry));
            }
        }
        self.sources[first?.0].next()
    }
}

/// Some ranges of keys in some scopes, or in all.
struct Places<'a> {
    index: &'a KeyIndex,
    state: &'a State,
    ranges: &'a [KeyRange],
    scopes: Option<&'a [u32]>,
}

impl Places<'_> {
    /// Shows each range of places in segments: the part, how many keys it has, the places, and the scope.
    fn each_sealed(&self, mut see: impl FnMut(&Part, u32, Range<u32>, Option<u32>) -> bool) -> bool {
        for part in &self.index.parts {
            for range in self.ranges {
                let keys = part.keys.keys_in(range);
                let goes_on = match self.scopes {
                    None => see(part, keys.end - keys.start, part.keys.places_of(&keys), None),
                    Some(_) if keys.is_empty() => true,
                    Some(scopes) => scopes.iter().all(|&scope| {
                        let living = self.state.living_scope(scope);
                        let first = part.scopes.partition_point(|(number, _)| *number < living);
                        let locals = part.scopes[first..].iter().take_while(|(number, _)| *number == living);
                        locals.into_iter().all(|(_, local)| {
                            let places = part.keys.scope_places_of(*local, &keys);
                            see(
                                part,
                                (keys.end - keys.start).min(places.end - places.start),
                                places,
                                Some(scope),
                            )
                        })
                    }),
                };
                if !goes_on {
                    return false;
                }
            }
        }
        true
    }

    /// Shows the slots of each key in memory.
    fn each_in_memory(&self, mut see: impl FnMut(&RoaringBitmap) -> bool) -> bool {
        let memory = self.index.memory(self.scopes.is_some());
        let mut see_range = |range: &KeyRange| memory.between(range).all(|(_, slots)| see(slots));
        match self.scopes {
            None => self.ranges.iter().all(see_range),
            Some(scopes) => scopes.iter().all(|&scope| {
                let inside =
                    |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| [&scope.to_be_bytes()[..], key].concat());
                let ranges = self.ranges.iter();
                let mut ranges = ranges.map(|(from, until)| (inside(from), inside(until)));
                ranges.all(|range| see_range(&range))
            }),
        }
    }

    /// The slots of some places that are not superseded and are in the scope.
    fn slots_at<'a>(
        &'a self,
        part: &'a Part,
        places: Range<u32>,
        scope: Option<u32>,
    ) -> impl Iterator<Item = u32> + use<'a> {
        let has_expired = self.state.has_expired_scopes();
        let slots = places.map(move |place| match scope {
            None => part.keys.slot(place),
            Some(_) => part.keys.scope_slot(place),
        });
        slots.filter(move |&slot| {
            self.index.counts(part, slot, scope.is_some())
                && scope.is_none_or(|scope| !has_expired || self.state.scope_in(slot) == scope)
        })
    }

    fn count_below(&self, most: u64, most_keys: usize) -> Option<u64> {
        let is_whole =
            self.index.is_whole(self.scopes.is_some()) && (self.scopes.is_none() || !self.state.has_expired_scopes());
        let (mut count, mut keys) = (0, 0);
        let goes_on = self.each_sealed(|part, of_keys, places, scope| {
            count += match is_whole {
                true => u64::from(places.end - places.start),
                false => self
                    .slots_at(part, places, scope)
                    .take(usize::try_from(most - count).unwrap_or(usize::MAX))
                    .count() as u64,
            };
            keys += of_keys as usize;
            count < most && keys <= most_keys
        });
        let goes_on = goes_on
            && self.each_in_memory(|slots| {
                count += slots.len();
                keys += 1;
                count < most && keys <= most_keys
            });
        (goes_on && count < most).then_some(count)
    }

    fn slots(&self) -> RoaringBitmap {
        let mut sealed = Vec::new();
        self.each_sealed(|part, _, places, scope| {
            sealed.extend(self.slots_at(part, places, scope));
            true
        });
        let mut found = gathered(sealed);
        self.each_in_memory(|slots| {
            found |= slots;
            true
        });
        found
    }
}
