//! Reads fields of a block from the bytes of its canonical record, without parsing the whole record.

use chronolog::json::{self, Value};

/// The prefix of the id of a block's record.
const BLOCK_PREFIX: &str = "block:";

/// The kind of a block's record.
pub const BLOCK_KIND: &str = "block";

/// The id of the record of a block.
pub fn block_key(block: &str) -> String {
    format!("{BLOCK_PREFIX}{block}")
}

/// The block whose record has this id.
pub fn block_in(id: &[u8]) -> Option<&[u8]> {
    id.strip_prefix(BLOCK_PREFIX.as_bytes())
}

/// A finite number.
pub fn number(value: &[u8]) -> Option<f64> {
    std::str::from_utf8(value)
        .ok()?
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

/// The text between the quotes of a string, with its escapes.
pub fn quoted(value: &[u8]) -> Option<&[u8]> {
    match value {
        [b'"', inner @ .., b'"'] => Some(inner),
        _ => None,
    }
}

/// The text between quotes with its escapes resolved.
pub fn plain(inner: &[u8]) -> String {
    if !inner.contains(&b'\\')
        && let Ok(text) = std::str::from_utf8(inner)
    {
        return text.to_owned();
    }
    match json::parse(&[b"\"", inner, b"\""].concat()) {
        Ok(Value::Str(text)) => text,
        _ => String::from_utf8_lossy(inner).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(plain(br#"a\"b"#), "a\"b");
    }

    #[test]
    fn numbers_are_finite() {
        assert_eq!(number(b"0.01"), Some(0.01));
        assert_eq!(number(b"null"), None);
        assert_eq!(number(b"1e999"), None);
    }
}
