//! Drafts a record from JSON, as bulk loading does row by row.

use super::draft::{Draft, FIELD_DEPTH, RawField};
use crate::error::{Error, Result};
use crate::json::{self, MAX_DEPTH, Value};

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

impl Draft {
    /// Takes a record given as JSON, with defaults for missing fields. Errors: `Invalid` names the field and the reason.
    pub fn upsert_value(&mut self, record: &Value, depth: i64, face: Option<&str>) -> Result<()> {
        self.make_room()?;
        write(self, record, depth, face)
    }
}

fn write(draft: &mut Draft, record: &Value, depth: i64, face: Option<&str>) -> Result<()> {
    let Value::Object(fields) = record else {
        return Err(Error::invalid("record", "not an object"));
    };
    if let Some((unknown, _)) = fields.iter().find(|(key, _)| !RECORD_FIELDS.contains(&key.as_str())) {
        return Err(Error::invalid(
            unknown.as_str(),
            "not a field of a record; put it under data",
        ));
    }
    let text = |name: &'static str, default: &'static str| match record.get(name) {
        None => Ok(default),
        Some(value) => value.as_str().ok_or_else(|| Error::invalid(name, "not a string")),
    };
    let mut writer = draft.upsert();
    writer.confidence(match record.get("confidence") {
        None => defaults::CONFIDENCE,
        Some(value) => value
            .as_f64()
            .ok_or_else(|| Error::invalid("confidence", "not a number"))?,
    })?;
    let data = writer.raw(RawField::Data);
    let start = data.len();
    write_raw(record, RawField::Data, data)?;
    writer.end_data(start)?;
    for field in [RawField::EpistemicBoundary, RawField::Evidence] {
        write_raw(record, field, writer.raw(field))?;
    }
    writer.id(text("id", "")?, face)?;
    writer.is_hypothesis(match record.get("is_hypothesis") {
        None => false,
        Some(Value::Bool(value)) => *value,
        Some(_) => return Err(Error::invalid("is_hypothesis", "not true or false")),
    });
    writer.kind(text("kind", defaults::KIND)?);
    writer.label(text("label", "")?);
    write_raw(
        record,
        RawField::ModelAssumptions,
        writer.raw(RawField::ModelAssumptions),
    )?;
    writer.recursion_depth(match record.get("recursion_depth") {
        None => depth,
        Some(value) => value
            .as_i64()
            .ok_or_else(|| Error::invalid("recursion_depth", "not a 64-bit integer"))?,
    });
    writer.source_type(text("source_type", defaults::SOURCE_TYPE)?);
    writer.status(text("status", defaults::STATUS)?)
}

fn write_raw(record: &Value, field: RawField, out: &mut Vec<u8>) -> Result<()> {
    let is_list = matches!(field, RawField::Evidence | RawField::EpistemicBoundary);
    match record.get(field.name()) {
        None => out.extend_from_slice(if is_list { b"[]" } else { b"{}" }),
        Some(value) => {
            let fits = match value {
                Value::Array(_) => is_list,
                Value::Object(_) => !is_list,
                _ => false,
            };
            if !fits {
                let wanted = if is_list { "not a list" } else { "not an object" };
                return Err(Error::invalid(field.name(), wanted));
            }
            check_depth(field.name(), depth_of(value))?;
            json::write_value(value, out);
        }
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
