//! Checks that a record of the blocks face has the form in which the face writes it.
//!
//! Any record may have any kind; a record of the face has its kind as the prefix of its id and the fields that the methods of
//! the face need. Other records with such an id were written by other tools. They are refused by imports, left out of every
//! answer and reported.

use super::fields::{number, plain, quoted};
use chronolog::event::stamp;
use chronolog::json::members;

/// The form of a field.
#[derive(Clone, Copy)]
enum Form {
    /// A text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A moment with its offset, as ISO 8601.
    Moment,
    /// A finite number of at least this.
    Number(f64),
    /// A number within 0 and 1.
    Share,
    /// A whole number of at least 0.
    Count,
    /// An object whose keys are the names, none of them empty.
    Names,
}

/// The name of a field, its form, and whether it is required.
type Field = (&'static str, Form, bool);

/// A kind of record of this face.
struct Kind {
    word: &'static str,
    /// The allowed statuses beside "tombstone".
    statuses: &'static [&'static str],
    fields: &'static [Field],
    /// The fields with the ids of its two ends, if it links blocks.
    ends: Option<(&'static str, &'static str)>,
}

/// Whole numbers are exact up to here.
const MAX_COUNT: f64 = 9_007_199_254_740_992.0;
const ANY: f64 = f64::MIN;
const REASONS: &[&str] = &["decayed", "superseded", "forgotten"];

const KINDS: [Kind; 6] = [
    Kind {
        word: "block",
        statuses: &["inbox", "active", "archived"],
        fields: &[
            ("content", Form::Text, true),
            ("category", Form::Text, true),
            ("source", Form::Text, true),
            ("created_at", Form::Text, true),
            ("archive_reason", Form::Word(REASONS), false),
            ("reinforcement_count", Form::Count, false),
            ("decay_lambda", Form::Number(0.0), false),
            ("last_reinforced_at", Form::Number(ANY), false),
            ("learned_at", Form::Number(ANY), false),
            ("self_alignment", Form::Number(ANY), false),
            ("embedding_model", Form::Text, false),
            ("evidence", Form::Number(ANY), false),
            ("last_session_id", Form::Text, false),
            ("space", Form::Text, false),
            ("summary", Form::Text, false),
            ("superseded_by", Form::Text, false),
            ("supersedes", Form::Text, false),
            ("tags", Form::Names, false),
            ("token_count", Form::Count, false),
        ],
        ends: None,
    },
    Kind {
        word: "bedge",
        statuses: &["active", "forming"],
        fields: &[
            ("from_id", Form::Text, true),
            ("to_id", Form::Text, true),
            ("weight", Form::Share, true),
            ("created_at", Form::Text, true),
            ("reinforcement_count", Form::Count, false),
            ("last_active_hours", Form::Number(ANY), false),
            ("sessions", Form::Names, false),
        ],
        ends: Some(("from_id", "to_id")),
    },
    Kind {
        word: "contradiction",
        statuses: &["active", "resolved"],
        fields: &[
            ("block_a_id", Form::Text, true),
            ("block_b_id", Form::Text, true),
            ("score", Form::Share, true),
            ("created_at", Form::Text, true),
        ],
        ends: Some(("block_a_id", "block_b_id")),
    },
    Kind {
        word: "frame",
        statuses: &["active"],
        fields: &[
            ("weights_json", Form::Text, true),
            ("filters_json", Form::Text, true),
            ("guarantees_json", Form::Text, true),
            ("template", Form::Text, true),
            ("token_budget", Form::Count, true),
            ("cache_json", Form::Text, false),
            ("source", Form::Text, true),
            ("created_at", Form::Text, true),
        ],
        ends: None,
    },
    Kind {
        word: "session",
        statuses: &["active", "ended"],
        fields: &[
            ("task_type", Form::Text, true),
            ("started_at", Form::Moment, true),
            ("start_active_hours", Form::Number(ANY), true),
            ("ended_at", Form::Text, false),
        ],
        ends: None,
    },
    Kind {
        word: "config",
        statuses: &["active"],
        fields: &[("value", Form::Text, true)],
        ends: None,
    },
];

/// The reason why a record does not have the form of this face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMisfit {
    /// The field.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The outer fields of a record, with their escapes.
#[derive(Default)]
pub(super) struct Head<'a> {
    pub(super) id: &'a [u8],
    pub(super) kind: &'a [u8],
    pub(super) status: &'a [u8],
    pub(super) data: &'a [u8],
    pub(super) confidence: Option<f64>,
    /// The value of `confidence`, valid or not.
    raw_confidence: Option<&'a [u8]>,
}

impl<'a> Head<'a> {
    pub(super) fn of(record: &'a [u8]) -> Self {
        let mut head = Self::default();
        for (key, value) in members(record) {
            match key {
                b"confidence" => {
                    head.confidence = number(value);
                    head.raw_confidence = Some(value);
                }
                b"data" => head.data = value,
                b"id" => head.id = quoted(value).unwrap_or_default(),
                b"kind" => head.kind = quoted(value).unwrap_or_default(),
                b"status" => head.status = quoted(value).unwrap_or_default(),
                _ => {}
            }
        }
        head
    }

