//! What does a rule make of an episode?
//!
//! Of each episode one delta is made, in the order in which they come, by the first row that fits:
//!
//! | metadata | delta |
//! |---|---|
//! | `intent` is `noop` | noop |
//! | `intent` is `delete` or `update` | that, of what `replaces` names; if it names nothing, the episode is bad |
//! | subject and predicate were spoken of before, by the same user and agent | update, of the episode that did so last |
//! | anything else | add |
//!
//! There may be millions of them, so a delta holds pieces of the record as they are written there.

use std::collections::HashMap;
use std::sync::Arc;

use crate::json::{Cursor, Quoted, elements, members};
use crate::scope::Carried;

/// What every id of an episode begins with.
const PREFIX: &[u8] = b"episode:";

/// What becomes of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A fact is new.
    Add,
    /// A fact takes the place of others.
    Update,
    /// Facts are no longer believed.
    Delete,
    /// Nothing changes.
    Noop,
    /// It wants to update or delete, and does not say what.
    Bad,
}

/// What is made of an episode.
#[derive(Debug)]
pub struct EpisodeDelta<'a> {
    /// What becomes of it.
    pub verdict: Verdict,
    /// Its id, without the prefix.
    pub id: Quoted<'a>,
    /// Whose it is, see [`EpisodeSorter::owner`].
    pub owner: usize,
    /// What was said, and where it comes from.
    pub content: Quoted<'a>,
    /// Likewise.
    pub source_node: Quoted<'a>,
    /// Subject, predicate and object, as JSON; `None` for what is not there, or null.
    pub said: [Option<&'a [u8]>; 3],
    /// How sure it is.
    pub confidence: f64,
    /// Which facts it replaces, each once.
    pub replaces: Vec<Arc<str>>,
}

/// An episode as its face writes it.
struct EpisodeFields<'a> {
    id: Quoted<'a>,
    scope: &'a [u8],
    content: Quoted<'a>,
    metadata: &'a [u8],
    source_node: Quoted<'a>,
}

fn quoted(value: &[u8]) -> Option<Quoted<'_>> {
    Cursor::new(value).string()
}

/// Whether a text says nothing: as Python strips it, to which four separators are white space as well.
fn is_blank(text: &str) -> bool {
    text.chars()
        .all(|letter| letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter))
}

impl<'a> EpisodeFields<'a> {
    /// Reads a record; `None` if it is no episode. Another tool may have written anything under the prefix: what it left blank
    /// or out is nobody's turn, and is passed over.
    fn read(record: &'a [u8]) -> Option<Self> {
        let (mut id, mut data) = (None, None);
        for (key, value) in members(record) {
            match key {
                b"data" => data = Some(value),
                b"id" => {
                    id = quoted(value);
                    break;
                }
                _ => {}
            }
        }
        let whole = id?;
        let id = Quoted {
            inner: whole.inner.strip_prefix(PREFIX)?,
            ..whole
        };
        if is_blank(&id.text()?) {
            return None;
        }
        let (mut scope, mut content, mut metadata, mut source_node, mut timestamp) = (None, None, None, None, None);
        for (key, value) in members(data?) {
            match key {
                b"@scope" => scope = Some(value),
                b"content" => content = quoted(value),
                b"metadata" => metadata = Some(value).filter(|value| value.starts_with(b"{")),
                b"source_node" => source_node = quoted(value),
                b"timestamp" => timestamp = quoted(value),
                _ => {}
            }
        }
        timestamp?;
        Some(Self {
            id,
            scope: scope?,
            content: content?,
            metadata: metadata?,
            source_node: source_node?,
        })
    }
}

/// What an episode means, as its metadata says.
#[derive(Default)]
struct Meaning<'a> {
    intent: Option<&'a [u8]>,
    replaces: Option<&'a [u8]>,
    confidence: Option<f64>,
    said: [Option<&'a [u8]>; 3],
}

impl<'a> Meaning<'a> {
    fn read(metadata: &'a [u8]) -> Self {
        let mut told = Self::default();
        for (key, value) in members(metadata) {
            let there = Some(value).filter(|value| *value != b"null");
            match key {
                b"confidence" => told.confidence = certainty(value),
                b"intent" => told.intent = there,
                b"replaces" => told.replaces = there,
                b"subject" => told.said[0] = there,
                b"predicate" => told.said[1] = there,
                b"object" => told.said[2] = there,
                _ => {}
            }
        }
        told
    }

