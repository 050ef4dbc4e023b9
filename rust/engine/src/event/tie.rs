//! Ties between records: the fields by which one belongs to another, or only speaks of it.
//!
//! A tie says in which fields records of one kind name others. Who erases a record follows the ties: what belongs to it goes with
//! it, what speaks of it is told. Each face declares its own.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::json::{self, RecordSpans, Value};

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
    /// It keeps a list of them for its own use: they are struck out where it is said again.
    Lists,
    /// It speaks of them.
    Mentions,
}

/// How a record spells that it has evidence. All records are looked at: what is looked for is made ready once.
static EVIDENCE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"evidence\":[\""));

/// Who names others.
#[derive(Clone, Copy, Debug)]
pub(super) enum Speaker {
    /// Ids that begin so.
    Prefix(&'static str),
    /// Plain records of a kind.
    Kind(&'static str),
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

/// A record as it was said some time.
#[derive(Clone, Copy, Debug)]
pub struct SaidRecord<'a> {
    /// Its id as it stands between quotes.
    pub id: &'a [u8],
    /// Its canonical bytes.
    pub record: &'a [u8],
    /// Its kind as it stands between quotes, if it has one.
    pub kind: Option<&'a [u8]>,
}

impl<'a> SaidRecord<'a> {
    /// A record, where its fields lie.
    pub fn of(id: &'a [u8], record: &'a [u8], fields: RecordSpans) -> Self {
        Self {
            id,
            record,
            kind: fields.kind.map(|span| span.of(record)),
        }
    }

    /// The same where nobody knows where its fields lie.
    pub fn read(id: &'a [u8], record: &'a [u8]) -> Self {
        Self::of(id, record, json::scan_record(record).unwrap_or_default())
    }
}

impl Tie {
    /// Whether a record may have it; `is_plain` says that it belongs to no face.
    pub(super) fn is_of(&self, said: &SaidRecord<'_>, is_plain: bool) -> bool {
        match self.by {
            Speaker::Prefix(prefix) => said.id.starts_with(prefix.as_bytes()),
            Speaker::Kind(kind) => is_plain && said.kind == Some(kind.as_bytes()),
            Speaker::Any => EVIDENCE.find(said.record).is_some(),
        }
    }

    /// What the ids of those begin with that have it, if that tells.
    #[cfg(test)]
    pub(super) fn prefix(&self) -> Option<&'static str> {
        match self.by {
            Speaker::Prefix(prefix) => Some(prefix),
            _ => None,
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

    /// Strikes those whose ids are meant out of lists; a list with nothing left in it goes.
    pub fn strike(&self, record: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
        self.cut(record, is_meant);
        self.at.iter().for_each(|path| drop_empty(record, path));
    }
}

/// Takes a list out of the object that it stands in, if nothing is left of it.
fn drop_empty(value: &mut Value, path: &[&str]) {
    let (Value::Object(fields), Some((key, rest))) = (value, path.split_first()) else {
        return;
    };
    if rest.is_empty() {
        fields.retain(|(name, field)| name != key || !matches!(field, Value::Array(items) if items.is_empty()));
    } else if let Some((_, inner)) = fields.iter_mut().find(|(name, _)| name == key) {
        drop_empty(inner, rest);
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
