//! Decides which delta is made of a record, by those that came before it.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::fields::{DeltaFields, Stated, is_blank, is_instant};
use chronolog::event::faces::Sorting;
use chronolog::json::Quoted;
use chronolog::scope::{Carried, LEVELS, Scope};

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What it says is new.
    Add,
    /// What it says takes the place of something else.
    Update,
    /// Something is no longer believed.
    Delete,
    /// Nothing changes.
    Noop,
    /// It wants to update or delete, and does not say what.
    Bad,
}

/// What is made of a record.
#[derive(Debug)]
pub struct Delta<'a> {
    /// What becomes of it.
    pub verdict: Verdict,
    /// Its id, without the prefix.
    pub id: Quoted<'a>,
    /// Whose it is, see [`DeltaSorter::owners`].
    pub owner: usize,
    /// What was said, and where it comes from.
    pub content: Quoted<'a>,
    /// Likewise.
    pub source: Quoted<'a>,
    /// Subject, predicate and object, as JSON; `None` for what is not there, or null.
    pub said: [Option<&'a [u8]>; 3],
    /// How sure it is.
    pub confidence: f64,
    /// What it replaces, each once.
    pub replaces: Vec<Arc<str>>,
}

/// Each record asks two of these, and most of what a pass does is looking up.
type Lookup<K, V> = HashMap<K, V, RandomState>;

/// One pass over records: what it has seen so far.
pub struct DeltaSorter {
    sorting: &'static Sorting,
    /// The names of each, by its number.
    owners: Vec<[String; 2]>,
    numbers: Lookup<[String; 2], usize>,
    /// The number of whoever a scope says it is of; none if that is nobody.
    scopes: Lookup<Box<[u8]>, Option<usize>>,
    /// Which record spoke last of something.
    latest: Lookup<Box<[u8]>, Arc<str>>,
    /// The other way round, since a record named one to replace: few passes need it.
    topics: Option<Lookup<Arc<str>, Box<[u8]>>>,
    /// Room to spell what a record speaks of.
    topic: Vec<u8>,
}

impl DeltaSorter {
    /// Nothing is seen yet.
    pub fn new(sorting: &'static Sorting) -> Self {
        Self {
            sorting,
            owners: Vec::new(),
            numbers: Lookup::default(),
            scopes: Lookup::default(),
            latest: Lookup::default(),
            topics: None,
            topic: Vec::new(),
        }
    }

