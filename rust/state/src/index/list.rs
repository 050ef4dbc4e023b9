//! What a list of keys is of, and the keys that a record has in it.

use chronolog::event::faces::{FaceIndex, index_named};
use chronolog::json::{elements, members};

use crate::condition::key::{spell, spell_missing};
use crate::condition::{Facts, FieldPath, FieldValue, indexable};

/// What a list of keys is of.
#[derive(Clone, Debug)]
pub enum KeyList {
    /// A field of all records: every value of it, or every element of an array.
    Field(FieldPath),
    /// A declared index of a face: the fields that its records are looked up by, and what orders them.
    Face(&'static FaceIndex),
}

const FIELD: &str = "field ";
const FACE: &str = "face ";

impl KeyList {
    /// Its name, by which files list it.
    pub fn name(&self) -> String {
        match self {
            Self::Field(path) => format!("{FIELD}{path}"),
            Self::Face(index) => format!("{FACE}{}", index.name),
        }
    }

    /// The list of a name.
    pub fn named(name: &str) -> Option<Self> {
        match name.strip_prefix(FIELD) {
            Some(path) => indexable(path).map(Self::Field),
            None => index_named(name.strip_prefix(FACE)?).map(Self::Face),
        }
    }

    /// Whether it is of a field.
    pub fn is_of_field(&self) -> bool {
        matches!(self, Self::Field(_))
    }

    /// Whether records of a class may have keys in it.
    pub fn may_hold(&self, kind: &[u8], status: &[u8], face: bool) -> bool {
        match self {
            Self::Field(_) => true,
            Self::Face(index) => {
                let is_of_status = index.status.is_empty() || status == index.status.as_bytes();
                face != index.is_plain() && kind == index.kind.as_bytes() && is_of_status
            }
        }
    }

    /// The keys of a canonical record of such a class, ascending.
    pub fn keys_of(&self, record: &[u8]) -> Vec<Vec<u8>> {
        let mut keys = match self {
            Self::Field(path) => field_keys(path, record),
            Self::Face(index) => face_keys(index, record).unwrap_or_default(),
        };
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

fn spelled(value: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    spell(value, &mut key);
    key
}

fn field_keys(path: &FieldPath, record: &[u8]) -> Vec<Vec<u8>> {
    let held = path.find(record, &Facts::default());
    let Some(value) = held.as_ref().and_then(FieldValue::value) else {
        return Vec::new();
    };
    let is_scalar = |value: &&[u8]| !matches!(value.first(), Some(b'[' | b'{'));
    match value.first() {
        Some(b'[') => elements(value).filter(is_scalar).map(spelled).collect(),
        Some(b'{') => Vec::new(),
        _ => vec![spelled(value)],
    }
}

/// `None` if the record lacks a field that it would be looked up by.
fn face_keys(index: &FaceIndex, record: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut keys = vec![Vec::new()];
    for path in index.by {
        keys = spread(&keys, field(record, path)?);
    }
    let then = field(record, index.then);
    for key in &mut keys {
        match then {
            None | Some(b"null") => spell_missing(key),
            Some(value) => spell(value, key),
        }
    }
    Some(keys)
}

/// Each key with a value behind it, or with each element of an array, or with each key of an object.
fn spread(keys: &[Vec<u8>], value: &[u8]) -> Vec<Vec<u8>> {
    let values: Vec<Vec<u8>> = match value.first() {
        Some(b'[') => elements(value).map(spelled).collect(),
        Some(b'{') => members(value)
            .map(|(key, _)| spelled(&[b"\"", key, b"\""].concat()))
            .collect(),
        _ => vec![spelled(value)],
    };
    let with = |key: &Vec<u8>| {
        values
            .iter()
            .map(|value| [&key[..], value].concat())
            .collect::<Vec<_>>()
    };
    keys.iter().flat_map(with).collect()
}

/// The canonical value that a path of keys with dots between them leads to; `None` if there is none.
pub fn field<'a>(record: &'a [u8], path: &str) -> Option<&'a [u8]> {
    path.split('.').try_fold(record, |value, step| {
        let member = members(value).find(|(key, _)| *key == step.as_bytes());
        member.map(|(_, value)| value)
    })
}
