//! The values that a field is compared with, and how it compares with them.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

use super::key;
use chronolog::event::stamp;
use chronolog::json::{Cursor, elements};

/// The names of the types, as the bits of a set.
pub const TYPES: [(&str, u8); 6] = [
    ("number", 1),
    ("string", 2),
    ("bool", 4),
    ("null", 8),
    ("array", 16),
    ("object", 32),
];
const NUMBER: u8 = TYPES[0].1;
const TEXT: u8 = TYPES[1].1;
const ARRAY: u8 = TYPES[4].1;

/// So many operands are compared one by one; more are looked up.
const FEW_OPERANDS: usize = 4;

/// The type of a canonical value.
pub fn type_of(value: &[u8]) -> u8 {
    let at = match value.first() {
        Some(b'"') => 1,
        Some(b't' | b'f') => 2,
        Some(b'n') => 3,
        Some(b'[') => 4,
        Some(b'{') => 5,
        _ => 0,
    };
    TYPES[at].1
}

/// The text of a canonical value, if it is one.
pub fn text_of(value: &[u8]) -> Option<Cow<'_, str>> {
    Cursor::new(value).string()?.text()
}

/// The moment that a canonical value tells, read as a search reads it.
fn moment_of(value: &[u8]) -> Option<i64> {
    match type_of(value) {
        TEXT => stamp::read_short(&text_of(value)?),
        NUMBER => stamp::read_seconds(std::str::from_utf8(value).ok()?),
        _ => None,
    }
}

/// What a field holds when a test looks at it.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue<'a> {
    /// A canonical value.
    Value(Cow<'a, [u8]>),
    /// A moment that stands beside the record, in microseconds since 1970.
    Moment(i64),
}

impl FieldValue<'_> {
    fn moment(&self) -> Option<i64> {
        match self {
            Self::Value(value) => moment_of(value),
            Self::Moment(micros) => Some(*micros),
        }
    }

    /// The value, where there is one.
    pub fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Value(value) => Some(value),
            Self::Moment(_) => None,
        }
    }

    /// The text, where there is one.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        text_of(self.value()?)
    }

    /// The elements, if it is an array.
    pub fn elements(&self) -> Option<impl Iterator<Item = FieldValue<'_>>> {
        let array = self.value().filter(|value| type_of(value) == ARRAY)?;
        Some(elements(array).map(|element| FieldValue::Value(Cow::Borrowed(element))))
    }
}

/// One value that a test names.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A value: its canonical bytes, and the key by which values sort and are equal.
    Value {
        /// The canonical bytes.
        bytes: Vec<u8>,
        /// See `index::key`.
        key: Vec<u8>,
    },
    /// A moment, in microseconds since 1970.
    Moment(i64),
}

impl Operand {
    /// A canonical value.
    pub fn of(bytes: Vec<u8>) -> Self {
        let key = key_of(&bytes);
        Self::Value { bytes, key }
    }

    /// The type of the value; a moment has none.
    pub fn type_of(&self) -> Option<u8> {
        match self {
            Self::Value { bytes, .. } => Some(type_of(bytes)),
            Self::Moment(_) => None,
        }
    }

    /// The key of a value that has nothing in it; `None` of all others.
    pub fn scalar_key(&self) -> Option<&[u8]> {
        match self {
            Self::Value { bytes, key } if !matches!(bytes.first(), Some(b'[' | b'{')) => Some(key),
            _ => None,
        }
    }

    /// Whether it is a text.
    pub fn is_text(&self) -> bool {
        self.type_of() == Some(TEXT)
    }

    /// Whether a field holds this.
    pub fn equals(&self, held: &FieldValue<'_>) -> bool {
        match self {
            Self::Moment(micros) => held.moment() == Some(*micros),
            Self::Value { bytes, key } => held.value().is_some_and(|value| {
                let type_of_value = type_of(value);
                // Only numbers have several spellings, alone or within something else.
                let may_differ = type_of_value == NUMBER || matches!(value.first(), Some(b'[' | b'{'));
                value == &bytes[..] || (may_differ && type_of_value == type_of(bytes) && key_of(value) == *key)
            }),
        }
    }

    /// How what a field holds compares with this; `None` where there is no order.
    pub fn order_of(&self, held: &FieldValue<'_>) -> Option<Ordering> {
        match self {
            Self::Moment(micros) => held.moment().map(|moment| moment.cmp(micros)),
            Self::Value { bytes, key } => {
                let value = held.value()?;
                let kind = type_of(value);
                let has_order = kind == type_of(bytes) && (kind == NUMBER || kind == TEXT);
                has_order.then(|| key_of(value)[..].cmp(&key[..]))
            }
        }
    }
}

fn key_of(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 8);
    key::spell(value, &mut out);
    out
}

/// Several values that a test names.
#[derive(Clone, Debug, PartialEq)]
pub struct Operands {
    each: Vec<Operand>,
    keys: HashSet<Vec<u8>>,
    moments: HashSet<i64>,
}

impl Operands {
    /// These.
    pub fn new(each: Vec<Operand>) -> Self {
        let (mut keys, mut moments) = (HashSet::new(), HashSet::new());
        for operand in &each {
            _ = match operand {
                Operand::Value { key, .. } => keys.insert(key.clone()),
                Operand::Moment(micros) => moments.insert(*micros),
            };
        }
        Self { each, keys, moments }
    }

    /// Each of them.
    pub fn each(&self) -> &[Operand] {
        &self.each
    }

    /// Whether a field holds one of them.
    pub fn have(&self, held: &FieldValue<'_>) -> bool {
        if self.each.len() <= FEW_OPERANDS {
            return self.each.iter().any(|operand| operand.equals(held));
        }
        held.value().is_some_and(|value| self.keys.contains(&key_of(value)))
            || (!self.moments.is_empty() && held.moment().is_some_and(|moment| self.moments.contains(&moment)))
    }

    /// Whether a field holds an array that has all of them; `None` if it holds none.
    pub fn all_in(&self, held: &FieldValue<'_>) -> Option<bool> {
        let held_elements: Vec<FieldValue<'_>> = held.elements()?.collect();
        if self.each.len() <= FEW_OPERANDS {
            let is_there = |operand: &Operand| held_elements.iter().any(|element| operand.equals(element));
            return Some(self.each.iter().all(is_there));
        }
        let values = held_elements.iter().filter_map(FieldValue::value);
        let keys: HashSet<Vec<u8>> = values.map(key_of).collect();
        let moments: HashSet<i64> = match self.moments.is_empty() {
            true => HashSet::new(),
            false => held_elements.iter().filter_map(FieldValue::moment).collect(),
        };
        Some(self.keys.is_subset(&keys) && self.moments.is_subset(&moments))
    }
}
