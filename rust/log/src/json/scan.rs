//! Recognises texts that are already spelled as we would spell them.
//!
//! The scan never decides what a text means, it only recognises its one spelling. So it may give up whenever a
//! question gets expensive: giving up sends the text to the slow path, which gives the verdict.
//!
//! Every function takes the place where something should begin and gives back the place after it. The places travel
//! in registers; a cursor behind a reference would cost a trip to memory for each of the hundred steps of a line.

use super::MAX_DEPTH;
use super::scan_number::skip_number;
use super::special::{next_quote, next_special};

/// Passes `literal`.
#[inline(always)]
pub(super) fn skip_literal<const N: usize>(bytes: &[u8], at: usize, literal: &[u8; N]) -> Option<usize> {
    (bytes.get(at..)?.first_chunk::<N>()? == literal).then_some(at + N)
}

/// A string: the place of its closing quote, and whether it holds a backslash.
#[derive(Clone, Copy)]
pub(super) struct Text {
    pub(super) end: usize,
    pub(super) escaped: bool,
}

/// Passes the inside of a string, from behind its opening quote.
#[inline(always)]
pub(super) fn find_end(bytes: &[u8], start: usize) -> Option<Text> {
    match next_quote(bytes, start) {
        Some(end) => Some(Text { end, escaped: false }),
        None => find_end_escaped(bytes, start),
    }
}

#[cold]
#[inline(never)]
fn find_end_escaped(bytes: &[u8], start: usize) -> Option<Text> {
    let mut at = next_special(bytes, start);
    while bytes.get(at) == Some(&b'\\') {
        at = next_special(bytes, at + canonical_escape(&bytes[at..])?);
    }
    (bytes.get(at) == Some(&b'"')).then_some(Text { end: at, escaped: true })
}

/// The length of the escape that begins here, if it is the one the writer would have used.
fn canonical_escape(bytes: &[u8]) -> Option<usize> {
    match *bytes.get(1)? {
        b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => match bytes.get(2..6)? {
            // The five controls with a letter of their own are never spelled in hex.
            [b'0', b'0', b'0', b'8' | b'9' | b'a' | b'c' | b'd'] => None,
            [b'0', b'0', b'0' | b'1', b'0'..=b'9' | b'a'..=b'f'] => Some(6),
            _ => None,
        },
        _ => None,
    }
}

/// Passes any value. If it is a container, it is number `depth` of those open.
#[inline(always)]
pub(super) fn skip_value(bytes: &[u8], at: usize, depth: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => Some(find_end(bytes, at + 1)?.end + 1),
        b'{' => skip_object(bytes, at + 1, depth),
        b'[' => skip_array(bytes, at + 1, depth),
        b't' => skip_literal(bytes, at, b"true"),
        b'f' => skip_literal(bytes, at, b"false"),
        b'n' => skip_literal(bytes, at, b"null"),
        _ => skip_number(bytes, at),
    }
}

/// Passes an array, from behind its bracket.
fn skip_array(bytes: &[u8], start: usize, depth: usize) -> Option<usize> {
    if depth > MAX_DEPTH {
        return None;
    }
    if *bytes.get(start)? == b']' {
        return Some(start + 1);
    }
    let mut at = start;
    loop {
        at = skip_value(bytes, at, depth + 1)? + 1;
        match bytes.get(at - 1)? {
            b',' => {}
            b']' => return Some(at),
            _ => return None,
        }
    }
}

/// Passes an object, from behind its brace.
fn skip_object(bytes: &[u8], start: usize, depth: usize) -> Option<usize> {
    skip_members(bytes, start, depth, |_, _, _| ())
}

/// Passes an object, from behind its brace, and shows `see` each key and where its value begins and ends.
#[inline(always)]
pub(super) fn skip_members(
    bytes: &[u8],
    start: usize,
    depth: usize,
    mut see: impl FnMut(&[u8], usize, usize),
) -> Option<usize> {
    if depth > MAX_DEPTH {
        return None;
    }
    if *bytes.get(start)? == b'}' {
        return Some(start + 1);
    }
    let mut at = start;
    let mut before = None;
    loop {
        let opened = skip_literal(bytes, at, b"\"")?;
        let text = find_end(bytes, opened)?;
        let key = ScannedKey::new(bytes, opened, text);
        if before.is_some_and(|before: ScannedKey| !before.stands_before(&key)) {
            return None;
        }
        before = Some(key);
        let value = skip_literal(bytes, text.end, b"\":")?;
        at = skip_value(bytes, value, depth + 1)? + 1;
        see(key.raw, value, at - 1);
        match bytes.get(at - 1)? {
            b',' => {}
            b'}' => return Some(at),
            _ => return None,
        }
    }
}

/// A key between its quotes.
#[derive(Clone, Copy)]
struct ScannedKey<'a> {
    raw: &'a [u8],
    escaped: bool,
    /// Its first eight bytes as a number that sorts like them. A shorter key is filled up with zeros, which sort
    /// first and cannot stand in a canonical text themselves.
    head: u64,
}

