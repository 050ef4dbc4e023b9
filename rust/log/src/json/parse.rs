//! Parses a JSON text into a value, and says where it is wrong.

use super::special::{next_quote, next_special};
use super::{Int, MAX_DEPTH, MAX_INT_DIGITS, Value};

/// Why a text is not JSON that we accept, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {offset}")]
pub struct JsonFault {
    /// The byte at which reading stopped.
    pub offset: usize,
    /// What is wrong there, as half a sentence.
    pub reason: &'static str,
}

/// Reads one JSON text, with white space around it if need be.
///
/// # Errors
/// What RFC 8259 forbids, and what readers disagree on: duplicate keys, half surrogate pairs, overflowing floats, integers over
/// [`MAX_INT_DIGITS`](super::MAX_INT_DIGITS) digits, nesting over [`MAX_DEPTH`] containers, a byte order mark.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonFault> {
    parse_to_depth(bytes, MAX_DEPTH)
}

/// Reads a text that may be nested otherwise: in a file of records each lies one container deeper than in its event.
pub fn parse_to_depth(bytes: &[u8], max_depth: usize) -> Result<Value, JsonFault> {
    let Ok(text) = simdutf8::basic::from_utf8(bytes) else {
        let offset = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        return Err(JsonFault {
            offset,
            reason: "not UTF-8",
        });
    };
    let mut parser = Parser {
        text,
        bytes,
        at: 0,
        room: max_depth,
        reason: "",
        items: Vec::new(),
        pairs: Vec::new(),
    };
    parser.whole().map_err(|Stop| JsonFault {
        offset: parser.at,
        reason: parser.reason,
    })
}

impl Parser<'_> {
    fn whole(&mut self) -> Result<Value, Stop> {
        self.skip_white();
        let mut whole = Value::Null;
        self.value(|_, value| whole = value)?;
        self.skip_white();
        if self.at < self.bytes.len() {
            self.stop("more text after the value")
        } else {
            Ok(whole)
        }
    }

    #[inline(always)]
    fn skip_white(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// Reads a value and hands it to `put`, which is cheaper than passing it up as a result.
    #[inline(always)]
    fn value(&mut self, put: impl FnOnce(&mut Self, Value)) -> Result<(), Stop> {
        match self.peek() {
            Some(b'"') => self.string(|parser, text| put(parser, Value::Str(text)))?,
            Some(b'{') => {
                let pairs = self.object()?;
                put(self, Value::Object(pairs));
            }
            Some(b'[') => {
                let items = self.array()?;
                put(self, Value::Array(items));
            }
            Some(b'-' | b'0'..=b'9') => match self.number()? {
                Number::Small(small) => put(self, Value::from(small)),
                Number::Large(int) => put(self, Value::Int(int)),
                Number::Float(float) => put(self, Value::Float(float)),
            },
            Some(b't') => {
                self.word(b"true")?;
                put(self, Value::Bool(true));
            }
            Some(b'f') => {
                self.word(b"false")?;
                put(self, Value::Bool(false));
            }
            Some(b'n') => {
                self.word(b"null")?;
                put(self, Value::Null);
            }
            Some(_) => return self.stop("not a value"),
            None => return self.stop("the text ends too early"),
        }
        Ok(())
    }

    #[inline(always)]
    fn word<const N: usize>(&mut self, word: &[u8; N]) -> Result<(), Stop> {
        if self.bytes[self.at..].first_chunk() != Some(word) {
            return self.stop("not a value");
        }
        self.at += N;
        Ok(())
    }

    /// Steps into a container; true if it is empty and already left again.
    #[inline(always)]
    fn open(&mut self, close: u8) -> Result<bool, Stop> {
        if self.room == 0 {
            return self.stop("nested too deeply");
        }
        self.at += 1;
        self.skip_white();
        let empty = self.peek() == Some(close);
        if empty {
            self.at += 1;
        } else {
            self.room -= 1;
        }
        Ok(empty)
    }

    /// After a member: true if another one follows.
    #[inline(always)]
    fn next_member(&mut self, close: u8) -> Result<bool, Stop> {
        self.skip_white();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_white();
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                self.room += 1;
                Ok(false)
            }
            Some(_) => self.stop("expected a comma or the end of the container"),
            None => self.stop("the text ends too early"),
        }
    }

    fn array(&mut self) -> Result<Vec<Value>, Stop> {
        if self.open(b']')? {
            return Ok(Vec::new());
        }
        let start = self.items.len();
        loop {
            self.value(|parser, item| parser.items.push(item))?;
            if !self.next_member(b']')? {
                return Ok(self.items.split_off(start));
            }
        }
    }

    fn object(&mut self) -> Result<Vec<(String, Value)>, Stop> {
        let opened = self.at;
        if self.open(b'}')? {
            return Ok(Vec::new());
        }
        let start = self.pairs.len();
        let mut ascending = true;
        loop {
            if self.peek() != Some(b'"') {
                return self.stop("expected a key in quotes");
            }
            let place = self.pairs.len();
            self.string(|parser, key| parser.pairs.push((key, Value::Null)))?;
            self.skip_white();
            if self.peek() != Some(b':') {
                return self.stop("expected a colon");
            }
            self.at += 1;
            self.skip_white();
            ascending &= place == start || self.pairs[place - 1].0 < self.pairs[place].0;
            self.value(|parser, value| parser.pairs[place].1 = value)?;
            if !self.next_member(b'}')? {
                break;
            }
        }
        let mut pairs = self.pairs.split_off(start);
        if !ascending {
            pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            if pairs.windows(2).any(|two| two[0].0 == two[1].0) {
                self.at = opened;
                return self.stop("a key stands twice in the object");
            }
        }
        Ok(pairs)
    }

    #[inline(always)]
    fn string(&mut self, put: impl FnOnce(&mut Self, String)) -> Result<(), Stop> {
        let start = self.at + 1;
        if let Some(end) = next_quote(self.bytes, start) {
            self.at = end + 1;
            let plain = self.text[start..end].to_owned();
            put(self, plain);
        } else {
            let decoded = self.escaped_string(start)?;
            put(self, decoded);
        }
        Ok(())
    }
}

