//! Parses the strings and numbers of a JSON text, and knows the place where the parser stands.

use super::special::next_special;
use super::{Int, MAX_INT_DIGITS, Value};

/// A number as it was read.
pub(super) enum Number {
    Small(i64),
    Large(Int),
    Float(f64),
}

/// The parser stands where it found the fault and knows the reason. Carrying both in every result would make each
/// value on its way up a third larger.
pub(super) struct Stop;

/// A text that is being read, and how far.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// How many more containers may be opened.
    pub(super) room: usize,
    pub(super) reason: &'static str,
    // Members of the containers still open. Each container leaves with a list of exactly its size.
    pub(super) items: Vec<Value>,
    pub(super) pairs: Vec<(String, Value)>,
}

impl Parser<'_> {
    #[cold]
    pub(super) fn stop<T>(&mut self, reason: &'static str) -> Result<T, Stop> {
        self.reason = reason;
        Err(Stop)
    }

    #[inline(always)]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Reads a string that is not plain, from behind its opening quote.
    #[cold]
    #[inline(never)]
    pub(super) fn escaped_string(&mut self, start: usize) -> Result<String, Stop> {
        let mut decoded = String::new();
        self.at = start;
        loop {
            let plain = self.at;
            self.at = next_special(self.bytes, plain);
            decoded.push_str(&self.text[plain..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => decoded.push(self.escape()?),
                Some(_) => return self.stop("a raw control character in a string"),
                None => return self.stop("the text ends inside a string"),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Stop> {
        let Some(&letter) = self.bytes.get(self.at + 1) else {
            return self.stop("the text ends inside a string");
        };
        let plain = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return self.stop("an escape that JSON does not know"),
        };
        self.at += 2;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, Stop> {
        let Some(first) = self.code_unit(self.at) else {
            return self.stop("\\u without four hex digits");
        };
        let (code, length) = match (first, self.code_unit(self.at + 6)) {
            (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) => {
                (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
            }
            _ => (first, 6),
        };
        // A surrogate that is left over is no character.
        let Some(decoded) = char::from_u32(code) else {
            return self.stop("half a surrogate pair");
        };
        self.at += length;
        Ok(decoded)
    }

    /// The number in the `\uXXXX` that begins at `at`.
    fn code_unit(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits
            .iter()
            .try_fold(0, |code, &digit| Some(code << 4 | char::from(digit).to_digit(16)?))
    }

    pub(super) fn number(&mut self) -> Result<Number, Stop> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let first_digit = self.at;
        let size = self.digits()?;
        let count = self.at - first_digit;
        if count > 1 && self.bytes[first_digit] == b'0' {
            self.at = first_digit;
            return self.stop("a number with a leading zero");
        }
        if !matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            // Eighteen digits always fit into 64 bits.
            if count <= 18 {
                return Ok(Number::Small(if negative { -(size as i64) } else { size as i64 }));
            }
            let int = if count <= MAX_INT_DIGITS {
                Int::from_decimal(&self.text[start..self.at])
            } else {
                None
            };
            let Some(int) = int else {
                self.at = start;
                return self.stop("an integer with too many digits");
            };
            return Ok(Number::Large(int));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        match self.text[start..self.at].parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Number::Float(float)),
            _ => {
                self.at = start;
                self.stop("a number too large for a float")
            }
        }
    }

    /// Passes at least one digit; the number they make, as far as it fits.
    #[inline(always)]
    fn digits(&mut self) -> Result<u64, Stop> {
        let start = self.at;
        let mut size = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            size = size.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        if self.at == start {
            self.stop("expected a digit")
        } else {
            Ok(size)
        }
    }
}
