//! The table of all faces, and the lookups in what they declare.
//!
//! Only `blocks` and `acts::blocks` name a face elsewhere. A new face is a file here, a row in the table, and a package
//! in Python. The path of a field is the keys that lead to it with dots between them.

mod blocks;
mod episodes;
mod graph;
mod pages;

use memchr::memchr;

pub use blocks::SESSION_PREFIX;

use super::tie::{Bond, ENDS, NameKind, SaidRecord, Speaker, Tie, tie};
use crate::acts::Rules;

/// The face that says what is searched.
pub const SEARCH: &str = "search";
/// The face that says which embeddings there are.
pub const VECTORS: &str = "vectors";

/// The face that says what was erased, and which archives were removed. Only events of the store itself write it.
pub const ERASURES: &str = "erasures";

/// The kinds of the records that name rows, that tell of erasures, of archives that were removed, and of copies brought back.
const STORE_KINDS: [&[u8]; 5] = [b"vector", b"erasure", b"pruned", b"returned", b"upheld"];

/// Whether records of a kind are the store's own, about records of any scope: only viewers of all scopes see them.
pub fn is_of_store(kind: &[u8], is_of_face: bool) -> bool {
    is_of_face && STORE_KINDS.contains(&kind)
}

/// Whether changes of records of a kind are shown to those who see them. Rows and spaces are there for all.
pub fn is_told(kind: &[u8], is_of_face: bool) -> bool {
    !is_of_face || (kind != b"vector_space" && !STORE_KINDS.contains(&kind))
}

/// An index of the active records of a kind.
const fn active(name: &'static str, kind: &'static str, by: &'static [&'static str], then: &'static str) -> FaceIndex {
    FaceIndex {
        name,
        kind,
        status: "active",
        by,
        then,
    }
}

/// A face of which nothing is declared.
const UNDECLARED: Face = Face {
    name: "",
    prefixes: &[],
    indexes: &[],
    network: None,
    call: None,
    acts: None,
    ties: &[],
};

/// A face that only the store itself writes.
const fn own(name: &'static str, prefixes: &'static [&'static str]) -> Face {
    Face {
        name,
        prefixes,
        ..UNDECLARED
    }
}

static FACES: [Face; 7] = [
    blocks::FACE,
    episodes::FACE,
    graph::FACE,
    pages::FACE,
    own(SEARCH, &["search"]),
    own(VECTORS, &["vector"]),
    own(ERASURES, &["erasure", "pruned"]),
];

/// What plain records are looked up by.
static PLAIN_INDEXES: [FaceIndex; 1] = [
    // Of those that lead to the same, the older comes first.
    active("edges.by_target", "edge", &["data.to_id"], "data.order"),
];

/// The ties of plain records of a kind.
const fn of_kind(kind: &'static str, at: &'static str, bond: Bond) -> Tie {
    Tie {
        by: Speaker::Kind(kind),
        ..tie("", "", at, bond)
    }
}

/// Ties of plain records, and of any record.
static PLAIN_TIES: [Tie; 10] = [
    of_kind("edge", ENDS, Bond::Belongs),
    // A relation of the MCP server's knowledge graph names its entities in clear, also in its label.
    Tie {
        naming: NameKind::Entity,
        ..of_kind("relation", "data.relation.from data.relation.to", Bond::Belongs)
    },
    // The kept result of an MCP call names what the call wrote, and its digest covers the text.
    of_kind("mcp_operation", "data.wrote", Bond::Belongs),
    // The id and the label of a rollback name its target.
    of_kind("rollback_event", "data.target_id", Bond::Belongs),
    of_kind("rollback_event", "data.affected data.reinstated.restored", Bond::Refers),
    of_kind("rollback_event", "data.reinstated.left.record_id", Bond::Refers).around(),
    of_kind("rollback_event", "data.changes.record_id", Bond::Repeats),
    // The ids of what a task cost and of the runs of a skill contain the id of the task or the skill.
    of_kind("token_metric", "data.task_id", Bond::Belongs),
    of_kind("skill_run", "data.skill_id", Bond::Belongs),
    Tie {
        by: Speaker::Any,
        ..tie("", "", "evidence", Bond::Refers)
    },
];

impl FaceIndex {
    /// Whether it is of plain records, which belong to no face.
    pub fn is_plain(&self) -> bool {
        PLAIN_INDEXES.iter().any(|plain| plain.name == self.name)
    }
}

/// What stands before the name of a face in the id of its acts.
const ACTS: &[u8] = b"act";

/// The longest prefix, so that plain ids are told apart at a glance.
const LONGEST_PREFIX_BYTES: usize = 13;

/// The face that owns this id; `None` for plain records.
pub fn face_of(id: &[u8]) -> Option<&'static str> {
    let end = memchr(b':', &id[..id.len().min(LONGEST_PREFIX_BYTES + 1)])?;
    let prefix = &id[..end];
    let owner = if prefix == ACTS {
        FACES.iter().find(|face| face.name.as_bytes() == &id[end + 1..])
    } else {
        let owns = |face: &&Face| face.prefixes.iter().any(|known| known.as_bytes() == prefix);
        FACES.iter().find(owns)
    };
    owner.map(|face| face.name)
}

