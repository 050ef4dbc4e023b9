//! What surrounds each document, as columns: its links, groups and speakers, who names it, and when it happened.
//!
//! Names stand among the keys of the index, each once. A document refers to them by number, in the order of its record; a link of
//! sealed documents also by the document that it leads to. So a search reads no record for its context.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use foldhash::fast::RandomState;

use super::columns::TextColumns;
use super::sealed::NOWHERE;
use chronolog::event::faces::{call_by, call_of};
use chronomemory_state::segment::{Column, JoinedNames};
use chronomemory_state::state::unspelled;

/// The first byte of a key, which is not a word but is looked up like one.
pub(super) const TAG: u8 = 1;
pub(super) const LINK: u8 = 2;
pub(super) const GROUP: u8 = 3;
pub(super) const SPEAKER: u8 = 4;
/// The whole key of the links between blocks that state only likeness.
pub(super) const LIKENESS: u8 = 5;

/// The target of a key that is no link.
pub(super) const NO_LINK: u32 = u32::MAX - 1;
/// The time of a document that states none.
const NO_TIME: i64 = i64::MIN;

pub fn tag_key(tag: &str) -> Vec<u8> {
    [&[TAG], tag.as_bytes()].concat()
}

/// The key of the records that name this id.
pub fn link_key(id: &str) -> Vec<u8> {
    [&[LINK], id.as_bytes()].concat()
}

/// The key of a group: the number of its field, and its value.
pub fn group_key(field: u16, value: &str) -> Vec<u8> {
    [&[GROUP], &field.to_be_bytes()[..], value.as_bytes()].concat()
}

pub fn speaker_key(name: &str) -> Vec<u8> {
    [&[SPEAKER], name.as_bytes()].concat()
}

/// The texts by which records name the one with this id (as between quotes in canonical JSON): the id, and what it is called.
pub fn names_of(id: &[u8]) -> [Option<Cow<'_, str>>; 2] {
    let plain = match std::str::from_utf8(id) {
        Ok(text) if !id.contains(&b'\\') => Cow::Borrowed(text),
        _ => Cow::Owned(unspelled(id)),
    };
    let called = call_of(id).and_then(|call| match &plain {
        Cow::Borrowed(text) => text.strip_prefix(call.of).map(Cow::Borrowed),
        Cow::Owned(text) => text.strip_prefix(call.of).map(|name| Cow::Owned(name.to_owned())),
    });
    [Some(plain), called]
}

/// What the record with this id puts before the names of others to get their ids.
pub fn prefix_of(id: &[u8]) -> &'static str {
    call_by(id).map_or("", |call| call.of)
}

/// Where a link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkedRecord<'a> {
    /// To the record in a slot.
    Slot(u32),
    /// To the record with this id behind this prefix, if there is one.
    Id(&'static str, &'a str),
}

/// A part of the context of a document that is stored as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextMark<'a> {
    /// A group: its field and value, as one key.
    Group(&'a [u8]),
    /// The speaker.
    Speaker(&'a str),
    /// It is a link between blocks that states only their likeness.
    Likeness,
}

impl<'a> ContextMark<'a> {
    /// What a key stands for; `None` if it is none of these.
    pub(super) fn of(key: &'a [u8]) -> Option<Self> {
        match key.split_first()? {
            (&GROUP, group) => Some(Self::Group(group)),
            (&SPEAKER, name) => std::str::from_utf8(name).ok().map(Self::Speaker),
            (&LIKENESS, _) => Some(Self::Likeness),
            _ => None,
        }
    }
}

/// What is kept of one document; a search reads all of it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ContextRow {
    /// When what it tells happened, or [`NO_TIME`].
    time: i64,
    start: u32,
    end: u32,
    /// The keys of the documents that name it by its id, and by what it is called, or [`NOWHERE`]: in a sealed part.
    pub(super) named: [u32; 2],
}

impl ContextRow {
    /// When what the document tells happened, if it states that.
    pub fn time(&self) -> Option<i64> {
        Some(self.time).filter(|time| *time != NO_TIME)
    }

