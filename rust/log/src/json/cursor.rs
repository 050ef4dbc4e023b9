//! Reads a text that is known to be canonical, piece by piece, without making values of it.
//!
//! Records in a state were proven when they came in (see `scan_event`), so a cursor steps over what must be there and
//! hands out pieces of the text. On other bytes it answers `None` or something wrong, but never leaves them.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::Value;
use super::parse::parse;
use super::scan::{Text, find_end};

/// A place in a canonical text.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// A string as it stands between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'a> {
    /// The text as it is written, escapes included.
    pub inner: &'a [u8],
    /// Whether there are any.
    pub is_escaped: bool,
}

impl<'a> Cursor<'a> {
    /// The beginning of a text.
    #[inline]
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// What is not passed yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte.
    #[inline(always)]
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Passes so many bytes, and gives them.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let taken = self.text.get(self.at..self.at.checked_add(bytes)?)?;
        self.at += bytes;
        Some(taken)
    }

    /// Passes a literal; stays where it is if something else stands there.
    #[inline]
    pub fn pass(&mut self, literal: &[u8]) -> Option<()> {
        let is_there = self.text.get(self.at..)?.starts_with(literal);
        self.at += if is_there { literal.len() } else { 0 };
        is_there.then_some(())
    }

    /// Inside a container: whether another element follows; the cursor stands at it, or behind the closing bracket.
    #[inline(always)]
    pub fn has_more(&mut self, closing: u8) -> Option<bool> {
        let next = self.peek()?;
        self.at += usize::from(next == closing || next == b',');
        Some(next != closing)
    }

    /// Passes a string, from its opening quote on.
    #[inline(always)]
    pub fn string(&mut self) -> Option<Quoted<'a>> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let Text { end, escaped } = find_end(self.text, start)?;
        self.at = end + 1;
        Some(Quoted {
            inner: &self.text[start..end],
            is_escaped: escaped,
        })
    }

    /// Passes the key of a member and its colon.
    #[inline(always)]
    pub fn key(&mut self) -> Option<Quoted<'a>> {
        let key = self.string()?;
        self.at += usize::from(self.peek()? == b':');
        Some(key)
    }

    /// Passes any value, and gives its bytes.
    #[inline]
    pub fn value(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        match self.peek()? {
            b'"' => {
                self.string()?;
            }
            b'{' | b'[' => self.container()?,
            _ => return self.scalar(),
        }
        self.text.get(start..self.at)
    }

    /// Passes a number or a word, and gives its bytes.
    #[inline(always)]
    pub fn scalar(&mut self) -> Option<&'a [u8]> {
        let rest = self.text.get(self.at..)?;
        let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']'));
        // Nothing is no scalar: whoever asks for one after the other comes to an end.
        self.take(length.unwrap_or(rest.len()))
            .filter(|scalar| !scalar.is_empty())
    }

    /// Passes digits, and gives the number that they are.
    pub fn digits(&mut self) -> Option<u64> {
        let rest = self.text.get(self.at..)?;
        let digits = self.take(rest.iter().take_while(|byte| byte.is_ascii_digit()).count())?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Passes a container. How deep it goes is counted and no call, so that nothing overflows.
    fn container(&mut self) -> Option<()> {
        let mut depth = 0usize;
        let mut at = self.at;
        loop {
            match self.text.get(at)? {
                b'"' => at = find_end(self.text, at + 1)?.end,
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                self.at = at;
                return Some(());
            }
        }
    }
}

impl<'a> Quoted<'a> {
    /// A text as it was meant; nothing is copied unless it holds escapes.
    pub fn text(&self) -> Option<Cow<'a, str>> {
        if !self.is_escaped {
            return std::str::from_utf8(self.inner).ok().map(Cow::Borrowed);
        }
        match parse(&[b"\"", self.inner, b"\""].concat()) {
            Ok(Value::Str(text)) => Some(Cow::Owned(text)),
            _ => None,
        }
    }
}

/// The members of a canonical object, as they are written: keys without quotes, values as they are.
#[derive(Clone, Copy, Debug)]
pub struct ObjectMembers<'a>(Option<Cursor<'a>>);

/// The members of a canonical object; none of anything else.
#[inline]
pub fn members(object: &[u8]) -> ObjectMembers<'_> {
    let mut cursor = Cursor::new(object);
    ObjectMembers(cursor.pass(b"{").map(|()| cursor))
}

impl<'a> Iterator for ObjectMembers<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let cursor = self.0.as_mut()?;
        let is_one = cursor.has_more(b'}')?;
        let member = is_one.then(|| Some((cursor.key()?.inner, cursor.value()?))).flatten();
        if member.is_none() {
            self.0 = None;
        }
        member
    }
}

/// Orders a key between quotes against a plain one. Escaped keys do not sort like what they say.
#[inline]
pub fn compare_key(key: &[u8], other: &str) -> Ordering {
    let is_escaped = key.contains(&b'\\');
    if !is_escaped {
        return key.cmp(other.as_bytes());
    }
    let said = Quoted { inner: key, is_escaped }.text();
    // If it says nothing that could be compared, whoever looks for the other goes on.
    said.map_or(Ordering::Less, |said| said.as_bytes().cmp(other.as_bytes()))
}

/// The elements of a canonical array, as they are written.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a>(Option<Cursor<'a>>);