    /// What the face declares of the records.
    pub fn sorting(&self) -> &'static Sorting {
        self.sorting
    }

    /// The names of each owner that was given a number so far.
    pub fn owners(&self) -> &[[String; 2]] {
        &self.owners
    }

    /// What is made of a record; `None` if it is none of those that the face writes. Another tool may have written anything under the prefix: what it
    /// left blank or out, or what names no moment, is nobody's turn and is passed over, as where the latest are asked for.
    pub fn sort<'a>(&mut self, record: &'a [u8]) -> Option<Delta<'a>> {
        let read = DeltaFields::read(record, self.sorting)?;
        let (whole, content, source) = (read.id?, read.content?, read.source?);
        let (stated, time) = (read.stated?, read.time?);
        let id = Quoted {
            inner: whole.inner.strip_prefix(self.sorting.prefix.as_bytes())?,
            ..whole
        };
        if is_blank(&id.text()?) || !is_instant(&time.text()?) {
            return None;
        }
        let owner = self.number_of(read.scope?)?;
        let has_topic = self.spell_topic(owner, &stated);
        let (verdict, replaces) = match stated.intent {
            Some(b"\"noop\"") => (Verdict::Noop, Vec::new()),
            Some(intent @ (b"\"delete\"" | b"\"update\"")) => {
                let replaces = stated.replaced();
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
        Some(Delta {
            verdict,
            id,
            owner,
            content,
            source,
            said: stated.said,
            confidence: stated.confidence.unwrap_or(1.0),
            replaces,
        })
    }

    /// Spells what a record speaks of, and who does; says whether it speaks of anything.
    fn spell_topic(&mut self, owner: usize, stated: &Stated<'_>) -> bool {
        let [Some(subject), Some(predicate), _] = stated.said else {
            return false;
        };
        self.topic.clear();
        // No canonical text holds a zero.
        for part in [&owner.to_le_bytes()[..], subject, &[0], predicate] {
            self.topic.extend_from_slice(part);
        }
        true
    }

    /// Notes that a record spoke of the topic, if it did; gives the one that did so before it, which is replaced now.
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

    /// Forgets records that are replaced by name, so that nothing replaces them once more. Nobody replaces those of others.
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
            Carried::Names(scope) => self.owner_in(&scope),
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

    /// The names that say whose a record is; none if its scope lacks a name.
    fn owner_in(&self, scope: &Scope) -> Option<[String; 2]> {
        let names = scope.names();
        let name = |level: &str| {
            let place = LEVELS.iter().position(|known| *known == level)?;
            names[place].map(str::to_owned)
        };
        let [first, second] = self.sorting.owner.map(name);
        if names.contains(&None) {
            return None;
        }
        Some([first?, second?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TURNS: Sorting = Sorting {
        prefix: "turn:",
        owner: ["agent", "user"],
        content: "words",
        source: "from",
        time: "when",
        meaning: "sense",
        intent: "wants",
        replaces: "instead_of",
        confidence: "sure",
        said: ["of", "that", "what"],
    };

    fn record(id: &str, user: &str, sense: &str) -> String {
        format!(
            r#"{{"confidence":1.0,"data":{{"@scope":{{"agent":"a","session":"s","user":"{user}"}},"from":"n","sense":{sense},"when":"2026-05-18T09:00:00+00:00","words":"c"}},"id":"{id}","kind":"turn"}}"#
        )
    }

    fn pass(rows: &[(&str, &str, &str)]) -> Vec<(Verdict, String)> {
        let mut sorter = DeltaSorter::new(&TURNS);
        let mut told = |(id, user, sense): &(&str, &str, &str)| {
            let record = record(&format!("turn:{id}"), user, sense);
            let delta = sorter.sort(record.as_bytes()).expect("a turn");
            assert_eq!(sorter.owners()[delta.owner], ["a", *user]);
            (delta.verdict, delta.replaces.join(" "))
        };
        rows.iter().map(&mut told).collect()
    }

    #[test]
    fn each_row_of_the_table_has_its_turn() {
        use Verdict::{Add, Bad, Delete, Noop, Update};
        let tea = r#"{"of":"tea","that":"likes"}"#;
        let told = pass(&[
            ("1", "ann", "{}"),
            ("2", "ann", tea),
            ("3", "bob", tea),
            ("4", "ann", tea),
            ("5", "ann", r#"{"of":"tea","that":"likes","wants":"noop"}"#),
            (
                "6",
                "ann",
                r#"{"instead_of":["x","x"],"of":"tea","that":"likes","wants":"delete"}"#,
            ),
            ("7", "ann", tea),
            ("8", "ann", r#"{"instead_of":"7","wants":"update"}"#),
            ("9", "ann", tea),
            ("10", "ann", r#"{"instead_of":[" "],"wants":"update"}"#),
            ("11", "ann", r#"{"wants":"delete"}"#),
            ("12", "ann", r#"{"of":"tea","that":null,"wants":"sing"}"#),
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
    fn what_another_tool_left_blank_is_passed_over() {
        let good = record("turn:e", "ann", "{}");
        let mut sorter = DeltaSorter::new(&TURNS);
        assert!(sorter.sort(good.as_bytes()).is_some());
        for (part, instead) in [
            ("turn:e", "turn:"),
            ("turn:e", "turn: \\t\u{a0}"),
            ("turn:e", "e"),
            (r#""user":"ann""#, r#""user":"""#),
            (r#""user":"ann""#, r#""user":7"#),
            (r#","user":"ann""#, ""),
            (r#"{"agent":"a","session":"s","user":"ann"}"#, "7"),
            (r#","words":"c""#, ""),
            (r#""words":"c""#, r#""words":7"#),
            (r#""sense":{}"#, r#""sense":[]"#),
            (r#""from":"n","#, ""),
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
