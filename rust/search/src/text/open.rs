//! Takes documents into the open part of an index, one by one.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::columns::{DocumentEntry, TextColumns};
use super::fields::{Fields, FoundField};
use super::lists::{OpenList, WordList};
use super::words::WordSplitter;
use chronolog::memory::{self, Refused};
use chronolog::scope::Carried;
use chronomemory_state::state::Row;

/// Hardly any record has more words than this that nobody met before.
const MOST_NEW_WORDS: usize = 64 * 1024;
/// What a word takes beside its documents when all are sorted and sealed, and more.
const STEM_BYTES: usize = 256;

/// In front of what is not a word but can be looked up like one.
const TAG: u8 = 1;
const LINK: u8 = 2;

type Numbers = HashMap<Box<[u8]>, u32, RandomState>;

/// The key of a tag's list.
pub fn tag_key(tag: &str) -> Vec<u8> {
    [&[TAG], tag.as_bytes()].concat()
}

/// The key of the list of records that name this id.
pub fn link_key(id: &str) -> Vec<u8> {
    [&[LINK], id.as_bytes()].concat()
}

/// Documents that can be searched while more arrive.
#[derive(Default)]
pub struct Open {
    /// Folded words with their endings: a form that was met before needs no stemmer.
    forms: Numbers,
    stems: Numbers,
    lists: Vec<OpenList>,
    pub(super) columns: TextColumns,
    words: WordSplitter,
    /// The lists that the document at hand goes to, with counts.
    counts: Vec<(u32, u32)>,
    keys: Vec<Vec<u8>>,
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
            FoundField::Group(..) | FoundField::Time(..) | FoundField::Speaker(_) => {}
        });
        for (form, weight) in pending {
            let number = match forms.get(&form) {
                Some(&number) => number,
                None => {
                    let stem = words.stem(std::str::from_utf8(&form).unwrap_or_default());
                    let number = number_of(stems, lists, stem.as_bytes());
                    forms.insert(form, number);
                    number
                }
            };
            counts.push((number, u32::from(weight)));
        }
        for key in keys {
            counts.push((number_of(stems, lists, key), 0));
        }
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

    /// The list of a stem or key.
    pub fn list(&self, key: &[u8]) -> Option<WordList<'_>> {
        self.stems.get(key).map(|&number| self.lists[number as usize].list())
    }

    /// All stems and keys with their lists, sorted.
    pub fn sorted(&self) -> Vec<(&[u8], WordList<'_>)> {
        let mut all: Vec<_> = self
            .stems
            .iter()
            .map(|(key, &number)| (&**key, self.lists[number as usize].list()))
            .collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all
    }
}

fn number_of(stems: &mut Numbers, lists: &mut Vec<OpenList>, key: &[u8]) -> u32 {
    if let Some(&number) = stems.get(key) {
        return number;
    }
    let number = lists.len() as u32;
    lists.push(OpenList::default());
    stems.insert(key.into(), number);
    number
}
