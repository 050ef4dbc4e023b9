//! What do the bytes of a record say, without a value for each of them?
//!
//! The state has proven that its records are canonical, so members can be told apart without parsing what is in them.

use crate::json::{self, Value};

/// The members of a canonical object, as they are written: keys without quotes, values as they are.
pub struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

/// The members of an object; none of anything else.
pub fn members(object: &[u8]) -> Members<'_> {
    let at = if object.first() == Some(&b'{') { 1 } else { object.len() };
    Members { text: object, at }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if *self.text.get(self.at)? != b'"' {
            return None;
        }
        let key_end = string_end(self.text, self.at)?;
        let key = self.text.get(self.at + 1..key_end - 1)?;
        let start = key_end + 1;
        let end = value_end(self.text, start)?;
        self.at = end + 1;
        Some((key, &self.text[start..end]))
    }
}

/// Where a string that begins here ends.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

fn value_end(text: &[u8], start: usize) -> Option<usize> {
    match text.get(start)? {
        b'"' => string_end(text, start),
        b'{' | b'[' => container_end(text, start),
        _ => {
            let rest = text.get(start..)?;
            let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']'))?;
            Some(start + length)
        }
    }
}

fn container_end(text: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = start;
    loop {
        match *text.get(at)? {
            b'"' => {
                at = string_end(text, at)?;
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The number, if the value is one.
pub fn number(value: &[u8]) -> Option<f64> {
    std::str::from_utf8(value)
        .ok()?
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

/// The text between the quotes as it is written, if the value is a string.
pub fn quoted(value: &[u8]) -> Option<&[u8]> {
    match value {
        [b'"', inner @ .., b'"'] => Some(inner),
        _ => None,
    }
}

/// A text as it was meant, from what stands between quotes.
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

/// How many characters a text has, from what stands between quotes.
pub fn characters(inner: &[u8]) -> usize {
    if inner.contains(&b'\\') {
        return plain(inner).chars().count();
    }
    inner.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(object: &str) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        members(object.as_bytes())
            .map(|(key, value)| (text(key), text(value)))
            .collect()
    }

    #[test]
    fn members_are_told_apart() {
        let object =
            r#"{"a":{"x":"}{","y":[{"z":1}]},"b":["]",[2,{"q":"\"]"}]],"c":"\\","d":-1.5e-05,"e":null,"f":{}}"#;
        let expected = [
            ("a", r#"{"x":"}{","y":[{"z":1}]}"#),
            ("b", r#"["]",[2,{"q":"\"]"}]]"#),
            ("c", r#""\\""#),
            ("d", "-1.5e-05"),
            ("e", "null"),
            ("f", "{}"),
        ];
        let expected: Vec<_> = expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        assert_eq!(pairs(object), expected);
        assert!(pairs("{}").is_empty());
        assert!(pairs("[1]").is_empty());
    }

    #[test]
    fn characters_are_counted_as_they_were_meant() {
        assert_eq!(characters("Käse".as_bytes()), 4);
        assert_eq!(characters(br#"a\n\u0001\\"#), 4);
        assert_eq!(plain(br#"a\"b"#), "a\"b");
    }

    #[test]
    fn numbers_are_finite() {
        assert_eq!(number(b"0.01"), Some(0.01));
        assert_eq!(number(b"null"), None);
        assert_eq!(number(b"1e999"), None);
    }
}
