//! Reads a text that is known to be canonical, piece by piece, without making values of it.
//!
//! Records in a state were proven when they came in (see `scan_event`), so a cursor skips what must be there and returns
//! pieces of the text. On other bytes the result is `None` or wrong, but never outside of them.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::iter::from_fn;

use super::Value;
use super::parse::parse;
use super::scan::scan_string;

/// An offset in a canonical text.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// A string as it is written between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'a> {
    /// The text, escapes included.
    pub inner: &'a [u8],
    /// Whether there are any escapes.
    pub is_escaped: bool,
}

impl<'a> Cursor<'a> {
    /// The beginning of a text.
    #[inline]
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The bytes that follow.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte.
    #[inline(always)]
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Takes a number of bytes.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let taken = self.text.get(self.at..self.at.checked_add(bytes)?)?;
        self.at += bytes;
        Some(taken)
    }

    /// Skips a literal, if it follows.
    #[inline]
    pub fn pass(&mut self, literal: &[u8]) -> Option<()> {
        let is_next = self.text.get(self.at..)?.starts_with(literal);
        self.at += if is_next { literal.len() } else { 0 };
        is_next.then_some(())
    }

    /// Inside a container: whether another element follows. Skips the comma before it, or the closing bracket.
    #[inline(always)]
    pub fn has_more(&mut self, closing: u8) -> Option<bool> {
        let next = self.peek()?;
        self.at += usize::from(next == closing || next == b',');
        Some(next != closing)
    }

    /// Takes a string with its quotes.
    #[inline(always)]
    pub fn string(&mut self) -> Option<Quoted<'a>> {
        if self.peek()? != b'"' {
            return None;
        }
        let (text, end) = scan_string(self.text, self.at + 1)?;
        self.at = end + 1;
        Some(text)
    }

    /// Takes the key of a member and its colon.
    #[inline(always)]
    pub fn key(&mut self) -> Option<Quoted<'a>> {
        let key = self.string()?;
        self.at += usize::from(self.peek()? == b':');
        Some(key)
    }

    /// Takes any value.
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

    /// Takes a number or a word.
    #[inline(always)]
    pub fn scalar(&mut self) -> Option<&'a [u8]> {
        let rest = self.text.get(self.at..)?;
        let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']'));
        // An empty scalar is `None`, so that a caller that takes one after the other comes to an end.
        self.take(length.unwrap_or(rest.len()))
            .filter(|scalar| !scalar.is_empty())
    }

    /// Takes an integer without a sign.
    pub fn digits(&mut self) -> Option<u64> {
        let rest = self.text.get(self.at..)?;
        let digits = self.take(rest.iter().take_while(|byte| byte.is_ascii_digit()).count())?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Skips a container. Its depth is counted instead of recursing, so that nothing overflows.
    fn container(&mut self) -> Option<()> {
        let mut depth = 0usize;
        let mut at = self.at;
        loop {
            match self.text.get(at)? {
                b'"' => at = scan_string(self.text, at + 1)?.1,
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
    /// The text without escapes; it is copied only if there are any.
    pub fn text(&self) -> Option<Cow<'a, str>> {
        if !self.is_escaped {
            return std::str::from_utf8(self.inner).ok().map(Cow::Borrowed);
        }
        match parse(&[b"\"", self.inner, b"\""].concat()) {
            Ok(Value::Str(text)) => Some(Cow::Owned(text)),
            _ => None,
        }
    }

    /// Whether it precedes another key. Escaped keys do not sort like their text.
    #[inline(always)]
    pub(super) fn sorts_before(&self, next: &Self) -> bool {
        match self.is_escaped || next.is_escaped {
            true => self.text() < next.text(),
            false => self.inner < next.inner,
        }
    }
}

/// The members of a canonical object as they are written, keys without quotes; none of anything else.
#[inline]
pub fn members(object: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut cursor = Cursor::new(object);
    let is_object = cursor.pass(b"{").is_some();
    from_fn(move || {
        let has_more = is_object && cursor.has_more(b'}')?;
        has_more.then(|| Some((cursor.key()?.inner, cursor.value()?))).flatten()
    })
    .fuse()
}

/// The value of a member of a canonical object, given by its key without quotes.
#[inline]
pub fn member<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    members(object)
        .find(|(name, _)| *name == key.as_bytes())
        .map(|(_, value)| value)
}

/// The elements of a canonical array as they are written; none of anything else.
#[inline]
pub fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut cursor = Cursor::new(array);
    let is_array = cursor.pass(b"[").is_some();
    from_fn(move || {
        let has_more = is_array && cursor.has_more(b']')?;
        has_more.then(|| cursor.value()).flatten()
    })
    .fuse()
}

