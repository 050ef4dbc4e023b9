//! What in a record keeps its hash from being guessed?
//!
//! A salt stands in the key `~` of a record, 16 characters. It is part of the line and no part of the state: whoever takes a
//! record in leaves it out.

use std::borrow::Cow;
use std::io;

use memchr::memchr;

use super::Op;
use crate::host::Randomness;
use crate::json::{self, RecordSpans, members};

/// The key that it has, as it stands between quotes.
pub const SALT_KEY: &[u8] = b"~";
/// How many characters it has.
pub const SALT_CHARACTERS: usize = 16;
/// What stands before it.
const BEFORE: &[u8] = b"\"~\":\"";
/// What stands behind it, at the end of a record.
const BEHIND: &[u8] = b"\"}";

/// How many bytes it stands for.
const SALT_BYTES: usize = 12;
/// So many are drawn at a time, at least: to ask for them takes longer than to get them.
const DRAWN_SALTS: usize = 64;
/// How a number below 64 is spelled.
const SIXTY_FOUR: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Spells bytes as base64url, without padding.
fn write_sixty_four(bytes: &[u8], out: &mut Vec<u8>) {
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        let digit = |place: u32| SIXTY_FOUR[(number >> (18 - 6 * place) & 63) as usize];
        out.extend_from_slice(&[digit(0), digit(1), digit(2), digit(3)][..=three.len()]);
    }
}

/// The salt of a state file, spelled: 22 characters.
///
/// # Errors
/// What the source says.
pub fn of_base(source: &Randomness) -> io::Result<String> {
    let (mut bytes, mut text) = ([0; 16], Vec::new());
    source.fill(&mut bytes)?;
    write_sixty_four(&bytes, &mut text);
    Ok(String::from_utf8(text).unwrap_or_default())
}

/// Salts that were drawn and not used yet.
#[derive(Debug, Default)]
pub struct Salts {
    source: Option<Randomness>,
    drawn: Vec<u8>,
}

impl Salts {
    /// From here on they come from this source; none if there is none.
    pub fn draw_from(&mut self, source: Option<&Randomness>) {
        self.source = source.cloned();
    }

    /// Draws what so many lines need.
    ///
    /// # Errors
    /// What the source says.
    pub fn draw(&mut self, lines: usize) -> io::Result<()> {
        let Some(source) = self.source.as_ref().filter(|_| self.drawn.len() < lines * SALT_BYTES) else {
            return Ok(());
        };
        self.drawn.resize(lines.max(DRAWN_SALTS) * SALT_BYTES, 0);
        source.fill(&mut self.drawn).inspect_err(|_| self.drawn.clear())
    }

    /// Writes a canonical record, with a salt as its last member if it is of an event that has one. Keys that would come behind
    /// it are none of ours, and such a record stays as it is.
    pub fn write(&mut self, op: Op, record: &[u8], out: &mut Vec<u8>) {
        let is_salted = match op {
            Op::Upsert | Op::Delete => true,
            Op::Patch | Op::Act => members(record).all(|(key, _)| key < SALT_KEY),
            _ => false,
        };
        let left = self.drawn.len().checked_sub(SALT_BYTES);
        let (Some(left), Some(body)) = (
            left.filter(|_| is_salted && self.source.is_some()),
            record.strip_suffix(b"}"),
        ) else {
            return out.extend_from_slice(record);
        };
        out.extend_from_slice(body);
        if body.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(BEFORE);
        write_sixty_four(&self.drawn[left..], out);
        out.extend_from_slice(BEHIND);
        self.drawn.truncate(left);
    }
}

/// Whether a text is one.
pub fn is_salt_text(text: &str) -> bool {
    is_salt(text.as_bytes())
}

fn is_salt(text: &[u8]) -> bool {
    text.len() == SALT_CHARACTERS
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// How much of a canonical record stands before a salt that is its last member; `None` if that is something else.
#[inline]
fn before_last(record: &[u8]) -> Option<usize> {
    let rest = record.strip_suffix(BEHIND)?;
    let (rest, salt) = rest.split_at_checked(rest.len().checked_sub(SALT_CHARACTERS)?)?;
    let rest = rest.strip_suffix(BEFORE)?;
    // Behind a comma or a brace a quote opens a key: inside a string there would be none.
    (matches!(rest.last(), Some(b',' | b'{')) && is_salt(salt)).then_some(rest.len())
}

/// Whether a canonical record has a salt.
pub fn is_salted(record: &[u8]) -> bool {
    matches!(without(record, RecordSpans::default()).0, Cow::Owned(_))
}

/// The same as [`without`] in memory that is used again and again.
#[inline]
pub fn without_in<'a>(record: &'a [u8], fields: RecordSpans, memory: &'a mut Vec<u8>) -> (&'a [u8], RecordSpans) {
    if let Some(end) = before_last(record) {
        memory.clear();
        memory.extend_from_slice(&record[..end]);
        if memory.last() == Some(&b',') {
            memory.pop();
        }
        memory.push(b'}');
        return (memory, fields);
    }
    match without(record, fields) {
        (Cow::Borrowed(record), fields) => (record, fields),
        (Cow::Owned(kept), fields) => {
            *memory = kept;
            (memory, fields)
        }
    }
}

