//! Writes integers, and floats as CPython's `repr(float)` does.
//!
//! The fewest digits that read back as the same float; of those the closest, and of two equally close the even one. Plain
//! notation from 1e-4 to below 1e16, otherwise an exponent of at least two digits.

use std::io::Write;

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

/// Writes a float as `repr` does; one that is not finite as Python names it, which strict readers refuse.
pub fn write_f64(number: f64, out: &mut Vec<u8>) {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    if let Some((digits, scale)) = few_decimals(number.abs()) {
        out.extend_from_slice(sign.as_bytes());
        write_u64(digits / scale, out);
        let point = out.len();
        // The digit in front keeps leading zeros and gives way to the point.
        write_u64(scale + digits % scale, out);
        out[point] = b'.';
        return;
    }
    if !number.is_finite() {
        let name = if number.is_nan() {
            "NaN".to_owned()
        } else {
            format!("{sign}Infinity")
        };
        return out.extend_from_slice(name.as_bytes());
    }
    let start = out.len();
    let written = write!(out, "{number:?}");
    debug_assert!(written.is_ok(), "a vector takes all bytes");
    if let Some(even) = even_of_tie(number, &out[start..]) {
        out.truncate(start);
        out.extend_from_slice(even.as_bytes());
    }
    if let Some(exponent) = memchr::memchr(b'e', &out[start..]) {
        let digits = out.split_off(start + exponent + 1);
        let (sign, digits) = match digits.strip_prefix(b"-") {
            Some(digits) => (b'-', digits),
            None => (b'+', &digits[..]),
        };
        out.push(sign);
        if digits.len() == 1 {
            out.push(b'0');
        }
        out.extend_from_slice(digits);
    }
}

/// The digits of numbers such as `0.95` and the power of ten to divide them by, without a search and superfluous zeros.
#[inline]
fn few_decimals(size: f64) -> Option<(u64, u64)> {
    if !(1e-4..1e12).contains(&size) {
        return None;
    }
    for mut scale in [100, 1_000_000] {
        let scaled = size * scale as f64 + 0.5;
        if scaled >= 1e15 {
            return None;
        }
        let mut digits = scaled as u64;
        // Both sides are exact, so this is the float that the decimal reads as; it is the only one of its length.
        if digits as f64 / scale as f64 == size {
            while scale > 10 && digits.is_multiple_of(10) {
                digits /= 10;
                scale /= 10;
            }
            return Some((digits, scale));
        }
    }
    None
}

/// The even one of two decimals that are equally close to a float, if `text` is one of them: the standard library takes either.
fn even_of_tie(number: f64, text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let places = mantissa.len() - mantissa.find('.')? - 1;
    let decimals = places as i32 - exponent.parse::<i32>().ok()?;
    // Exactly between two decimals is an odd multiple of 2^-(decimals + 1).
    if decimals < 1 || number.abs() * 2_f64.powi(decimals + 1) % 2.0 != 1.0 {
        return None;
    }
    let even = match text.contains('e') {
        true => format!("{number:.places$e}"),
        false => format!("{number:.places$}"),
    };
    // Below a power of two the floats are closer together, so the even decimal may name another one.
    (even.parse() == Ok(number)).then_some(even)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits of a float in hex and what CPython's `repr` makes of it, a case a line: the limits of the notations,
    /// powers of two and ten with their neighbours, subnormal floats, 120 exact ties.
    const PYTHON_REPR: &str = include_str!("repr_of_floats.txt");

    #[test]
    fn floats_are_written_as_python_writes_them() {
        let more = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(f64::to_bits);
        let more = more.into_iter().zip(["NaN", "Infinity", "-Infinity"]);
        let cases = PYTHON_REPR.lines().map(|case| {
            let (bits, text) = case.split_once(' ').unwrap_or_default();
            (u64::from_str_radix(bits, 16).unwrap_or_default(), text)
        });
        let mut count = 0;
        for (bits, text) in cases.chain(more) {
            let mut out = Vec::new();
            write_f64(f64::from_bits(bits), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text, "{bits:x}");
            count += 1;
        }
        assert!(count > 300);
    }
}
