//! Is this number spelled as we would have spelled it?

use super::MAX_INT_DIGITS;
use super::number::spell;

/// Passes a canonical number.
#[inline(always)]
pub(super) fn skip_number(bytes: &[u8], at: usize) -> Option<usize> {
    Some(scan_number(bytes, at)?.0)
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
    let negative = *bytes.get(start)? == b'-';
    let first = start + usize::from(negative);
    let (end, size) = digits(bytes, first, 0);
    let count = end - first;
    if count == 0 || (bytes[first] == b'0' && end - start > 1) {
        return None;
    }
    if count > EXACT_DIGITS {
        return Some((
            end,
            std::str::from_utf8(&bytes[start..end]).ok()?.parse().ok()?,
        ));
    }
    Some((
        end,
        if negative {
            -(size as i64)
        } else {
            size as i64
        },
    ))
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
        number = number
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit - b'0'));
        at += 1;
    }
    (at, number)
}

const SCALES: [u64; 9] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

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
