//! Drafts a record from JSON, as bulk loading does row by row.

use std::borrow::Cow;
use std::str::FromStr;

use super::draft::{Draft, FIELD_DEPTH};
use crate::error::{Error, Result};
use crate::json::{self, Cursor, MAX_DEPTH, Value};

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

/// The fields of a record that are not given.
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

/// The fields of a record that is given as JSON, each as canonical text that is not nested too deeply for a line.
#[derive(Default)]
pub struct JsonFields<'a>([Option<Cow<'a, [u8]>>; RECORD_FIELDS.len()]);

/// The place of the id in canonical order.
const ID: usize = 4;

impl<'a> JsonFields<'a> {
    /// The fields of a parsed record. Errors: `Invalid` for no object, for a field that no record has, and for deep nesting.
    pub fn parsed(record: &Value) -> Result<Self> {
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
            if FIELD_DEPTH + depth_of(value) > MAX_DEPTH {
                return Err(Error::invalid(
                    name.as_str(),
                    format!("nested deeper than {MAX_DEPTH} levels in its event"),
                ));
            }
            fields.0[place] = Some(Cow::Owned(value.to_bytes()));
        }
        Ok(fields)
    }

    /// The fields of a record that is spelled canonically but for the order of its fields, without those to be ignored.
    /// `None` if it is spelled otherwise or has another field.
    pub fn scanned(record: &'a [u8], ignored: &[&str]) -> Option<Self> {
        let mut fields = Self::default();
        json::scan_members(record, FIELD_DEPTH, |name, value| {
            match RECORD_FIELDS.iter().position(|field| field.as_bytes() == name) {
                Some(place) => fields.0[place].replace(Cow::Borrowed(value)).is_none(),
                None => ignored.iter().any(|ignored| ignored.as_bytes() == name),
            }
        })?;
        Some(fields)
    }

    /// The id, if there is one and it is a string.
    pub fn id(&self) -> Option<Cow<'_, str>> {
        self.text(ID, "").ok().filter(|_| self.has_id())
    }

    /// Whether there is an id, of whatever type.
    pub fn has_id(&self) -> bool {
        self.0[ID].is_some()
    }

    /// Sets the id, given as a canonical string.
    pub fn set_id(&mut self, spelled: String) {
        self.0[ID] = Some(Cow::Owned(spelled.into_bytes()));
    }

    fn text(&self, place: usize, default: &'static str) -> Result<Cow<'_, str>> {
        let Some(value) = &self.0[place] else {
            return Ok(Cow::Borrowed(default));
        };
        let text = Cursor::new(value).string().and_then(|quoted| quoted.text());
        text.ok_or_else(|| Error::invalid(RECORD_FIELDS[place], "not a string"))
    }

    /// A number or a truth value. No other JSON text is parsed as one.
    fn scalar<T: FromStr>(&self, place: usize, default: T, kind: &str) -> Result<T> {
        let Some(value) = &self.0[place] else {
            return Ok(default);
        };
        let scalar = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        scalar.ok_or_else(|| Error::invalid(RECORD_FIELDS[place], format!("not {kind}")))
    }

    fn write_container(&self, place: usize, empty: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let value = self.0[place].as_deref().unwrap_or(empty);
        if value.first() != empty.first() {
            let wanted = if empty == b"[]" { "not a list" } else { "not an object" };
            return Err(Error::invalid(RECORD_FIELDS[place], wanted));
        }
        out.extend_from_slice(value);
        Ok(())
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
        let mut writer = self.upsert();
        let confidence = fields.scalar(0, defaults::CONFIDENCE, "a number")?;
        if !confidence.is_finite() {
            return Err(Error::invalid("confidence", "not a number"));
        }
        writer.confidence(confidence)?;
        let data = writer.field();
        let start = data.len();
        fields.write_container(1, b"{}", data)?;
        writer.end_data(start)?;
        fields.write_container(2, b"[]", writer.field())?;
        fields.write_container(3, b"[]", writer.field())?;
        writer.id(&fields.text(ID, "")?, face)?;
        writer.is_hypothesis(fields.scalar(5, false, "true or false")?);
        writer.kind(&fields.text(6, defaults::KIND)?);
        writer.text(&fields.text(7, "")?);
        fields.write_container(8, b"{}", writer.field())?;
        json::write_i64(fields.scalar(9, depth, "a 64-bit integer")?, writer.field());
        writer.text(&fields.text(10, defaults::SOURCE_TYPE)?);
        writer.status(&fields.text(11, defaults::STATUS)?)
    }
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(pairs) => 1 + pairs.iter().map(|(_, value)| depth_of(value)).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::draft::Author;
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
        let nested =
            |depth: usize| r#"{"data":{"a":?},"id":"x"}"#.replace('?', &("[".repeat(depth) + &"]".repeat(depth)));
        let canonical = [
            r#"{"id":"x"}"#,
            "{}",
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
        let texts = canonical.into_iter().chain(others);
        for text in texts.chain(deep.iter().map(String::as_str)) {
            let Some(fields) = JsonFields::scanned(text.as_bytes(), &[]) else {
                continue;
            };
            scanned.push(text);
            let value = json::parse(text.as_bytes()).expect("JSON");
            assert_eq!(drafted(Ok(fields)), drafted(JsonFields::parsed(&value)), "{text}");
        }
        assert_eq!(scanned[..canonical.len()], canonical);
        assert_eq!(scanned[canonical.len()..], deep[..2]);
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
                draft.author = Author::plainly(&Arc::new(writer));
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