    /// The prefix of the id, and the rest after the colon.
    pub(super) fn split_id(&self) -> Option<(&'a [u8], &'a [u8])> {
        let colon = memchr::memchr(b':', self.id)?;
        Some((&self.id[..colon], &self.id[colon + 1..]))
    }

    /// Why the record does not have the form of this face; `None` if it has, or if its id has another prefix.
    pub(super) fn misfit(&self) -> Option<BlockMisfit> {
        let (prefix, rest) = self.split_id()?;
        let kind = KINDS.iter().find(|kind| kind.word.as_bytes() == prefix)?;
        if self.status == b"tombstone" {
            return None;
        }
        let wrong = |field: &str, reason: String| {
            Some(BlockMisfit {
                field: field.to_owned(),
                reason,
            })
        };
        if rest.is_empty() {
            return wrong("id", format!("nothing follows \"{}:\"", kind.word));
        }
        if self.kind != prefix {
            return wrong("kind", format!("it must be \"{}\", as the id says", kind.word));
        }
        if !kind.statuses.iter().any(|known| known.as_bytes() == self.status) {
            return wrong("status", format!("it must be {}", kind.statuses.join(" or ")));
        }
        if let Some(reason) = self.raw_confidence.and_then(|value| Form::Share.refuses(value)) {
            return wrong("confidence", reason);
        }
        // Each lookup scans all fields, so the wrong one is searched only if there is one.
        let doubted = if self.holds(kind.fields) { &[] } else { kind.fields };
        for (name, form, required) in doubted {
            let reason = match self.field(name) {
                Some(value) => form.refuses(value),
                None => required.then(|| "it is missing".to_owned()),
            };
            if let Some(reason) = reason {
                return wrong(name, reason);
            }
        }
        let (one, other) = kind.ends?;
        let text = |name: &str| self.field(name).and_then(quoted).map(plain).unwrap_or_default();
        let (first, second) = (text(one), text(other));
        if first >= second {
            return wrong(one, format!("{first:?} must sort before {second:?}"));
        }
        if plain(rest) != format!("{}:{}", escaped(&first), escaped(&second)) {
            return wrong("id", format!("it does not name {first:?} and {second:?}"));
        }
        None
    }

    /// Whether all required fields exist and all fields have their form, in one pass.
    fn holds(&self, fields: &[Field]) -> bool {
        let mut missing = fields.iter().filter(|(.., required)| *required).count();
        for (key, value) in members(self.data) {
            if let Some((_, form, required)) = fields.iter().find(|(name, ..)| name.as_bytes() == key) {
                if !form.fits(value) {
                    return false;
                }
                missing -= usize::from(*required);
            }
        }
        missing == 0
    }

    pub(super) fn field(&self, name: &str) -> Option<&'a [u8]> {
        members(self.data)
            .find(|(key, _)| *key == name.as_bytes())
            .map(|(_, value)| value)
    }

    /// The ids of the two ends in the id of a link or contradiction.
    pub(super) fn ends(&self) -> Option<(String, String)> {
        let (_, rest) = self.split_id()?;
        let colon = memchr::memchr(b':', rest)?;
        let end = |part: &[u8]| plain(part).replace("%3A", ":").replace("%25", "%");
        Some((end(&rest[..colon]), end(&rest[colon + 1..])))
    }
}

/// The id of the record that links two blocks.
pub fn link_key(one: &str, other: &str) -> String {
    let (first, second) = (one.min(other), one.max(other));
    format!("bedge:{}:{}", escaped(first), escaped(second))
}

/// An id, escaped for the id of a pair.
fn escaped(id: &str) -> String {
    id.replace('%', "%25").replace(':', "%3A")
}

impl Form {
    fn fits(self, value: &[u8]) -> bool {
        match self {
            Self::Text => quoted(value).is_some(),
            Self::Word(known) => quoted(value).is_some_and(|word| known.iter().any(|known| known.as_bytes() == word)),
            Self::Moment => quoted(value).is_some_and(is_moment),
            Self::Number(least) => number(value).is_some_and(|number| number >= least),
            Self::Share => number(value).is_some_and(|number| (0.0..=1.0).contains(&number)),
            Self::Count => value.iter().all(u8::is_ascii_digit) && number(value).is_some_and(|one| one <= MAX_COUNT),
            Self::Names => value.first() == Some(&b'{') && members(value).all(|(name, _)| !name.is_empty()),
        }
    }

