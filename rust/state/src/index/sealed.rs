//! The family `keys`: the sorted keys of the rows of one segment, each with the slots that have it.
//!
//! A file holds several lists. Of each it has the keys, where their slots begin, and the slots; of a field also the same slots by scope, so
//! that what one scope holds is counted without the others.

use std::hash::BuildHasher;
use std::io;
use std::ops::{Bound, Range};
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::list::KeyList;
use crate::condition::KeyRange;
use crate::segment::{ContainerWriter, Family, FamilyFile, NO_CLASS, Sealed, Segment};

/// The key files of segments. What one is for are the names of its lists.
pub static KEYS: Family = Family {
    name: "keys",
    rules: 1,
    bytes_per_row: 96,
    build,
};

/// A list has so many numbers of sections.
const SECTIONS: u32 = 8;
/// Where each key begins, as u64, and where the last one ends.
const KEY_STARTS: u32 = 0;
const KEY_BYTES: u32 = 1;
/// Where the slots of each key begin, as u32, and where the last ones end.
const SLOT_STARTS: u32 = 2;
/// The slots of all keys, as u32, those of each key ascending.
const SLOTS: u32 = 3;
/// Where the entries of each scope of the segment begin, as u32, and where the last ones end. Absent if all records are of one scope.
const SCOPE_STARTS: u32 = 4;
/// The number of a key and a slot with that key, as u32 each, by scope, then in this order.
const SCOPE_ENTRIES: u32 = 5;