/// A number as it was read.
pub(super) enum Number {
    Small(i64),
    Large(Int),
    Float(f64),
}

/// The parser holds place and reason of the fault: in every result they would make values a third larger.
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

#[cfg(test)]
mod tests {
    use super::super::{MAX_INT_DIGITS, write_value};
    use super::*;

    fn rewritten(text: &[u8]) -> String {
        let mut out = Vec::new();
        match parse(text) {
            Ok(value) => write_value(&value, &mut out),
            Err(fault) => return fault.to_string(),
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn any_spelling_of_a_value_is_read() {
        for (text, canonical) in [
            (
                " \t\r\n{ \"b\" : [ 1 , 2 ] , \"a\" : null } \n",
                r#"{"a":null,"b":[1,2]}"#,
            ),
            (r#""\u00e9\/\ud83d\ude00\u0041\u001F\b\"""#, "\"é/😀A\\u001f\\b\\\"\""),
            (r#""\uD834\uDD1E\u2028""#, "\"𝄞\u{2028}\""),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("1E0", "1.0"),
            ("10e-1", "1.0"),
            ("1e-400", "0.0"),
            ("0.1000", "0.1"),
            ("12345678901234567890123", "12345678901234567890123"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("[]", "[]"),
            ("[{},[[]]]", "[{},[[]]]"),
            ("[true,false,null]", "[true,false,null]"),
            (r#"{"\n":1,"A":2,"\u0000":3,"":4}"#, r#"{"":4,"\u0000":3,"\n":1,"A":2}"#),
        ] {
            assert_eq!(rewritten(text.as_bytes()), canonical, "{text}");
        }
    }

    #[test]
    fn what_readers_disagree_on_is_refused() {
        // One text per line, as it stands.
        let lines = r#"
            {
            [1
            [1,
            [1,]
            [,1]
            [1 2]
            {"a"
            {"a":1
            {"a":1,}
            {a:1}
            {"a" 1}
            {1:1}
            1 2
            [1]]
            "a
            "\
            "\"
            "\x"
            "\u12"
            "\u12g4"
            "\u+123"
            "\ud800"
            "\ud800\n"
            "\ud800\u0041"
            "\udc00"
            "\ud800\ud800"
            {"a":1,"a":1}
            [{"b":1,"a":{"c":1,"\u0063":2}}]
        "#;
        let words = "nul nulls True NaN -Infinity - +1 01 -01 1. .1 1.e1 1e 1e+ 0x1 1e400 -1e400 1, 'a'";
        let raw = ["\"\n\"", "\"\u{1f}\"", "\"\0\"", "\u{feff}1", "\u{a0}1", "\u{b}1"];
        let texts = lines.lines().map(str::trim).chain(words.split(' ')).chain(raw);
        for text in texts {
            let fault = parse(text.as_bytes());
            assert!(fault.is_err_and(|fault| fault.offset <= text.len()), "{text:?}");
        }
        assert_eq!(
            parse(b"[\"a\xff\"]"),
            Err(JsonFault {
                offset: 3,
                reason: "not UTF-8"
            })
        );
        // A surrogate encoded as if it were a character.
        assert!(parse(b"\"\xed\xa0\x80\"").is_err());
    }

    #[test]
    fn the_borders_hold() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(rewritten(&nested(MAX_DEPTH + 1)), "nested too deeply at byte 200");
        let mixed = format!("{}1{}", "{\"a\":[".repeat(100), "]}".repeat(100));
        assert_eq!(rewritten(mixed.as_bytes()), mixed);
        let side_by_side = format!("[{}[]]", "[[]],".repeat(500));
        assert!(parse(side_by_side.as_bytes()).is_ok());
        for sign in ["", "-"] {
            let longest = format!("{sign}{}", "9".repeat(MAX_INT_DIGITS));
            assert_eq!(rewritten(longest.as_bytes()), longest);
            assert_eq!(
                rewritten(format!("{longest}9").as_bytes()),
                "an integer with too many digits at byte 0"
            );
        }
        // Only integers are limited: a float of any length is rounded.
        assert_eq!(
            rewritten(format!("0.{}", "3".repeat(5000)).as_bytes()),
            "0.3333333333333333"
        );
    }

    #[test]
    fn a_fault_says_where() {
        assert_eq!(rewritten(b"{\"a\":tru}"), "not a value at byte 5");
        assert_eq!(
            rewritten(b"{\"a\":1,\"b\":{\"x\":1,\"y\":2,\"x\":3}}"),
            "a key stands twice in the object at byte 11"
        );
        assert_eq!(rewritten(b"[1]x"), "more text after the value at byte 3");
        assert_eq!(rewritten(b"[007]"), "a number with a leading zero at byte 1");
    }
}
