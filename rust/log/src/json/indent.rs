//! Sets a canonical text over several indented lines, for people to read.

/// Sets a canonical text over several lines, each part two spaces further in than what it is part of, as Python's
/// `json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2)` does.
pub fn indented(canonical: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(canonical.len() * 2);
    let (mut depth, mut at) = (0, 0);
    while let Some(&byte) = canonical.get(at) {
        let next = canonical.get(at + 1).copied().unwrap_or_default();
        match byte {
            b'"' => {
                let end = end_of_text(canonical, at);
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

/// The place behind a string.
fn end_of_text(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

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
