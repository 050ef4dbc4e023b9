//! What is kept of each document beside its words, as columns.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

use super::context::ContextColumns;
use chronolog::scope::Carried;
use chronomemory_state::segment::{Column, JoinedNames};
use chronomemory_state::state::Class;

/// One document, as its columns know it.
#[derive(Clone, Copy, Debug)]
pub struct DocumentEntry<'a> {
    /// The slot of its record.
    pub slot: u32,
    /// The id of its record, as canonical JSON between quotes.
    pub id: &'a [u8],
    pub class: &'a Class,
    /// How much it is believed.
    pub confidence: f64,
    /// How many words it has, weighted.
    pub length: u32,
    /// Whose its record is.
    pub owner: &'a Carried,
}

/// How many documents have words, and how many words there are: those without say nothing of what is usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usual {
    pub worded: usize,
    pub words: u64,
}

impl Usual {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            worded: self.worded.saturating_add(other.worded),
            words: self.words.saturating_add(other.words),
        }
    }
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self {
            worded: self.worded.saturating_sub(other.worded),
            words: self.words.saturating_sub(other.words),
        }
    }
}

/// All documents of a part, one column for each fact.
#[derive(Debug, Default)]
pub struct TextColumns {
    pub(super) slots: Column<u32>,
    pub(super) lengths: Column<u32>,
    pub(super) classes: Column<u32>,
    pub(super) confidences: Column<f64>,
    pub(super) scopes: Column<u32>,
    pub(super) ids: JoinedNames,
    pub(super) context: ContextColumns,
    pub(super) kinds: Distinct<Class>,
    pub(super) owners: Distinct<Carried>,
}

/// Distinct values, by the numbers that columns hold instead.
#[derive(Debug)]
pub(super) struct Distinct<T> {
    pub(super) values: Vec<T>,
    numbers: HashMap<T, u32, RandomState>,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for Distinct<T> {
    /// Values that are read, and never added to.
    fn from(values: Vec<T>) -> Self {
        Self {
            values,
            numbers: HashMap::default(),
        }
    }
}

impl<T: Clone + Eq + Hash> Distinct<T> {
    /// The number of a value, which is added if it is new; `guess` is its likely number.
    fn number(&mut self, value: &T, guess: Option<u32>) -> u32 {
        if let Some(guess) = guess.filter(|&guess| self.values[guess as usize] == *value) {
            return guess;
        }
        if let Some(&number) = self.numbers.get(value) {
            return number;
        }
        let number = self.values.len() as u32;
        self.values.push(value.clone());
        self.numbers.insert(value.clone(), number);
        number
    }
}

impl TextColumns {
    pub fn bytes(&self) -> usize {
        let each = 4 * size_of::<u32>() + size_of::<f64>();
        self.len() * each + self.ids.bytes() + self.context.bytes()
    }

    /// What one document adds to what is usual.
    pub fn usual_of(&self, doc: u32) -> Usual {
        let length = self.lengths.get(doc as usize);
        Usual {
            worded: usize::from(length > 0),
            words: u64::from(length),
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn push(&mut self, entry: &DocumentEntry<'_>) {
        let last = self.len().checked_sub(1);
        let class = self.kinds.number(entry.class, last.map(|last| self.classes.get(last)));
        let scope = self.owners.number(entry.owner, last.map(|last| self.scopes.get(last)));
        self.scopes.push(scope);
        self.slots.push(entry.slot);
        self.lengths.push(entry.length);
        self.classes.push(class);
        self.confidences.push(entry.confidence);
        self.ids.push(entry.id);
    }

    pub fn entry(&self, doc: usize) -> DocumentEntry<'_> {
        DocumentEntry {
            slot: self.slots.get(doc),
            id: self.ids.get(doc),
            class: self.class_of(doc),
            confidence: self.confidences.get(doc),
            length: self.lengths.get(doc),
            owner: self.owner_of(doc),
        }
    }

    pub fn class_of(&self, doc: usize) -> &Class {
        static NOTHING: LazyLock<Class> = LazyLock::new(|| Class {
            kind: Box::default(),
            status: Box::default(),
            face: false,
        });
        self.kinds
            .values
            .get(self.classes.get(doc) as usize)
            .unwrap_or(&NOTHING)
    }

    fn owner_of(&self, doc: usize) -> &Carried {
        self.owners
            .values
            .get(self.scopes.get(doc) as usize)
            .unwrap_or(&Carried::Malformed)
    }
}

/// A set of documents of one part.
#[derive(Clone, Debug, Default)]
pub struct DocSet {
    bits: Vec<u64>,
    count: usize,
}

impl DocSet {
    pub const EMPTY: Self = Self {
        bits: Vec::new(),
        count: 0,
    };

    pub fn insert(&mut self, doc: u32) {
        let at = doc as usize / 64;
        if at >= self.bits.len() {
            self.bits.resize(at + 1, 0);
        }
        let bit = 1 << (doc % 64);
        self.count += usize::from(self.bits[at] & bit == 0);
        self.bits[at] |= bit;
    }

    pub fn contains(&self, doc: u32) -> bool {
        self.bits
            .get(doc as usize / 64)
            .is_some_and(|bits| bits >> (doc % 64) & 1 == 1)
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.bits.iter().enumerate().flat_map(|(at, &bits)| {
            (0..64)
                .filter(move |bit| bits >> bit & 1 == 1)
                .map(move |bit| at as u32 * 64 + bit)
        })
    }
}
