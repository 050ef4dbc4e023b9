//! Finds again what a line of another tool said before one of its bytes was altered or lost.
//!
//! Other tools spell their events as they like: spaces, escapes, any order of keys. The hash is that of the canonical payload,
//! compact or spaced, so the bytes of such a line prove nothing by themselves. A line that can still be read gives a
//! payload of which one byte is wrong, and that one is found by its hash; where a byte of a line is not one of the payload
//! (it broke the text, or stands in a key, a number or an escape) lines are tried, and each is read as any reader would.

use memchr::memmem;

use super::draft_value::RECORD_FIELDS;
use super::line::{Event, FIELDS, Trust};
use super::trial::{BLOCK_BYTES, Budget, Neighbours, PayloadSearch};
use crate::damage::DamageKind;
use crate::digest::{Hex, sha256};
use crate::json::{self, JsonFault, Value};

/// What is lost where a text cannot be read any more, and what keys are made of.
const LIKELY: &[u8] = b"\"{}[]:, \\_.abcdefghijklmnopqrstuvwxyz0123456789";
/// How much more than to hash a line it costs to read one and to spell its payload twice.
const READING_BLOCKS: u64 = 8;
/// So near to the place where a text stops being readable most damage lies, and never further behind it: that is where a
/// word, an escape or a pair of them begins.
const NEAR_BYTES: usize = 16;
/// No character has more bytes.
const MOST_CHARACTER_BYTES: usize = 4;

/// Which bytes are tried where there is this one.
type ByteChoices<'a> = &'a dyn Fn(u8) -> Vec<u8>;
type ValueSpelling = fn(&Value, &mut Vec<u8>);
/// The two dialects of a payload.
const DIALECTS: [ValueSpelling; 2] = [json::write_value_spaced, json::write_value];

/// The line before one of its bytes was altered, lost or slipped in; one that spells the same event where the spelling
/// itself is lost.
pub(super) fn mend(line: &[u8], neighbours: Neighbours, budget: &mut Budget) -> Option<Vec<u8>> {
    let left = budget.for_one_line();
    let mut attempts = Attempts { neighbours, left };
    let found = attempts.with_word_mended(line).or_else(|| match json::parse(line) {
        Err(fault) => attempts.made_readable(line, fault),
        Ok(value) => with_hash_mended(line, &value, neighbours)
            .or_else(|| with_payload_mended(line, &value, neighbours, budget))
            .or_else(|| attempts.at_places(line, &places_outside_texts(line), READING_BLOCKS)),
    });
    budget.pay(left - attempts.left);
    found
}

/// Whether bytes are others with one byte altered, lost or slipped in.
pub(super) fn is_one_edit(one: &[u8], other: &[u8]) -> bool {
    let (short, long) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let alike = alike(short.iter(), long.iter());
    let alike_behind = alike_from_behind(short, long);
    match long.len() - short.len() {
        0 => one != other && alike + alike_behind + 1 == long.len(),
        1 => alike + alike_behind >= short.len(),
        _ => false,
    }
}

fn alike<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

fn alike_from_behind(one: &[u8], other: &[u8]) -> usize {
    alike(one.iter().rev(), other.iter().rev())
}

/// The seven fields that the hash covers; `None` if one is missing.
fn payload_of(value: &Value) -> Option<Value> {
    let fields = FIELDS.iter().filter(|name| **name != "hash");
    let pairs: Option<Vec<(&str, Value)>> = fields.map(|name| Some((*name, value.get(name)?.clone()))).collect();
    Some(Value::object(pairs?))
}

/// The payload is whole: what is wrong is the hash.
fn with_hash_mended(line: &[u8], value: &Value, neighbours: Neighbours) -> Option<Vec<u8>> {
    let payload = payload_of(value)?;
    let written = value.get("hash")?.as_str()?;
    DIALECTS.into_iter().find_map(|spell| {
        let mut text = Vec::new();
        spell(&payload, &mut text);
        let hash = sha256(&text);
        // One digit may be wrong, missing or too many; if more are, only the line behind can tell.
        if neighbours.after.is_none() && !is_one_edit(written.as_bytes(), hash.bytes()) {
            return None;
        }
        let quoted = format!("\"{written}\"");
        let in_place = memmem::find_iter(line, quoted.as_bytes()).map(|at| {
            let (before, behind) = (&line[..at + 1], &line[at + quoted.len() - 1..]);
            [before, hash.bytes(), behind].concat()
        });
        in_place
            .chain([spelled_anew(&hash, &text)])
            .find(|candidate| neighbours.fit(candidate).is_some())
    })
}