impl<'a> ScannedKey<'a> {
    #[inline(always)]
    fn new(bytes: &'a [u8], start: usize, text: Text) -> ScannedKey<'a> {
        let raw = &bytes[start..text.end];
        let head = match bytes[start..].first_chunk::<8>() {
            Some(head) if raw.len() < 8 => u64::from_be_bytes(*head) & !(u64::MAX >> (8 * raw.len())),
            Some(head) => u64::from_be_bytes(*head),
            None => raw
                .iter()
                .rev()
                .fold(0, |head, &byte| head >> 8 | u64::from(byte) << 56),
        };
        ScannedKey {
            raw,
            escaped: text.escaped,
            head,
        }
    }

    #[inline(always)]
    fn stands_before(&self, next: &ScannedKey) -> bool {
        if self.escaped || next.escaped {
            return decoded(self.raw).lt(decoded(next.raw));
        }
        if self.head == next.head {
            self.raw < next.raw
        } else {
            self.head < next.head
        }
    }
}

/// The bytes that a canonically escaped text stands for. Raw texts do not sort like them: a backslash sorts above
/// the capital letters, the control character it may stand for below them.
fn decoded(raw: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let (byte, length) = match *rest {
            [] => return None,
            [b'\\', b'u', _, _, high, low, ..] => ((high - b'0') << 4 | char::from(low).to_digit(16)? as u8, 6),
            [b'\\', b'b', ..] => (0x08, 2),
            [b'\\', b'f', ..] => (0x0c, 2),
            [b'\\', b'n', ..] => (b'\n', 2),
            [b'\\', b'r', ..] => (b'\r', 2),
            [b'\\', b't', ..] => (b'\t', 2),
            [b'\\', itself, ..] => (itself, 2),
            [plain, ..] => (plain, 1),
        };
        rest = &rest[length..];
        Some(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{parse, write_value};
    use super::*;

    /// Whether the scan takes the whole text for canonical; and that it is right.
    fn accepted(text: &str) -> bool {
        let accepted = skip_value(text.as_bytes(), 0, 1) == Some(text.len());
        let mut out = Vec::new();
        if let Ok(value) = parse(text.as_bytes()) {
            write_value(&value, &mut out);
        }
        assert_eq!(
            accepted,
            out == text.as_bytes(),
            "the scan and the round trip agree on {text}"
        );
        accepted
    }

    #[test]
    fn only_canonical_escapes_pass() {
        for text in [
            r#""\"\\\b\f\n\r\t""#,
            r#""\u0000\u000b\u001f""#,
            "\"/\u{7f}é\u{2028}😀\"",
        ] {
            assert!(accepted(text), "{text}");
        }
        for escape in r"\u0008 \u000a \u001F \u0020 \u00e9 \/ \u2028 \ \u00 \x".split(' ') {
            assert!(!accepted(&format!("\"{escape}\"")), "{escape}");
        }
        for text in [r#"""#, r#""\"#, "\"\\u00", "\"\n\"", "\"\u{1f}\""] {
            assert!(!accepted(text), "{text}");
        }
    }

    #[test]
    fn keys_ascend_by_what_they_say() {
        for text in [
            r#"{"":1,"\u0000":2,"\n":3," ":4,"A":5,"a":6,"aa":7,"é":8,"😀":9}"#,
            r#"{"a\n":1,"a\"":2,"aA":3,"a\\":4,"a]":5}"#,
            r#"{"abcdefgh":1,"abcdefgh1":2,"abcdefgh2":3,"abcdefgi":4}"#,
        ] {
            assert!(accepted(text), "{text}");
        }
        for text in [
            r#"{"A":1,"\n":2}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"\n":1,"\n":2}"#,
            r#"{"b":1,"a":2}"#,
            r#"{"abcdefgh2":1,"abcdefgh1":2}"#,
            r#"{"abcdefgh":1,"abcdefgh":2}"#,
            r#"{"a]":1,"a\\":2}"#,
        ] {
            assert!(!accepted(text), "{text}");
        }
    }

    #[test]
    fn there_is_no_room_for_white_space() {
        for text in ["[]", "{}", r#"[1,[],{"a":{}},null,true,false]"#] {
            assert!(accepted(text), "{text}");
        }
        let texts = r#"[ ];{ };[1, 2];[1,];[,1];[1;[1};{"a": 1};{"a":1,};{"a";{"a":;tru;nulll"#;
        for text in texts.split(';') {
            assert!(!accepted(text), "{text}");
        }
    }

    #[test]
    fn depth_is_counted_in_open_containers() {
        let arrays = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(accepted(&arrays(MAX_DEPTH)));
        assert!(!accepted(&arrays(MAX_DEPTH + 1)));
        let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(accepted(&objects(MAX_DEPTH)));
        assert!(!accepted(&objects(MAX_DEPTH + 1)));
    }
}
