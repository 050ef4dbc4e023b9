//! Follows the path of a field into a record, or into what is known beside it.

use std::borrow::Cow;
use std::fmt;

use super::key;
use super::operand::FieldValue;
use crate::state::spelled;
use chronolog::event::draft_value::{RECORD_FIELDS, defaults};
use chronolog::json::{Cursor, members, write_f64};

/// What stands beside a record and not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// When it was made, in microseconds since 1970; `None` if nobody knows.
    pub created_us: Option<i64>,
    /// When it was written last.
    pub updated_us: Option<i64>,
    /// When what it tells happened: by its own words, or else when it was written.
    pub happened_us: Option<i64>,
}

/// A moment that stands beside a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MomentField {
    /// `created_at`
    Created,
    /// `updated_at`
    Updated,
    /// `happened_at`
    Happened,
}

const STAMPS: [(&str, MomentField); 3] = [
    ("created_at", MomentField::Created),
    ("updated_at", MomentField::Updated),
    ("happened_at", MomentField::Happened),
];
const DATA: &str = "data";
/// The tags of a record: a list, or the keys of an object.
pub const TAGS: &str = "tags";
/// The scope of a record, and where it stands under `data`.
const SCOPE: &str = "scope";
const SCOPE_KEY: &str = "@scope";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathRoot {
    /// One of the fields of a record.
    Field(&'static str),
    Tags,
    Scope,
    MomentField(MomentField),
}

/// A field that can be asked for, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    root: PathRoot,
    /// The keys that lead on from there, as they stand between quotes in canonical JSON.
    steps: Vec<Vec<u8>>,
    names: Vec<String>,
}

/// Why a path leads nowhere: it begins with none of the roots; two dots stand side by side, or one at an end.
const NO_FIELD: &str = "no such field; fields of your own begin with data.";
const EMPTY_NAME: &str = "an empty name; where a key is empty, write {\"path\": [\"data\", \"\"], …}";

impl FieldPath {
    /// Where a path with dots leads.
    ///
    /// # Errors
    /// Why it leads nowhere.
    pub fn of_text(path: &str) -> Result<Self, String> {
        let names = names_of(path)?;
        let place = Self::of_names(&names)?;
        if names.iter().any(String::is_empty) {
            return Err(EMPTY_NAME.to_owned());
        }
        Ok(place)
    }

    /// Where a list of names leads.
    pub fn of_names(names: &[String]) -> Result<Self, String> {
        let [root, rest @ ..] = names else {
            return Err(NO_FIELD.to_owned());
        };
        let field = RECORD_FIELDS.iter().find(|field| **field == root.as_str());
        let stamp = STAMPS.iter().find(|(name, _)| name == root);
        let root = match (field, stamp, root.as_str()) {
            (Some(field), ..) => PathRoot::Field(field),
            (_, Some((_, stamp)), _) => PathRoot::MomentField(*stamp),
            (.., TAGS) => PathRoot::Tags,
            (.., SCOPE) => PathRoot::Scope,
            _ => return Err(NO_FIELD.to_owned()),
        };
        Ok(Self {
            root,
            steps: rest.iter().map(|name| spelled(name)).collect(),
            names: names.to_vec(),
        })
    }

    /// The moment beside a record that this is, if it is one.
    pub fn stamp(&self) -> Option<MomentField> {
        match self.root {
            PathRoot::MomentField(stamp) if self.steps.is_empty() => Some(stamp),
            _ => None,
        }
    }

    /// Whether it is a field of every record, itself.
    pub fn is_field(&self, name: &str) -> bool {
        self.root == PathRoot::Field(name_of(name)) && self.steps.is_empty()
    }

    /// What stands there; `None` if it is missing.
    pub fn find<'a>(&self, record: &'a [u8], facts: &Facts) -> Option<FieldValue<'a>> {
        let value = match self.root {
            PathRoot::MomentField(stamp) => {
                let moment = match stamp {
                    MomentField::Created => facts.created_us,
                    MomentField::Updated => facts.updated_us,
                    MomentField::Happened => facts.happened_us,
                };
                return moment.filter(|_| self.steps.is_empty()).map(FieldValue::Moment);
            }
            PathRoot::Tags => return self.tags(record),
            PathRoot::Scope => descend(record, [DATA.as_bytes(), SCOPE_KEY.as_bytes()], &self.steps)?,
            PathRoot::Field(name) => match descend(record, [name.as_bytes()], &self.steps) {
                Some(value) => value,
                None if self.steps.is_empty() => return default_of(name).map(|value| FieldValue::Value(value.into())),
                None => return None,
            },
        };
        Some(FieldValue::Value(Cow::Borrowed(value)))
    }

    fn tags<'a>(&self, record: &'a [u8]) -> Option<FieldValue<'a>> {
        let tags = descend(record, [DATA.as_bytes(), TAGS.as_bytes()], &[]).filter(|_| self.steps.is_empty())?;
        if tags.first() != Some(&b'{') {
            return Some(FieldValue::Value(Cow::Borrowed(tags)));
        }
        let mut list = vec![b'['];
        for (key, _) in members(tags) {
            if list.len() > 1 {
                list.push(b',');
            }
            list.extend_from_slice(&[b"\"", key, b"\""].concat());
        }
        list.push(b']');
        Some(FieldValue::Value(Cow::Owned(list)))
    }
}

/// The path as it is written with dots.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names.iter().enumerate() {
            f.write_str(if at > 0 { "." } else { "" })?;
            f.write_str(&name.replace('\\', "\\\\").replace('.', "\\."))?;
        }
        Ok(())
    }
}

/// The name of a field as the table of fields has it.
fn name_of(name: &str) -> &'static str {
    RECORD_FIELDS.iter().find(|field| **field == name).unwrap_or(&"")
}