/// One byte of the payload is another, is missing, or is one too many.
fn with_payload_mended(line: &[u8], value: &Value, neighbours: Neighbours, budget: &mut Budget) -> Option<Vec<u8>> {
    let written = || value.get("hash").and_then(Value::as_str);
    let wanted = neighbours.after.or_else(|| Hex::read(written()?.as_bytes()))?;
    let payload = payload_of(value)?;
    let texts = DIALECTS.map(|spell| {
        let mut text = Vec::new();
        spell(&payload, &mut text);
        text
    });
    let search = |text| PayloadSearch {
        payload: text,
        wanted: wanted.raw(),
        first: 1,
    };
    let likely = texts
        .iter()
        .find_map(|text| Some((text, search(text).find_likely(budget)?)));
    let (was, is) = match likely {
        Some(found) => found,
        None => texts
            .iter()
            .find_map(|text| Some((text, search(text).find_other(budget)?)))?,
    };
    let candidate = respelled(line, was, &is, neighbours).unwrap_or_else(|| spelled_anew(&wanted, &is));
    neighbours.fit(&candidate).map(|_| candidate)
}

/// The line with the byte altered that is altered in its payload, if it can be found there.
fn respelled(line: &[u8], was: &[u8], is: &[u8], neighbours: Neighbours) -> Option<Vec<u8>> {
    let at = alike(was.iter(), is.iter());
    let (gone, come) = match was.len().cmp(&is.len()) {
        std::cmp::Ordering::Less => (None, is.get(at)),
        std::cmp::Ordering::Equal => (was.get(at), is.get(at)),
        std::cmp::Ordering::Greater => (was.get(at), None),
    };
    let skipped = usize::from(gone.is_some());
    let places = (0..=line.len() - skipped).filter(|place| gone.is_none_or(|gone| line[*place] == *gone));
    places
        .map(|place| {
            [
                &line[..place],
                come.map_or(&[][..], std::slice::from_ref),
                &line[place + skipped..],
            ]
            .concat()
        })
        .find(|candidate| neighbours.fit(candidate).is_some())
}

/// A line that says the same, where it cannot be told how it was spelled.
fn spelled_anew(hash: &Hex, payload: &[u8]) -> Vec<u8> {
    [
        b"{\"hash\":\"",
        &hash.bytes()[..],
        b"\",",
        payload.get(1..).unwrap_or_default(),
    ]
    .concat()
}

/// The places of a readable line at which a byte is not simply one of the payload: all but the plain letters of values.
fn places_outside_texts(line: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0;
    while at < line.len() {
        places.push(at);
        if line[at] != b'"' {
            at += 1;
            continue;
        }
        let end = json::end_of_string(line, at).unwrap_or(line.len());
        let next = line[end.min(line.len())..]
            .iter()
            .find(|byte| !byte.is_ascii_whitespace());
        let is_key = next == Some(&b':');
        let inside = at + 1..end.saturating_sub(1);
        places.extend(inside.filter(|place| is_key || is_escape(line, *place)));
        at = end;
    }
    places.push(line.len());
    places
}

