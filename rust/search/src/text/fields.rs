//! Chooses the parts of a record that are read, and as what.
//!
//! A record says by its field names what is text, what is a tag, what leads to another record, what puts it into a group and
//! when it happened. The names are chosen once for a store, by a record of its own, so that all processes read alike; until
//! then those below hold, which are the names that the faces use.

use chronolog::event::faces::{ERASURES, SEARCH, VECTORS, face_of};
use chronolog::event::stamp;
use chronolog::json::{self, Cursor, Value};
use chronomemory_state::state::{spelled, unspelled};

/// The record that holds a store's own choice.
pub const CHOICE_ID: &str = "search:fields";

/// Whether a record is a document. What says which embeddings there are, what is searched or what was erased is no knowledge: it
/// must not be found, nor count in what is usual.
pub fn is_searched(id: &[u8]) -> bool {
    !matches!(face_of(id), Some(ERASURES | SEARCH | VECTORS))
}

/// Whether a link with this data, in canonical JSON, states only that its ends are alike.
pub fn is_of_likeness(data: &[u8]) -> bool {
    json::members(data).any(|(key, value)| key == b"made_by" && value == br#""likeness""#)
}

/// Names that are read as text, and how much a word in them weighs.
const TEXT: [(&str, u16); 17] = [
    ("label", 2),
    ("data.title", 2),
    ("data.name", 2),
    ("data.content", 1),
    ("data.text", 1),
    ("data.body", 1),
    ("data.summary", 1),
    ("data.description", 1),
    ("data.caption", 1),
    ("data.speaker", 1),
    ("data.subject", 1),
    ("data.predicate", 1),
    ("data.object", 1),
    ("data.notes", 1),
    ("data.reason", 1),
    ("data.category", 1),
    ("data.tags", 1),
];
const TAGS: [&str; 1] = ["data.tags"];
const LINKS: [&str; 10] = [
    "data.previous",
    "data.next",
    "data.reply_to",
    "data.parent",
    "data.links",
    "data.refs",
    "data.from_id",
    "data.to_id",
    "data.source_id",
    "data.target_id",
];
const GROUPS: [&str; 4] = ["data.session", "data.conversation", "data.thread", "data.path_id"];
/// Who says it: a question that names one of them is about what that one says.
const SPEAKERS: [&str; 2] = ["data.speaker", "data.author"];
const TIMES: [&str; 4] = ["data.time", "data.timestamp", "data.created_at", "data.date"];

/// What a field is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Words, with their weight.
    Text(u16),
    /// A tag.
    Tag,
    /// The id of another record.
    Link,
    /// A group that the record belongs to, by the number of the field.
    Group(u16),
    /// When it happened, by the number of the field: the first that is there counts.
    Time(u16),
    /// Who says it.
    Speaker,
}

