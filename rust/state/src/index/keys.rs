//! One list of keys over all records of a state: what the key files of segments have, and what is in memory.
//!
//! An entry of a segment counts if no newer segment has a row of its slot and the memory has not looked at it.

use std::borrow::Cow;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use roaring::RoaringBitmap;

use super::list::KeyList;
use super::memory::{MemoryKeys, is_same};
use super::sealed::{SealedKeys, key_file};
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
    memory: MemoryKeys,
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

/// Some ranges of keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyQuery<'a> {
    /// The ranges.
    pub ranges: &'a [KeyRange],
    /// Only records of these scopes, if there is a list.
    pub scopes: Option<&'a [u32]>,
}

/// Where some slots are in a segment, how many keys they have at most, and in which scope they are wanted.
struct Places<'a> {
    part: &'a Part,
    keys: usize,
    places: Range<u32>,
    scope: Option<u32>,
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
            memory: MemoryKeys::default(),
            members: OnceLock::new(),
        }
    }

    /// Whether the state has gone on.
    pub fn is_behind(&self, state: &State) -> bool {
        self.memory.is_behind(state)
    }

    /// Takes in what changed in the state. Where the keys of a segment are not in a file yet, they are written together with those of the
    /// lists `beside` this one.
    ///
    /// # Errors
    /// `Refused` if there is no memory for it.
    pub fn follow(&mut self, state: &State, beside: &[KeyList]) -> Result<(), Refused> {
        if !is_same(self.sealed.as_ref(), state.slots.sealed()) {
            self.parts = self.parts_of(state, beside)?;
            self.sealed = state.slots.sealed().cloned();
            self.members = OnceLock::new();
        }
        self.memory.follow(state, &self.list)
    }

    /// The keys of each segment. If a check fails some are missing, and the mark of the state is set.
    fn parts_of(&self, state: &State, beside: &[KeyList]) -> Result<Vec<Part>, Refused> {
        let Some(sealed) = state.slots.sealed() else {
            return Ok(Vec::new());
        };
        let name = self.list.name();
        let choose = |mut names: Vec<String>| {
            if names.contains(&name) {
                return None;
            }
            // Fields of which no index is declared any more are left out.
            let is_field = |name: &str| KeyList::named(name).is_none_or(|list| list.is_of_field());
            names.retain(|name| !self.list.is_of_field() || !is_field(name));
            names.extend(beside.iter().map(KeyList::name).chain([name.clone()]));
            names.sort_unstable();
            names.dedup();
            Some(names)
        };
        let mut parts = Vec::new();
        for (number, scopes) in state.slots.sealed_scopes().iter().enumerate() {
            let file = key_file(sealed, number, &choose)?;
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
    fn counts(&self, part: &Part, slot: u32) -> bool {
        self.is_newest(part, slot) && !self.memory.owns(slot)
    }

    /// Whether no newer segment has a row of a slot.
    fn is_newest(&self, part: &Part, slot: u32) -> bool {
        let sealed = self.sealed.as_ref();
        sealed.is_some_and(|sealed| sealed.place(slot).0 == part.segment)
    }

    /// Whether no entry of any segment is superseded.
    fn is_whole(&self) -> bool {
        let sealed = self.sealed.as_ref();
        sealed.is_none_or(|sealed| !sealed.has_replaced() && !self.memory.owns_before(sealed.slots()))
    }

    /// Where the slots of a range of keys are in segments.
    fn sealed_places(&self, state: &State, wanted: &KeyQuery<'_>) -> Vec<Places<'_>> {
        let mut found = Vec::new();
        for (part, range) in self
            .parts
            .iter()
            .flat_map(|part| wanted.ranges.iter().map(move |range| (part, range)))
        {
            let keys = part.keys.keys_in(range);
            let mut add = |places: Range<u32>, scope| {
                let keys = keys.len().min(places.len());
                found.push(Places {
                    part,
                    keys,
                    places,
                    scope,
                });
            };
            match wanted.scopes {
                None => add(part.keys.places_of(&keys), None),
                Some(scopes) => {
                    for &scope in scopes {
                        let living = state.scopes().living(scope);
                        let first = part.scopes.partition_point(|(number, _)| *number < living);
                        let locals = part.scopes[first..].iter().take_while(|(number, _)| *number == living);
                        locals.for_each(|(_, local)| add(part.keys.scope_places_of(*local, &keys), Some(scope)));
                    }
                }
            }
        }
        found.retain(|found| !found.places.is_empty());
        found
    }

    /// The slots in some places that are not superseded and are in the scope.
    fn slots_at<'a>(&'a self, state: &'a State, found: &'a Places<'a>) -> impl Iterator<Item = u32> + use<'a> {
        let has_expired = state.scopes().has_expired();
        let slots = found.places.clone().map(move |place| match found.scope {
            None => found.part.keys.slot(place),
            Some(_) => found.part.keys.scope_slot(place),
        });
        let is_in = move |slot: u32, scope: u32| !has_expired || state.scope_in(slot) == scope;
        slots.filter(move |&slot| self.counts(found.part, slot) && found.scope.is_none_or(|scope| is_in(slot, scope)))
    }

    /// The slots of each key in memory, as far as they are in the scopes.
    fn slots_in_memory<'a>(
        &'a self,
        state: &'a State,
        wanted: &KeyQuery<'a>,
    ) -> impl Iterator<Item = Cow<'a, RoaringBitmap>> + use<'a> {
        let (ranges, scopes) = (wanted.ranges, wanted.scopes);
        let keys = ranges.iter().flat_map(|range| self.memory.between(range));
        let inside = move |(_, slots): (&[u8], &'a RoaringBitmap)| match scopes {
            None => Cow::Borrowed(slots),
            Some(scopes) => {
                let is_seen = |slot: &u32| scopes.binary_search(&state.scope_in(*slot)).is_ok();
                Cow::Owned(slots.iter().filter(is_seen).collect())
            }
        };
        keys.map(inside).filter(|slots| !slots.is_empty())
    }

    /// How many slots stand in some ranges of keys, one in several of them counted for each; `None` if it is `most` or more, or takes more
    /// than so many keys to tell.
    pub fn count_below(&self, state: &State, wanted: &KeyQuery<'_>, most: u64, most_keys: usize) -> Option<u64> {
        let is_whole = self.is_whole() && !(wanted.scopes.is_some() && state.scopes().has_expired());
        let limit = usize::try_from(most).unwrap_or(usize::MAX);
        let (mut count, mut keys) = (0, 0);
        let mut add = |slots: u64, of_keys: usize| {
            (count, keys) = (count + slots, keys + of_keys);
            (count < most && keys <= most_keys).then_some(count)
        };
        add(0, 0)?;
        for found in self.sealed_places(state, wanted) {
            let slots = match is_whole {
                true => found.places.len(),
                false => self.slots_at(state, &found).take(limit).count(),
            };
            add(slots as u64, found.keys)?;
        }
        for slots in self.slots_in_memory(state, wanted) {
            add(slots.len(), 1)?;
        }
        add(0, 0)
    }

    /// The slots that stand in some ranges of keys.
    pub fn slots(&self, state: &State, wanted: &KeyQuery<'_>) -> RoaringBitmap {
        let sealed = self.sealed_places(state, wanted);
        let sealed = gathered(sealed.iter().flat_map(|found| self.slots_at(state, found)).collect());
        self.slots_in_memory(state, wanted)
            .fold(sealed, |all, slots| all | &*slots)
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
            let entries: Entries<'_> = Box::new(entries.filter(|(_, slot)| self.counts(part, *slot)));
            sources.push(entries.peekable());
        }
        let slots_of = move |(key, slots): (&'a [u8], &'a RoaringBitmap)| {
            directed(slots.iter(), reverse).map(move |slot| (key, slot))
        };
        let entries: Entries<'_> = Box::new(directed(self.memory.between(range), reverse).flat_map(slots_of));
        sources.push(entries.peekable());
        Merged { sources, reverse }
    }

    /// Whether a slot has a key.
    pub fn has(&self, slot: u32) -> bool {
        self.memory.has(slot) || (!self.memory.owns(slot) && self.members().contains(slot))
    }

    /// Every slot that has a key, in no order.
    pub fn all_slots(&self) -> impl Iterator<Item = u32> {
        let sealed = self.members().iter().filter(|slot| !self.memory.owns(*slot));
        sealed.chain(self.memory.slots())
    }

    fn members(&self) -> &RoaringBitmap {
        self.members.get_or_init(|| {
            let of_part = |part: &Part| {
                let slots = (0..part.keys.len()).map(|place| part.keys.slot(place));
                gathered(slots.filter(|slot| self.is_newest(part, *slot)).collect())
            };
            self.parts
                .iter()
                .map(of_part)
                .fold(RoaringBitmap::new(), |all, own| all | own)
        })
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
