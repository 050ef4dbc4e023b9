//! What belongs to a record, and what only speaks of it?
//!
//! A tie says in which fields records of one kind name others. Who erases a record follows the ties: what belongs to it goes with
//! it, what speaks of it is told. A new face is some rows here.

use crate::json::{self, Value};

use super::faces::face_of;

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
enum Speaker {
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
const fn tie(by: &'static str, of: &'static str, at: &'static [&'static [&'static str]], bond: Bond) -> Tie {
    let by = Speaker::Prefix(by);
    Tie { by, of, at, bond }
}

/// Ties of any records to others that they name by their ids.
const fn whole(by: Speaker, at: &'static [&'static [&'static str]], bond: Bond) -> Tie {
    Tie { by, of: "", at, bond }
}

const ENDS: &[&[&str]] = &[&["data", "from_id"], &["data", "to_id"]];
const LINEAGE: &[&[&str]] = &[&["data", "lineage", "source_episode_ids"]];
const EARLIER: &[&[&str]] = &[&["data", "earlier"]];
const TARGETS: &[&[&str]] = &[&["data", "actions", "target"]];

/// All ties.
static TIES: [Tie; 24] = [
    whole(Speaker::Kind("edge", b"\"kind\":\"edge\""), ENDS, Bond::Belongs),
    whole(
        Speaker::Kind("rollback_event", b"\"kind\":\"rollback_event\""),
        &[
            &["data", "target_id"],
            &["data", "affected"],
            &["data", "changes", "record_id"],
        ],
        Bond::BelongsToAll,
    ),
    whole(Speaker::Any, &[&["evidence"]], Bond::Mentions),
    tie("bedge:", "block:", ENDS, Bond::Belongs),
    tie(
        "contradiction:",
        "block:",
        &[&["data", "block_a_id"], &["data", "block_b_id"]],
        Bond::Belongs,
    ),
    tie(
        "block:",
        "block:",
        &[&["data", "supersedes"], &["data", "superseded_by"]],
        Bond::Mentions,
    ),
    tie("fact:", "episode:", LINEAGE, Bond::Derived),
    tie("fact:", "", EARLIER, Bond::Derived),
    tie("rule:lineage:", "episode:", LINEAGE, Bond::Derived),
    tie("rule:lineage:", "", EARLIER, Bond::Derived),
    tie(
        "rule:noop:",
        "episode:",
        &[&["data", "source_episode_ids"]],
        Bond::Belongs,
    ),
    tie(
        "gedge:",
        "node:",
        &[&["data", "source"], &["data", "target"]],
        Bond::Belongs,
    ),
    tie(
        "event:",
        "node:",
        &[
            &["data", "data", "nodes", "id"],
            &["data", "data", "gone_nodes"],
            &["data", "data", "action", "target"],
        ],
        Bond::Repeats,
    ),
    tie(
        "event:",
        "gedge:",
        &[
            &["data", "data", "edges", "id"],
            &["data", "data", "gone_edges"],
            &["data", "data", "action", "target"],
        ],
        Bond::Repeats,
    ),
    tie(
        "event:",
        "profile:",
        &[&["data", "data", "profiles", "id"]],
        Bond::Repeats,
    ),
    tie("event:", "path:", &[&["data", "data", "paths", "id"]], Bond::Repeats),
    tie("event:", "node:", &[&["data", "refs"]], Bond::Mentions),
    tie("event:", "path:", &[&["data", "path_id"]], Bond::Mentions),
    tie("path:", "event:", &[&["data", "event_ids"]], Bond::Mentions),
    tie(
        "path:",
        "node:",
        &[&["data", "compaction", "summary_id"]],
        Bond::Mentions,
    ),
    tie("plan:", "node:", &[&["data", "node_ids"]], Bond::Mentions),
    tie("audit:", "node:", TARGETS, Bond::Mentions),
    tie("audit:", "gedge:", TARGETS, Bond::Mentions),
    tie("entry:", "", &[&["data", "page"]], Bond::Belongs),
];

/// The ties that a record may have, by its id as it stands between quotes and its canonical bytes.
pub fn ties_of<'a>(id: &'a [u8], record: &'a [u8]) -> impl Iterator<Item = &'static Tie> + use<'a> {
    let is_plain = face_of(id).is_none();
    TIES.iter().filter(move |tie| match tie.by {
        Speaker::Prefix(prefix) => id.starts_with(prefix.as_bytes()),
        Speaker::Kind(kind, spelled) => is_plain && is_of_kind(record, kind, spelled),
        Speaker::Any => memchr::memmem::find(record, b"\"evidence\":[\"").is_some(),
    })
}

/// Most records do not even hold the word.
fn is_of_kind(record: &[u8], kind: &str, spelled: &[u8]) -> bool {
    let kind_in = || Some(json::scan_record(record)?.kind?.of(record) == kind.as_bytes());
    memchr::memmem::find(record, spelled).is_some() && kind_in() == Some(true)
}

impl Tie {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).expect("JSON")
    }

    #[test]
    fn a_record_names_others_by_its_fields() {
        let named = |id: &str, record: &str| {
            let ties = ties_of(id.as_bytes(), record.as_bytes());
            let all = ties.flat_map(|tie| tie.names(&value(record)).into_iter().map(|name| (tie.bond, name)));
            all.collect::<Vec<_>>()
        };
        let edge = r#"{"data":{"from_id":"a","to_id":"b"},"evidence":["c"],"id":"E","kind":"edge"}"#;
        let both = ["a", "b"].map(|id| (Bond::Belongs, id.to_owned()));
        let evidence = (Bond::Mentions, "c".to_owned());
        assert_eq!(named("E", edge), [both[0].clone(), both[1].clone(), evidence]);
        assert_eq!(
            named("E", r#"{"data":{"from_id":"a","kind":"edge"},"id":"E","kind":"fact"}"#),
            []
        );
        let link = named("bedge:a:b", r#"{"data":{"from_id":"a","to_id":"b"}}"#);
        assert_eq!(link[0], (Bond::Belongs, "block:a".to_owned()));
    }

    #[test]
    fn what_is_repeated_is_cut_out() {
        let mut event = value(
            r#"{"data":{"data":{"action":{"payload":{"label":"x"},"target":"z"},"edges":[{"id":"e"}],"gone_nodes":["z","y"],"nodes":[{"id":"z","label":"x"},{"id":"y"}]}}}"#,
        );
        let ties: Vec<&Tie> = ties_of(b"event:1", b"{}")
            .filter(|tie| tie.bond == Bond::Repeats)
            .collect();
        for tie in &ties {
            tie.cut(&mut event, &|id| id == "node:z");
        }
        let left = value(r#"{"data":{"data":{"edges":[{"id":"e"}],"gone_nodes":["y"],"nodes":[{"id":"y"}]}}}"#);
        assert_eq!(event, left);
        let names: Vec<String> = ties.iter().flat_map(|tie| tie.names(&event)).collect();
        assert_eq!(names, ["node:y", "node:y", "gedge:e"]);
    }
}
