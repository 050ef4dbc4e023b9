//! Ties between records: the fields by which a record refers to others, and what an erasure does to it.
//!
//! An erasure follows the ties in every version of every record. A record that belongs to an erased one is erased too;
//! any other loses its past versions and is written again without the reference. Each face declares its ties.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::digest::sha256;
use crate::json::{self, RecordSpans, Value};
use crate::scope::{self, Scope};

/// What happens to a record when one that it names is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// It is erased too.
    Belongs,
    /// It repeats their content: the object that holds the name is cut out. A record without any such object left is erased.
    Repeats,
    /// It was made from them: it is erased too if the order says so, otherwise the name is cut out.
    Derived,
    /// The name is cut out.
    Refers,
    /// It is the record that names: its erasure clears fields of those that it names, such as digests of their whole text.
    PartOf,
}

/// How a record spells that it has evidence. All records are looked at: what is looked for is made ready once.
static EVIDENCE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"evidence\":[\""));

/// The records that have a tie.
#[derive(Clone, Copy, Debug)]
pub(super) enum Speaker {
    /// Ids that begin so.
    Prefix(&'static str),
    /// Plain records of a kind.
    Kind(&'static str),
    /// Any record.
    Any,
}

/// How a name is turned into the id of a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum NameKind {
    /// This stands before it.
    Prefix(&'static str),
    /// The id is that of the record that names it, up to its last colon, and the name.
    Sibling,
    /// It is the name of an entity of the knowledge graph of the MCP server, in the scope of the record or a wider one.
    Entity,
    /// It is the id that the graph gives an edge that supersedes: it spells both of its nodes. This stands before their ids.
    Superseding(&'static str),
    /// The field is a text with notes at its end that quote others. A note begins with this, then the name of a sibling.
    Note(&'static str),
}

/// Records that name others. A path is the keys that lead to a field with dots between them; an array on the way stands for
/// each of its elements. Several paths have spaces between them.
#[derive(Debug)]
pub struct Tie {
    pub(super) by: Speaker,
    pub(super) naming: NameKind,
    /// Where the names are.
    pub(super) at: &'static str,
    /// A name counts only if it is here too; empty if it always counts.
    pub(super) also_at: &'static str,
    /// Only records in whose data a field has this text.
    pub(super) only: Option<(&'static str, &'static str)>,
    /// What an erasure of one of them does.
    pub bond: Bond,
    /// Of `Belongs`: what is named is erased with the record that names it, too.
    pub is_mutual: bool,
    /// The object around a name is cut out with it.
    pub(super) is_around: bool,
    /// A field that holds a single name becomes null: the face reads it. Otherwise it is removed.
    pub(super) is_read: bool,
    /// Fields that are computed from what is named: they are cleared when a name is cut out. Of `PartOf`, fields of the named record.
    pub(super) computed: &'static str,
    /// Of `PartOf`, the field of the named record that holds the top of a page: frontmatter, title and text.
    pub(super) head: &'static str,
}

/// Ties of records whose ids begin so, to others whose ids begin so.
pub(super) const fn tie(by: &'static str, of: &'static str, at: &'static str, bond: Bond) -> Tie {
    Tie {
        by: Speaker::Prefix(by),
        naming: NameKind::Prefix(of),
        at,
        also_at: "",
        only: None,
        bond,
        is_mutual: false,
        is_around: matches!(bond, Bond::Repeats),
        is_read: false,
        computed: "",
        head: "",
    }
}

/// Where a record that joins two others names them.
pub(super) const ENDS: &str = "data.from_id data.to_id";

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

    /// The same where the places of its fields are unknown.
    pub fn read(id: &'a [u8], record: &'a [u8]) -> Self {
        Self::of(id, record, json::scan_record(record).unwrap_or_default())
    }
}

impl Tie {
    /// The same, with fields that are computed from what is named.
    pub(super) const fn clearing(self, computed: &'static str) -> Self {
        Self { computed, ..self }
    }

    /// The same, where each of the two is erased with the other.
    pub(super) const fn mutual(self) -> Self {
        Self {
            is_mutual: true,
            ..self
        }
    }

    /// The same, where the object around a name says more of what is named.
    pub(super) const fn around(self) -> Self {
        Self {
            is_around: true,
            ..self
        }
    }

    /// The same, only of records in whose data a field has this text.
    pub(super) const fn only(self, field: &'static str, text: &'static str) -> Self {
        Self {
            only: Some((field, text)),
            ..self
        }
    }

    /// Whether a record may have it; `is_plain` says that it belongs to no face.
    pub(super) fn is_of(&self, said: &SaidRecord<'_>, is_plain: bool) -> bool {
        match self.by {
            Speaker::Prefix(prefix) => said.id.starts_with(prefix.as_bytes()),
            Speaker::Kind(kind) => is_plain && said.kind == Some(kind.as_bytes()),
            Speaker::Any => EVIDENCE.find(said.record).is_some(),
        }
    }

    fn ids_of(&self, record: &Value, name: &str) -> Vec<String> {
        let mut is_confirmed = self.also_at.is_empty();
        for path in self.also_at.split_whitespace() {
            each_name(record, path, &mut |other| is_confirmed |= other == name);
        }
        if let Some((field, text)) = self.only {
            let its = record.get("data").and_then(|data| data.get(field));
            is_confirmed &= its.and_then(Value::as_str) == Some(text);
        }
        match self.naming {
            _ if !is_confirmed => Vec::new(),
            NameKind::Prefix(prefix) => vec![format!("{prefix}{name}")],
            NameKind::Sibling | NameKind::Note(_) => {
                let own = record
                    .get("id")
                    .and_then(Value::as_str)
                    .and_then(|id| id.rsplit_once(':'));
                own.map(|(before, _)| format!("{before}:{name}")).into_iter().collect()
            }
            NameKind::Entity => entity_ids(record, name),
            NameKind::Superseding(prefix) => superseding_nodes(prefix, name),
        }
    }

    /// The ids of those that a record names.
    pub fn names(&self, record: &Value) -> Vec<String> {
        let mut found = Vec::new();
        let mut find = |name: &str| found.extend(self.ids_of(record, name));
        for path in self.at.split_whitespace() {
            each_name(record, path, &mut |text| match self.naming {
                NameKind::Note(mark) => notes(text, mark).for_each(|note| find(note.0)),
                _ => find(text),
            });
        }
        found
    }

    /// Cuts out the names of those whose ids are meant, and clears what was computed from them.
    pub fn cut(&self, record: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
        let whole = record.clone();
        for path in self.at.split_whitespace() {
            let is_cut = |name: &str| self.ids_of(&whole, name).iter().any(|id| is_meant(id));
            self.cut_at(record, path, &is_cut);
        }
        if *record != whole {
            self.clear_computed(record);
            if matches!(self.naming, NameKind::Note(_)) {
                retain_tags(record);
            }
        }
    }

    /// Cuts names out of lists, objects and fields, or the objects around them; true if the value itself is to go.
    fn cut_at(&self, value: &mut Value, path: &str, is_meant: &dyn Fn(&str) -> bool) -> bool {
        match (value, first_key(path)) {
            (Value::Array(items), _) => {
                items.retain_mut(|item| !self.cut_at(item, path, is_meant));
                false
            }
            (Value::Str(text), None) => match self.naming {
                NameKind::Note(mark) => {
                    let erased: Vec<_> = notes(text, mark).filter(|note| is_meant(note.0)).collect();
                    let ranges: Vec<_> = erased.into_iter().map(|note| note.1).rev().collect();
                    if !ranges.is_empty() {
                        ranges.into_iter().for_each(|range| text.replace_range(range, ""));
                        text.truncate(text.trim_end().len());
                    }
                    false
                }
                _ => is_meant(text),
            },
            (Value::Object(pairs), None) => {
                pairs.retain(|(name, _)| !is_meant(name));
                false
            }
            (Value::Object(pairs), Some((key, rest))) => {
                let Some(at) = pairs.iter().position(|pair| pair.0 == key) else {
                    return false;
                };
                let is_taken = self.cut_at(&mut pairs[at].1, rest, is_meant);
                let takes_this = is_taken && rest.is_empty() && self.is_around;
                if is_taken && !takes_this {
                    match self.is_read {
                        true => pairs[at].1 = Value::Null,
                        false => _ = pairs.remove(at),
                    }
                }
                takes_this
            }
            _ => false,
        }
    }

    /// Clears the fields that are computed from what is named.
    pub fn clear_computed(&self, record: &mut Value) {
        let paths = self.computed.split_whitespace();
        paths.for_each(|path| change_at(record, path, &empty));
        if !self.head.is_empty() {
            change_at(record, self.head, &|value| {
                if let Value::Str(text) = value {
                    *text = without_preamble(text);
                }
            });
        }
    }
}

/// The top of a page without its text: the frontmatter, the title and empty lines.
fn without_preamble(head: &str) -> String {
    let is_mark = |line: &str| line.trim_end() == "---";
    let mut lines = head.split_inclusive('\n').peekable();
    let mut kept = String::new();
    if let Some(first) = lines.next_if(|line| is_mark(line)) {
        kept.push_str(first);
        for line in lines.by_ref() {
            kept.push_str(line);
            if is_mark(line) {
                break;
            }
        }
    }
    let mut has_title = false;
    for line in lines {
        let is_title = line.starts_with("# ") && !std::mem::replace(&mut has_title, true);
        if is_title || line.trim().is_empty() {
            kept.push_str(line);
        }
    }
    kept
}

/// The ids of the two nodes that are spelled in the id of an edge: `supersedes:<one>:<other>`, with `%` and `:` escaped.
fn superseding_nodes(prefix: &str, edge: &str) -> Vec<String> {
    let node = |name: &str| format!("{prefix}{}", name.replace("%3A", ":").replace("%25", "%"));
    match edge.strip_prefix("supersedes:").and_then(|ends| ends.split_once(':')) {
        Some((one, other)) if !other.contains(':') => vec![node(one), node(other)],
        _ => Vec::new(),
    }
}

/// The ids of an entity of this name: of the scope of a record, and of any that is wider.
fn entity_ids(record: &Value, name: &str) -> Vec<String> {
    let called = Value::Array(vec![Value::from(name)]).to_bytes();
    let id = format!("ENTITY-{}", &sha256(&called).text()[..32]);
    let mut spelled = Vec::new();
    let carried = record.get("data").and_then(|data| data.get(scope::KEY));
    json::write_value(carried.unwrap_or(&Value::Null), &mut spelled);
    let scope = Scope::read(&spelled).unwrap_or_default();
    let names = scope.names();
    let some_of = |chosen: usize| Scope::of([0, 1, 2].map(|level| names[level].filter(|_| chosen & (1 << level) > 0)));
    let in_scope = |digits: String| match digits.is_empty() {
        true => id.clone(),
        false => format!("{id}@{digits}"),
    };
    (0..8).map(|chosen| in_scope(some_of(chosen).digits())).collect()
}

/// Removes the tags of an entry that are neither in its heading, which has the first `headed` of them, nor in its text.
fn retain_tags(record: &mut Value) {
    let mut data = record.get("data").cloned().unwrap_or(Value::Null);
    let is_said = |tag: &Value| Some(data.get("content")?.as_str()?.contains(&format!("#{}", tag.as_str()?)));
    if let (Some(tags), Some(headed)) = (data.get("tags").and_then(Value::as_array), data.get("headed")) {
        let headed = headed.as_i64().unwrap_or_default() as usize;
        let (first, others) = tags.split_at(headed.min(tags.len()));
        let others = others.iter().filter(|tag| is_said(tag) == Some(true));
        let kept = first.iter().chain(others).cloned().collect();
        data.set("tags", Value::Array(kept));
        record.set("data", data);
    }
}

/// The name and the range of each note in a text: a paragraph that begins with `mark`, a name and `" ("`.
fn notes<'a>(text: &'a str, mark: &'static str) -> impl Iterator<Item = (&'a str, Range<usize>)> {
    let named = move |at: usize| Some((at, text[at + mark.len()..].split_once(" (")?.0));
    let is_note = move |(at, name): &(usize, &str)| {
        (*at == 0 || text[..*at].ends_with("\n\n")) && !name.contains(char::is_whitespace)
    };
    let places = text.match_indices(mark).filter_map(move |(at, _)| named(at));
    places.filter(is_note).map(move |(start, name)| {
        let end = text[start..]
            .find("\n\n")
            .map_or(text.len(), |length| start + length + 2);
        (name, start..end)
    })
}

/// The first key of a path and the rest of it; `None` at its end.
fn first_key(path: &str) -> Option<(&str, &str)> {
    (!path.is_empty()).then(|| path.split_once('.').unwrap_or((path, "")))
}

fn each_name(value: &Value, path: &str, show: &mut dyn FnMut(&str)) {
    match (value, first_key(path)) {
        (Value::Array(items), _) => items.iter().for_each(|item| each_name(item, path, show)),
        (Value::Str(name), None) => show(name),
        (Value::Object(pairs), None) => pairs.iter().for_each(|(name, _)| show(name)),
        (Value::Object(_), Some((key, rest))) => {
            if let Some(inner) = value.get(key) {
                each_name(inner, rest, show);
            }
        }
        _ => {}
    }
}

/// Changes the values at a path; an array on the way stands for each of its elements.
fn change_at(value: &mut Value, path: &str, change: &dyn Fn(&mut Value)) {
    match (value, first_key(path)) {
        (Value::Object(pairs), Some((key, rest))) => {
            let field = pairs.iter_mut().find(|pair| pair.0 == key);
            field.into_iter().for_each(|pair| change_at(&mut pair.1, rest, change));
        }
        (Value::Array(items), Some(_)) => items.iter_mut().for_each(|item| change_at(item, path, change)),
        (value, None) => change(value),
        _ => {}
    }
}

fn empty(value: &mut Value) {
    match value {
        Value::Str(text) => text.clear(),
        Value::Array(items) => items.clear(),
        other => *other = Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_of_a_page_keeps_its_frontmatter_and_title() {
        for (head, left) in [
            ("---\na: 1\n---\n\n# T\n\nsecret\n# x\n", "---\na: 1\n---\n\n# T\n\n"),
            ("secret\n# T\r\nmore", "# T\r\n"),
            ("---\na: 1\n", "---\na: 1\n"),
            ("", ""),
        ] {
            assert_eq!(without_preamble(head), left, "{head:?}");
        }
    }

    #[test]
    fn a_note_ends_with_its_paragraph() {
        let text = "New.\n\nEarlier: a (x): old\nstill old\n\nMine.\n\nEarlier: b (y): older";
        let found: Vec<_> = notes(text, "Earlier: ")
            .map(|(name, range)| (name, &text[range]))
            .collect();
        assert_eq!(
            found,
            [
                ("a", "Earlier: a (x): old\nstill old\n\n"),
                ("b", "Earlier: b (y): older")
            ]
        );
    }
}