/// What was found in a record.
pub enum FoundField<'a> {
    /// A text and its weight.
    Text(&'a str, u16),
    /// A tag.
    Tag(&'a str),
    /// The id of another record.
    Link(&'a str),
    /// A group: the number of the field, and its value.
    Group(u16, &'a str),
    /// The number of the field, and a moment in microseconds since 1970.
    Time(u16, i64),
    /// Who says it.
    Speaker(&'a str),
}

#[derive(Clone, Debug, Default)]
struct Node {
    key: Vec<u8>,
    roles: Vec<Role>,
    children: Vec<Node>,
}

impl Node {
    /// Drops what leads to no such role; says whether anything is left.
    fn keep(&mut self, wanted: fn(&Role) -> bool) -> bool {
        self.roles.retain(wanted);
        self.children.retain_mut(|child| child.keep(wanted));
        !self.roles.is_empty() || !self.children.is_empty()
    }
}

/// The fields that are read.
#[derive(Clone, Debug)]
pub struct Fields {
    root: Node,
}

impl Default for Fields {
    fn default() -> Self {
        Self::chosen(None)
    }
}

impl Fields {
    /// The choice that a record holds; what it does not speak of stays as it is by default.
    pub fn chosen(record: Option<&[u8]>) -> Self {
        let record = record.and_then(|record| json::parse(record).ok());
        let data = record.as_ref().and_then(|record| record.get("data"));
        let data = data.unwrap_or(&Value::Null);
        let mut fields = Self { root: Node::default() };
        match data.get("text") {
            Some(Value::Object(weights)) => {
                for (path, weight) in weights {
                    let weight = weight.as_i64().map_or(1, |weight| weight.clamp(1, 100) as u16);
                    fields.add(path, Role::Text(weight));
                }
            }
            _ => TEXT
                .iter()
                .for_each(|&(path, weight)| fields.add(path, Role::Text(weight))),
        }
        for path in paths(data, "tags", &TAGS) {
            fields.add(&path, Role::Tag);
        }
        for path in paths(data, "links", &LINKS) {
            fields.add(&path, Role::Link);
        }
        for (number, path) in (0..).zip(paths(data, "groups", &GROUPS)) {
            fields.add(&path, Role::Group(number));
        }
        for (number, path) in (0..).zip(paths(data, "times", &TIMES)) {
            fields.add(&path, Role::Time(number));
        }
        for path in paths(data, "speakers", &SPEAKERS) {
            fields.add(&path, Role::Speaker);
        }
        fields
    }

    fn add(&mut self, path: &str, role: Role) {
        let mut node = &mut self.root;
        for key in path.split('.') {
            let key = spelled(key);
            let at = match node.children.iter().position(|child| child.key == key) {
                Some(at) => at,
                None => {
                    node.children.push(Node { key, ..Node::default() });
                    node.children.len() - 1
                }
            };
            node = &mut node.children[at];
        }
        node.roles.push(role);
    }

    /// The same without all that says nothing of when something happened: that is passed unread.
    #[must_use]
    pub fn only_times(mut self) -> Self {
        self.root.keep(|role| matches!(role, Role::Time(_)));
        self
    }

    /// When what a record tells happened, in microseconds since 1970, if it says so: the first field that does counts.
    pub fn happened(&self, record: &[u8]) -> Option<i64> {
        let mut first: Option<(u16, i64)> = None;
        self.read(record, &mut |found| {
            if let FoundField::Time(number, micros) = found
                && first.is_none_or(|(before, _)| number < before)
            {
                first = Some((number, micros));
            }
        });
        first.map(|(_, micros)| micros)
    }

    /// Shows what stands in a canonical record, in the order of its keys.
    pub fn read(&self, record: &[u8], see: &mut dyn FnMut(FoundField<'_>)) {
        walk(&self.root, &mut Cursor::new(record), false, see);
    }
}

fn paths(data: &Value, name: &str, usual: &[&str]) -> Vec<String> {
    match data.get(name) {
        Some(Value::Array(paths)) => paths
            .iter()
            .filter_map(|path| path.as_str().map(str::to_owned))
            .collect(),
        _ => usual.iter().map(|&path| path.to_owned()).collect(),
    }
}

/// Walks through the object that a cursor stands at, to its end if somebody goes on from there; `None` if it stands at none.
fn walk(node: &Node, cursor: &mut Cursor<'_>, to_end: bool, see: &mut dyn FnMut(FoundField<'_>)) -> Option<()> {
    cursor.pass(b"{")?;
    let mut left = node.children.len();
    while (to_end || left > 0) && cursor.has_more(b'}')? {
        let key = cursor.key()?.inner;
        let child = node.children.iter().find(|child| child.key == key);
        left -= usize::from(child.is_some());
        let roles = child.map_or(&[][..], |child| &child.roles);
        let inside = child.filter(|child| !child.children.is_empty() && cursor.peek() == Some(b'{'));
        let mut ahead = *cursor;
        // What is only walked through is passed that way, and not looked at twice.
        match inside {
            Some(child) if roles.is_empty() => walk(child, cursor, to_end || left > 0, see)?,
            _ => {
                let value = cursor.value()?;
                roles.iter().for_each(|&role| show(role, value, see));
                inside.and_then(|child| walk(child, &mut ahead, false, see));
            }
        }
    }
    Some(())
}

/// Shows a value; of a list each element, of an object each member.
fn show(role: Role, value: &[u8], see: &mut dyn FnMut(FoundField<'_>)) {
    match value {
        [b'"', inner @ .., b'"'] => with_text(inner, |text| match role {
            Role::Text(weight) => see(FoundField::Text(text, weight)),
            Role::Tag => see(FoundField::Tag(text)),
            Role::Link => see(FoundField::Link(text)),
            Role::Group(number) => see(FoundField::Group(number, text)),
            Role::Speaker => see(FoundField::Speaker(text)),
            Role::Time(number) => {
                if let Some(micros) = stamp::read_short(text) {
                    see(FoundField::Time(number, micros));
                }
            }
        }),
        [b'[', ..] => json::elements(value).for_each(|element| show(role, element, see)),
        [b'{', ..] => json::members(value).for_each(|(_, member)| show(role, member, see)),
        [b'-' | b'0'..=b'9', ..] => {
            let text = std::str::from_utf8(value).unwrap_or_default();
            match role {
                Role::Group(number) => see(FoundField::Group(number, text)),
                Role::Text(weight) => see(FoundField::Text(text, weight)),
                Role::Time(number) => {
                    if let Some(micros) = stamp::read_seconds(text) {
                        see(FoundField::Time(number, micros));
                    }
                }
                Role::Tag | Role::Link | Role::Speaker => {}
            }
        }
        _ => {}
    }
}

fn with_text(raw: &[u8], see: impl FnOnce(&str)) {
    match std::str::from_utf8(raw) {
        Ok(text) if !raw.contains(&b'\\') => see(text),
        _ => see(&unspelled(raw)),
    }
}