/// The elements of a canonical array; none of anything else.
#[inline]
pub fn elements(array: &[u8]) -> Elements<'_> {
    let mut cursor = Cursor::new(array);
    Elements(cursor.pass(b"[").map(|()| cursor))
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let cursor = self.0.as_mut()?;
        let is_one = cursor.has_more(b']')?;
        let element = is_one.then(|| cursor.value()).flatten();
        if element.is_none() {
            self.0 = None;
        }
        element
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn shown(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap_or("?")
    }

    #[test]
    fn members_are_told_apart() {
        let object =
            r#"{"a":{"x":"}{","y":[{"z":1}]},"b":["]",[2,{"q":"\"]"}]],"c":"\\","d":-1.5e-05,"e":null,"f\n":{}}"#;
        let found: Vec<_> = members(object.as_bytes())
            .map(|(key, value)| (shown(key), shown(value)))
            .collect();
        let expected = [
            ("a", r#"{"x":"}{","y":[{"z":1}]}"#),
            ("b", r#"["]",[2,{"q":"\"]"}]]"#),
            ("c", r#""\\""#),
            ("d", "-1.5e-05"),
            ("e", "null"),
            ("f\\n", "{}"),
        ];
        assert_eq!(found, expected);
        let list: Vec<_> = elements(expected[1].1.as_bytes()).map(shown).collect();
        assert_eq!(list, [r#""]""#, r#"[2,{"q":"\"]"}]"#]);
        for nothing in ["{}", "[1]", "1", ""] {
            assert_eq!(members(nothing.as_bytes()).count(), 0, "{nothing}");
        }
        for nothing in ["[]", "{\"a\":1}", "1", ""] {
            assert_eq!(elements(nothing.as_bytes()).count(), 0, "{nothing}");
        }
    }

    #[test]
    fn texts_are_read_as_they_were_meant() {
        for (spelled, meant) in [
            (r#""""#, ""),
            (r#""Käse""#, "Käse"),
            (r#""a\"b\\""#, "a\"b\\"),
            (r#""\u0001\n""#, "\u{1}\n"),
        ] {
            let mut cursor = Cursor::new(spelled.as_bytes());
            let quoted = cursor.string().expect("a string");
            assert_eq!(quoted.text().as_deref(), Some(meant));
            assert_eq!(quoted.is_escaped, spelled.contains('\\'));
            assert_eq!(cursor.peek(), None);
        }
    }

    #[test]
    fn a_cursor_stays_where_something_else_stands() {
        let mut cursor = Cursor::new(br#"{"row":12,"x":[7]}"#);
        assert_eq!(cursor.pass(b"{\"row\":"), Some(()));
        assert_eq!(cursor.pass(b"13"), None);
        assert_eq!(cursor.digits(), Some(12));
        assert_eq!(cursor.digits(), None);
        assert_eq!(cursor.take(usize::MAX), None);
        assert_eq!(cursor.take(5), Some(&br#","x":"#[..]));
        assert_eq!(cursor.value(), Some(&b"[7]"[..]));
        assert_eq!(cursor.has_more(b'}'), Some(false));
        assert_eq!(
            (cursor.peek(), cursor.has_more(b'}'), cursor.value()),
            (None, None, None)
        );
    }

    /// What a value says, spelled again from the pieces that a cursor hands out.
    fn again(text: &[u8], out: &mut Vec<u8>) {
        match text.first() {
            Some(b'{') => {
                out.push(b'{');
                for (number, (key, value)) in members(text).enumerate() {
                    out.extend_from_slice(if number > 0 { b",\"" } else { b"\"" });
                    out.extend_from_slice(key);
                    out.extend_from_slice(b"\":");
                    again(value, out);
                }
                out.push(b'}');
            }
            Some(b'[') => {
                out.push(b'[');
                for (number, value) in elements(text).enumerate() {
                    out.extend_from_slice(if number > 0 { b"," } else { b"" });
                    again(value, out);
                }
                out.push(b']');
            }
            _ => out.extend_from_slice(text),
        }
    }

    #[test]
    fn pieces_of_any_canonical_value_are_the_value() {
        let text =
            r#"{"":[[],{},[[[]]],""],"a\"\\\u0000]}":{"b":{"c":[1,-2.5,1e+300,true,false,null,"😀,]}"]}},"z":"\\\""}"#;
        let canonical = parse(text.as_bytes()).expect("JSON").to_bytes();
        let mut out = Vec::new();
        again(&canonical, &mut out);
        assert_eq!(shown(&out), shown(&canonical));
    }

    #[test]
    fn no_bytes_lead_a_cursor_astray() {
        let text = br#"{"a\"":["\\",{"b":1.5}],"c":{"d":[null,"e"]}}"#;
        for end in 0..text.len() {
            for odd in [&b""[..], b"\\", b"\"", b"]", b"}", b",", b"\x00", b"\xff"] {
                let bent = [&text[..end], odd, &text[end + 1..]].concat();
                for piece in [&bent[..], &bent[..end]] {
                    let mut out = Vec::new();
                    again(piece, &mut out);
                    let mut cursor = Cursor::new(piece);
                    while cursor.value().is_some() {}
                    assert!(cursor.at <= piece.len());
                }
            }
        }
    }
}
