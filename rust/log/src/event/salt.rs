//! The salt that keeps the hash of a record from being guessed: 16 characters in the key `~` of a record.
//!
//! It is part of the line, not of the state: it is left out when a record is taken in.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io;
use std::ops::Range;

use memchr::memchr;

use super::Op;
use super::faces::{VECTORS, face_of};
use crate::host::Randomness;
use crate::json::{compare_key, members};
use crate::scope::carried;

const SALT_KEY: &str = "~";
const SALT_CHARACTERS: usize = 16;
const BEFORE: &[u8] = b"\"~\":\"";
const BEHIND: &[u8] = b"\"}";
/// How records of ours end: nothing that such a record says comes behind a salt.
const USUAL_ENDS: [&[u8]; 2] = [b",\"status\":\"active\"}", b",\"status\":\"tombstone\"}"];

/// The salt of a line, before it is spelled.
pub const SALT_BYTES: usize = 12;
/// That of a state file.
pub const BASE_SALT_BYTES: usize = 16;
/// The least number drawn at a time: to ask for them takes longer than to get them.
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

/// A salt of that many bytes, spelled.
pub fn drawn(source: &Randomness, bytes: usize) -> io::Result<String> {
    let (mut drawn, mut text) = (vec![0; bytes], Vec::new());
    source.fill(&mut drawn)?;
    write_sixty_four(&drawn, &mut text);
    Ok(String::from_utf8(text).unwrap_or_default())
}

/// Which lines have a salt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Salting {
    /// None: for a log without personal data.
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
        self.source = terms.map(|terms| terms.source.clone());
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
        let (Some(left), Some(place)) = (left, left.and_then(|_| place_in(record))) else {
            return out.extend_from_slice(record);
        };
        let (before, behind) = record.split_at(place);
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

/// Where a salt belongs in a canonical record, in key order; `None` if it has such a key.
#[inline]
fn place_in(record: &[u8]) -> Option<usize> {
    let last = record.len().checked_sub(1)?;
    // Behind a comma a quote opens a key, and what ends with the record is a member of the record.
    if USUAL_ENDS.iter().any(|end| record.ends_with(end)) {
        return Some(last);
    }
    for (key, _) in members(record) {
        match compare_key(key, SALT_KEY) {
            Ordering::Less => {}
            Ordering::Equal => return None,
            Ordering::Greater => return Some(offset_in(record, key) - 1),
        }
    }
    record.ends_with(b"}").then_some(last)
}

fn offset_in(record: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - record.as_ptr().addr()
}

