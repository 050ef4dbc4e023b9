//! Spells a text as it stands in a record, and reads it back.

use chronolog::json::{self, Value};

/// A text as it stands between quotes in canonical JSON.
pub fn spelled(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    json::write_string(text, &mut out);
    out.pop();
    out.remove(0);
    out
}

/// And back.
pub fn unspelled(text: &[u8]) -> String {
    let quoted = [b"\"", text, b"\""].concat();
    match json::parse(&quoted) {
        Ok(Value::Str(text)) => text,
        _ => String::from_utf8_lossy(text).into_owned(),
    }
}

/// The record that bytes spell.
pub fn parsed(record: &[u8]) -> Value {
    match json::parse(record) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::Object(Vec::new()),
    }
}
