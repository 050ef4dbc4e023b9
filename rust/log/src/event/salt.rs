//! The salt that keeps the hash of a record from being guessed: 16 characters in the key `~` of a record.
//!
//! It is part of the line, not of the state: it is left out when a record is taken in.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io;

use memchr::memchr;

use super::Op;
use super::faces::{VECTORS, face_of};
use crate::host::Randomness;
use crate::json::{self, RecordSpans, compare_key, members};
use crate::scope::carried;

const SALT_KEY: &str = "~";
const SALT_CHARACTERS: usize = 16;
const BEFORE: &[u8] = b"\"~\":\"";
const BEHIND: &[u8] = b"\"}";
/// How records of ours end: nothing that such a record says comes behind a salt.
const USUAL_ENDS: [&[u8]; 2] = [b",\"status\":\"active\"}", b",\"status\":\"tombstone\"}"];

const SALT_BYTES: usize = 12;
/// So many are drawn at a time, at least: to ask for them takes longer than to get them.
const DRAWN_SALTS: usize = 64;
/// How a number below 64 is spelled.
const SIXTY_FOUR: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn write_sixty_four(bytes: &[u8], out: &mut Vec<u8>) {
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        let digit = |place: u32| SIXTY_FOUR[(number >> (18 - 6 * place) & 63) as usize];
        out.extend_from_slice(&[digit(0), digit(1), digit(2), digit(3)][..=three.len()]);
    }
}

/// The salt of a state file, spelled: 22 characters.
pub fn of_base(source: &Randomness) -> io::Result<String> {
    spelled::<16>(source)
}

/// The salt of one line, spelled.
pub fn of_line(source: &Randomness) -> io::Result<String> {
    spelled::<SALT_BYTES>(source)
}

fn spelled<const BYTES: usize>(source: &Randomness) -> io::Result<String> {
    let (mut bytes, mut text) = ([0; BYTES], Vec::new());
    source.fill(&mut bytes)?;
    write_sixty_four(&bytes, &mut text);
    Ok(String::from_utf8(text).unwrap_or_default())
}

/// Which lines have one?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Salting {
    /// None: for a log that tells of no people.
    Never,
    /// All but those that are sure to be of a record for everyone.
    #[default]
    Scoped,
    /// All that may.
    Always,
}

impl Salting {
    /// Whether a line has one. Patches, deletions, acts and groups of rows do not say whose records they are about.
    #[inline]
    fn wants(self, op: Op, id: &[u8], record: &[u8], is_plain: bool) -> bool {
        match (self, op) {
            (Self::Always, Op::Upsert) | (Self::Always | Self::Scoped, Op::Patch | Op::Delete | Op::Act) => true,
            (Self::Scoped, Op::Upsert) => (!is_plain && carried(record).is_some()) || face_of(id) == Some(VECTORS),
            _ => false,
        }
    }
}

/// What lines are salted with, and which.
#[derive(Clone, Copy, Debug)]
pub struct SaltTerms<'a> {
    /// Where salts come from.
    pub source: &'a Randomness,
    /// Which lines have one.
    pub salting: Salting,
}

/// Salts that were drawn and not used yet.
#[derive(Debug, Default)]
pub struct Salts {
    source: Option<Randomness>,
    salting: Salting,
    drawn: Vec<u8>,
}

impl Salts {
    /// From here on they are drawn on these terms; none if there are none.
    pub fn draw_on(&mut self, terms: Option<SaltTerms<'_>>) {
        let is_known = |source: &Randomness| self.source.as_ref().is_some_and(|own| own.is(source));
        if !terms.is_some_and(|terms| is_known(terms.source)) {
            self.source = terms.map(|terms| terms.source.clone());
        }
        self.salting = terms.map_or(Salting::Never, |terms| terms.salting);
    }