/// The names of lists as bytes.
pub fn names_to_bytes(names: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in names {
        bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes
}

/// The names of the lists that a file is for.
pub fn names_in(mut bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let Some((name, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else {
            break;
        };
        names.push(String::from_utf8_lossy(name).into_owned());
        bytes = rest;
    }
    names
}

fn build(sealed: &Sealed, number: usize, purpose: &[u8], out: &mut ContainerWriter) -> io::Result<()> {
    let segment = &sealed.segments()[number];
    let lists: Vec<_> = names_in(purpose).iter().map(|name| KeyList::named(name)).collect();
    let of_class = |(kind, status, face): &(Vec<u8>, Vec<u8>, bool)| {
        let lists = lists.iter().enumerate();
        let wanted = lists.filter_map(|(at, list)| Some((at, list.as_ref()?)));
        wanted
            .filter(|(_, list)| list.may_hold(kind, status, *face))
            .collect::<Vec<_>>()
    };
    let of_classes: Vec<_> = segment.class_names().iter().map(of_class).collect();
    let mut sorters: Vec<KeySorter> = lists.iter().map(|_| KeySorter::default()).collect();
    for row in 0..segment.len() as u32 {
        let class = Some(segment.class(row)).filter(|class| *class != NO_CLASS);
        let wanted = class.and_then(|class| of_classes.get(class as usize));
        let Some(wanted) = wanted.filter(|lists| !lists.is_empty()) else {
            continue;
        };
        let Some(record) = sealed.read_row(number as u32, row) else {
            break;
        };
        for (at, list) in wanted {
            list.keys_of(&record).iter().for_each(|key| sorters[*at].add(key, row));
        }
    }
    for ((sorter, list), at) in sorters.into_iter().zip(&lists).zip(0..) {
        let is_by_scope = list.as_ref().is_some_and(KeyList::is_of_field);
        sorter.write(out, at * SECTIONS, segment, is_by_scope)?;
    }
    Ok(())
}

/// Sorts the keys of one list.
#[derive(Default)]
struct KeySorter {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
    known: HashTable<u32>,
    hasher: RandomState,
    /// Keys and rows, by row.
    entries: Vec<(u32, u32)>,
}

impl KeySorter {
    fn key(&self, number: u32) -> &[u8] {
        key_in(&self.bytes, &self.ends, number)
    }

    fn add(&mut self, key: &[u8], row: u32) {
        let hash = self.hasher.hash_one(key);
        let found = self.known.find(hash, |&number| self.key(number) == key).copied();
        let number = found.unwrap_or_else(|| {
            let number = self.ends.len() as u32;
            self.bytes.extend_from_slice(key);
            self.ends.push(self.bytes.len());
            let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
            let rehash = |&number: &u32| hasher.hash_one(key_in(bytes, ends, number));
            self.known.insert_unique(hash, number, rehash);
            number
        });
        self.entries.push((number, row));
    }

    fn write(mut self, out: &mut ContainerWriter, first: u32, segment: &Segment, is_by_scope: bool) -> io::Result<()> {
        self.known = HashTable::new();
        let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
        order.sort_unstable_by(|one, other| self.key(*one).cmp(self.key(*other)));
        out.begin(first + KEY_STARTS)?;
        let mut start = 0;
        for &number in &order {
            out.add(&(start as u64).to_le_bytes())?;
            start += self.key(number).len();
        }
        out.add(&(start as u64).to_le_bytes())?;
        out.begin(first + KEY_BYTES)?;
        for &number in &order {
            out.add(self.key(number))?;
        }
        let mut ranks = vec![0; order.len()];
        (0..)
            .zip(&order)
            .for_each(|(rank, number)| ranks[*number as usize] = rank);
        let entries = std::mem::take(&mut self.entries);
        drop(self);
        let entries: Vec<(u32, u32)> = entries
            .into_iter()
            .map(|(number, row)| (ranks[number as usize], row))
            .collect();
        let (starts, sorted) = grouped(&entries, ranks.len(), |(rank, _)| *rank);
        add_numbers(out, first + SLOT_STARTS, starts)?;
        add_numbers(
            out,
            first + SLOTS,
            sorted.iter().map(|(_, row)| segment.ordinal(*row)).collect(),
        )?;
        let scopes = segment.scope_names().len();
        if is_by_scope && scopes > 1 {
            let scope_of = |(_, row): &(u32, u32)| segment.scope(*row).min(scopes as u32 - 1);
            let (starts, sorted) = grouped(&sorted, scopes, scope_of);
            add_numbers(out, first + SCOPE_STARTS, starts)?;
            let both = |(rank, row): &(u32, u32)| [*rank, segment.ordinal(*row)];
            add_numbers(out, first + SCOPE_ENTRIES, sorted.iter().flat_map(both).collect())?;
        }
        Ok(())
    }
}

fn key_in<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[start..ends[number]]
}

/// Entries in the order of their groups, and where each group begins.
fn grouped(
    entries: &[(u32, u32)],
    groups: usize,
    group_of: impl Fn(&(u32, u32)) -> u32,
) -> (Vec<u32>, Vec<(u32, u32)>) {
    let mut starts = vec![0; groups + 1];
    entries
        .iter()
        .for_each(|entry| starts[group_of(entry) as usize + 1] += 1);
    for group in 0..groups {
        starts[group + 1] += starts[group];
    }
    let (mut next, mut sorted) = (starts.clone(), vec![(0, 0); entries.len()]);
    for entry in entries {
        let place = &mut next[group_of(entry) as usize];
        sorted[*place as usize] = *entry;
        *place += 1;
    }
    (starts, sorted)
}

fn add_numbers(out: &mut ContainerWriter, id: u32, numbers: Vec<u32>) -> io::Result<()> {
    out.begin(id)?;
    numbers
        .into_iter()
        .try_for_each(|number| out.add(&number.to_le_bytes()))
}

/// One list of the key file of a segment.
#[derive(Debug)]
pub struct SealedKeys {
    file: Arc<FamilyFile>,
    /// By the numbers of sections above.
    sections: [Range<usize>; 6],
    keys: u32,
    slots: u32,
}

impl SealedKeys {
    /// The list of a name; `None` if the file lacks it or is damaged.
    pub fn open(file: Arc<FamilyFile>, name: &str) -> Option<Self> {
        let place = names_in(file.purpose()).iter().position(|known| known == name)?;
        let first = u32::try_from(place).ok()? * SECTIONS;
        let sections: [Range<usize>; 6] = [KEY_STARTS, KEY_BYTES, SLOT_STARTS, SLOTS, SCOPE_STARTS, SCOPE_ENTRIES]
            .map(|section| file.file().section(first + section));
        let count = |section: u32, width: usize| sections[section as usize].len() / width;
        let keys = count(KEY_STARTS, 8).checked_sub(1);
        let slots = u32::try_from(count(SLOTS, 4)).ok();
        let is_whole = keys == count(SLOT_STARTS, 4).checked_sub(1);
        let keys = keys.filter(|_| is_whole).and_then(|keys| u32::try_from(keys).ok());
        let (Some(keys), Some(slots)) = (keys, slots) else {
            file.file().fail();
            return None;
        };
        Some(Self {
            file,
            sections,
            keys,
            slots,
        })
    }

    fn array<const N: usize>(&self, section: u32, at: usize) -> [u8; N] {
        let section = &self.sections[section as usize];
        let start = section.start + at * N;
        let inside = (start + N <= section.end).then_some(start..start + N);
        // A place outside of the file fails its check.
        let bytes = self.file.file().bytes(inside.unwrap_or(usize::MAX..usize::MAX));
        bytes.and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    fn number(&self, section: u32, at: u32) -> u32 {
        u32::from_le_bytes(self.array(section, at as usize))
    }

    /// One of the keys.
    pub fn key(&self, at: u32) -> &[u8] {
        let bytes = &self.sections[KEY_BYTES as usize];
        let place = |at: usize| {
            let start = u64::from_le_bytes(self.array(KEY_STARTS, at));
            usize::try_from(start)
                .ok()
                .and_then(|start| bytes.start.checked_add(start))
        };
        let range = place(at as usize).zip(place(at as usize + 1));
        let range = range.filter(|(start, end)| start <= end && *end <= bytes.end);
        let (start, end) = range.unwrap_or((usize::MAX, usize::MAX));
        self.file.file().bytes(start..end).unwrap_or_default()
    }

    /// The first key for which this does not hold, which holds for all before it.
    fn first_key(&self, is_before: impl Fn(&[u8]) -> bool) -> u32 {
        first_in(0..self.keys, |at| is_before(self.key(at)))
    }

    /// The numbers of the keys between two others.
    pub fn keys_in(&self, (from, until): &KeyRange) -> Range<u32> {
        let start = match from {
            Bound::Included(from) => self.first_key(|key| key < &from[..]),
            Bound::Excluded(from) => self.first_key(|key| key <= &from[..]),
            Bound::Unbounded => 0,
        };
        let end = match until {
            Bound::Included(until) => self.first_key(|key| key <= &until[..]),
            Bound::Excluded(until) => self.first_key(|key| key < &until[..]),
            Bound::Unbounded => self.keys,
        };
        start..end.max(start)
    }

    /// Where the slots of some keys are.
    pub fn places_of(&self, keys: &Range<u32>) -> Range<u32> {
        let place = |at: u32| self.number(SLOT_STARTS, at).min(self.slots);
        if keys.is_empty() {
            return 0..0;
        }
        let start = place(keys.start);
        start..place(keys.end).max(start)
    }

    /// One of the slots.
    pub fn slot(&self, place: u32) -> u32 {
        self.number(SLOTS, place)
    }

    /// How many there are of all keys.
    pub fn len(&self) -> u32 {
        self.slots
    }

    /// Where the entries of some keys in one scope of the segment are.
    pub fn scope_places_of(&self, scope: u32, keys: &Range<u32>) -> Range<u32> {
        if self.sections[SCOPE_STARTS as usize].is_empty() {
            return self.places_of(keys);
        }
        let all = self.number(SCOPE_STARTS, scope)..self.number(SCOPE_STARTS, scope + 1).min(self.slots);
        let first = |key: u32| first_in(all.clone(), |at| self.number(SCOPE_ENTRIES, 2 * at) < key);
        let start = first(keys.start);
        start..first(keys.end).max(start)
    }

    /// The slot of an entry of a scope.
    pub fn scope_slot(&self, place: u32) -> u32 {
        match self.sections[SCOPE_STARTS as usize].is_empty() {
            true => self.slot(place),
            false => self.number(SCOPE_ENTRIES, 2 * place + 1),
        }
    }
}

/// The first number for which this does not hold, which holds for all before it.
fn first_in(numbers: Range<u32>, is_before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (numbers.start, numbers.end.max(numbers.start));
    while low < high {
        let middle = low.midpoint(high);
        match is_before(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}
