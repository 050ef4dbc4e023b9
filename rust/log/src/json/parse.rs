//! Parses a JSON text into a value, and locates what is wrong with it.

use super::special::{next_quote, next_special};
use super::{MAX_DEPTH, MAX_INT_DIGITS, Value};

/// Most objects have no more pairs, also records.
const USUAL_PAIRS: usize = 12;

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

/// The same with another limit of the nesting: in a file of records each is one container deeper than in its event.
pub fn parse_to_depth(bytes: &[u8], max_depth: usize) -> Result<Value, JsonFault> {
    let Ok(text) = simdutf8::basic::from_utf8(bytes) else {
        let offset = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        let reason = "not UTF-8";
        return Err(JsonFault { offset, reason });
    };
    let mut parser = Parser {
        text,
        bytes,
        at: 0,
        room: max_depth,
        reason: "",
    };
    parser.whole().map_err(|Stop| JsonFault {
        offset: parser.at,
        reason: parser.reason,
    })
}

/// The parser holds offset and reason of the fault: in every result they would make values a third larger.
struct Stop;

/// A text that is being read.
struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// How many more containers may be opened.
    room: usize,
    reason: &'static str,
}

impl Parser<'_> {
    #[cold]
    fn stop<T>(&mut self, reason: &'static str) -> Result<T, Stop> {
        self.reason = reason;
        Err(Stop)
    }

    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn whole(&mut self) -> Result<Value, Stop> {
        self.skip_white();
        let whole = self.value()?;
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

    fn value(&mut self) -> Result<Value, Stop> {
        match self.peek() {
            Some(b'"') => Ok(Value::Str(self.string()?)),
            Some(b'{') => Ok(Value::Object(self.object()?)),
            Some(b'[') => Ok(Value::Array(self.array()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true", Value::Bool(true)),
            Some(b'f') => self.word(b"false", Value::Bool(false)),
            Some(b'n') => self.word(b"null", Value::Null),
            Some(_) => self.stop("not a value"),
            None => self.stop("the text ends too early"),
        }
    }

    fn word(&mut self, word: &[u8], value: Value) -> Result<Value, Stop> {
        if !self.bytes[self.at..].starts_with(word) {
            return self.stop("not a value");
        }
        self.at += word.len();
        Ok(value)
    }

    /// Opens a container; true if it has members.
    fn open(&mut self, close: u8) -> Result<bool, Stop> {
        if self.room == 0 {
            return self.stop("nested too deeply");
        }
        self.at += 1;
        self.skip_white();
        let is_empty = self.peek() == Some(close);
        self.at += usize::from(is_empty);
        self.room -= usize::from(!is_empty);
        Ok(!is_empty)
    }

    /// After a member: true if another one follows.
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
        let mut items = Vec::new();
        let mut has_more = self.open(b']')?;
        while has_more {
            items.push(self.value()?);
            has_more = self.next_member(b']')?;
        }
        Ok(items)
    }

    fn object(&mut self) -> Result<Vec<(String, Value)>, Stop> {
        let opened = self.at;
        let mut has_more = self.open(b'}')?;
        let mut pairs: Vec<(String, Value)> = Vec::with_capacity(if has_more { USUAL_PAIRS } else { 0 });
        while has_more {
            if self.peek() != Some(b'"') {
                return self.stop("expected a key in quotes");
            }
            let key = self.string()?;
            self.skip_white();
            if self.peek() != Some(b':') {
                return self.stop("expected a colon");
            }
            self.at += 1;
            self.skip_white();
            pairs.push((key, self.value()?));
            has_more = self.next_member(b'}')?;
        }
        if !pairs.is_sorted_by(|one, next| one.0 < next.0) {
            pairs.sort_unstable_by(|one, next| one.0.cmp(&next.0));
            if pairs.windows(2).any(|two| two[0].0 == two[1].0) {
                self.at = opened;
                return self.stop("a key stands twice in the object");
            }
        }
        Ok(pairs)
    }

    fn string(&mut self) -> Result<String, Stop> {
        let start = self.at + 1;
        if let Some(end) = next_quote(self.bytes, start) {
            self.at = end + 1;
            return Ok(self.text[start..end].to_owned());
        }
        self.at = start;
        let mut decoded = String::new();
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

    fn number(&mut self) -> Result<Value, Stop> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let first = self.at;
        let count = self.digits()?;
        if count > 1 && self.bytes[first] == b'0' {
            self.at = first;
            return self.stop("a number with a leading zero");
        }
        if !matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            let int = Value::decimal(&self.text[start..self.at]).filter(|_| count <= MAX_INT_DIGITS);
            return int.ok_or(Stop).or_else(|_| {
                self.at = start;
                self.stop("an integer with too many digits")
            });
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
            _ => {
                self.at = start;
                self.stop("a number too large for a float")
            }
        }
    }

    /// Skips one digit or more; how many.
    fn digits(&mut self) -> Result<usize, Stop> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        match self.at - start {
            0 => self.stop("expected a digit"),
            count => Ok(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &[u8]) -> String {
        match parse(text) {
            Ok(value) => String::from_utf8_lossy(&value.to_bytes()).into_owned(),
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn any_spelling_of_a_value_is_read_and_faults_are_located() {
        for (text, expected) in [
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
            ("[{},[[]],true,false,null]", "[{},[[]],true,false,null]"),
            (r#"{"\n":1,"A":2,"\u0000":3,"":4}"#, r#"{"":4,"\u0000":3,"\n":1,"A":2}"#),
            ("{\"a\":tru}", "not a value at byte 5"),
            (
                "{\"a\":1,\"b\":{\"x\":1,\"y\":2,\"x\":3}}",
                "a key stands twice in the object at byte 11",
            ),
            ("[1]x", "more text after the value at byte 3"),
            ("[007]", "a number with a leading zero at byte 1"),
        ] {
            assert_eq!(rewritten(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(rewritten(b"[\"a\xff\"]"), "not UTF-8 at byte 3");
    }

    #[test]
    fn what_readers_disagree_on_is_refused() {
        let texts = r#"{;[1;[1,;[1,];[,1];[1 2];{"a";{"a":1;{"a":1,};{a:1};{"a" 1};{1:1};1 2;[1]];"a;"\;"\";"\x";"\u12";"\u12g4";"\u+123";"#;
        let surrogates = r#""\ud800";"\ud800\n";"\ud800\u0041";"\udc00";"\ud800\ud800";{"a":1,"a":1};[{"b":1,"a":{"c":1,"\u0063":2}}]"#;
        let words = "nul;nulls;True;NaN;-Infinity;-;+1;01;-01;1.;.1;1.e1;1e;1e+;0x1;1e400;-1e400;1,;'a'";
        let raw = ["\"\n\"", "\"\u{1f}\"", "\"\0\"", "\u{feff}1", "\u{a0}1", "\u{b}1"];
        for text in [texts, surrogates, words]
            .into_iter()
            .flat_map(|texts| texts.split(';'))
            .chain(raw)
        {
            let fault = parse(text.as_bytes());
            assert!(fault.is_err_and(|fault| fault.offset <= text.len()), "{text:?}");
        }
        // A surrogate encoded as if it were a character.
        assert!(parse(b"\"\xed\xa0\x80\"").is_err());
    }

    #[test]
    fn the_limits_hold() {
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
            let longer = format!("{longest}9");
            assert_eq!(
                rewritten(longer.as_bytes()),
                "an integer with too many digits at byte 0"
            );
        }
        // Only integers are limited: a float of any length is rounded.
        assert_eq!(
            rewritten(format!("0.{}", "3".repeat(5000)).as_bytes()),
            "0.3333333333333333"
        );
    }
}
