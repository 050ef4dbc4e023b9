//! Spells canonical values as keys, so that their bytes sort as the values do.
//!
//! Null comes first, then false and true, numbers by their exact value, text by code point, arrays and objects by what is
//! in them. Two values are equal if their spellings are. No spelling is the beginning of another, so several can stand one
//! behind the other.

use chronolog::json::{self, Value, elements, members};

const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const NUMBER: u8 = 4;
const TEXT: u8 = 5;
const ARRAY: u8 = 6;
const OBJECT: u8 = 7;
/// Ends an array or an object: no spelling begins so.
const INNER_END: u8 = 0;
/// What stands for a value that is not there: it comes last.
const MISSING: u8 = 0xff;

/// The signs of a number.
const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 3;

/// Ends a text; a zero within it is followed by [`ZERO_WITHIN`].
const END: [u8; 2] = [0, 1];
const ZERO_WITHIN: u8 = 0xff;

/// Spells a canonical value behind what is there.
pub fn spell(value: &[u8], out: &mut Vec<u8>) {
    match value {
        b"null" => out.push(NULL),
        b"false" => out.push(FALSE),
        b"true" => out.push(TRUE),
        [b'"', inner @ .., b'"'] => {
            out.push(TEXT);
            spell_text(inner, value, out);
        }
        [b'[', ..] => {
            out.push(ARRAY);
            elements(value).for_each(|element| spell(element, out));
            out.push(INNER_END);
        }
        [b'{', ..] => {
            out.push(OBJECT);
            for (key, member) in members(value) {
                spell(&[b"\"", key, b"\""].concat(), out);
                spell(member, out);
            }
            out.push(INNER_END);
        }
        _ => {
            out.push(NUMBER);
            spell_number(value, out);
        }
    }
}

/// Spells that there is no value.
pub fn spell_missing(out: &mut Vec<u8>) {
    out.push(MISSING);
}

/// How all texts that begin so are spelled, as far as they are alike.
pub fn text_start(start: &str) -> Vec<u8> {
    let mut out = vec![TEXT];
    spell_bytes(start.as_bytes(), &mut out);
    out.truncate(out.len() - END.len());
    out
}

/// Between which keys all numbers are, or all texts, if a key is that of one; `None` for what has no order.
pub fn of_same_type(key: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let kind = key.first().copied()?;
    matches!(kind, NUMBER | TEXT).then(|| (vec![kind], vec![kind + 1]))
}

fn spell_text(inner: &[u8], value: &[u8], out: &mut Vec<u8>) {
    if !inner.contains(&b'\\') {
        return spell_bytes(inner, out);
    }
    match json::parse(value) {
        Ok(Value::Str(text)) => spell_bytes(text.as_bytes(), out),
        _ => spell_bytes(inner, out),
    }
}

fn spell_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(ZERO_WITHIN);
        }
    }
    out.extend_from_slice(&END);
}

/// From here on a float is an integer, and another one than its shortest spelling says.
const WHOLE_FROM: f64 = 9_007_199_254_740_992.0;

/// The digits of a float that is a large integer, all of them.
fn whole_digits(text: &[u8]) -> Option<String> {
    let is_float = text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    let float: f64 = std::str::from_utf8(text).ok().filter(|_| is_float)?.parse().ok()?;
    (float.is_finite() && float.abs() >= WHOLE_FROM).then(|| format!("{float:.0}"))
}

/// A number is its sign, the place of its first digit that is not 0, and its digits up to the last that is not 0.
fn spell_number(text: &[u8], out: &mut Vec<u8>) {
    let whole = whole_digits(text);
    let text = whole.as_ref().map_or(text, String::as_bytes);
    let (is_negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], signed(&text[at + 1..])),
        None => (text, 0),
    };
    let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
    let digits: Vec<u8> = mantissa.iter().copied().filter(u8::is_ascii_digit).collect();
    let Some(first) = digits.iter().position(|digit| *digit != b'0') else {
        return out.push(ZERO);
    };
    let last = digits.iter().rposition(|digit| *digit != b'0').unwrap_or(first);
    let place = point as i64 - first as i64 + exponent;
    let start = out.len();
    out.push(POSITIVE);
    // Flipping the sign bit makes two's complement sort.
    out.extend_from_slice(&((place as u64) ^ (1 << 63)).to_be_bytes());
    out.extend_from_slice(&digits[first..=last]);
    out.push(0);
    if is_negative {
        out[start] = NEGATIVE;
        for byte in &mut out[start + 1..] {
            *byte = !*byte;
        }
    }
}

/// A whole number with a sign, the largest there is if it is larger.
fn signed(text: &[u8]) -> i64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let is_negative = text.starts_with('-');
    let limit = if is_negative { i64::MIN / 2 } else { i64::MAX / 2 };
    text.trim_start_matches('+')
        .parse()
        .unwrap_or(limit)
        .clamp(i64::MIN / 2, i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(value: &str) -> Vec<u8> {
        let mut out = Vec::new();
        spell(value.as_bytes(), &mut out);
        out
    }

    #[test]
    fn values_sort_as_they_should() {
        let ascending = [
            "null",
            "false",
            "true",
            "-1e+300",
            "-1000000000000000000000001",
            "-1000000000000000000000000",
            "-10",
            "-9.5",
            "-1",
            "-0.02",
            "-0.01",
            "-1e-300",
            "0",
            "1e-300",
            "5e-05",
            "0.01",
            "0.1",
            "0.11",
            "1",
            "1.5",
            "9",
            "10",
            "11",
            "9007199254740992",
            "9007199254740993",
            "1000000000000000000000000",
            "1e+300",
            r#""""#,
            r#""\u0000""#,
            r#""\u0000\u0000""#,
            r#""\u0001""#,
            r#"" ""#,
            r#""A""#,
            r#""a""#,
            r#""a\u0000""#,
            r#""a ""#,
            r#""aa""#,
            r#""b""#,
            "\"é\"",
            "\"😀\"",
            "[]",
            "[null]",
            "[1]",
            "[1,2]",
            "[2]",
            "[[]]",
            "{}",
            r#"{"a":1}"#,
            r#"{"a":1,"b":1}"#,
            r#"{"a":2}"#,
        ];
        for pair in ascending.windows(2) {
            assert!(spelled(pair[0]) < spelled(pair[1]), "{} < {}", pair[0], pair[1]);
        }
        for one in ascending {
            for other in ascending {
                assert!(
                    one == other || !spelled(other).starts_with(&spelled(one)),
                    "{one} is no beginning of {other}"
                );
            }
        }
    }

    #[test]
    fn a_number_is_its_value() {
        assert_eq!(spelled("1"), spelled("1.0"));
        assert_eq!(spelled("-0.0"), spelled("0"));
        assert_eq!(spelled("1e+16"), spelled("10000000000000000"));
        assert_eq!(spelled("9.223372036854776e+18"), spelled("9223372036854775808"));
        assert!(spelled("9.223372036854776e+18") < spelled("9223372036854775809"));
        assert!(spelled("-9.223372036854776e+18") > spelled("-9223372036854775809"));
        assert_ne!(spelled("1e+30"), spelled(&format!("1{}", "0".repeat(30))));
        assert_eq!(spelled("1e+30"), spelled("1000000000000000019884624838656"));
        assert_ne!(spelled("1"), spelled("true"));
        assert_ne!(spelled("1"), spelled("\"1\""));
        assert_eq!(spelled(r#"[1,{"a":2.0}]"#), spelled(r#"[1.0,{"a":2}]"#));
        assert_ne!(spelled(r#"[["a"],"b"]"#), spelled(r#"[["a","b"]]"#));
    }
}
