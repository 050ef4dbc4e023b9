//! Prints what a field holds as SQLite prints what `json_extract` finds.
//!
//! SQL compares a pattern with anything, and `7 LIKE '7%'` is true. A `where` asks for that with `text`.

use std::borrow::Cow;

use chronolog::json::write_string;

/// So many digits of a float are printed.
const DIGITS: i32 = 15;
/// From these powers of ten on, downwards and upwards, a float is printed with its power.
const LEAST_PLAIN: i32 = -4;

/// A canonical value as the text that it is printed as, itself canonical; `None` of null, which is unknown and no text.
pub fn printed(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let text: Cow<'_, str> = match value.first()? {
        b'"' => return Some(Cow::Borrowed(value)),
        b'n' => return None,
        b't' => "1".into(),
        b'f' => "0".into(),
        b'[' | b'{' => std::str::from_utf8(value).ok()?.into(),
        _ => number(std::str::from_utf8(value).ok()?)?,
    };
    let mut quoted = Vec::with_capacity(text.len() + 2);
    write_string(&text, &mut quoted);
    Some(Cow::Owned(quoted))
}

fn number(text: &str) -> Option<Cow<'_, str>> {
    if text.parse::<i64>().is_ok() {
        return Some(text.into());
    }
    // Integers beyond 64 bits are floats there.
    Some(float(text.parse().ok()?).into())
}

fn float(number: f64) -> String {
    if number == 0.0 {
        return "0.0".to_owned();
    }
    let sign = if number < 0.0 { "-" } else { "" };
    // One digit, a point, the others: the power is that of the number when it is rounded.
    let spelled = format!("{:.*e}", DIGITS as usize - 1, number.abs());
    let (mantissa, power) = spelled.split_once('e').unwrap_or((&spelled, "0"));
    let power: i32 = power.parse().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    if !(LEAST_PLAIN..DIGITS).contains(&power) {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        let direction = if power < 0 { '-' } else { '+' };
        return format!("{sign}{first}.{rest}e{direction}{:02}", power.abs());
    }
    if power < 0 {
        let zeros = "0".repeat(power.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = power as usize + 1;
    if digits.len() <= whole {
        let zeros = "0".repeat(whole - digits.len());
        return format!("{sign}{digits}{zeros}.0");
    }
    let (before, behind) = digits.split_at(whole);
    format!("{sign}{before}.{behind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_sqlite_prints() {
        for (value, expected) in [
            ("5", "5"),
            ("-5", "-5"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9.22337203685478e+18"),
            ("1.0", "1.0"),
            ("-0.0", "0.0"),
            ("0.1", "0.1"),
            ("-12.5", "-12.5"),
            ("0.0001", "0.0001"),
            ("1e-05", "1.0e-05"),
            ("1.25e-07", "1.25e-07"),
            ("100000000000000.0", "100000000000000.0"),
            ("1000000000000000.0", "1.0e+15"),
            ("1e+300", "1.0e+300"),
            ("0.30000000000000004", "0.3"),
            ("true", "1"),
            ("false", "0"),
            ("[1,2]", "[1,2]"),
        ] {
            let printed = printed(value.as_bytes()).expect("a text");
            assert_eq!(String::from_utf8_lossy(&printed), format!("\"{expected}\""), "{value}");
        }
        assert_eq!(printed(b"null"), None);
        assert_eq!(&*printed(br#"{"a":"b"}"#).expect("a text"), br#""{\"a\":\"b\"}""#);
    }
}