/// Orders a key as it is written between quotes against a plain one.
#[inline]
pub fn compare_key(key: &[u8], other: &str) -> Ordering {
    let is_escaped = key.contains(&b'\\');
    if !is_escaped {
        return key.cmp(other.as_bytes());
    }
    let text = Quoted { inner: key, is_escaped }.text();
    // A broken key sorts first, so that a search for the other one continues.
    text.map_or(Ordering::Less, |text| text.as_bytes().cmp(other.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value written again from the pieces that a cursor returns.
    fn rewrite(text: &[u8], out: &mut Vec<u8>) {
        match text.first() {
            Some(b'{') => {
                out.push(b'{');
                for (number, (key, value)) in members(text).enumerate() {
                    out.extend_from_slice(if number > 0 { b",\"" } else { b"\"" });
                    out.extend_from_slice(key);
                    out.extend_from_slice(b"\":");
                    rewrite(value, out);
                }
                out.push(b'}');
            }
            Some(b'[') => {
                out.push(b'[');
                for (number, value) in elements(text).enumerate() {
                    out.extend_from_slice(if number > 0 { b"," } else { b"" });
                    rewrite(value, out);
                }
                out.push(b']');
            }
            _ => out.extend_from_slice(text),
        }
    }

    #[test]
    fn the_pieces_of_a_canonical_value_are_the_value() {
        let text = r#"{"":[[],{},[[[]]],""],"a\"\\\u0000]}":{"b":{"c":[1,-2.5,1e+300,true,false,null,"😀,]}"]}},"d":["]",[2,{"q":"\"]"}]],"z":"\\\""}"#;
        let mut out = Vec::new();
        rewrite(text.as_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), text);
        for other in ["1", "", "\"{[\""] {
            assert_eq!(
                members(other.as_bytes()).count() + elements(other.as_bytes()).count(),
                0,
                "{other}"
            );
        }
        assert_eq!(members(b"[1]").count() + elements(b"{\"a\":1}").count(), 0);
    }

    #[test]
    fn a_cursor_takes_what_follows_and_nothing_else() {
        let mut cursor = Cursor::new(br#"{"row":12,"x":[7],"a\"\\\u0001\n":-1.5e-05}"#);
        assert_eq!(cursor.pass(b"{\"row\":"), Some(()));
        assert_eq!(cursor.pass(b"13"), None);
        assert_eq!((cursor.digits(), cursor.digits()), (Some(12), None));
        assert_eq!(cursor.take(usize::MAX), None);
        assert_eq!(cursor.take(5), Some(&br#","x":"#[..]));
        assert_eq!((cursor.value(), cursor.has_more(b'}')), (Some(&b"[7]"[..]), Some(true)));
        let key = cursor.key().expect("a key");
        assert_eq!((key.text().as_deref(), key.is_escaped), (Some("a\"\\\u{1}\n"), true));
        assert_eq!(
            (cursor.value(), cursor.has_more(b'}')),
            (Some(&b"-1.5e-05"[..]), Some(false))
        );
        assert_eq!(
            (cursor.peek(), cursor.has_more(b'}'), cursor.value()),
            (None, None, None)
        );
    }

    #[test]
    fn no_bytes_lead_a_cursor_astray() {
        let text = br#"{"a\"":["\\",{"b":1.5}],"c":{"d":[null,"e"]}}"#;
        for end in 0..text.len() {
            for odd in [&b""[..], b"\\", b"\"", b"]", b"}", b",", b"\x00", b"\xff"] {
                let bent = [&text[..end], odd, &text[end + 1..]].concat();
                for piece in [&bent[..], &bent[..end]] {
                    rewrite(piece, &mut Vec::new());
                    let mut cursor = Cursor::new(piece);
                    while cursor.value().is_some() {}
                    assert!(cursor.at <= piece.len());
                }
            }
        }
    }
}
