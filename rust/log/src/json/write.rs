//! Writes a JSON value in its canonical spelling, or indented for people.

use memchr::{memchr, memchr2_iter};

use super::special::{end_of_string, is_plain, next_special};
use super::{MAX_LINE_BYTES, Value, write_f64};

/// Writes a value in canonical form: sorted keys, no white space, characters raw unless JSON forbids it.
pub fn write_value(value: &Value, out: &mut Vec<u8>) {
    write_with(value, b",", b":", out);
}

/// Writes a value in the older dialect: the same, but with `", "` and `": "` between things.
pub fn write_value_spaced(value: &Value, out: &mut Vec<u8>) {
    write_with(value, b", ", b": ", out);
}

fn write_with(value: &Value, comma: &[u8], colon: &[u8], out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(int) => match (int.as_i64(), int.large_text()) {
            (Some(small), _) => write_i64(small, out),
            (None, text) => out.extend_from_slice(text.unwrap_or_default().as_bytes()),
        },
        Value::Float(float) => write_f64(*float, out),
        Value::Str(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(comma);
                }
                write_with(item, comma, colon, out);
            }
            out.push(b']');
        }
        Value::Object(pairs) => {
            debug_assert!(
                pairs.is_sorted_by(|a, b| a.0 < b.0),
                "an object's keys are sorted and unique"
            );
            out.push(b'{');
            for (at, (key, item)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(comma);
                }
                write_string(key, out);
                out.extend_from_slice(colon);
                write_with(item, comma, colon, out);
            }
            out.push(b'}');
        }
    }
}

/// Writes a string with its quotes. Only what JSON forbids is escaped, in the shortest way it offers.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    if is_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        write_escaped(bytes, out);
    }
    out.push(b'"');
}

fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut written = 0;
    loop {
        let special = next_special(bytes, written);
        out.extend_from_slice(&bytes[written..special]);
        let Some(&byte) = bytes.get(special) else {
            return;
        };
        write_escape(byte, out);
        written = special + 1;
    }
}

