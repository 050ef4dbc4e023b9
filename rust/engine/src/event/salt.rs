//! What in a record keeps its hash from being guessed?
//!
//! A salt stands in the key `~` of a record, 16 characters. It is part of the line and no part of the state: whoever takes a
//! record in leaves it out.

use std::borrow::Cow;

use memchr::memchr;

use crate::json::{self, RecordSpans, members};

/// The key that it has, as it stands between quotes.
pub const SALT_KEY: &[u8] = b"~";
/// How many characters it has.
pub const SALT_CHARACTERS: usize = 16;
/// What stands before it.
const BEFORE: &[u8] = b"\"~\":\"";
/// What stands behind it, at the end of a record.
const BEHIND: &[u8] = b"\"}";

fn is_salt(text: &[u8]) -> bool {
    text.len() == SALT_CHARACTERS
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// How much of a canonical record stands before a salt that is its last member; `None` if that is something else.
#[inline]
fn before_last(record: &[u8]) -> Option<usize> {
    let rest = record.strip_suffix(BEHIND)?;
    let (rest, salt) = rest.split_at_checked(rest.len().checked_sub(SALT_CHARACTERS)?)?;
    let rest = rest.strip_suffix(BEFORE)?;
    // Behind a comma or a brace a quote opens a key: inside a string there would be none.
    (matches!(rest.last(), Some(b',' | b'{')) && is_salt(salt)).then_some(rest.len())
}

/// A canonical record without its salt, and where its fields lie then; nothing is copied if it has none.
#[inline]
pub fn without<'a>(record: &'a [u8], fields: RecordSpans) -> (Cow<'a, [u8]>, RecordSpans) {
    if let Some(end) = before_last(record) {
        let mut kept = Vec::with_capacity(end + 1);
        kept.extend_from_slice(&record[..end]);
        if kept.last() == Some(&b',') {
            kept.pop();
        }
        kept.push(b'}');
        return (Cow::Owned(kept), fields);
    }
    if memchr(b'~', record).is_none() {
        return (Cow::Borrowed(record), fields);
    }
    without_inner(record, fields)
}

/// The same for one that may stand before other members.
#[inline(never)]
fn without_inner<'a>(record: &'a [u8], fields: RecordSpans) -> (Cow<'a, [u8]>, RecordSpans) {
    let is_it = |(key, value): &(&[u8], &[u8])| {
        let text = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        *key == SALT_KEY && text.is_some_and(is_salt)
    };
    if !members(record).any(|member| is_it(&member)) {
        return (Cow::Borrowed(record), fields);
    }
    let mut kept = vec![b'{'];
    for (key, value) in members(record).filter(|member| !is_it(member)) {
        if kept.len() > 1 {
            kept.push(b',');
        }
        kept.push(b'"');
        kept.extend_from_slice(key);
        kept.extend_from_slice(b"\":");
        kept.extend_from_slice(value);
    }
    kept.push(b'}');
    let fields = json::scan_record(&kept).unwrap_or_default();
    (Cow::Owned(kept), fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(record: &str) -> String {
        let fields = json::scan_record(record.as_bytes()).expect("canonical");
        let (kept, fields) = without(record.as_bytes(), fields);
        assert_eq!(json::scan_record(&kept), Some(fields), "{record}");
        String::from_utf8_lossy(&kept).into_owned()
    }

    #[test]
    fn a_salt_of_the_exact_form_is_left_out_wherever_it_stands() {
        for (record, kept) in [
            (r#"{"id":"a","~":"AbCdEfGhIjKlMn_-"}"#, r#"{"id":"a"}"#),
            (r#"{"~":"AbCdEfGhIjKlMn_-"}"#, "{}"),
            (r#"{"id":"a","~":"0123456789abcdef","é":1}"#, r#"{"id":"a","é":1}"#),
            (r#"{"~":"0123456789abcdef","é":"~"}"#, r#"{"é":"~"}"#),
        ] {
            assert_eq!(left(record), kept);
        }
        for other in [
            r#"{"id":"~"}"#,
            r#"{"id":"a","~":"AbCdEfGhIjKlMn_"}"#,
            r#"{"id":"a","~":"AbCdEfGhIjKlMn_-x"}"#,
            r#"{"id":"a","~":"AbCdEfGhIjKlMn_="}"#,
            r#"{"id":"a","~":null}"#,
            r#"{"data":{"~":"AbCdEfGhIjKlMn_-"}}"#,
            r#"{"data":{"~":"AbCdEfGhIjKlMn_-"},"id":"a"}"#,
            r#"{"id":"a","x":",\"~\":\"AbCdEfGhIjKlMn_-"}"#,
            r#"{"id":"a","~~":"AbCdEfGhIjKlMn_-"}"#,
        ] {
            assert_eq!(left(other), other);
        }
    }
}