    fn keys(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[derive(Debug, Default)]
pub struct ContextColumns {
    pub(super) rows: Column<ContextRow>,
    /// The numbers of the keys of their links, groups, speakers and marks, in the order of the records.
    pub(super) keys: Column<u32>,
    /// Where those lead that are links: to a document, [`NOWHERE`], or [`NO_LINK`]; in a sealed part.
    pub(super) targets: Column<u32>,
}

impl ContextColumns {
    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.keys.bytes() + self.targets.bytes()
    }

    /// Ends a document whose keys were added.
    pub(super) fn end_document(&mut self, time: Option<i64>) {
        let before = self.rows.len().checked_sub(1).map(|before| self.rows.get(before).end);
        self.rows.push(ContextRow {
            time: time.unwrap_or(NO_TIME),
            start: before.unwrap_or_default(),
            end: self.keys.len() as u32,
            named: [NOWHERE; 2],
        });
    }

    /// The keys of a document, in the order of its record, and in a sealed part where they lead.
    pub(super) fn ties_of(&self, doc: usize) -> (&[u32], &[u32]) {
        let keys = self.rows.get(doc).keys();
        match keys.is_empty() {
            true => (&[], &[]),
            false if self.targets.is_empty() => (self.keys.slice(keys), &[]),
            false => (self.keys.slice(keys.clone()), self.targets.slice(keys)),
        }
    }

    pub(super) fn keys_of(&self, doc: usize) -> &[u32] {
        self.keys.slice(self.rows.get(doc).keys())
    }

    pub(super) fn take(&mut self, ties: SealedLinks) {
        let rows = self.rows.all().iter().zip(ties.named);
        self.rows = Column::Owned(rows.map(|(row, named)| ContextRow { named, ..*row }).collect());
        self.targets = Column::Owned(ties.targets);
    }

    /// Whether these ties are its own.
    pub(super) fn has(&self, ties: &SealedLinks) -> bool {
        self.targets.all() == ties.targets && self.rows.all().iter().map(|row| &row.named).eq(&ties.named)
    }
}

/// The links between sealed documents, resolved from their ids and keys.
pub(super) struct SealedLinks {
    targets: Vec<u32>,
    named: Vec<[u32; 2]>,
}

impl SealedLinks {
    pub fn of(columns: &TextColumns, stems: &JoinedNames) -> Self {
        let (context, docs) = (&columns.context, columns.len());
        let mut ties = Self {
            targets: vec![NO_LINK; context.keys.len()],
            named: vec![[NOWHERE; 2]; docs],
        };
        let links = stems.first_from(&[LINK]) as u32..stems.first_from(&[LINK + 1]) as u32;
        if links.is_empty() {
            return ties;
        }
        let name = |key: u32| stems.get(key as usize).get(1..).unwrap_or_default();
        let keys: HashMap<&[u8], u32, RandomState> = links.clone().map(|key| (name(key), key)).collect();
        let mut found: HashMap<(u32, &str), u32, RandomState> = HashMap::default();
        for doc in 0..docs {
            let id = columns.ids.get(doc);
            let called = call_of(id).map_or("", |call| call.of);
            for (at, (name, prefix)) in names_of(id).iter().zip(["", called]).enumerate() {
                if let Some(&key) = name.as_ref().and_then(|name| keys.get(name.as_bytes())) {
                    ties.named[doc][at] = key;
                    found.insert((key, prefix), doc as u32);
                }
            }
        }
        for doc in 0..docs {
            let prefix = prefix_of(columns.ids.get(doc));
            let targets = ties.targets.get_mut(context.rows.get(doc).keys()).into_iter().flatten();
            for (key, target) in context.keys_of(doc).iter().zip(targets) {
                if links.contains(key) {
                    *target = found.get(&(*key, prefix)).copied().unwrap_or(NOWHERE);
                }
            }
        }
        ties
    }
}
