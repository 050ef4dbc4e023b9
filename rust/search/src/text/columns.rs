//! What is kept of each document beside its words, as columns.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use chronolog::scope::Carried;
use chronomemory_state::state::Class;

/// A document that says nothing of when it happened.
pub const NO_TIME: i64 = i64::MIN;

/// Texts end to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinedNames {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<u32>,
}

impl JoinedNames {
    /// Adds one.
    pub fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len() as u32);
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + size_of::<u32>() * self.ends.len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// One of them.
    pub fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[at] as usize]
    }

    /// Where a name stands, if they are sorted.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle).cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// One document, as its columns know it.
#[derive(Clone, Copy, Debug)]
pub struct DocumentEntry<'a> {
    /// The slot of its record.
    pub slot: u32,
    /// The id of its record, as canonical JSON between quotes.
    pub id: &'a [u8],
    /// Its kind and status.
    pub class: &'a Class,
    /// How much it is believed.
    pub confidence: f64,
    /// The seq of the last event of the live log that speaks of it; 0 if none does.
    pub seq: u64,
    /// When it happened, or [`NO_TIME`].
    pub time: i64,
    /// How many words it has, weighted.
    pub length: u32,
    /// Whose its record is.
    pub owner: &'a Carried,
}

/// How many documents have words, and how many words there are: those without say nothing of what is usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usual {
    /// See above.
    pub worded: usize,
    /// See above.
    pub words: u64,
}

impl Usual {
    /// Of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            worded: self.worded + other.worded,
            words: self.words + other.words,
        }
    }
    /// Of these but not of those.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self {
            worded: self.worded - other.worded,
            words: self.words - other.words,
        }
    }
}

/// All documents of a part, one column for each fact.
#[derive(Clone, Debug, Default)]
pub struct TextColumns {
    pub(super) slots: Vec<u32>,
    pub(super) lengths: Vec<u32>,
    pub(super) classes: Vec<u32>,
    pub(super) confidences: Vec<f64>,
    pub(super) seqs: Vec<u64>,
    pub(super) times: Vec<i64>,
    pub(super) scopes: Vec<u32>,
    pub(super) ids: JoinedNames,
    /// What the numbers of classes stand for.
    pub(super) kinds: Vec<Class>,
    pub(super) numbers: HashMap<Class, u32, RandomState>,
    /// What the numbers of scopes stand for.
    pub(super) owners: Vec<Carried>,
    pub(super) owner_numbers: HashMap<Carried, u32, RandomState>,
}

impl TextColumns {
    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        let each = 4 * size_of::<u32>() + size_of::<f64>() + size_of::<u64>() + size_of::<i64>();
        self.len() * each + self.ids.bytes()
    }

    /// What one document adds to what is usual.
    pub fn usual_of(&self, doc: u32) -> Usual {
        let length = self.lengths[doc as usize];
        Usual {
            worded: usize::from(length > 0),
            words: u64::from(length),
        }
    }

    /// What is usual among all documents.
    pub fn usual(&self) -> Usual {
        (0..self.len() as u32).fold(Usual::default(), |sum, doc| sum.and(self.usual_of(doc)))
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds a document.
    pub fn push(&mut self, entry: &DocumentEntry<'_>) {
        let class = self.class(entry.class);
        let scope = self.scope(entry.owner);
        self.scopes.push(scope);
        self.slots.push(entry.slot);
        self.lengths.push(entry.length);
        self.classes.push(class);
        self.confidences.push(entry.confidence);
        self.seqs.push(entry.seq);
        self.times.push(entry.time);
        self.ids.push(entry.id);
    }

    fn class(&mut self, class: &Class) -> u32 {
        if let Some(&last) = self.classes.last()
            && self.kinds[last as usize] == *class
        {
            return last;
        }
        match self.numbers.get(class) {
            Some(&number) => number,
            None => self.name_class(class.clone()),
        }
    }

    fn scope(&mut self, owner: &Carried) -> u32 {
        if let Some(&last) = self.scopes.last()
            && self.owners[last as usize] == *owner
        {
            return last;
        }
        match self.owner_numbers.get(owner) {
            Some(&number) => number,
            None => self.name_owner(owner.clone()),
        }
    }

    /// Gives an owner the next number.
    pub(super) fn name_owner(&mut self, owner: Carried) -> u32 {
        let number = self.owners.len() as u32;
        self.owners.push(owner.clone());
        self.owner_numbers.insert(owner, number);
        number
    }

    /// Gives a class the next number.
    pub(super) fn name_class(&mut self, class: Class) -> u32 {
        let number = self.kinds.len() as u32;
        self.kinds.push(class.clone());
        self.numbers.insert(class, number);
        number
    }

    /// A document.
    pub fn entry(&self, doc: usize) -> DocumentEntry<'_> {
        DocumentEntry {
            slot: self.slots[doc],
            id: self.ids.get(doc),
            class: &self.kinds[self.classes[doc] as usize],
            confidence: self.confidences[doc],
            seq: self.seqs[doc],
            time: self.times[doc],
            length: self.lengths[doc],
            owner: &self.owners[self.scopes[doc] as usize],
        }
    }
}

/// A set of documents of one part.
#[derive(Clone, Debug, Default)]
pub struct DocSet {
    bits: Vec<u64>,
    count: usize,
}

impl DocSet {
    /// Without anyone in it.
    pub const EMPTY: Self = Self {
        bits: Vec::new(),
        count: 0,
    };

    /// Puts one in.
    pub fn insert(&mut self, doc: u32) {
        let at = doc as usize / 64;
        if at >= self.bits.len() {
            self.bits.resize(at + 1, 0);
        }
        let bit = 1 << (doc % 64);
        self.count += usize::from(self.bits[at] & bit == 0);
        self.bits[at] |= bit;
    }

    /// Whether one is in it.
    pub fn contains(&self, doc: u32) -> bool {
        self.bits
            .get(doc as usize / 64)
            .is_some_and(|bits| bits >> (doc % 64) & 1 == 1)
    }

    /// How many are in it.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it is empty.
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
