//! Key files: the sorted keys of the rows of one segment, each with the slots that have it.
//!
//! A file holds several lists. Of each it has the keys, where their slots begin, and the slots; of a field also the same slots by scope, so
//! that what one scope holds is counted without the others. It belongs to one segment, is made from its rows when it is first used, and is
//! removed with it. Its meta states the rules by which it was made, the segment, and the names of its lists. It is checked as the rows are:
//! a failed page sets the mark of the state.

use std::hash::BuildHasher;
use std::io;
use std::ops::{Bound, Range};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::list::KeyList;
use crate::condition::KeyRange;
use crate::first_in;
use crate::segment::{Container, ContainerWriter, Head, NO_CLASS, Sealed, Segment};
use chronolog::disk::{DiskFile, Mapping, MemoryFile};
use chronolog::memory::{self, Refused};

/// The version of the rules by which key files are made. A file of another version is replaced.
const RULES: u32 = 1;
/// So much memory is needed to make one, for each row of the segment.
const BYTES_PER_ROW: usize = 96;
/// The meta begins with the rules, then the origin of the log and the head of the segment.
const ORIGIN: Range<usize> = 4..36;

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

/// What the meta of the file of a segment begins with.
fn prefix(head: &Head) -> Vec<u8> {
    let mut meta = RULES.to_le_bytes().to_vec();
    meta.extend_from_slice(&head.origin);
    meta.extend_from_slice(&head.head);
    meta.extend([head.from, head.to].iter().flat_map(|event| event.to_le_bytes()));
    meta
}

/// The origin of the log that a segment or a key file is of.
pub fn origin_in(bytes: Mapping) -> Option<[u8; 32]> {
    let file = Container::open(bytes, &Arc::default())?;
    file.meta().get(ORIGIN)?.try_into().ok()
}

fn open(bytes: Mapping, failed: &Arc<AtomicBool>, head: &Head) -> Option<Container> {
    let file = Container::open(bytes, failed)?;
    file.meta().starts_with(&prefix(head)).then_some(file)
}

/// The names of the lists in the file of a segment.
fn names_in(file: &Container) -> Vec<String> {
    let mut names = Vec::new();
    let mut bytes = file.meta().get(prefix(&Head::default()).len()..).unwrap_or_default();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let Some((name, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else {
            break;
        };
        names.push(String::from_utf8_lossy(name).into_owned());
        bytes = rest;
    }
    names
}

/// The key file beside the segment with this number. `choose` gets the lists that are there, and returns those that another file is to be
/// made with, if they will not do. Where none can be kept it is made in memory. `None` if a check failed: the mark is set then.
///
/// # Errors
/// `Refused` if there is no memory to make one.
pub fn key_file(
    sealed: &Sealed,
    number: usize,
    choose: &dyn Fn(Vec<String>) -> Option<Vec<String>>,
) -> Result<Option<Arc<Container>>, Refused> {
    let segment = &sealed.segments()[number];
    let mut cached = segment.keys.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = &*cached
        && choose(names_in(file)).is_none()
    {
        return Ok(Some(Arc::clone(file)));
    }
    // Another process may have made one with more lists.
    let known = kept(sealed, segment.head()).map(Arc::new).or_else(|| cached.clone());
    if let Some(names) = choose(known.as_deref().map_or_else(Vec::new, names_in)) {
        memory::could_have(segment.len() * BYTES_PER_ROW)?;
        match make(sealed, number, &names) {
            Some(made) => *cached = Some(Arc::new(made)),
            None => {
                segment.fail();
                return Ok(None);
            }
        }
    } else {
        *cached = known;
    }
    Ok(cached.clone())
}

fn kept(sealed: &Sealed, head: &Head) -> Option<Container> {
    open(sealed.folder()?.open(head)?, sealed.mark(), head)
}

fn make(sealed: &Sealed, number: usize, names: &[String]) -> Option<Container> {
    let head = sealed.segments()[number].head();
    let write = |file| write_key_file(sealed, number, names, file);
    let folder = sealed.folder().filter(|_| sealed.segments()[number].is_named);
    if let Some(Ok(true)) = folder.map(|folder| folder.write(head, &write))
        && let Some(file) = kept(sealed, head).filter(|file| names_in(file) == names)
    {
        return Some(file);
    }
    if sealed.has_failed() {
        return None;
    }
    let file = Arc::new(MemoryFile::default());
    write(file.clone()).ok()?;
    open(file.map(u64::MAX).ok()?, sealed.mark(), head)
}

/// Writes the key file of the segment with this number to an empty file.
///
/// # Errors
/// `Io` if the disk refuses; `InvalidData` if a check failed.
pub fn write_key_file(sealed: &Sealed, number: usize, names: &[String], file: Arc<dyn DiskFile>) -> io::Result<()> {
    let mut out = ContainerWriter::new(file);
    build(sealed, number, names, &mut out)?;
    if sealed.has_failed() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a segment is damaged"));
    }
    let mut meta = prefix(sealed.segments()[number].head());
    for name in names {
        meta.extend_from_slice(&(name.len() as u32).to_le_bytes());
        meta.extend_from_slice(name.as_bytes());
    }
    out.finish(&meta).map(drop)
}

/// Whether a key file would be used and is not what the rows give.
///
/// # Errors
/// `InvalidData` if a check of the rows failed.
pub fn is_altered(sealed: &Sealed, number: usize, file: &dyn DiskFile) -> io::Result<bool> {
    let opened = open(file.map(u64::MAX)?, &Arc::default(), sealed.segments()[number].head());
    let Some(opened) = opened.filter(Container::check_all) else {
        return Ok(false);
    };
    let made = Arc::new(MemoryFile::default());
    write_key_file(sealed, number, &names_in(&opened), made.clone())?;
    Ok(made.contents() != file.map(u64::MAX)?.bytes())
}

/// The lists in the key file of a segment, if there is one.
pub fn lists_of(sealed: &Sealed, number: usize) -> Option<Vec<String>> {
    let file = key_file(sealed, number, &|_| None).ok()??;
    Some(names_in(&file))
}

fn build(sealed: &Sealed, number: usize, names: &[String], out: &mut ContainerWriter) -> io::Result<()> {
    let segment = &sealed.segments()[number];
    let lists: Vec<_> = names.iter().map(|name| KeyList::named(name)).collect();
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
    file: Arc<Container>,
    /// By the numbers of sections above.
    sections: [Range<usize>; 6],
    keys: u32,
    slots: u32,
}

impl SealedKeys {
    /// The list of a name; `None` if the file lacks it or is damaged.
    pub fn open(file: Arc<Container>, name: &str) -> Option<Self> {
        let place = names_in(&file).iter().position(|known| known == name)?;
        let first = u32::try_from(place).ok()? * SECTIONS;
        let sections: [Range<usize>; 6] = [KEY_STARTS, KEY_BYTES, SLOT_STARTS, SLOTS, SCOPE_STARTS, SCOPE_ENTRIES]
            .map(|section| file.section(first + section));
        let count = |section: u32, width: usize| sections[section as usize].len() / width;
        let keys = count(KEY_STARTS, 8).checked_sub(1);
        let slots = u32::try_from(count(SLOTS, 4)).ok();
        let is_whole = keys == count(SLOT_STARTS, 4).checked_sub(1);
        let keys = keys.filter(|_| is_whole).and_then(|keys| u32::try_from(keys).ok());
        let (Some(keys), Some(slots)) = (keys, slots) else {
            file.fail();
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
        let bytes = self.file.bytes(inside.unwrap_or(usize::MAX..usize::MAX));
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
        self.file.bytes(start..end).unwrap_or_default()
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