/// Whether a place of a text belongs to an escaped character, or would if it were a backslash.
fn is_escape(line: &[u8], place: usize) -> bool {
    let longest = b"\\u0000".len();
    let begins = |from: usize| {
        let is_escaped = line[from] == b'\\';
        let is_spelled = |at: usize| {
            let digits = line.get(at + 1..at + 5);
            line.get(at) == Some(&b'u') && digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        is_escaped || is_spelled(from) || is_spelled(from + 1)
    };
    (place.saturating_sub(longest)..=place).any(begins)
}

/// Lines that are tried one by one.
struct Attempts {
    neighbours: Neighbours,
    left: u64,
}

impl Attempts {
    /// Whether a line is the right one.
    fn fits(&mut self, line: &[u8]) -> bool {
        let blocks = blocks_of(line);
        if self.left < blocks {
            return false;
        }
        match Event::read(line, Trust::Nothing) {
            Err(fault) => {
                let is_cheap = fault.kind == DamageKind::Unreadable;
                let cost = if is_cheap { blocks } else { blocks * READING_BLOCKS };
                self.left = self.left.saturating_sub(cost);
                false
            }
            Ok(_) => self.neighbours.fit(line).is_some(),
        }
    }

    /// A key that every event or record has is spelled with one byte wrong: then one half of it is right.
    fn with_word_mended(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        for word in FIELDS.iter().chain(&RECORD_FIELDS) {
            let quoted = format!("\"{word}\"");
            let quoted = quoted.as_bytes();
            let lengths = quoted.len() - 1..=quoted.len() + 1;
            let (front, back) = quoted.split_at(quoted.len() / 2);
            let by_front = memmem::find_iter(line, front).filter(|start| !line[*start..].starts_with(quoted));
            let by_front = by_front.flat_map(|start| lengths.clone().map(move |length| start..start + length));
            let ends = memmem::find_iter(line, back).map(|start| start + back.len());
            let ends = ends.filter(|end| !line[..*end].ends_with(quoted));
            let by_back = ends.flat_map(|end| lengths.clone().map(move |length| end.saturating_sub(length)..end));
            for place in by_front.chain(by_back) {
                if !line.get(place.clone()).is_some_and(|there| is_one_edit(there, quoted)) {
                    continue;
                }
                if self.left < blocks_of(line) {
                    return None;
                }
                let candidate = [&line[..place.start], quoted, &line[place.end..]].concat();
                if self.fits(&candidate) {
                    return Some(candidate);
                }
            }
        }
        None
    }

    /// The text broke: what is wrong stands before the place where it cannot be read any more, and mostly not far.
    fn made_readable(&mut self, line: &[u8], fault: JsonFault) -> Option<Vec<u8>> {
        let place = fault.offset.min(line.len());
        if std::str::from_utf8(line).is_err() {
            let last = (place + MOST_CHARACTER_BYTES).min(line.len());
            let near: Vec<usize> = (place.saturating_sub(MOST_CHARACTER_BYTES)..=last).rev().collect();
            return self.at_places(line, &near, READING_BLOCKS);
        }
        // A fault of a whole object is told where it begins.
        let is_of_object = line.get(place) == Some(&b'{');
        let last = if is_of_object { line.len() } else { place + NEAR_BYTES };
        let last = last.min(line.len());
        let first = place.saturating_sub(NEAR_BYTES);
        let near: Vec<usize> = (first..=last.min(place + NEAR_BYTES)).rev().collect();
        let far: Vec<usize> = (0..first).chain(place + NEAR_BYTES + 1..=last).rev().collect();
        self.at_places(line, &near, READING_BLOCKS)
            .or_else(|| self.at_places(line, &far, 1))
    }

    /// Tries every byte at every one of these places, the likely ones first. Each try costs about so many times its hash.
    fn at_places(&mut self, line: &[u8], places: &[usize], cost: u64) -> Option<Vec<u8>> {
        let bits = |byte: u8| (0..8).map(|bit| byte ^ 1 << bit).collect::<Vec<u8>>();
        let likely = |_: u8| LIKELY.to_vec();
        let others = |_: u8| (0..=u8::MAX).filter(|byte| !LIKELY.contains(byte)).collect();
        let passes: [(usize, ByteChoices<'_>, bool); 5] = [
            (8, &bits, false),
            (LIKELY.len(), &likely, true),
            (LIKELY.len(), &likely, false),
            (256 - LIKELY.len(), &others, false),
            (256 - LIKELY.len(), &others, true),
        ];
        if let Some(found) = self.without_one(line, places) {
            return Some(found);
        }
        let each = blocks_of(line) * cost * places.len() as u64;
        passes.into_iter().find_map(|(variants, bytes, is_missing)| {
            // What cannot be tried to its end is not begun: others may need it.
            if each * variants as u64 > self.left {
                return None;
            }
            places
                .iter()
                .find_map(|place| self.at_place(line, *place, bytes, is_missing))
        })
    }

    fn without_one(&mut self, line: &[u8], places: &[usize]) -> Option<Vec<u8>> {
        if self.left < blocks_of(line) {
            return None;
        }
        let places = places.iter().filter(|place| **place < line.len());
        places
            .map(|place| [&line[..*place], &line[place + 1..]].concat())
            .find(|candidate| self.fits(candidate))
    }

    fn at_place(&mut self, line: &[u8], place: usize, bytes: ByteChoices<'_>, is_missing: bool) -> Option<Vec<u8>> {
        let behind = if is_missing { place } else { place + 1 };
        let was = line.get(place).copied().unwrap_or_default();
        let mut candidate = [&line[..place], &[was], line.get(behind..)?].concat();
        bytes(was).into_iter().find_map(|byte| {
            candidate[place] = byte;
            self.fits(&candidate).then(|| candidate.clone())
        })
    }
}

fn blocks_of(line: &[u8]) -> u64 {
    (line.len() / BLOCK_BYTES + 2) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_edit_is_one_byte() {
        for (one, is_one) in [
            ("hash", false),
            ("hush", true),
            ("has", true),
            ("hashh", true),
            ("shah", false),
        ] {
            assert_eq!(is_one_edit(one.as_bytes(), b"hash"), is_one, "{one}");
        }
    }
}