fn is_salt(text: &[u8]) -> bool {
    text.len() == SALT_CHARACTERS
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// Where the salt of a canonical record is, with its key and a comma; `None` if there is none.
///
/// The fields in [`RecordSpans`](crate::json::RecordSpans) precede it.
#[inline]
pub fn range_in(record: &[u8]) -> Option<Range<usize>> {
    let (start, end) = last_member(record).or_else(|| {
        memchr(b'~', record)?;
        let (key, value) = members(record).find(|(key, _)| *key == SALT_KEY.as_bytes())?;
        let salt = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        is_salt(salt).then(|| (offset_in(record, key) - 1, offset_in(record, value) + value.len()))
    })?;
    match (record[start - 1], record[end]) {
        (b',', _) => Some(start - 1..end),
        (_, b',') => Some(start..end + 1),
        _ => Some(start..end),
    }
}

/// The salt of a record of which it is the last member.
#[inline]
fn last_member(record: &[u8]) -> Option<(usize, usize)> {
    let rest = record.strip_suffix(BEHIND)?;
    let (rest, salt) = rest.split_at_checked(rest.len().checked_sub(SALT_CHARACTERS)?)?;
    let rest = rest.strip_suffix(BEFORE)?;
    // Behind a comma or a brace a quote opens a key: inside a string there would be none.
    (matches!(rest.last(), Some(b',' | b'{')) && is_salt(salt)).then_some((rest.len(), record.len() - 1))
}

/// A canonical record without its salt, in memory that is used again and again.
#[inline]
pub fn without_in<'a>(record: &'a [u8], memory: &'a mut Vec<u8>) -> &'a [u8] {
    let Some(salt) = range_in(record) else {
        return record;
    };
    memory.clear();
    memory.extend_from_slice(&record[..salt.start]);
    memory.extend_from_slice(&record[salt.end..]);
    memory
}

/// The same in memory of its own; nothing is copied if there is no salt.
pub fn without(record: &[u8]) -> Cow<'_, [u8]> {
    match range_in(record) {
        Some(salt) => Cow::Owned([&record[..salt.start], &record[salt.end..]].concat()),
        None => Cow::Borrowed(record),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn left(record: &str) -> String {
        let fields = json::scan_record(record.as_bytes()).expect("canonical");
        let kept = without(record.as_bytes());
        assert_eq!(json::scan_record(&kept), Some(fields), "{record}");
        assert_eq!(without_in(record.as_bytes(), &mut vec![1, 2, 3]), &*kept, "{record}");
        String::from_utf8_lossy(&kept).into_owned()
    }

    fn counting(salting: Salting, lines: usize) -> Salts {
        let mut salts = Salts::default();
        let source = Randomness::of(|bytes: &mut [u8]| {
            let places = bytes.iter_mut().enumerate();
            places.for_each(|(place, byte)| *byte = place as u8);
            Ok(())
        });
        salts.draw_on(Some(SaltTerms {
            source: &source,
            salting,
        }));
        salts.draw(lines).expect("drawn");
        salts
    }

    #[test]
    fn what_is_salted_is_read_without_it() {
        let mut salts = counting(Salting::Always, 20);
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
            assert_eq!(left(std::str::from_utf8(&line).expect("text")), record);
        }
    }

    #[test]
    fn shared_records_have_none_by_scope() {
        let shared = r#"{"confidence":0.7,"data":{"a":1},"id":"a","status":"active"}"#;
        let own = r#"{"confidence":0.7,"data":{"@scope":{"user":"ann"}},"id":"a","status":"active"}"#;
        for salting in [Salting::Never, Salting::Scoped, Salting::Always] {
            let mut salts = counting(salting, 7);
            for (op, id, record, by_scope) in [
                (Op::Upsert, "a", shared, false),
                (Op::Upsert, "a", own, true),
                (Op::Upsert, "a", r#"{"data":{"@scope":7},"id":"a"}"#, true),
                (Op::Upsert, "vector:default", shared, true),
                (Op::Patch, "a", "{}", true),
                (Op::Delete, "a", r#"{"id":"a","status":"tombstone"}"#, true),
                (Op::Act, "a", "{}", true),
            ] {
                let mut line = Vec::new();
                salts.write(op, id.as_bytes(), record.as_bytes(), false, &mut line);
                let is_salted = salting == Salting::Always || (salting == Salting::Scoped && by_scope);
                assert_eq!(line != record.as_bytes(), is_salted, "{salting:?} {op:?} {record}");
            }
        }
    }

    #[test]
    fn every_salt_is_used_once() {
        let mut salts = counting(Salting::Always, 2);
        let mut lines = std::collections::HashSet::new();
        for number in 0..=DRAWN_SALTS {
            let mut line = Vec::new();
            salts.write(Op::Upsert, b"a", b"{}", false, &mut line);
            // None is left at last: the writer draws them first.
            assert_eq!(line == b"{}", number == DRAWN_SALTS);
            assert!(lines.insert(line));
        }
        let ones = Randomness::of(|bytes: &mut [u8]| {
            bytes.fill(255);
            Ok(())
        });
        let salt = drawn(&ones, BASE_SALT_BYTES).expect("spelled");
        assert_eq!(salt, format!("{}w", "_".repeat(21)));
        let failing = Randomness::of(|_| Err(io::ErrorKind::Other.into()));
        assert!(drawn(&failing, SALT_BYTES).is_err());
    }

    #[test]
    fn a_salt_of_the_exact_form_is_left_out_wherever_it_is() {
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