fn names_of(path: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut chars = path.chars();
    while let Some(next) = chars.next() {
        let plain = match next {
            '.' => {
                names.push(String::new());
                continue;
            }
            '\\' => match chars.next() {
                Some(escaped @ ('.' | '\\')) => escaped,
                Some(other) => return Err(format!("\\{other} is no escape; write \\\\ for a backslash")),
                None => return Err("ends in an escape; write \\\\ for a backslash".to_owned()),
            },
            plain => plain,
        };
        if let Some(name) = names.last_mut() {
            name.push(plain);
        }
    }
    Ok(names)
}

/// The value that keys lead to, each as it stands between quotes. Nothing is looked at twice.
fn descend<'a, const ROOT: usize>(record: &'a [u8], root: [&[u8]; ROOT], steps: &[Vec<u8>]) -> Option<&'a [u8]> {
    let mut cursor = Cursor::new(record);
    for step in root.into_iter().chain(steps.iter().map(Vec::as_slice)) {
        cursor.pass(b"{")?;
        loop {
            if !cursor.has_more(b'}')? {
                return None;
            }
            if cursor.key()?.inner == step {
                break;
            }
            cursor.value()?;
        }
    }
    cursor.value()
}

/// What a field is in a record that lacks it, as canonical JSON; an id is never lacking.
fn default_of(name: &str) -> Option<Vec<u8>> {
    let text = |text: &str| [b"\"", text.as_bytes(), b"\""].concat();
    Some(match name {
        "confidence" => {
            let mut out = Vec::new();
            write_f64(defaults::CONFIDENCE, &mut out);
            out
        }
        "data" | "model_assumptions" => b"{}".to_vec(),
        "epistemic_boundary" | "evidence" => b"[]".to_vec(),
        "is_hypothesis" => b"false".to_vec(),
        "kind" => text(defaults::KIND),
        "label" => text(""),
        "recursion_depth" => b"0".to_vec(),
        "source_type" => text(defaults::SOURCE_TYPE),
        "status" => text(defaults::STATUS),
        _ => return None,
    })
}

/// Where a path leads, if an index can be made of it: a moment beside the record stands in none.
pub fn indexable(path: &str) -> Option<FieldPath> {
    let place = FieldPath::of_text(path).ok()?;
    place.stamp().is_none().then_some(place)
}

/// What a record has in a field as bytes that sort as values do; `None` for an array or an object.
pub fn sort_key(place: &FieldPath, record: &[u8]) -> Option<Vec<u8>> {
    let held = place.find(record, &Facts::default());
    let value = held.as_ref().and_then(FieldValue::value)?;
    let mut spelled = Vec::new();
    (!matches!(value.first(), Some(b'[' | b'{'))).then(|| key::spell(value, &mut spelled))?;
    Some(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, record: &str) -> Option<String> {
        let place = FieldPath::of_text(path).expect("a path");
        match place.find(record.as_bytes(), &Facts::default())? {
            FieldValue::Value(value) => Some(String::from_utf8_lossy(&value).into_owned()),
            FieldValue::Moment(micros) => Some(micros.to_string()),
        }
    }

    #[test]
    fn a_path_steps_through_objects() {
        let record =
            r#"{"data":{"@scope":{"user":"ann"},"a":{"b.c":1,"d":[{"e":2}]},"f\\g":3,"tags":{"x":1,"y":2}},"id":"R"}"#;
        for (path, value) in [
            ("data.a.b\\.c", Some("1")),
            ("data.f\\\\g", Some("3")),
            ("data.a.d", Some(r#"[{"e":2}]"#)),
            ("data.a.d.e", None),
            ("data.a.d.0", None),
            ("data.nothing", None),
            ("id.x", None),
            ("id", Some("\"R\"")),
            ("scope.user", Some("\"ann\"")),
            ("scope", Some(r#"{"user":"ann"}"#)),
            ("scope.agent", None),
            ("tags", Some(r#"["x","y"]"#)),
            ("tags.x", None),
            ("data.tags.x", Some("1")),
            ("created_at", None),
        ] {
            assert_eq!(found(path, record).as_deref(), value, "{path}");
        }
    }

    #[test]
    fn what_a_record_lacks_has_its_default() {
        for (path, value) in [
            ("kind", Some("\"fact\"")),
            ("status", Some("\"active\"")),
            ("confidence", Some("0.7")),
            ("label", Some("\"\"")),
            ("data", Some("{}")),
            ("evidence", Some("[]")),
            ("is_hypothesis", Some("false")),
            ("recursion_depth", Some("0")),
            ("source_type", Some("\"observed\"")),
            ("tags", None),
            ("scope", None),
            ("data.x", None),
        ] {
            assert_eq!(found(path, "{}").as_deref(), value, "{path}");
        }
        assert_eq!(found("tags", r#"{"data":{"tags":["a"]}}"#).as_deref(), Some(r#"["a"]"#));
    }

    #[test]
    fn a_path_is_written_as_it_is_read() {
        for path in ["data.a\\.b.c\\\\", "kind", "scope.user"] {
            assert_eq!(
                FieldPath::of_text(path).map(|place| place.to_string()),
                Ok(path.to_owned())
            );
        }
        for (path, why) in [
            ("dat.x", NO_FIELD),
            ("", NO_FIELD),
            ("data.", EMPTY_NAME),
            ("data..x", EMPTY_NAME),
            ("data.a\\b", "\\b is no escape; write \\\\ for a backslash"),
            ("data.a\\", "ends in an escape; write \\\\ for a backslash"),
        ] {
            assert_eq!(FieldPath::of_text(path), Err(why.to_owned()), "{path}");
        }
    }
}