    /// Draws what so many lines need.
    pub fn draw(&mut self, lines: usize) -> io::Result<()> {
        let Some(source) = self.source.as_ref().filter(|_| self.drawn.len() < lines * SALT_BYTES) else {
            return Ok(());
        };
        self.drawn.resize(lines.max(DRAWN_SALTS) * SALT_BYTES, 0);
        source.fill(&mut self.drawn).inspect_err(|_| self.drawn.clear())
    }

    /// Writes a canonical record, with a salt if the event has one, unless the record uses that key itself.
    #[inline]
    pub fn write(&mut self, op: Op, id: &[u8], record: &[u8], is_plain: bool, out: &mut Vec<u8>) {
        let left = self.drawn.len().checked_sub(SALT_BYTES);
        let left = left.filter(|_| self.source.is_some() && self.salting.wants(op, id, record, is_plain));
        let (Some(left), Some((before, behind))) = (left, left.and_then(|_| around(record))) else {
            return out.extend_from_slice(record);
        };
        out.extend_from_slice(before);
        if !matches!(before, [b'{'] | [.., b',']) {
            out.push(b',');
        }
        out.extend_from_slice(BEFORE);
        write_sixty_four(&self.drawn[left..], out);
        out.extend_from_slice(if behind == b"}" { b"\"" } else { b"\"," });
        out.extend_from_slice(behind);
        self.drawn.truncate(left);
    }
}

/// The parts of a canonical record before and behind a salt, in key order; `None` if it has such a key.
#[inline]
fn around(record: &[u8]) -> Option<(&[u8], &[u8])> {
    let last = record.len().checked_sub(1)?;
    // Behind a comma a quote opens a key, and what ends with the record is a member of the record.
    if USUAL_ENDS.iter().any(|end| record.ends_with(end)) {
        return Some(record.split_at(last));
    }
    for (key, _) in members(record) {
        match compare_key(key, SALT_KEY) {
            Ordering::Less => {}
            Ordering::Equal => return None,
            Ordering::Greater => return Some(record.split_at(key.as_ptr().addr() - record.as_ptr().addr() - 1)),
        }
    }
    record.ends_with(b"}").then(|| record.split_at(last))
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
    let end = before_last(record);
    if end.is_none() && memchr(b'~', record).is_none() {
        return (record, fields);
    }
    memory.clear();
    let Some(end) = end else {
        return match without_inner(record, fields) {
            (Cow::Borrowed(record), fields) => (record, fields),
            (Cow::Owned(kept), fields) => {
                *memory = kept;
                (memory, fields)
            }
        };
    };
    memory.extend_from_slice(&record[..end]);
    if memory.last() == Some(&b',') {
        memory.pop();
    }
    memory.push(b'}');
    (memory, fields)
}

/// A canonical record without its salt, and where its fields lie then; nothing is copied if it has none.
#[inline]
pub fn without<'a>(record: &'a [u8], fields: RecordSpans) -> (Cow<'a, [u8]>, RecordSpans) {
    if before_last(record).is_none() {
        return match memchr(b'~', record) {
            Some(_) => without_inner(record, fields),
            None => (Cow::Borrowed(record), fields),
        };
    }
    let mut kept = Vec::new();
    let (_, fields) = without_in(record, fields, &mut kept);
    (Cow::Owned(kept), fields)
}

