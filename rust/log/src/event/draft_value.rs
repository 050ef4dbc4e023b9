//! Drafts a record from JSON, as bulk loading does row by row.

use std::borrow::Cow;

use memchr::memchr;

use super::draft::{Draft, FIELD_DEPTH, RawField};
use crate::error::{Error, Result};
use crate::json::{self, MAX_DEPTH, Quoted, Value};

/// The fields of a record, in canonical order.
pub const RECORD_FIELDS: [&str; 12] = [
    "confidence",
    "data",
    "epistemic_boundary",
    "evidence",
    "id",
    "is_hypothesis",
    "kind",
    "label",
    "model_assumptions",
    "recursion_depth",
    "source_type",
    "status",
];

/// What a record's fields are when nobody says otherwise.
pub mod defaults {
    /// The kind.
    pub const KIND: &str = "fact";
    /// The status.
    pub const STATUS: &str = "active";
    /// The confidence.
    pub const CONFIDENCE: f64 = 0.7;
    /// The source type.
    pub const SOURCE_TYPE: &str = "observed";
}

/// A field as it was given.
#[derive(Clone, Copy)]
enum JsonField<'a> {
    Parsed(&'a Value),
    /// A text that is spelled canonically, and not nested too deeply for a line.
    Canonical(&'a str),
}

/// The fields of a record that is given as JSON.
#[derive(Default)]
pub struct JsonFields<'a>([Option<JsonField<'a>>; RECORD_FIELDS.len()]);

/// The place of the id in canonical order.
const ID: usize = 4;

impl<'a> JsonFields<'a> {
    /// The fields of a parsed record. Errors: `Invalid` for no object and for a field that no record has.
    pub fn parsed(record: &'a Value) -> Result<Self> {
        let Value::Object(pairs) = record else {
            return Err(Error::invalid("record", "not an object"));
        };
        let mut fields = Self::default();
        for (name, value) in pairs {
            let Some(place) = RECORD_FIELDS.iter().position(|field| field == name) else {
                return Err(Error::invalid(
                    name.as_str(),
                    "not a field of a record; put it under data",
                ));
            };
            fields.0[place] = Some(JsonField::Parsed(value));
        }
        Ok(fields)
    }

    /// The fields of a record that is spelled canonically but for the order of its fields, without those to be ignored.
    /// `None` if it is spelled otherwise or has another field.
    pub fn scanned(record: &'a [u8], ignored: &[&str]) -> Option<Self> {
        let (mut fields, mut next) = (Self::default(), 0);
        json::scan_members(record, FIELD_DEPTH, |name, value| {
            let place = match RECORD_FIELDS.get(next) {
                Some(field) if *field == name => Some(next),
                _ => RECORD_FIELDS.iter().position(|field| *field == name),
            };
            let Some(place) = place else {
                return ignored.contains(&name);
            };
            next = place + 1;
            fields.0[place].replace(JsonField::Canonical(value)).is_none()
        })?;
        Some(fields)
    }

    /// The id, if there is one and it is a string.
    pub fn id(&self) -> Option<Cow<'a, str>> {
        self.0[ID].and_then(JsonField::text)
    }

    /// Whether there is an id, of whatever type.
    pub fn has_id(&self) -> bool {
        self.0[ID].is_some()
    }

    /// Sets the id, given as a canonical string.
    pub fn set_id(&mut self, spelled: &'a str) {
        self.0[ID] = Some(JsonField::Canonical(spelled));
    }
}

impl<'a> JsonField<'a> {
    fn text(self) -> Option<Cow<'a, str>> {
        let spelled = match self {
            Self::Parsed(value) => return value.as_str().map(Cow::Borrowed),
            Self::Canonical(spelled) => spelled,
        };
        let inner = spelled.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
        let is_escaped = memchr(b'\\', inner).is_some();
        Quoted { inner, is_escaped }.text()
    }

    fn number(self) -> Option<f64> {
        match self {
            Self::Parsed(value) => value.as_f64(),
            Self::Canonical(spelled) => spelled.parse().ok().filter(|number: &f64| number.is_finite()),
        }
    }

    fn integer(self) -> Option<i64> {
        match self {
            Self::Parsed(value) => value.as_i64(),
            Self::Canonical(spelled) => spelled.parse().ok(),
        }
    }

    fn truth(self) -> Option<bool> {
        match self {
            Self::Parsed(value) => value.as_bool(),
            Self::Canonical(spelled) => spelled.parse().ok(),
        }
    }
}

