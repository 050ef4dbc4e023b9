//! What does this text say?

use std::fmt;

use super::special::next_special;
use super::{Int, MAX_DEPTH, MAX_INT_DIGITS, Value};

/// Why a text is not JSON that we accept, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonFault {
    /// The byte at which reading stopped.
    pub offset: usize,
    /// What is wrong there, as half a sentence.
    pub reason: &'static str,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.offset)
    }
}

impl std::error::Error for JsonFault {}

/// Reads one JSON text, with white space around it if need be.
///
/// # Errors
/// Everything RFC 8259 forbids, and what it leaves open but readers disagree on: a key given twice, half a surrogate
/// pair, a float that overflows, an integer over [`MAX_INT_DIGITS`], nesting over [`MAX_DEPTH`], a byte order mark.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonFault> {
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
        depth: 0,
        items: Vec::new(),
        pairs: Vec::new(),
    };
    parser.skip_white();
    let value = parser.value()?;
    parser.skip_white();
    if parser.at < bytes.len() {
        return parser.fault("more text after the value");
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    // Members of the containers still open. Each container leaves with a list of exactly its size.
    items: Vec<Value>,
    pairs: Vec<(String, Value)>,
}

impl Parser<'_> {
    fn fault<T>(&self, reason: &'static str) -> Result<T, JsonFault> {
        Err(JsonFault {
            offset: self.at,
            reason,
        })
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn skip_white(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value, JsonFault> {
        match self.peek() {
            Some(b'"') => Ok(Value::Str(self.string()?)),
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) => self.fault("not a value"),
            None => self.fault("the text ends too early"),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, JsonFault> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return self.fault("not a value");
        }
        self.at += word.len();
        Ok(value)
    }

    /// Steps into a container; true if it is empty and already left again.
    fn open(&mut self, close: u8) -> Result<bool, JsonFault> {
        if self.depth == MAX_DEPTH {
            return self.fault("nested too deeply");
        }
        self.depth += 1;
        self.at += 1;
        self.skip_white();
        let empty = self.peek() == Some(close);
        if empty {
            self.at += 1;
            self.depth -= 1;
        }
        Ok(empty)
    }

    /// After a member: true if another one follows.
    fn next_member(&mut self, close: u8) -> Result<bool, JsonFault> {
        self.skip_white();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_white();
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                self.depth -= 1;
                Ok(false)
            }
            Some(_) => self.fault("expected a comma or the end of the container"),
            None => self.fault("the text ends too early"),
        }
    }

    fn array(&mut self) -> Result<Value, JsonFault> {
        if self.open(b']')? {
            return Ok(Value::Array(Vec::new()));
        }
        let start = self.items.len();
        loop {
            let item = self.value()?;
            self.items.push(item);
            if !self.next_member(b']')? {
                return Ok(Value::Array(self.items.drain(start..).collect()));
            }
        }
    }

    fn object(&mut self) -> Result<Value, JsonFault> {
        let opened = self.at;
        if self.open(b'}')? {
            return Ok(Value::Object(Vec::new()));
        }
        let start = self.pairs.len();
        let mut ascending = true;
        loop {
            if self.peek() != Some(b'"') {
                return self.fault("expected a key in quotes");
            }
            let key = self.string()?;
            self.skip_white();
            if self.peek() != Some(b':') {
                return self.fault("expected a colon");
            }
            self.at += 1;
            self.skip_white();
            let value = self.value()?;
            ascending &= self.pairs[start..]
                .last()
                .is_none_or(|before| before.0 < key);
            self.pairs.push((key, value));
            if !self.next_member(b'}')? {
                break;
            }
        }
        let mut pairs: Vec<(String, Value)> = self.pairs.drain(start..).collect();
        if !ascending {
            pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            if pairs.windows(2).any(|two| two[0].0 == two[1].0) {
                return Err(JsonFault {
                    offset: opened,
                    reason: "a key stands twice in the object",
                });
            }
        }
        Ok(Value::Object(pairs))
    }

    fn string(&mut self) -> Result<String, JsonFault> {
        let start = self.at + 1;
        self.at = next_special(self.bytes, start);
        match self.peek() {
            Some(b'"') => {
                let plain = self.text[start..self.at].to_owned();
                self.at += 1;
                Ok(plain)
            }
            _ => self.escaped_string(start),
        }
    }

    #[cold]
    fn escaped_string(&mut self, start: usize) -> Result<String, JsonFault> {
        let mut decoded = self.text[start..self.at].to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => decoded.push(self.escape()?),
                Some(_) => return self.fault("a raw control character in a string"),
                None => return self.fault("the text ends inside a string"),
            }
            let plain = self.at;
            self.at = next_special(self.bytes, plain);
            decoded.push_str(&self.text[plain..self.at]);
        }
    }

    fn escape(&mut self) -> Result<char, JsonFault> {
        let Some(&letter) = self.bytes.get(self.at + 1) else {
            return self.fault("the text ends inside a string");
        };
        let plain = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return self.fault("an escape that JSON does not know"),
        };
        self.at += 2;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, JsonFault> {
        let Some(first) = self.code_unit(self.at) else {
            return self.fault("\\u without four hex digits");
        };
        let (code, length) = match first {
            0xd800..=0xdbff => match self.code_unit(self.at + 6) {
                Some(second @ 0xdc00..=0xdfff) => {
                    (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
                }
                _ => return self.fault("half a surrogate pair"),
            },
            _ => (first, 6),
        };
        match char::from_u32(code) {
            Some(decoded) => {
                self.at += length;
                Ok(decoded)
            }
            None => self.fault("half a surrogate pair"),
        }
    }

    /// The number in the `\uXXXX` that begins at `at`.
    fn code_unit(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |code, &digit| {
            Some(code << 4 | char::from(digit).to_digit(16)?)
        })
    }

    fn number(&mut self) -> Result<Value, JsonFault> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let first_digit = self.at;
        let size = self.digits()?;
        let count = self.at - first_digit;
        if count > 1 && self.bytes[first_digit] == b'0' {
            self.at = first_digit;
            return self.fault("a number with a leading zero");
        }
        if !matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            // Eighteen digits always fit into 64 bits.
            if count <= 18 {
                let small = size as i64;
                return Ok(Value::from(if negative { -small } else { small }));
            }
            let int = (count <= MAX_INT_DIGITS)
                .then(|| Int::from_decimal(&self.text[start..self.at]))
                .flatten();
            self.at = if int.is_some() { self.at } else { start };
            return int.map_or_else(
                || self.fault("an integer with too many digits"),
                |int| Ok(Value::Int(int)),
            );
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
            Ok(float) if float.is_finite() => Ok(Value::Float(float)),
            _ => Err(JsonFault {
                offset: start,
                reason: "a number too large for a float",
            }),
        }
    }

    /// Passes at least one digit; the number they make, as far as it fits.
    fn digits(&mut self) -> Result<u64, JsonFault> {
        let start = self.at;
        let mut size = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            size = size.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        if self.at == start {
            self.fault("expected a digit")
        } else {
            Ok(size)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::write_value;
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
            (
                r#""\u00e9\/\ud83d\ude00\u0041\u001F\b\"""#,
                "\"é/😀A\\u001f\\b\\\"\"",
            ),
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
            (
                r#"{"\n":1,"A":2,"\u0000":3,"":4}"#,
                r#"{"":4,"\u0000":3,"\n":1,"A":2}"#,
            ),
        ] {
            assert_eq!(rewritten(text.as_bytes()), canonical, "{text}");
        }
    }

    #[test]
    fn what_readers_disagree_on_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\" 1}",
            "{1:1}",
            "1 2",
            "[1]]",
            "nul",
            "nulls",
            "True",
            "NaN",
            "Infinity",
            "-Infinity",
            "-",
            "+1",
            "01",
            "-01",
            "1.",
            ".1",
            "1.e1",
            "1e",
            "1e+",
            "0x1",
            "1e400",
            "-1e400",
            "\"",
            "\"a",
            "\"\\",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\\u+123\"",
            "\"\\ud800\"",
            "\"\\ud800\\n\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"\\ud800\\ud800\"",
            "\"\n\"",
            "\"\u{1f}\"",
            "\"\u{0}\"",
            "\u{feff}1",
            "\u{a0}1",
            "'a'",
            "1,",
            "\u{b}1",
            "{\"a\":1,\"a\":1}",
            "[{\"b\":1,\"a\":{\"c\":1,\"\\u0063\":2}}]",
        ] {
            let fault = parse(text.as_bytes());
            assert!(
                fault.is_err_and(|fault| fault.offset <= text.len()),
                "{text:?}"
            );
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
        assert_eq!(
            rewritten(&nested(MAX_DEPTH + 1)),
            "nested too deeply at byte 200"
        );
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
        assert_eq!(
            rewritten(b"[007]"),
            "a number with a leading zero at byte 1"
        );
    }
}