/// The same for one that may stand before other members.
#[inline(never)]
fn without_inner<'a>(record: &'a [u8], fields: RecordSpans) -> (Cow<'a, [u8]>, RecordSpans) {
    let is_it = |(key, value): &(&[u8], &[u8])| {
        let text = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        *key == SALT_KEY.as_bytes() && text.is_some_and(is_salt)
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

    fn counting(salting: Salting) -> Salts {
        let mut salts = Salts::default();
        let source = Randomness::of(|bytes: &mut [u8]| {
            bytes
                .iter_mut()
                .enumerate()
                .for_each(|(place, byte)| *byte = place as u8);
            Ok(())
        });
        salts.draw_on(Some(SaltTerms {
            source: &source,
            salting,
        }));
        salts
    }

    #[test]
    fn what_is_salted_is_read_without_it() {
        let mut salts = counting(Salting::Always);
        salts.draw(20).expect("drawn");
        for (op, record, is_salted) in [
            (Op::Upsert, r#"{"id":"a"}"#, true),
            (Op::Upsert, r#"{"id":"a","status":"active"}"#, true),
            (Op::Delete, r#"{"id":"a","status":"tombstone"}"#, true),
            (Op::Patch, "{}", true),
            (Op::Act, r#"{"act":"shown/1"}"#, true),
            // Keys that come behind it, and one that is written with a letter that does not.
            (Op::Patch, r#"{"é":1}"#, true),
            (Op::Patch, "{\"id\":\"a\",\"\u{7f}\":1}", true),
            (Op::Upsert, r#"{"id":"a","~\\":{"~":1},"é":1}"#, true),
            (Op::Upsert, r#"{"\n":1,"\"":{"é":1},"\\":1,"}":1}"#, true),
            (Op::Upsert, r#"{"id":"a","}\"":1,"~\"":1,"~~":"status","é":"é"}"#, true),
            // It says something by that key itself.
            (Op::Upsert, r#"{"id":"a","~":1}"#, false),
            (Op::Patch, r#"{"id":"a","~":null,"é":1}"#, false),
            (Op::Begin, r#"{"events":2}"#, false),
        ] {
            let mut line = Vec::new();
            salts.write(op, b"a", record.as_bytes(), false, &mut line);
            let added = match is_salted {
                false => 0,
                true if record == "{}" => 22,
                true => 23,
            };
            assert_eq!(line.len() - record.len(), added, "{record}");
            let text = String::from_utf8(line).expect("text");
            assert!(json::scan_record(text.as_bytes()).is_some(), "canonical: {text}");
            assert_eq!(left(&text), record);
        }
    }

    #[test]
    fn lines_of_what_is_for_everyone_have_none_by_scope() {
        let shared = r#"{"confidence":0.7,"data":{"a":1},"id":"a","status":"active"}"#;
        let own = r#"{"confidence":0.7,"data":{"@scope":{"user":"ann"}},"id":"a","status":"active"}"#;
        let odd = r#"{"data":{"@scope":7},"id":"a"}"#;
        for (salting, salted) in [
            (Salting::Never, [false; 7]),
            (Salting::Scoped, [false, true, true, true, true, true, true]),
            (Salting::Always, [true; 7]),
        ] {
            let mut salts = counting(salting);
            salts.draw(7).expect("drawn");
            let said = [
                (Op::Upsert, "a", shared),
                (Op::Upsert, "a", own),
                (Op::Upsert, "a", odd),
                (Op::Upsert, "vector:default", shared),
                (Op::Patch, "a", "{}"),
                (Op::Delete, "a", r#"{"id":"a","status":"tombstone"}"#),
                (Op::Act, "a", "{}"),
            ];
            for ((op, id, record), is_salted) in said.into_iter().zip(salted) {
                let mut line = Vec::new();
                salts.write(op, id.as_bytes(), record.as_bytes(), false, &mut line);
                assert_eq!(line != record.as_bytes(), is_salted, "{salting:?} {op:?} {record}");
            }
        }
    }

    #[test]
    fn every_salt_is_used_once_and_a_base_has_one_of_22_characters() {
        let mut salts = counting(Salting::Always);
        salts.draw(2).expect("drawn");
        let mut lines = Vec::new();
        for _ in 0..DRAWN_SALTS {
            let mut line = Vec::new();
            salts.write(Op::Upsert, b"a", b"{}", false, &mut line);
            assert!(!lines.contains(&line));
            lines.push(line);
        }
        let mut line = Vec::new();
        salts.write(Op::Upsert, b"a", b"{}", false, &mut line);
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