impl Draft {
    /// Takes a record given as JSON, with defaults for missing fields. Errors: `Invalid` names the field and the reason.
    pub fn upsert_value(&mut self, record: &Value, depth: i64, face: Option<&str>) -> Result<()> {
        self.upsert_fields(&JsonFields::parsed(record)?, depth, face)
    }

    /// The same of a record given by its fields.
    pub fn upsert_fields(&mut self, fields: &JsonFields<'_>, depth: i64, face: Option<&str>) -> Result<()> {
        self.make_room()?;
        write(self, fields, depth, face)
    }
}

fn write(draft: &mut Draft, fields: &JsonFields<'_>, depth: i64, face: Option<&str>) -> Result<()> {
    let text = |place: usize, default: &'static str| match fields.0[place] {
        None => Ok(Cow::Borrowed(default)),
        Some(field) => field
            .text()
            .ok_or_else(|| Error::invalid(RECORD_FIELDS[place], "not a string")),
    };
    let mut writer = draft.upsert();
    writer.confidence(match fields.0[0] {
        None => defaults::CONFIDENCE,
        Some(field) => field
            .number()
            .ok_or_else(|| Error::invalid("confidence", "not a number"))?,
    })?;
    let data = writer.raw(RawField::Data);
    let start = data.len();
    write_raw(fields.0[1], RawField::Data, data)?;
    writer.end_data(start)?;
    let boundary = RawField::EpistemicBoundary;
    write_raw(fields.0[2], boundary, writer.raw(boundary))?;
    write_raw(fields.0[3], RawField::Evidence, writer.raw(RawField::Evidence))?;
    writer.id(&text(ID, "")?, face)?;
    writer.is_hypothesis(match fields.0[5] {
        None => false,
        Some(field) => field
            .truth()
            .ok_or_else(|| Error::invalid("is_hypothesis", "not true or false"))?,
    });
    writer.kind(&text(6, defaults::KIND)?);
    writer.label(&text(7, "")?);
    let assumptions = RawField::ModelAssumptions;
    write_raw(fields.0[8], assumptions, writer.raw(assumptions))?;
    writer.recursion_depth(match fields.0[9] {
        None => depth,
        Some(field) => field
            .integer()
            .ok_or_else(|| Error::invalid("recursion_depth", "not a 64-bit integer"))?,
    });
    writer.source_type(&text(10, defaults::SOURCE_TYPE)?);
    writer.status(&text(11, defaults::STATUS)?)
}