/// A canonical record without its salt, and where its fields lie then; nothing is copied if it has none.
#[inline]
pub fn without<'a>(record: &'a [u8], fields: RecordSpans) -> (Cow<'a, [u8]>, RecordSpans) {
    if let Some(end) = before_last(record) {
        let mut kept = Vec::with_capacity(end + 1);
        kept.extend_from_slice(&record[..end]);
        if kept.last() == Some(&b',') {
            kept.pop();
        }
        kept.push(b'}');
        return (Cow::Owned(kept), fields);
    }
    if memchr(b'~', record).is_none() {
        return (Cow::Borrowed(record), fields);
    }
    without_inner(record, fields)
}

/// The same for one that may stand before other members.
#[inline(never)]
fn without_inner<'a>(record: &'a [u8], fields: RecordSpans) -> (Cow<'a, [u8]>, RecordSpans) {
    let is_it = |(key, value): &(&[u8], &[u8])| {
        let text = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        *key == SALT_KEY && text.is_some_and(is_salt)
    };
    if !members(record).any(|member| is_it(&member)) {
        return (Cow::Borrowed(record), fields);
    }
    let mut kept = vec![b'{'];
    for (key, value) in members(record).filter(|member| !is_it(member)) {
        if kept.len() > 1 {
            kept.push(b',');
        }
        kept.push(b'"');
        kept.extend_from_slice(key);
        kept.extend_from_slice(b"\":");
        kept.extend_from_slice(value);
    }
    kept.push(b'}');
    let fields = json::scan_record(&kept).unwrap_or_default();
    (Cow::Owned(kept), fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(record: &str) -> String {
        let fields = json::scan_record(record.as_bytes()).expect("canonical");
        let (kept, fields) = without(record.as_bytes(), fields);
        assert_eq!(json::scan_record(&kept), Some(fields), "{record}");
        let mut memory = b"of before".to_vec();
        let again = without_in(
            record.as_bytes(),
            json::scan_record(record.as_bytes()).expect("canonical"),
            &mut memory,
        );
        assert_eq!(again, (&kept[..], fields));
        String::from_utf8_lossy(&kept).into_owned()
    }

    fn counting() -> Salts {
        let mut salts = Salts::default();
        let source = Randomness::of(|bytes: &mut [u8]| {
            bytes
                .iter_mut()
                .enumerate()
                .for_each(|(place, byte)| *byte = place as u8);
            Ok(())
        });
        salts.draw_from(Some(&source));
        salts
    }

    #[test]
    fn what_is_salted_is_read_without_it() {
        let mut salts = counting();
        salts.draw(3).expect("drawn");
        for (op, record, is_salted) in [
            (Op::Upsert, r#"{"id":"a"}"#, true),
            (Op::Delete, r#"{"id":"a","status":"tombstone"}"#, true),
            (Op::Patch, "{}", true),
            (Op::Act, r#"{"act":"shown/1"}"#, true),
            (Op::Patch, r#"{"é":1}"#, false),
            (Op::Begin, r#"{"events":2}"#, false),
        ] {
            let mut line = Vec::new();
            salts.write(op, record.as_bytes(), &mut line);
            assert_eq!(
                line.len() - record.len(),
                if !is_salted {
                    0
                } else if record == "{}" {
                    22
                } else {
                    23
                }
            );
            let text = String::from_utf8(line).expect("text");
            assert!(json::scan_record(text.as_bytes()).is_some(), "canonical: {text}");
            assert_eq!(left(&text), record);
        }
    }

    #[test]
    fn every_salt_is_used_once_and_a_base_has_one_of_22_characters() {
        let mut salts = counting();
        salts.draw(2).expect("drawn");
        let mut lines = Vec::new();
        for _ in 0..DRAWN_SALTS {
            let mut line = Vec::new();
            salts.write(Op::Upsert, b"{}", &mut line);
            assert!(!lines.contains(&line));
            lines.push(line);
        }
        let mut line = Vec::new();
        salts.write(Op::Upsert, b"{}", &mut line);
        assert_eq!(line, b"{}", "none is left: whoever writes draws them first");
        let source = Randomness::of(|bytes: &mut [u8]| {
            bytes.fill(255);
            Ok(())
        });
        assert_eq!(of_base(&source).expect("spelled"), format!("{}w", "_".repeat(21)));
        assert!(of_base(&Randomness::of(|_| Err(io::ErrorKind::Other.into()))).is_err());
    }

    #[test]
    fn a_salt_of_the_exact_form_is_left_out_wherever_it_stands() {
        for (record, kept) in [
            (r#"{"id":"a","~":"AbCdEfGhIjKlMn_-"}"#, r#"{"id":"a"}"#),
            (r#"{"~":"AbCdEfGhIjKlMn_-"}"#, "{}"),
            (r#"{"id":"a","~":"0123456789abcdef","é":1}"#, r#"{"id":"a","é":1}"#),
            (r#"{"~":"0123456789abcdef","é":"~"}"#, r#"{"é":"~"}"#),
        ] {
            assert_eq!(left(record), kept);
        }
        for other in [
            r#"{"id":"~"}"#,
            r#"{"id":"a","~":"AbCdEfGhIjKlMn_"}"#,
            r#"{"id":"a","~":"AbCdEfGhIjKlMn_-x"}"#,
            r#"{"id":"a","~":"AbCdEfGhIjKlMn_="}"#,
            r#"{"id":"a","~":null}"#,
            r#"{"data":{"~":"AbCdEfGhIjKlMn_-"}}"#,
            r#"{"data":{"~":"AbCdEfGhIjKlMn_-"},"id":"a"}"#,
            r#"{"id":"a","x":",\"~\":\"AbCdEfGhIjKlMn_-"}"#,
            r#"{"id":"a","~~":"AbCdEfGhIjKlMn_-"}"#,
        ] {
            assert_eq!(left(other), other);
        }
    }
}