/// Whether an id is one of acts: no record is called so.
pub fn is_of_acts(id: &[u8]) -> bool {
    id.strip_prefix(ACTS).is_some_and(|rest| rest.starts_with(b":"))
}

/// The id of the acts of a face; `None` if it has none.
pub fn act_id(face: &str) -> Option<String> {
    let known = FACES.iter().find(|known| known.name == face && known.acts.is_some())?;
    Some(format!("{}:{}", String::from_utf8_lossy(ACTS), known.name))
}

/// What follows from acts with this id.
pub fn rules_of(id: &[u8]) -> Option<&'static Rules> {
    let name = id.strip_prefix(ACTS)?.strip_prefix(b":")?;
    FACES.iter().find(|face| face.name.as_bytes() == name)?.acts
}

/// How a record with this id calls others, if not by their ids.
pub fn call_by(id: &[u8]) -> Option<&'static Call> {
    let mut calls = FACES.iter().filter_map(|face| face.call.as_ref());
    calls.find(|call| id.starts_with(call.by.as_bytes()))
}

/// How a record with this id is called by others, if not by its id.
pub fn call_of(id: &[u8]) -> Option<&'static Call> {
    let mut calls = FACES.iter().filter_map(|face| face.call.as_ref());
    calls.find(|call| id.starts_with(call.of.as_bytes()))
}

/// A declared index; `None` if there is none of this name.
pub fn index_named(name: &str) -> Option<&'static FaceIndex> {
    indexes().find(|index| index.name == name)
}

/// All indexes of the face that declares one.
pub fn indexes_beside(index: &FaceIndex) -> impl Iterator<Item = &'static FaceIndex> {
    let face = |index: &FaceIndex| index.name.split('.').next();
    indexes().filter(move |other| face(other) == face(index))
}

fn indexes() -> impl Iterator<Item = &'static FaceIndex> {
    FACES.iter().flat_map(|face| face.indexes).chain(&PLAIN_INDEXES)
}

/// A declared network; `None` if no face has one of this name.
pub fn network_named(name: &str) -> Option<&'static Network> {
    let mut networks = FACES.iter().filter_map(|face| face.network.as_ref());
    networks.find(|network| network.name == name)
}

/// The ties that a record may have.
pub fn ties_of<'a>(said: &'a SaidRecord<'a>) -> impl Iterator<Item = &'static Tie> + use<'a> {
    let is_plain = face_of(said.id).is_none();
    // Most records are plain: these have none of the ties of faces.
    let faces = if is_plain { &[][..] } else { &FACES[..] };
    let of_faces = faces.iter().flat_map(|face| face.ties);
    PLAIN_TIES
        .iter()
        .chain(of_faces)
        .filter(move |tie| tie.is_of(said, is_plain))
}

/// A face.
#[derive(Debug)]
pub struct Face {
    /// Its name.
    pub name: &'static str,
    /// What its ids begin with, up to a colon. No other writer may use such ids.
    pub prefixes: &'static [&'static str],
    /// What its records are looked up by.
    pub indexes: &'static [FaceIndex],
    /// Which of its records join others to a network.
    pub network: Option<Network>,
    /// Which of its records call others by less than their ids.
    pub call: Option<Call>,
    /// What follows from its acts, if it has any.
    pub acts: Option<&'static Rules>,
    /// How its records name others.
    pub ties: &'static [Tie],
}

/// Records with one prefix call those of another by what follows it: a link between `a` and `b` means `of:a` and `of:b`.
#[derive(Debug)]
pub struct Call {
    /// The prefix of those who call, with its colon.
    pub by: &'static str,
    /// The prefix of those who are called, likewise.
    pub of: &'static str,
}

/// What records of a kind are looked up by. An array stands for each of its elements, an object for each of its keys.
#[derive(Debug)]
pub struct FaceIndex {
    /// Its name, that of the face in front.
    pub name: &'static str,
    /// The kind of the records.
    pub kind: &'static str,
    /// Their status; nothing for any.
    pub status: &'static str,
    /// The paths of the fields that are given in a lookup. Records that lack one are not found.
    pub by: &'static [&'static str],
    /// The field that orders what is found; records that lack it, or have null there, come last. Of those that are alike, the older comes first.
    pub then: &'static str,
}

/// Records that join two others each: what is joined can be walked from one to the next.
#[derive(Debug)]
pub struct Network {
    /// Its name, that of the face in front.
    pub name: &'static str,
    /// The index that leads from an end to the records that join it to others. It is by one field.
    pub by_source: &'static str,
    /// The index that leads from the other end to them, likewise.
    pub by_target: &'static str,
    /// The field with the kind of a record that joins.
    pub kind: &'static str,
    /// The index of those that are joined, by their kind.
    pub ends: &'static str,
    /// What the ids of those begin with; the rest of an id is how they are called by who joins them.
    pub prefix: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{self, Value};

