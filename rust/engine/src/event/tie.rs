//! What belongs to a record, and what only speaks of it?
//!
//! A tie says in which fields records of one kind name others. Who erases a record follows the ties: what belongs to it goes with
//! it, what speaks of it is told. Each face declares its own.

use crate::json::{self, Value};

/// How a record stands to those that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// It goes with any of them.
    Belongs,
    /// It goes with all of them; with some it stays, and speaks of them.
    BelongsToAll,
    /// It repeats what they say: that is cut out, and the rest is said again. With nothing left it goes.
    Repeats,
    /// It was made from them: it goes with any of them if that is asked for.
    Derived,
    /// It speaks of them.
    Mentions,
}

/// Who names others.
#[derive(Clone, Copy, Debug)]
pub(super) enum Speaker {
    /// Ids that begin so.
    Prefix(&'static str),
    /// Plain records of a kind; and how a record spells it.
    Kind(&'static str, &'static [u8]),
    /// Any record.
    Any,
}

/// Records that name others.
#[derive(Debug)]
pub struct Tie {
    by: Speaker,
    /// What stands before a name in the ids of those that are named; nothing if they are named by their ids.
    of: &'static str,
    /// Where the names stand. An array stands for each of its elements.
    at: &'static [&'static [&'static str]],
    /// How they stand to them.
    pub bond: Bond,
}

/// Ties of records whose ids begin so, to others whose ids begin so.
pub(super) const fn tie(by: &'static str, of: &'static str, at: &'static [&'static [&'static str]], bond: Bond) -> Tie {
    let by = Speaker::Prefix(by);
    Tie { by, of, at, bond }
}

/// Ties of any records to others that they name by their ids.
pub(super) const fn whole(by: Speaker, at: &'static [&'static [&'static str]], bond: Bond) -> Tie {
    Tie { by, of: "", at, bond }
}

/// Where a record that joins two others names them.
pub(super) const ENDS: &[&[&str]] = &[&["data", "from_id"], &["data", "to_id"]];

/// Most records do not even hold the word.
fn is_of_kind(record: &[u8], kind: &str, spelled: &[u8]) -> bool {
    let kind_in = || Some(json::scan_record(record)?.kind?.of(record) == kind.as_bytes());
    memchr::memmem::find(record, spelled).is_some() && kind_in() == Some(true)
}

impl Tie {
    /// Whether a record may have it; `is_plain` says that it belongs to no face.
    pub(super) fn is_of(&self, id: &[u8], record: &[u8], is_plain: bool) -> bool {
        match self.by {
            Speaker::Prefix(prefix) => id.starts_with(prefix.as_bytes()),
            Speaker::Kind(kind, spelled) => is_plain && is_of_kind(record, kind, spelled),
            Speaker::Any => memchr::memmem::find(record, b"\"evidence\":[\"").is_some(),
        }
    }

    /// The ids of those that a record names.
    pub fn names(&self, record: &Value) -> Vec<String> {
        let mut found = Vec::new();
        for path in self.at {
            each_name(record, path, &mut |name| found.push(format!("{}{name}", self.of)));
        }
        found
    }

    /// Cuts out what a record repeats of those whose ids are meant.
    pub fn cut(&self, record: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
        for path in self.at {
            cut(record, path, &|name| is_meant(&format!("{}{name}", self.of)));
        }
    }
}

fn each_name(value: &Value, path: &[&str], show: &mut dyn FnMut(&str)) {
    match (value, path.split_first()) {
        (Value::Array(items), _) => items.iter().for_each(|item| each_name(item, path, show)),
        (Value::Str(name), None) => show(name),
        (Value::Object(_), Some((key, rest))) => {
            if let Some(inner) = value.get(key) {
                each_name(inner, rest, show);
            }
        }
        _ => {}
    }
}

/// Takes out the element of an array, or the object in another, in which such a name stands; whether the value itself is one.
fn cut(value: &mut Value, path: &[&str], is_meant: &dyn Fn(&str) -> bool) -> bool {
    match (value, path.split_first()) {
        (Value::Array(items), _) => {
            items.retain_mut(|item| !cut(item, path, is_meant));
            false
        }
        (Value::Str(name), None) => is_meant(name),
        (Value::Object(pairs), Some((key, rest))) => {
            let Some(at) = pairs.iter().position(|pair| pair.0 == *key) else {
                return false;
            };
            let goes = cut(&mut pairs[at].1, rest, is_meant);
            if goes && !rest.is_empty() {
                pairs.remove(at);
            }
            goes && rest.is_empty()
        }
        _ => false,
    }
}