    /// Which facts it says it replaces, each once; none if it does not say so in words.
    fn replaced(&self) -> Vec<Arc<str>> {
        let word = |value: &[u8]| {
            let text = quoted(value)?.text()?;
            (!is_blank(&text)).then(|| Arc::from(&*text))
        };
        let Some(value) = self.replaces else { return Vec::new() };
        let words: Option<Vec<Arc<str>>> = match value.first() {
            Some(b'[') => elements(value).map(word).collect(),
            _ => word(value).map(|word| vec![word]),
        };
        let mut once: Vec<Arc<str>> = Vec::new();
        for word in words.unwrap_or_default() {
            if !once.contains(&word) {
                once.push(word);
            }
        }
        once
    }
}

/// A number from 0 to 1.
fn certainty(value: &[u8]) -> Option<f64> {
    let is_number = matches!(value.first(), Some(b'-' | b'0'..=b'9'));
    let number: f64 = std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()?;
    (0.0..=1.0).contains(&number).then_some(number)
}

/// One pass over episodes: what it has seen so far.
#[derive(Default)]
pub struct EpisodeSorter {
    /// User and agent, by their number.
    owners: Vec<[String; 2]>,
    numbers: HashMap<[String; 2], usize>,
    /// The number of whoever a scope says it is of; none if that is nobody.
    scopes: HashMap<Box<[u8]>, Option<usize>>,
    /// Which episode spoke last of something, and of what each of these spoke.
    latest: HashMap<Arc<[u8]>, Arc<str>>,
    topics: HashMap<Arc<str>, Arc<[u8]>>,
}

impl EpisodeSorter {
    /// User and agent of a number.
    pub fn owner(&self, number: usize) -> [&str; 2] {
        self.owners
            .get(number)
            .map_or(["", ""], |names| names.each_ref().map(String::as_str))
    }

