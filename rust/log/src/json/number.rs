//! Spells a float as CPython's `repr(float)` does.
//!
//! The fewest digits that read back as the same float; of those the closest, and of two equally close the even one. Plain
//! notation from 1e-4 to below 1e16, otherwise an exponent of at least two digits.

use std::fmt::Write;

/// Writes a float as `repr` does; one that is not finite as Python names it, which strict readers refuse.
pub fn write_f64(number: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(spell(number).as_bytes());
}

/// A float as text, without allocation. The longest, such as `-2.2250738585072014e-308`, has 24 characters.
#[derive(Clone, Copy, Default)]
pub(super) struct FloatText {
    bytes: [u8; 32],
    used: usize,
}

impl FloatText {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        self.bytes[self.used] = byte;
        self.used += 1;
    }

    #[inline]
    fn extend(&mut self, more: &[u8]) {
        self.bytes[self.used..self.used + more.len()].copy_from_slice(more);
        self.used += more.len();
    }

    #[inline]
    fn digits(&mut self, number: u64, count: usize) {
        let mut rest = number;
        for place in self.bytes[self.used..self.used + count].iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.used += count;
    }
}

impl Write for FloatText {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        self.extend(more.as_bytes());
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Decimal {
    digits: u64,
    exponent: i32,
}

pub(super) fn spell(number: f64) -> FloatText {
    let mut text = FloatText::default();
    if number.is_sign_negative() && !number.is_nan() {
        text.push(b'-');
    }
    let size = number.abs();
    if size == 0.0 {
        text.extend(b"0.0");
    } else if let Some((digits, decimals)) = few_decimals(size) {
        let scale = 10_u64.pow(decimals);
        let whole = digits / scale;
        text.digits(whole, count_digits(whole));
        text.push(b'.');
        text.digits(digits % scale, decimals as usize);
    } else if size.is_finite() {
        let found = shortest(size);
        // A decimal of at most 15 digits reads back as itself, so there is no tie. (Subnormal values are too long for ties.)
        let chosen = if count_digits(found.digits) <= 15 {
            found
        } else {
            even_of_tie(size, found)
        };
        write_decimal(chosen, &mut text);
    } else {
        text.extend(if size.is_nan() { b"NaN" } else { b"Infinity" });
    }
    text
}

fn count_digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// The digits of numbers such as `0.95` as `digits` / 10^`decimals`, without a search and superfluous zeros.
#[inline]
fn few_decimals(size: f64) -> Option<(u64, u32)> {
    if !(1e-4..1e12).contains(&size) {
        return None;
    }
    for (mut decimals, scale) in [(2, 1e2), (6, 1e6)] {
        let scaled = size * scale + 0.5;
        if scaled >= 1e15 {
            return None;
        }
        let mut digits = scaled as u64;
        // Both sides are exact, so this is the float that the decimal reads as; it is the only one of its length.
        if digits as f64 / scale == size {
            while decimals > 1 && digits.is_multiple_of(10) {
                digits /= 10;
                decimals -= 1;
            }
            return Some((digits, decimals));
        }
    }
    None
}

/// The standard library's shortest digits: as few as possible and as close as possible, but on an exact tie either.
fn shortest(size: f64) -> Decimal {
    let mut text = FloatText::default();
    let written = write!(text, "{size:e}");
    debug_assert!(written.is_ok(), "a spelling takes whatever fits");
    let mut decimal = Decimal { digits: 0, exponent: 0 };
    let mut bytes = text.as_bytes().iter();
    let mut after_point = 0;
    for &byte in bytes.by_ref() {
        match byte {
            b'.' => after_point = 1,
            b'e' => break,
            digit => {
                decimal.digits = decimal.digits * 10 + u64::from(digit - b'0');
                decimal.exponent -= after_point;
            }
        }
    }
    let power = bytes.as_slice();
    let (sign, power) = power.strip_prefix(b"-").map_or((1, power), |power| (-1, power));
    decimal.exponent += sign * power.iter().fold(0, |sum, &byte| sum * 10 + i32::from(byte - b'0'));
    decimal
}

/// Where the float lies exactly half-way between two decimals of the found length, takes the even one.
fn even_of_tie(size: f64, found: Decimal) -> Decimal {
    // A tie is size = (2n + 1)/2 · 10^-decimals, so an odd multiple of 2^-(decimals + 1). There is none for
    // decimals <= 0: half a unit of the last digit would be more than half the distance to the next float.
    let decimals = -found.exponent;
    let bits = size.to_bits();
    let (mantissa, power) = match bits >> 52 {
        0 => (bits, -1074),
        biased => (bits & ((1 << 52) - 1) | 1 << 52, biased as i32 - 1075),
    };
    let zeros = mantissa.trailing_zeros();
    if decimals < 1 || power + zeros as i32 != -(decimals + 1) {
        return found;
    }
    // size · 2 · 10^decimals = odd · 5^decimals, below 2 · 10^17 because at most 17 digits were found.
    let odd = mantissa >> zeros;
    let Some(twice) = 5_u64
        .checked_pow(decimals.unsigned_abs())
        .and_then(|five| five.checked_mul(odd))
    else {
        return found;
    };
    let even = (twice / 2).next_multiple_of(2);
    // Below a power of two the floats lie closer together, so the even neighbour may already name another one.
    let mut text = FloatText::default();
    let written = write!(text, "{even}e{}", found.exponent);
    let reads_back = std::str::from_utf8(text.as_bytes()).is_ok_and(|text| text.parse() == Ok(size));
    if written.is_ok() && reads_back {
        Decimal {
            digits: even,
            exponent: found.exponent,
        }
    } else {
        found
    }
}

fn write_decimal(decimal: Decimal, text: &mut FloatText) {
    let count = count_digits(decimal.digits);
    // How many digits stand before the point.
    let point = count as i32 + decimal.exponent;
    match point {
        -3..=0 => {
            text.extend(&b"0.000"[..2 + point.unsigned_abs() as usize]);
            text.digits(decimal.digits, count);
        }
        1..=16 if decimal.exponent >= 0 => {
            text.digits(
                decimal.digits * 10_u64.pow(decimal.exponent.unsigned_abs()),
                point.unsigned_abs() as usize,
            );
            text.extend(b".0");
        }
        1..=16 => {
            let scale = 10_u64.pow(decimal.exponent.unsigned_abs());
            text.digits(decimal.digits / scale, point.unsigned_abs() as usize);
            text.push(b'.');
            text.digits(decimal.digits % scale, decimal.exponent.unsigned_abs() as usize);
        }
        _ => {
            let scale = 10_u64.pow(count as u32 - 1);
            text.digits(decimal.digits / scale, 1);
            if count > 1 {
                text.push(b'.');
                text.digits(decimal.digits % scale, count - 1);
            }
            let power = u64::from((point - 1).unsigned_abs());
            text.extend(if point < 1 { b"e-" } else { b"e+" });
            text.digits(power, count_digits(power).max(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(number: f64) -> String {
        let mut out = Vec::new();
        write_f64(number, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The bits of a float in hex and what CPython's `repr` makes of it, a case a line: the borders of the notations,
    /// powers of two and ten with their neighbours, subnormal floats, 120 exact ties.
    const SPELLED_BY_PYTHON: &str = include_str!("repr_of_floats.txt");

    #[test]
    fn floats_are_spelled_as_python_spells_them() {
        let mut cases = 0;
        for (line, case) in SPELLED_BY_PYTHON.lines().enumerate() {
            let (bits, spelling) = case.split_once(' ').unwrap_or_default();
            let bits = u64::from_str_radix(bits, 16).unwrap_or(u64::MAX);
            assert_eq!(written(f64::from_bits(bits)), spelling, "line {}", line + 1);
            cases += 1;
        }
        assert!(cases > 300);
    }

    #[test]
    fn every_spelling_reads_back() {
        let mut state = 42_u64;
        for _ in 0..100_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let number = f64::from_bits(state ^ state >> 29);
            if number.is_finite() {
                assert_eq!(written(number).parse(), Ok(number));
            }
            // The same with few decimals, where no search takes place.
            let short = (state >> 40) as f64 / [1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7][(state >> 61) as usize];
            assert_eq!(written(short).parse(), Ok(short));
            assert!(written(short).len() <= 10 + 1, "{short}");
        }
    }

    #[test]
    fn what_is_not_finite_has_no_json_spelling() {
        assert_eq!(written(f64::NAN), "NaN");
        assert_eq!(written(f64::INFINITY), "Infinity");
        assert_eq!(written(f64::NEG_INFINITY), "-Infinity");
    }
}