fn write_raw(given: Option<JsonField<'_>>, field: RawField, out: &mut Vec<u8>) -> Result<()> {
    let is_list = matches!(field, RawField::Evidence | RawField::EpistemicBoundary);
    let (opening, empty) = if is_list { ('[', "[]") } else { ('{', "{}") };
    let fits = match given {
        None => true,
        Some(JsonField::Canonical(spelled)) => spelled.starts_with(opening),
        Some(JsonField::Parsed(Value::Array(_))) => is_list,
        Some(JsonField::Parsed(Value::Object(_))) => !is_list,
        Some(JsonField::Parsed(_)) => false,
    };
    if !fits {
        let wanted = if is_list { "not a list" } else { "not an object" };
        return Err(Error::invalid(field.name(), wanted));
    }
    match given {
        Some(JsonField::Parsed(value)) => {
            check_depth(field.name(), depth_of(value))?;
            json::write_value(value, out);
        }
        Some(JsonField::Canonical(spelled)) => out.extend_from_slice(spelled.as_bytes()),
        None => out.extend_from_slice(empty.as_bytes()),
    }
    Ok(())
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(pairs) => 1 + pairs.iter().map(|(_, value)| depth_of(value)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Refuses a value that is nested too deeply for a line.
fn check_depth(field: &str, depth: usize) -> Result<()> {
    if FIELD_DEPTH + depth > MAX_DEPTH {
        return Err(Error::invalid(
            field,
            format!("nested deeper than {MAX_DEPTH} levels in its event"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::expiry::expiry_of;
    use crate::scope::{Scope, Viewer, carried};

    /// What becomes of a record: its canonical text, or why it is refused.
    fn drafted(fields: Result<JsonFields<'_>>) -> std::result::Result<String, String> {
        let mut draft = Draft::default();
        fields
            .and_then(|fields| draft.upsert_fields(&fields, 3, None))
            .map_err(|fault| fault.to_string())?;
        Ok(String::from_utf8_lossy(draft.record(&draft.changes()[0])).into_owned())
    }

    #[test]
    fn a_scanned_record_is_drafted_as_a_parsed_one() {
        let nested = |depth: usize| {
            format!(
                r#"{{"data":{{"a":{}{}}},"id":"x"}}"#,
                "[".repeat(depth),
                "]".repeat(depth)
            )
        };
        let canonical = [
            r#"{"id":"x"}"#,
            r#"{"id":"x","confidence":0.5,"data":{"a":[1,2.5,"é\n"],"b":{}},"label":"a \"b\" – née"}"#,
            r#"{"status":"active","source_type":"told","recursion_depth":7,"model_assumptions":{"m":null},"kind":"risk","is_hypothesis":true,"id":"x","evidence":["e"],"epistemic_boundary":[1],"confidence":1}"#,
            r#"{"id":"x","confidence":1e+100}"#,
            r#"{"id":"x","confidence":123456789012345678901234567890}"#,
            r#"{"id":"x","confidence":"0.5"}"#,
            r#"{"id":"x","confidence":true}"#,
            r#"{"id":"x","recursion_depth":99999999999999999999}"#,
            r#"{"id":"x","recursion_depth":1.0}"#,
            r#"{"id":"x","is_hypothesis":"true"}"#,
            r#"{"id":"x","data":[]}"#,
            r#"{"id":"x","data":"{}"}"#,
            r#"{"id":"x","evidence":{}}"#,
            r#"{"id":"x","model_assumptions":null}"#,
            r#"{"id":"x","label":null}"#,
            r#"{"id":null}"#,
            r#"{"id":""}"#,
            r#"{"id":"block:x"}"#,
            r#"{"id":"\u0001\u001f"}"#,
            r#"{"id":"x","data":{"@scope":{"user":"ann"}}}"#,
            r#"{"id":"x","data":{"expires_at":"tomorrow"}}"#,
        ];
        let others = [
            "{}",
            "[]",
            r#"{"id": "x"}"#,
            r#"{"id":"x","id":"y"}"#,
            r#"{"id":"x","label":"\u00e9"}"#,
            r#"{"id":"x","data":{"b":1,"a":2}}"#,
            r#"{"id":"x","confidence":0.50}"#,
            r#"{"id":"x","created_at":1}"#,
            r#"{"id":"x"} "#,
            r#"{"id":"x""#,
        ];
        let deep = [nested(MAX_DEPTH - 4), nested(MAX_DEPTH - 3), nested(MAX_DEPTH - 2)];
        let mut scanned = Vec::new();
        for text in canonical
            .into_iter()
            .chain(others)
            .chain(deep.iter().map(String::as_str))
        {
            let Some(fields) = JsonFields::scanned(text.as_bytes(), &[]) else {
                continue;
            };
            scanned.push(text);
            let value = json::parse(text.as_bytes()).expect("JSON");
            assert_eq!(drafted(Ok(fields)), drafted(JsonFields::parsed(&value)), "{text}");
        }
        assert_eq!(scanned[..canonical.len()], canonical);
        assert_eq!(
            scanned[canonical.len()..],
            deep[..2].iter().map(String::as_str).collect::<Vec<_>>()
        );
        let ignored = JsonFields::scanned(br#"{"created_at":1,"id":"x"}"#, &["created_at"]);
        assert!(drafted(Ok(ignored.expect("a known field"))).is_ok());
    }

    #[test]
    fn what_is_drafted_as_plain_carries_no_scope_and_never_expires() {
        let ann = Viewer::Named {
            scope: Scope::new([Some("ann"), None, None]).expect("a good name"),
            shared: true,
        };
        for (data, is_plain) in [
            ("{}", true),
            (r#"{"1":1,"a":{"@scope":{"user":"ann"}}}"#, true),
            (r#"{"a":{"expires_at":"2026-01-01T00:00:00Z"}}"#, true),
            (r#"{"a":"expires_at"}"#, true),
            (r#"{"expires_at":"2026-01-01T00:00:00Z"}"#, false),
            (r#"{"expires_at":null}"#, false),
            (r#"{"@scope":{"user":"ann"}}"#, false),
            (r#"{"1":1,"@scope":{"user":"ann"},"a":1}"#, false),
        ] {
            let text = format!(r#"{{"id":"a","data":{data}}}"#);
            let record = json::parse(text.as_bytes()).expect("JSON");
            for writer in [Viewer::default(), Viewer::Everyone, ann.clone()] {
                let (mut draft, has_names) = (Draft::default(), writer == ann);
                draft.written_by(&Arc::new(writer));
                if draft.upsert_value(&record, 0, None).is_err() {
                    assert!(data.contains("@scope"), "{data}");
                    continue;
                }
                let change = &draft.changes()[0];
                let record = draft.record(change);
                assert_eq!(change.is_plain, is_plain && !has_names, "{data}");
                assert!(!change.is_plain || (carried(record).is_none() && expiry_of(record, None).is_none()));
            }
        }
    }
}