    #[test]
    fn what_a_face_declares_is_its_own() {
        for face in &FACES {
            assert!(face.prefixes.iter().all(|prefix| prefix.len() <= LONGEST_PREFIX_BYTES));
            let is_own = |prefix: &str| face_of(format!("{prefix}x").as_bytes()) == Some(face.name);
            for index in face.indexes {
                assert_eq!(index.name.split_once('.').map(|(owner, _)| owner), Some(face.name));
                assert!(std::ptr::eq(index_named(index.name).expect("it is declared"), index));
            }
            for tie in face.ties {
                assert!(matches!(tie.by, Speaker::Prefix(prefix) if is_own(prefix)), "{tie:?}");
            }
            if let Some(network) = &face.network {
                let [source, target, ends] = [network.by_source, network.by_target, network.ends].map(index_named);
                let (source, target) = (source.expect("declared"), target.expect("declared"));
                assert_eq!((source.kind, source.by.len()), (target.kind, 1));
                assert_eq!((target.by.len(), ends.expect("declared").by.len()), (1, 1));
                assert!(
                    is_own(network.prefix) && std::ptr::eq(network_named(network.name).expect("declared"), network)
                );
            }
        }
        assert!(index_named("blocks.by_nothing").is_none() && network_named("x").is_none());
    }

    #[test]
    fn an_id_tells_its_face_its_acts_and_what_it_calls() {
        for (id, face, has_rules) in [
            ("contradiction:1", Some("blocks"), false),
            ("fact:1", Some("episodes"), false),
            ("entry:x:y", Some("pages"), false),
            ("vector:default", Some(VECTORS), false),
            ("act:blocks", Some("blocks"), true),
            ("act:pages", Some("pages"), false),
            ("act:nobody", None, false),
            ("act:", None, false),
            ("act", None, false),
            ("FACT-001", None, false),
            ("blocks:1", None, false),
            (":", None, false),
            ("a-long-name-with-a:colon", None, false),
        ] {
            assert_eq!(
                (face_of(id.as_bytes()), rules_of(id.as_bytes()).is_some()),
                (face, has_rules),
                "{id}"
            );
        }
        assert_eq!(
            (act_id("blocks").as_deref(), act_id("pages")),
            (Some("act:blocks"), None)
        );
        assert!(is_of_acts(b"act:anything") && !is_of_acts(b"actor:1"));
        assert_eq!(
            call_by(b"bedge:a:b").map(|call| (call.by, call.of)),
            Some(("bedge:", "block:"))
        );
        assert_eq!(call_of(b"block:a").map(|call| call.by), Some("bedge:"));
        assert!(call_by(b"block:a").is_none() && call_of(b"bedge:a:b").is_none() && call_of(b"plain").is_none());
    }

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).expect("JSON")
    }

    #[test]
    fn a_record_names_others_by_its_fields() {
        let named = |id: &str, record: &str| {
            let said = SaidRecord::read(id.as_bytes(), record.as_bytes());
            let ties = ties_of(&said);
            let all = ties.flat_map(|tie| tie.names(&value(record)).into_iter().map(|name| (tie.bond, name)));
            all.collect::<Vec<_>>()
        };
        let edge = r#"{"data":{"from_id":"a","to_id":"b"},"evidence":["c"],"id":"E","kind":"edge"}"#;
        let expected = [(Bond::Belongs, "a"), (Bond::Belongs, "b"), (Bond::Refers, "c")];
        assert_eq!(named("E", edge), expected.map(|(bond, id)| (bond, id.to_owned())));
        let other = edge.replace("edge", "fact").replace(r#"["c"]"#, "[]");
        assert_eq!(named("E", &other), []);
        let link = named("bedge:a:b", r#"{"data":{"from_id":"a","to_id":"b"}}"#);
        assert_eq!(link[0], (Bond::Belongs, "block:a".to_owned()));
    }

    #[test]
    fn what_is_repeated_is_cut_out() {
        let mut event = value(
            r#"{"data":{"data":{"action":{"payload":{"label":"x"},"target":"z"},"edges":[{"id":"e"}],"gone_nodes":["z","y"],"nodes":[{"id":"z","label":"x"},{"id":"y"}]}}}"#,
        );
        let said = SaidRecord::read(b"event:1", b"{}");
        let ties: Vec<&Tie> = ties_of(&said).filter(|tie| tie.bond == Bond::Repeats).collect();
        for tie in &ties {
            tie.cut(&mut event, &|id| id == "node:z");
        }
        let left = value(r#"{"data":{"data":{"edges":[{"id":"e"}],"gone_nodes":["y"],"nodes":[{"id":"y"}]}}}"#);
        assert_eq!(event, left);
        let names: Vec<String> = ties.iter().flat_map(|tie| tie.names(&event)).collect();
        assert_eq!(names, ["node:y", "node:y", "gedge:e"]);
    }
}
