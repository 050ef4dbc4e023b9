//! Decides which delta is made of an episode, by those that came before it.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::fields::{EpisodeFields, Meaning, is_blank, is_instant};
use crate::json::Quoted;
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
    /// Whose it is, see [`EpisodeSorter::owners`].
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

/// Each episode asks two of these, and most of what a pass does is looking up.
type Lookup<K, V> = HashMap<K, V, RandomState>;

/// One pass over episodes: what it has seen so far.
#[derive(Default)]
pub struct EpisodeSorter {
    /// User and agent, by their number.
    owners: Vec<[String; 2]>,
    numbers: Lookup<[String; 2], usize>,
    /// The number of whoever a scope says it is of; none if that is nobody.
    scopes: Lookup<Box<[u8]>, Option<usize>>,
    /// Which episode spoke last of something.
    latest: Lookup<Box<[u8]>, Arc<str>>,
    /// The other way round, since an episode named one to replace: few passes need it.
    topics: Option<Lookup<Arc<str>, Box<[u8]>>>,
    /// Room to spell what an episode speaks of.
    topic: Vec<u8>,
}

impl EpisodeSorter {
    /// User and agent of each number that was given out so far.
    pub fn owners(&self) -> &[[String; 2]] {
        &self.owners
    }

    /// What is made of a record; `None` if it is no episode. Another tool may have written anything under the prefix: what it
    /// left blank or out, or what names no moment, is nobody's turn and is passed over, as where the latest are asked for.
    pub fn sort<'a>(&mut self, record: &'a [u8]) -> Option<EpisodeDelta<'a>> {
        let episode = EpisodeFields::read(record)?;
        let (whole, content, source_node) = (episode.id?, episode.content?, episode.source_node?);
        let (meaning, timestamp) = (episode.meaning?, episode.timestamp?);
        let id = Quoted {
            inner: whole.inner.strip_prefix(PREFIX)?,
            ..whole
        };
        if is_blank(&id.text()?) || !is_instant(&timestamp.text()?) {
            return None;
        }
        let owner = self.number_of(episode.scope?)?;
        let has_topic = self.spell_topic(owner, &meaning);
        let (verdict, replaces) = match meaning.intent {
            Some(b"\"noop\"") => (Verdict::Noop, Vec::new()),
            Some(intent @ (b"\"delete\"" | b"\"update\"")) => {
                let replaces = meaning.replaced();
                self.forget(owner, &replaces);
                match (replaces.is_empty(), intent == b"\"delete\"") {
                    (true, _) => (Verdict::Bad, replaces),
                    (false, true) => {
                        if has_topic {
                            self.latest.remove(&*self.topic);
                        }
                        (Verdict::Delete, replaces)
                    }
                    (false, false) => {
                        self.note(has_topic, id);
                        (Verdict::Update, replaces)
                    }
                }
            }
            _ => match self.note(has_topic, id) {
                Some(before) => (Verdict::Update, vec![before]),
                None => (Verdict::Add, Vec::new()),
            },
        };
        Some(EpisodeDelta {
            verdict,
            id,
            owner,
            content,
            source_node,
            said: meaning.said,
            confidence: meaning.confidence.unwrap_or(1.0),
            replaces,
        })
    }

    /// Spells what an episode speaks of, and who does; says whether it speaks of anything.
    fn spell_topic(&mut self, owner: usize, meaning: &Meaning<'_>) -> bool {
        let [Some(subject), Some(predicate), _] = meaning.said else {
            return false;
        };
        self.topic.clear();
        // No canonical text holds a zero.
        for part in [&owner.to_le_bytes()[..], subject, &[0], predicate] {
            self.topic.extend_from_slice(part);
        }
        true
    }

    /// Notes that an episode spoke of the topic, if it did; gives the one that did so before it, which is replaced now.
    fn note(&mut self, has_topic: bool, id: Quoted<'_>) -> Option<Arc<str>> {
        let id: Arc<str> = Arc::from(&*id.text().filter(|_| has_topic)?);
        if let Some(topics) = &mut self.topics {
            topics.insert(Arc::clone(&id), self.topic.as_slice().into());
        }
        match self.latest.get_mut(&*self.topic) {
            Some(latest) => {
                let before = std::mem::replace(latest, id);
                if let Some(topics) = &mut self.topics {
                    topics.remove(&before);
                }
                Some(before)
            }
            None => {
                self.latest.insert(self.topic.as_slice().into(), id);
                None
            }
        }
    }

    /// Forgets episodes that are replaced by name, so that nothing replaces them once more. Nobody replaces those of others.
    fn forget(&mut self, owner: usize, replaced: &[Arc<str>]) {
        if replaced.is_empty() {
            return;
        }
        let latest = &mut self.latest;
        let topics = self.topics.get_or_insert_with(|| {
            let turned = latest.iter().map(|(topic, id)| (Arc::clone(id), topic.clone()));
            turned.collect()
        });
        for id in replaced {
            let is_own = topics
                .get(id)
                .is_some_and(|topic| topic.starts_with(&owner.to_le_bytes()));
            if is_own
                && let Some(topic) = topics.remove(id)
                && latest.get(&topic) == Some(id)
            {
                latest.remove(&topic);
            }
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
            r#"{{"confidence":1.0,"data":{{"@scope":{{"agent":"a","session":"s","user":"{user}"}},"content":"c","metadata":{metadata},"source_node":"n","timestamp":"2026-05-18T09:00:00+00:00"}},"id":"{id}","kind":"episode"}}"#
        )
    }

    fn pass(rows: &[(&str, &str, &str)]) -> Vec<(Verdict, String)> {
        let mut sorter = EpisodeSorter::default();
        let mut told = |(id, user, metadata): &(&str, &str, &str)| {
            let record = record(&format!("episode:{id}"), user, metadata);
            let delta = sorter.sort(record.as_bytes()).expect("an episode");
            assert_eq!(sorter.owners()[delta.owner], [*user, "a"]);
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
            (r#""2026-05-18T09:00:00+00:00""#, "null"),
            ("2026-05-18T09:00:00+00:00", "2026-05-18T09:00:00"),
            ("2026-05-18T09:00:00+00:00", "yesterday"),
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
}
