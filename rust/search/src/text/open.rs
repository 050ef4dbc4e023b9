//! Takes documents into the open part of an index, one by one.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::columns::{DocumentEntry, TextColumns};
use super::context::{LIKENESS, LINK, TAG, group_key, link_key, speaker_key, tag_key};
use super::fields::{Fields, FoundField, is_of_likeness};
use super::lists::{NumberedList, OpenList, WordList};
use super::words::WordSplitter;
use chronolog::event::faces::call_by;
use chronolog::json::members;
use chronolog::memory::{self, Refused};
use chronolog::scope::Carried;
use chronomemory_state::segment::JoinedNames;
use chronomemory_state::state::Row;

/// Hardly any record has more words than this that nobody met before.
const MOST_NEW_WORDS: usize = 64 * 1024;
/// What a word takes beside its documents when all are sorted and sealed, and more.
const STEM_BYTES: usize = 256;

/// The stems and keys of lists, each once, by the numbers of their lists.
#[derive(Default)]
struct ListNames {
    names: JoinedNames,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

impl ListNames {
    fn try_reserve(&mut self, more: usize) -> Result<(), hashbrown::TryReserveError> {
        let Self { names, numbers, hasher } = self;
        numbers.try_reserve(more, |&number| hasher.hash_one(names.get(number as usize)))
    }

    fn find(&self, name: &[u8]) -> Option<u32> {
        let is_it = |number: &u32| self.names.get(*number as usize) == name;
        self.numbers.find(self.hasher.hash_one(name), is_it).copied()
    }

    /// The number of a list, the next one if there is none of this name.
    fn number(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.find(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name);
        let Self { names, numbers, hasher } = self;
        let hash = |number: &u32| hasher.hash_one(names.get(*number as usize));
        numbers.insert_unique(hasher.hash_one(name), number, hash);
        number
    }
}

/// Documents that can be searched while more arrive.
#[derive(Default)]
pub struct Open {
    /// Folded words with their endings: a form that was met before needs no stemmer.
    forms: HashMap<Box<[u8]>, u32, RandomState>,
    stems: ListNames,
    lists: Vec<OpenList>,
    pub(super) columns: TextColumns,
    words: WordSplitter,
    /// The lists that the document at hand goes to, with counts.
    counts: Vec<(u32, u32)>,
    keys: Vec<Vec<u8>>,
    has_links: bool,
}

impl Open {
    /// Asks for memory for the words of a record of so many bytes, before it is taken in.
    pub fn make_room(&mut self, bytes: usize) -> Result<(), Refused> {
        memory::check()?;
        let words = (bytes / 2).min(MOST_NEW_WORDS);
        self.forms.try_reserve(words)?;
        self.stems.try_reserve(words)?;
        Ok(self.lists.try_reserve(words)?)
    }

    /// How much memory the same documents take, sealed, with what is needed to sort them; and more.
    pub fn bytes(&self) -> usize {
        let lists: usize = self.lists.iter().map(|list| list.list().bytes()).sum();
        2 * lists + self.lists.len() * STEM_BYTES + 2 * self.columns.bytes()
    }

    /// Takes a record in; gives its number.
    pub fn add(&mut self, row: &Row<'_>, fields: &Fields) -> u32 {
        let doc = self.columns.len() as u32;
        self.counts.clear();
        self.keys.clear();
        let mut length = 0_u32;
        let Self {
            forms,
            stems,
            lists,
            words,
            counts,
            keys,
            ..
        } = self;
        let mut stated: Option<(u16, i64)> = None;
        let mut pending: Vec<(Box<[u8]>, u16)> = Vec::new();
        fields.read(&row.record, &mut |found| match found {
            FoundField::Text(text, weight) => words.each(text, |word| {
                length = length.saturating_add(u32::from(weight));
                match forms.get(word.as_bytes()) {
                    Some(&number) => counts.push((number, u32::from(weight))),
                    None => pending.push((word.as_bytes().into(), weight)),
                }
            }),
            FoundField::Tag(tag) => keys.push(tag_key(tag)),
            FoundField::Link(id) => keys.push(link_key(id)),
            FoundField::Group(field, value) => keys.push(group_key(field, value)),
            FoundField::Speaker(name) => keys.push(speaker_key(name)),
            FoundField::Time(field, micros) => {
                if stated.is_none_or(|(before, _)| field < before) {
                    stated = Some((field, micros));
                }
            }
        });
        if call_by(row.id()).is_some() && members(&row.record).any(|(key, data)| key == b"data" && is_of_likeness(data))
        {
            keys.push(vec![LIKENESS]);
        }
        for (form, weight) in pending {
            let number = match forms.get(&form) {
                Some(&number) => number,
                None => {
                    let stem = words.stem(std::str::from_utf8(&form).unwrap_or_default());
                    let number = stems.number(stem.as_bytes());
                    forms.insert(form, number);
                    number
                }
            };
            counts.push((number, u32::from(weight)));
        }
        let context = &mut self.columns.context;
        for key in keys {
            let number = stems.number(key);
            counts.push((number, 0));
            match key.first() {
                Some(&TAG) => {}
                kind => {
                    self.has_links |= kind == Some(&LINK);
                    context.keys.push(number);
                }
            }
        }
        context.end_document(stated.map(|(_, micros)| micros));
        lists.resize_with(stems.names.len(), OpenList::default);
        self.columns.push(&DocumentEntry {
            slot: row.slot,
            id: row.id(),
            class: row.class,
            confidence: row.confidence,
            length,
            owner: &Carried::of(&row.record),
        });
        counts.sort_unstable();
        for same in counts.chunk_by(|one, other| one.0 == other.0) {
            let count = same.iter().map(|(_, count)| count).sum::<u32>();
            lists[same[0].0 as usize].push(doc, u16::try_from(count).unwrap_or(u16::MAX), length);
        }
        doc
    }

    pub fn list(&self, key: &[u8]) -> Option<WordList<'_>> {
        self.stems.find(key).map(|number| self.lists[number as usize].list())
    }

    pub fn key(&self, number: u32) -> &[u8] {
        self.stems.names.get(number as usize)
    }

    pub fn has_links(&self) -> bool {
        self.has_links
    }

    /// All stems and keys with the numbers of their lists, and these, sorted.
    pub fn sorted(&self) -> Vec<NumberedList<'_>> {
        let lists = (0..).zip(&self.lists);
        let mut all: Vec<_> = lists
            .map(|(number, list)| (self.key(number), number, list.list()))
            .collect();
        all.sort_unstable_by_key(|(key, ..)| *key);
        all
    }
}
