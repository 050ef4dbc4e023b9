//! Recognises a number that is spelled as we would spell it.

use super::MAX_INT_DIGITS;
use super::number::spell;

/// Passes a canonical number.
#[inline(always)]
pub(super) fn skip_number(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at..at + 2) {
        // Most integers have one digit, and the place after it is then known without computing anything.
        Some([b'0'..=b'9', b',' | b'}' | b']']) => Some(at + 1),
        _ => Some(scan_number(bytes, at)?.0),
    }
}

/// Passes a canonical number; the place after it and its value, infinite if it is too large.
#[inline(always)]
pub(super) fn scan_number(bytes: &[u8], start: usize) -> Option<(usize, f64)> {
    let negative = *bytes.get(start)? == b'-';
    let first = start + usize::from(negative);
    let (point, whole) = digits(bytes, first, 0);
    let count = point - first;
    if count == 0 || (count > 1 && bytes[first] == b'0') {
        return None;
    }
    let next = bytes.get(point).copied().unwrap_or(b' ');
    let (end, size) = match next {
        b'.' => {
            let (end, mantissa) = digits(bytes, point + 1, whole);
            let decimals = end - point - 1;
            // Fifteen digits name one float only, so there is no shorter spelling of it than this one, unless it
            // ends in zeros or is so small that it takes an exponent.
            let plain = (1..=MAX_PLAIN_DIGITS - 1).contains(&decimals)
                && count + decimals <= MAX_PLAIN_DIGITS
                && (bytes[end - 1] != b'0' || decimals == 1)
                && (mantissa >= SMALLEST_PLAIN[decimals] || (mantissa == 0 && decimals == 1));
            if !plain || bytes.get(end) == Some(&b'e') {
                return scan_as_float(bytes, start);
            }
            // Both numbers are exact, so the quotient is correctly rounded.
            (end, mantissa as f64 / POWERS_OF_TEN[decimals])
        }
        b'e' => return scan_as_float(bytes, start),
        _ if count > EXACT_DIGITS => return scan_large_int(bytes, start, first, point),
        _ if whole == 0 && negative => return None,
        _ => (point, whole as f64),
    };
    Some((end, if negative { -size } else { size }))
}

/// Passes a canonical integer that fits into 64 bits.
#[inline(always)]
pub(super) fn scan_i64(bytes: &[u8], start: usize) -> Option<(usize, i64)> {
    if let Some([digit @ b'0'..=b'9', b',']) = bytes.get(start..start + 2) {
        return Some((start + 1, i64::from(digit - b'0')));
    }
    let negative = *bytes.get(start)? == b'-';
    let first = start + usize::from(negative);
    let (end, size) = digits(bytes, first, 0);
    let count = end - first;
    if count == 0 || (bytes[first] == b'0' && end - start > 1) {
        return None;
    }
    if count > EXACT_DIGITS {
        return Some((end, std::str::from_utf8(&bytes[start..end]).ok()?.parse().ok()?));
    }
    Some((end, if negative { -(size as i64) } else { size as i64 }))
}

/// Numbers of so many digits always fit into 63 bits.
const EXACT_DIGITS: usize = 18;

/// Decimals of so many digits read back as themselves from a float.
const MAX_PLAIN_DIGITS: usize = 15;

const POWERS_OF_TEN: [f64; MAX_PLAIN_DIGITS] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
];

/// The mantissa of 0.0001 with as many decimals as the index; with fewer, anything but zero is large enough.
const SMALLEST_PLAIN: [u64; MAX_PLAIN_DIGITS] = [
    1,
    1,
    1,
    1,
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// Passes digits and appends them to the number `before`; the place after them and the number, which is cut to its
/// lowest 64 bits.
#[inline(always)]
fn digits(bytes: &[u8], start: usize, before: u64) -> (usize, u64) {
    const ONES: u64 = u64::MAX / 255;
    let (mut at, mut number) = (start, before);
    // Eight bytes in one step: numbers are mostly short and their length is what a processor guesses wrong.
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight) ^ (ONES * u64::from(b'0'));
        // A digit is now 0..=9: nothing in its high half, and nothing there after adding six. A carry out of a byte
        // that is no digit may spoil those above it, but only the first one that is no digit counts.
        let others = (word | word.wrapping_add(ONES * 6)) & (ONES * 0xf0);
        let count = others.trailing_zeros() as usize / 8;
        if count > 0 {
            // Move the digits to the top and leave zeros below, as if the number had leading ones.
            let aligned = word << (64 - 8 * count);
            let pairs = aligned.wrapping_mul(10).wrapping_add(aligned >> 8);
            let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul((1_000_000 << 32) + 100);
            let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul((10_000 << 32) + 1);
            number = number
                .wrapping_mul(SCALES[count])
                .wrapping_add(low.wrapping_add(high) >> 32);
            at += count;
        }
        if count < 8 {
            return (at, number);
        }
    }
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        at += 1;
    }
    (at, number)
}