    fn refuses(self, value: &[u8]) -> Option<String> {
        let shown = || {
            let text = String::from_utf8_lossy(value);
            let short: String = text.chars().take(40).collect();
            match short.len() < text.len() {
                true => format!("{short}…"),
                false => short,
            }
        };
        let wanted = || match self {
            Self::Text => "a text".to_owned(),
            Self::Word(known) => format!("one of {}", known.join(", ")),
            Self::Moment => "a moment such as 2026-01-31T12:00:00+00:00".to_owned(),
            Self::Number(least) if least == ANY => "a finite number".to_owned(),
            Self::Number(least) => format!("a finite number of at least {least}"),
            Self::Share => "a number within 0 and 1".to_owned(),
            Self::Count => "a whole number of at least 0".to_owned(),
            Self::Names => "an object of names".to_owned(),
        };
        (!self.fits(value)).then(|| format!("{} is not {}", shown(), wanted()))
    }
}

/// Whether a text is `2026-01-31T12:00:00`, perhaps with a fraction, and an offset from UTC such as `+00:00`.
fn is_moment(text: &[u8]) -> bool {
    let has_offset = text.len() > 19 && matches!(text[text.len() - 6], b'+' | b'-');
    has_offset && stamp::read(text).is_some()
}

/// Why a canonical record does not have the form of this face; `None` if it has, or if its id has another prefix.
pub fn misfit(record: &[u8]) -> Option<BlockMisfit> {
    Head::of(record).misfit()
}

/// Whether a canonical record has this kind and the form of this face.
pub fn is_one_of(kind: &str, record: &[u8]) -> bool {
    let head = Head::of(record);
    head.split_id().is_some_and(|(prefix, _)| prefix == kind.as_bytes())
        && head.kind == kind.as_bytes()
        && head.misfit().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(record: &str) -> Option<(String, String)> {
        misfit(record.as_bytes()).map(|found| (found.field, found.reason))
    }

    #[test]
    fn records_with_other_prefixes_and_tombstones_are_not_checked() {
        assert_eq!(why(r#"{"id":"x","kind":"block","status":"inbox"}"#), None);
        assert_eq!(why(r#"{"id":"page:x","kind":"page","status":"odd"}"#), None);
        assert_eq!(why(r#"{"id":"block:x","status":"tombstone"}"#), None);
        assert!(!is_one_of("block", br#"{"id":"x","kind":"block","status":"inbox"}"#));
    }

    #[test]
    fn a_block_has_the_fields_that_methods_need() {
        let block = |data: &str| format!(r#"{{"data":{{{data}}},"id":"block:a","kind":"block","status":"active"}}"#);
        let whole = r#""category":"c","content":"x","created_at":"t","source":"s""#;
        assert_eq!(why(&block(whole)), None);
        assert!(is_one_of("block", block(whole).as_bytes()));
        let field = |data: &str| why(&block(data)).map(|(field, _)| field);
        assert_eq!(field("").as_deref(), Some("content"));
        for (extra, wrong) in [
            (r#","tags":["a"]"#, "tags"),
            (r#","tags":{"":true}"#, "tags"),
            (r#","decay_lambda":-1"#, "decay_lambda"),
            (r#","reinforcement_count":1.5"#, "reinforcement_count"),
            (r#","token_count":"7""#, "token_count"),
            (r#","archive_reason":null"#, "archive_reason"),
            (r#","learned_at":null"#, "learned_at"),
        ] {
            assert_eq!(field(&format!("{whole}{extra}")).as_deref(), Some(wrong));
        }
        for (sureness, wrong) in [
            ("0.5", None),
            ("1", None),
            ("1e30", Some("confidence")),
            ("\"nan\"", Some("confidence")),
        ] {
            let record = block(whole).replacen('{', &format!(r#"{{"confidence":{sureness},"#), 1);
            assert_eq!(why(&record).map(|(field, _)| field).as_deref(), wrong);
        }
    }

    #[test]
    fn a_link_is_named_by_its_ends_in_their_order() {
        let link = |id: &str, from: &str, to: &str| {
            why(&format!(
                r#"{{"data":{{"created_at":"t","from_id":"{from}","to_id":"{to}","weight":0.5}},"id":"{id}","kind":"bedge","status":"active"}}"#
            ))
            .map(|(field, _)| field)
        };
        assert_eq!(link("bedge:a:b", "a", "b"), None);
        assert_eq!(link("bedge:a%3Ax:b%25", "a:x", "b%"), None);
        assert_eq!(link("bedge:b:a", "b", "a").as_deref(), Some("from_id"));
        assert_eq!(link("bedge:a:c", "a", "b").as_deref(), Some("id"));
    }

    #[test]
    fn a_moment_has_its_offset() {
        assert!(is_moment(b"2026-11-15T10:11:12.123456+00:00"));
        assert!(is_moment(b"2026-11-15T10:11:12-05:30"));
        for odd in [
            "",
            "soon",
            "2026-11-15T10:11:12",
            "2026-13-15T10:11:12+00:00",
            "2026-11-15T10:11:12Z",
        ] {
            assert!(!is_moment(odd.as_bytes()));
        }
    }
}