#[cold]
fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let digits = b"0123456789abcdef";
            out.extend_from_slice(b"\\u00");
            out.push(digits[usize::from(byte >> 4)]);
            out.push(digits[usize::from(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Writes an integer.
pub fn write_i64(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    write_u64(number.unsigned_abs(), out);
}

fn write_u64(number: u64, out: &mut Vec<u8>) {
    const MOST_DIGITS: usize = 20;
    let mut digits = [b'0'; MOST_DIGITS];
    let mut start = MOST_DIGITS;
    let mut rest = number;
    while rest >= 10 {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    start -= 1;
    digits[start] = b'0' + rest as u8;
    out.extend_from_slice(&digits[start..]);
}

/// The three characters that careless readers take for line ends all begin with one of these two bytes.
const SEPARATOR_LEADS: (u8, u8) = (0xc2, 0xe2);

/// The escape for a line separator that begins here, and the length of its raw form.
fn separator_escape(bytes: &[u8]) -> Option<(&'static [u8], usize)> {
    match bytes {
        [0xc2, 0x85, ..] => Some((b"\\u0085", 2)),
        [0xe2, 0x80, 0xa8, ..] => Some((b"\\u2028", 3)),
        [0xe2, 0x80, 0xa9, ..] => Some((b"\\u2029", 3)),
        _ => None,
    }
}

/// Whether a JSON text holds U+0085, U+2028 or U+2029 raw.
#[must_use]
pub fn has_line_separators(bytes: &[u8]) -> bool {
    memchr2_iter(SEPARATOR_LEADS.0, SEPARATOR_LEADS.1, bytes).any(|at| separator_escape(&bytes[at..]).is_some())
}

/// How long a JSON text is with each of them escaped, or a length that fits into a line as well.
pub fn escaped_length(bytes: &[u8]) -> usize {
    // An escape is three times as long as the shortest of them.
    if bytes.len() < MAX_LINE_BYTES / 4 {
        return bytes.len();
    }
    let separators = memchr2_iter(SEPARATOR_LEADS.0, SEPARATOR_LEADS.1, bytes);
    let gained = separators.filter_map(|at| separator_escape(&bytes[at..]).map(|(escape, raw)| escape.len() - raw));
    bytes.len() + gained.sum::<usize>()
}

/// Appends a JSON text with U+0085, U+2028 and U+2029 escaped, which stand in strings only; says if there was one.
pub fn escape_line_separators(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let mut copied = 0;
    for at in memchr2_iter(SEPARATOR_LEADS.0, SEPARATOR_LEADS.1, bytes) {
        if let Some((escape, length)) = separator_escape(&bytes[at..]) {
            out.extend_from_slice(&bytes[copied..at]);
            out.extend_from_slice(escape);
            copied = at + length;
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    copied > 0
}

/// A piece of JSON text with every escape of U+0085, U+2028 and U+2029 raw again: the other way round.
#[must_use]
pub fn raw_line_separators(bytes: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(bytes.len());
    let mut copied = 0;
    while let Some(at) = memchr(b'\\', &bytes[copied..]).map(|at| copied + at) {
        raw.extend_from_slice(&bytes[copied..at]);
        let separator = match bytes.get(at..at + 6) {
            Some(b"\\u0085") => Some("\u{85}"),
            Some(b"\\u2028") => Some("\u{2028}"),
            Some(b"\\u2029") => Some("\u{2029}"),
            _ => None,
        };
        // Any other escape stays: the backslash, and what it is of, which may be another one.
        let end = (at + if separator.is_some() { 6 } else { 2 }).min(bytes.len());
        raw.extend_from_slice(separator.map_or(&bytes[at..end], str::as_bytes));
        copied = end;
    }
    raw.extend_from_slice(&bytes[copied..]);
    raw
}

/// Indents a canonical text by two spaces a level, as Python's `json.dumps(..., indent=2)` does.
pub fn indented(canonical: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(canonical.len() * 2);
    let (mut depth, mut at) = (0, 0);
    while let Some(&byte) = canonical.get(at) {
        let next = canonical.get(at + 1).copied().unwrap_or_default();
        match byte {
            b'"' => {
                let end = end_of_string(canonical, at).unwrap_or(canonical.len());
                out.extend_from_slice(&canonical[at..end]);
                at = end;
                continue;
            }
            b'{' | b'[' if next == byte + 2 => {
                out.extend_from_slice(&[byte, next]);
                at += 2;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                out.push(byte);
                begin_line(&mut out, depth);
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                begin_line(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                begin_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
        at += 1;
    }
    out
}

fn begin_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use super::super::Int;
    use super::*;

    fn written(value: &Value) -> String {
        let out = value.to_bytes();
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn strings_are_escaped_only_where_json_forbids_the_character() {
        let all: String = (0..=0x7f_u8).map(char::from).collect();
        let expected = concat!(
            r#""\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#,
            r#"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"#,
            r##" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"##,
            "\u{7f}\""
        );
        assert_eq!(written(&Value::from(all)), expected);
        assert_eq!(written(&Value::from("é\u{85}\u{2028}😀/")), "\"é\u{85}\u{2028}😀/\"");
    }

    #[test]
    fn values_are_compact_or_spaced() {
        let value = Value::object([
            (
                "b",
                Value::Array(vec![
                    Value::Null,
                    Value::from(true),
                    Value::from(false),
                    Value::Array(vec![]),
                ]),
            ),
            (
                "a",
                Value::object([
                    ("é", Value::from(1.0)),
                    ("z", Value::from(-7_i64)),
                    ("", Value::object::<&str>([])),
                ]),
            ),
        ]);
        assert_eq!(
            written(&value),
            r#"{"a":{"":{},"z":-7,"é":1.0},"b":[null,true,false,[]]}"#
        );
        let mut spaced = Vec::new();
        write_value_spaced(&value, &mut spaced);
        let expected = r#"{"a": {"": {}, "z": -7, "é": 1.0}, "b": [null, true, false, []]}"#;
        assert_eq!(String::from_utf8_lossy(&spaced), expected);
    }

    #[test]
    fn integers_of_any_size() {
        for number in [0, 1, -1, 9, 10, 99, 100, 12_345_678_901, i64::MAX, i64::MIN] {
            assert_eq!(written(&Value::from(number)), number.to_string());
        }
        let long = format!("-{}", "7".repeat(300));
        assert_eq!(
            Int::from_decimal(&long).map(|int| written(&Value::Int(int))),
            Some(long)
        );
    }

    #[test]
    fn line_separators_are_found_and_escaped() {
        let mut out = Vec::new();
        let plain = "\"— Ä \u{86} \u{202a} \u{2027} \u{205}\"";
        assert!(!has_line_separators(plain.as_bytes()));
        assert!(!escape_line_separators(plain.as_bytes(), &mut out));
        assert_eq!(out, plain.as_bytes());
        out.clear();
        let raw = "\"\u{85}x\u{2028}\u{2029}—\"";
        assert!(has_line_separators(raw.as_bytes()));
        assert!(escape_line_separators(raw.as_bytes(), &mut out));
        assert_eq!(String::from_utf8_lossy(&out), "\"\\u0085x\\u2028\\u2029—\"");
        assert_eq!(raw_line_separators(&out), raw.as_bytes());
        let kept = br#""\\u2028 \u2027 \" \\\\u0085 \"#;
        assert_eq!(raw_line_separators(kept), kept);
        // A separator cut off by the end of the text is not one.
        assert!(!has_line_separators(b"\xe2\x80"));
    }

    #[test]
    fn a_text_is_set_as_python_sets_it() {
        let canonical = br#"{"a":[],"b":{},"c":[1,{"d":"x\",{[\\"}],"e":null}"#;
        let wanted = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": \"x\\\",{[\\\\\"\n    }\n  ],\n  \
                      \"e\": null\n}";
        assert_eq!(String::from_utf8_lossy(&indented(canonical)), wanted);
        for alone in ["1", "null", "\"\"", "[]", "{}"] {
            assert_eq!(indented(alone.as_bytes()), alone.as_bytes());
        }
    }

    #[test]
    fn bytes_that_are_no_json_do_no_harm() {
        for odd in [&b"\"\\"[..], b"]]", b"[", b"{\"", b"}"] {
            assert!(indented(odd).len() >= odd.len());
        }
    }
}