const SCALES: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Passes a float that only reading it and spelling it again can prove.
#[cold]
#[inline(never)]
fn scan_as_float(bytes: &[u8], start: usize) -> Option<(usize, f64)> {
    let rest = &bytes[start..];
    let length = rest
        .iter()
        .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e'));
    let text = &rest[..length.unwrap_or(rest.len())];
    let float = std::str::from_utf8(text)
        .ok()?
        .parse()
        .ok()
        .filter(|float: &f64| float.is_finite())?;
    (spell(float).as_bytes() == text).then_some((start + text.len(), float))
}

#[cold]
#[inline(never)]
fn scan_large_int(bytes: &[u8], start: usize, first: usize, end: usize) -> Option<(usize, f64)> {
    let float = std::str::from_utf8(&bytes[start..end]).ok()?.parse().ok()?;
    (end - first <= MAX_INT_DIGITS).then_some((end, float))
}

#[cfg(test)]
mod tests {
    use super::super::{Value, parse, write_value};
    use super::*;

    /// Whether the scan takes a text for a canonical number; and that it is right, whatever stands behind it.
    fn accepted(text: &str) -> bool {
        let mut rewritten = Vec::new();
        let read = parse(text.as_bytes()).ok();
        if let Some(value) = &read {
            write_value(value, &mut rewritten);
        }
        let canonical = !text.is_empty() && rewritten == text.as_bytes();
        let float = read
            .as_ref()
            .and_then(Value::as_f64)
            .map(f64::to_bits)
            .filter(|_| canonical);
        let int = read.as_ref().and_then(Value::as_i64).filter(|_| canonical);
        for behind in ["", "}", "]", ",", ",\"seq\":1234567}"] {
            let padded = format!("{text}{behind}");
            let bytes = padded.as_bytes();
            let whole = |end: &usize| *end == text.len();
            assert_eq!(skip_number(bytes, 0).filter(whole).is_some(), canonical, "{padded}");
            let found = scan_number(bytes, 0).filter(|found| whole(&found.0));
            assert_eq!(found.is_some(), canonical, "{padded}");
            let finite = found.map(|found| found.1).filter(|float| float.is_finite());
            assert_eq!(finite.map(f64::to_bits), float, "{padded}");
            let small = scan_i64(bytes, 0).filter(|found| whole(&found.0)).map(|found| found.1);
            assert_eq!(small, int, "{padded}");
        }
        canonical
    }

    #[test]
    fn the_one_spelling_passes() {
        let texts = "0 7 -7 10 12345678 123456789 1234567890123456 123456789012345678 -123456789012345678 \
            9223372036854775807 -9223372036854775808 9223372036854775808 0.0 -0.0 1.0 0.5 0.95 -0.7 0.0001 \
            0.00012345 0.001 10.0 123456.789 12345678901234.5 123456789012345.0 1234567890123456.0 \
            9999999999999998.0 0.1234567890123456 1e-05 1.5e-05 1e+16 1.5e+16 1e+100 5e-324 \
            1.7976931348623157e+308 562949953421312.2 1000000000000000.0 0.30000000000000004";
        for text in texts.split(' ') {
            assert!(accepted(text), "{text}");
        }
    }

    #[test]
    fn no_other_spelling_passes() {
        let texts = "- -0 00 01 -01 +1 1. .5 -.5 1.00 0.50 00.5 01.5 0.00 -0.00 0.00001 0.00009 0.000012345 1e5 \
            1E+16 1e16 1.0e+16 1e-5 1e-005 1e+15 10000000000000000.0 12345678901234567.0 0.1e1 1.5e 1e 1e+ 1e400 \
            -1e+400 0.12345678901234567 562949953421312.3 0.1000000000000000055 1.0e5 1-2 1.2.3 1+1 0x1 \
            2.9802322387695313e-08 NaN inf nan infinity";
        for text in texts.split(' ').chain([""]) {
            assert!(!accepted(text), "{text}");
        }
    }

    #[test]
    fn every_length_is_judged() {
        let digits = "1234567890".repeat(4);
        let mut plain = 0;
        for length in 1..=digits.len() {
            assert!(accepted(&digits[..length]));
            for decimals in 1..=20 {
                plain += u32::from(accepted(&format!("{}.{}", &digits[..length], &digits[..decimals])));
                let zeros = "0".repeat(length.min(8));
                plain += u32::from(accepted(&format!("0.{zeros}{}", &digits[..decimals])));
            }
        }
        assert!(plain > 100, "{plain}");
        assert!(accepted(&"9".repeat(MAX_INT_DIGITS)));
        assert!(!accepted(&"9".repeat(MAX_INT_DIGITS + 1)));
    }
}
