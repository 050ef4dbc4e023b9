//! Writes a JSON value in its canonical spelling, or indented for people.

use memchr::{memchr, memchr2_iter};

use super::special::{end_of_string, next_special};
use super::{MAX_LINE_BYTES, Value, write_f64, write_i64};

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
        Value::Int(int) => write_i64(*int, out),
        Value::Large(text) => out.extend_from_slice(text.as_bytes()),
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
    let mut written = 0;
    loop {
        let special = next_special(bytes, written);
        out.extend_from_slice(&bytes[written..special]);
        let Some(&byte) = bytes.get(special) else {
            break;
        };
        write_escape(byte, out);
        written = special + 1;
    }
    out.push(b'"');
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
        _ => return out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// U+0085, U+2028 and U+2029, which some readers take for line ends: position, length and escape of each.
fn line_separators(bytes: &[u8]) -> impl Iterator<Item = (usize, usize, &'static [u8])> {
    memchr2_iter(0xc2, 0xe2, bytes).filter_map(|at| match &bytes[at..] {
        [0xc2, 0x85, ..] => Some((at, 2, &b"\\u0085"[..])),
        [0xe2, 0x80, 0xa8, ..] => Some((at, 3, &b"\\u2028"[..])),
        [0xe2, 0x80, 0xa9, ..] => Some((at, 3, &b"\\u2029"[..])),
        _ => None,
    })
}

/// Whether a JSON text holds U+0085, U+2028 or U+2029 raw.
#[must_use]
pub fn has_line_separators(bytes: &[u8]) -> bool {
    line_separators(bytes).next().is_some()
}

/// The length of a JSON text with each of them escaped, or a length that fits into a line as well.
pub fn escaped_length(bytes: &[u8]) -> usize {
    // An escape is three times as long as the shortest of them.
    if bytes.len() < MAX_LINE_BYTES / 4 {
        return bytes.len();
    }
    let added = line_separators(bytes).map(|(_, length, escape)| escape.len() - length);
    bytes.len() + added.sum::<usize>()
}

/// Appends a JSON text with U+0085, U+2028 and U+2029 escaped, which occur in strings only. Whether there was one.
pub fn escape_line_separators(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let mut copied = 0;
    for (at, length, escape) in line_separators(bytes) {
        out.extend_from_slice(&bytes[copied..at]);
        out.extend_from_slice(escape);
        copied = at + length;
    }
    out.extend_from_slice(&bytes[copied..]);
    copied > 0
}

/// The reverse: a piece of JSON text with every escape of U+0085, U+2028 and U+2029 raw again.
#[must_use]
pub fn raw_line_separators(bytes: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(bytes.len());
    let mut copied = 0;
    while let Some(at) = memchr(b'\\', &bytes[copied..]).map(|at| copied + at) {
        raw.extend_from_slice(&bytes[copied..at]);
        let (separator, length) = match bytes.get(at..at + 6) {
            Some(b"\\u0085") => ("\u{85}".as_bytes(), 6),
            Some(b"\\u2028") => ("\u{2028}".as_bytes(), 6),
            Some(b"\\u2029") => ("\u{2029}".as_bytes(), 6),
            // Any other escape stays: the backslash and its letter, which may be another backslash.
            _ => (&bytes[at..bytes.len().min(at + 2)], 2),
        };
        raw.extend_from_slice(separator);
        copied = bytes.len().min(at + length);
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
    use super::super::parse;
    use super::*;

    #[test]
    fn strings_are_escaped_only_where_json_forbids_the_character() {
        let all: String = (0..=0x7f_u8)
            .map(char::from)
            .chain("é\u{85}\u{2028}😀".chars())
            .collect();
        let expected = concat!(
            r#""\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#,
            r#"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"#,
            r##" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"##,
            "\u{7f}é\u{85}\u{2028}😀\""
        );
        assert_eq!(String::from_utf8_lossy(&Value::from(all).to_bytes()), expected);
    }

    #[test]
    fn values_are_compact_spaced_or_indented() {
        let compact = r#"{"a":[],"b":{},"c":[1,-7,true,1.0,{"d":"x\",{[\\","é":-9223372036854775808}],"e":null}"#;
        let value = parse(compact.as_bytes()).expect("JSON");
        assert_eq!(String::from_utf8_lossy(&value.to_bytes()), compact);
        let mut spaced = Vec::new();
        write_value_spaced(&value, &mut spaced);
        let expected =
            r#"{"a": [], "b": {}, "c": [1, -7, true, 1.0, {"d": "x\",{[\\", "é": -9223372036854775808}], "e": null}"#;
        assert_eq!(String::from_utf8_lossy(&spaced), expected);
        let lines = [
            "{",
            r#"  "a": [],"#,
            r#"  "b": {},"#,
            r#"  "c": ["#,
            "    1,",
            "    -7,",
            "    true,",
            "    1.0,",
            "    {",
            r#"      "d": "x\",{[\\","#,
            r#"      "é": -9223372036854775808"#,
            "    }",
            "  ],",
            r#"  "e": null"#,
            "}",
        ];
        assert_eq!(String::from_utf8_lossy(&indented(compact.as_bytes())), lines.join("\n"));
        for alone in ["1", "null", "\"\"", "[]", "{}"] {
            assert_eq!(indented(alone.as_bytes()), alone.as_bytes());
        }
        for broken in [&b"\"\\"[..], b"]]", b"[", b"{\"", b"}"] {
            assert!(indented(broken).len() >= broken.len());
        }
    }

    #[test]
    fn line_separators_are_found_and_escaped() {
        // A separator cut off by the end of the text is not one.
        let plain = ["\"— Ä \u{86} \u{202a} \u{2027} \u{205}\"".as_bytes(), b"\xe2\x80"].concat();
        let raw = "\"\u{85}x\u{2028}\u{2029}—\"".as_bytes();
        for (text, expected) in [
            (&plain[..], &plain[..]),
            (raw, "\"\\u0085x\\u2028\\u2029—\"".as_bytes()),
        ] {
            let mut escaped = Vec::new();
            assert_eq!(escape_line_separators(text, &mut escaped), text == raw);
            assert_eq!(has_line_separators(text), text == raw);
            assert_eq!(escaped, expected);
            assert_eq!(raw_line_separators(&escaped), text);
        }
        let kept = br#""\\u2028 \u2027 \" \\\\u0085 \"#;
        assert_eq!(raw_line_separators(kept), kept);
    }
}