    /// What is made of a record; `None` if it is no episode.
    pub fn sort<'a>(&mut self, record: &'a [u8]) -> Option<EpisodeDelta<'a>> {
        let episode = EpisodeFields::read(record)?;
        let owner = self.number_of(episode.scope)?;
        let meaning = Meaning::read(episode.metadata);
        let topic = || match meaning.said {
            [Some(subject), Some(predicate), _] => {
                // No canonical text holds a zero.
                let parts: [&[u8]; 4] = [&owner.to_le_bytes(), subject, &[0], predicate];
                Some(parts.concat().into())
            }
            _ => None,
        };
        let (verdict, replaces) = match meaning.intent {
            Some(b"\"noop\"") => (Verdict::Noop, Vec::new()),
            Some(b"\"delete\"") => self.named(Verdict::Delete, &meaning, topic()),
            Some(b"\"update\"") => {
                let named = self.named(Verdict::Update, &meaning, None);
                if named.0 == Verdict::Update {
                    self.note(topic(), episode.id);
                }
                named
            }
            _ => {
                let topic = topic();
                let before = topic.as_ref().and_then(|topic| self.latest.remove(topic));
                before.iter().for_each(|id| drop(self.topics.remove(id)));
                self.note(topic, episode.id);
                match before {
                    Some(id) => (Verdict::Update, vec![id]),
                    None => (Verdict::Add, Vec::new()),
                }
            }
        };
        Some(EpisodeDelta {
            verdict,
            id: episode.id,
            owner,
            content: episode.content,
            source_node: episode.source_node,
            said: meaning.said,
            confidence: meaning.confidence.unwrap_or(1.0),
            replaces,
        })
    }

    /// What an episode replaces by name; whatever that is, and what it denies, is not replaced once more.
    fn named(
        &mut self,
        verdict: Verdict,
        meaning: &Meaning<'_>,
        denied: Option<Arc<[u8]>>,
    ) -> (Verdict, Vec<Arc<str>>) {
        let replaces = meaning.replaced();
        if replaces.is_empty() {
            return (Verdict::Bad, replaces);
        }
        for id in &replaces {
            if let Some(topic) = self.topics.remove(id)
                && self.latest.get(&topic) == Some(id)
            {
                self.latest.remove(&topic);
            }
        }
        if let Some(topic) = denied {
            self.latest.remove(&topic);
        }
        (verdict, replaces)
    }

    fn note(&mut self, topic: Option<Arc<[u8]>>, id: Quoted<'_>) {
        if let (Some(topic), Some(id)) = (topic, id.text()) {
            let id: Arc<str> = Arc::from(&*id);
            self.topics.insert(Arc::clone(&id), Arc::clone(&topic));
            self.latest.insert(topic, id);
        }
    }

    fn number_of(&mut self, scope: &[u8]) -> Option<usize> {
        if let Some(&known) = self.scopes.get(scope) {
            return known;
        }
        let number = match Carried::of_value(scope) {
            Carried::Names(names) => match names.names() {
                [Some(user), Some(agent), Some(_)] => Some([user.to_owned(), agent.to_owned()]),
                _ => None,
            },
            Carried::Malformed => None,
        };
        let number = number.map(|names| {
            let next = self.owners.len();
            *self.numbers.entry(names).or_insert_with_key(|names| {
                self.owners.push(names.clone());
                next
            })
        });
        self.scopes.insert(scope.into(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, user: &str, metadata: &str) -> String {
        format!(
            r#"{{"confidence":1.0,"data":{{"@scope":{{"agent":"a","session":"s","user":"{user}"}},"content":"c","metadata":{metadata},"source_node":"n","timestamp":"t"}},"id":"{id}","kind":"episode"}}"#
        )
    }

    fn pass(rows: &[(&str, &str, &str)]) -> Vec<(Verdict, String)> {
        let mut sorter = EpisodeSorter::default();
        let mut told = |(id, user, metadata): &(&str, &str, &str)| {
            let record = record(&format!("episode:{id}"), user, metadata);
            let delta = sorter.sort(record.as_bytes()).expect("an episode");
            assert_eq!(sorter.owner(delta.owner), [*user, "a"]);
            (delta.verdict, delta.replaces.join(" "))
        };
        rows.iter().map(&mut told).collect()
    }

    #[test]
    fn each_row_of_the_table_has_its_turn() {
        use Verdict::{Add, Bad, Delete, Noop, Update};
        let tea = r#"{"predicate":"likes","subject":"tea"}"#;
        let told = pass(&[
            ("1", "ann", "{}"),
            ("2", "ann", tea),
            ("3", "bob", tea),
            ("4", "ann", tea),
            ("5", "ann", r#"{"intent":"noop","predicate":"likes","subject":"tea"}"#),
            (
                "6",
                "ann",
                r#"{"intent":"delete","predicate":"likes","replaces":["x","x"],"subject":"tea"}"#,
            ),
            ("7", "ann", tea),
            ("8", "ann", r#"{"intent":"update","replaces":"7"}"#),
            ("9", "ann", tea),
            ("10", "ann", r#"{"intent":"update","replaces":[" "]}"#),
            ("11", "ann", r#"{"intent":"delete"}"#),
            ("12", "ann", r#"{"intent":"sing","predicate":null,"subject":"tea"}"#),
        ]);
        let expected = [
            (Add, ""),
            (Add, ""),
            (Add, ""),
            (Update, "2"),
            (Noop, ""),
            (Delete, "x"),
            (Add, ""),
            (Update, "7"),
            (Add, ""),
            (Bad, ""),
            (Bad, ""),
            (Add, ""),
        ];
        assert_eq!(told, expected.map(|(verdict, ids)| (verdict, ids.to_owned())));
    }

    #[test]
    fn what_another_tool_left_blank_is_no_episode() {
        let good = record("episode:e", "ann", "{}");
        let mut sorter = EpisodeSorter::default();
        assert!(sorter.sort(good.as_bytes()).is_some());
        for (part, instead) in [
            ("episode:e", "episode:"),
            ("episode:e", "episode: \\t\u{a0}"),
            ("episode:e", "e"),
            (r#""user":"ann""#, r#""user":"""#),
            (r#""user":"ann""#, r#""user":7"#),
            (r#","user":"ann""#, ""),
            (r#"{"agent":"a","session":"s","user":"ann"}"#, "7"),
            (r#""content":"c","#, ""),
            (r#""content":"c""#, r#""content":7"#),
            (r#""metadata":{}"#, r#""metadata":[]"#),
            (r#""source_node":"n","#, ""),
            (r#""timestamp":"t""#, r#""timestamp":null"#),
        ] {
            let bent = good.replace(part, instead);
            assert_ne!(bent, good);
            assert!(sorter.sort(bent.as_bytes()).is_none(), "{bent}");
        }
        for end in 0..good.len() {
            // Whatever comes, nobody leaves the bytes.
            let _ = sorter.sort(&good.as_bytes()[..end]);
        }
    }

    #[test]
    fn only_a_number_from_0_to_1_is_a_confidence() {
        for (value, expected) in [
            ("0.25", Some(0.25)),
            ("1", Some(1.0)),
            ("0", Some(0.0)),
            ("1.5", None),
            ("-0.5", None),
            ("true", None),
            ("\"0.5\"", None),
            ("null", None),
        ] {
            assert_eq!(certainty(value.as_bytes()), expected, "{value}");
        }
    }
}
