//! Finds the events in a line that cannot be read because lines have grown together.
//!
//! Where a newline is lost two lines grow together, and some bytes of either may be lost with it. An event in there is whole if
//! it has the hash that it names. One that lost its beginning, which holds nothing but that hash, or its end, which is spelled
//! alike in every line, is known by the hash that the event behind it names.

use std::ops::Range;

use memchr::{memmem, memrchr};

use super::HASH_PREFIX_BYTES;
use super::line::{Event, FIELDS, Trust};
use super::mend::OPENING;
use super::trial::{BLOCK_BYTES, Budget, Neighbours};
use crate::digest::{Hasher, Hex};
use crate::json::{self, MAX_LINE_BYTES};

/// How a line of ours ends, behind `"ts":"`; a zero stands for any digit.
const ENDING: &[u8] = b"0000-00-00T00:00:00.000000Z\"}";
/// As far as the point that comes before the microseconds it has to be there: those can be tried.
const TRIED_FROM: usize = 20;
/// What comes behind the microseconds.
const CLOSING: &[u8] = b"Z\"}";
/// How many places are tried where a payload may begin.
const MOST_BEGINNINGS: usize = 16;
/// How often the bytes of a line are looked through, at most, in search of objects.
const MOST_LOOKS: usize = 32;

/// An event that stands in a line with other bytes.
#[derive(Debug)]
pub struct EventPart {
    /// Where it stands in the line, as far as it is there.
    pub bytes: Range<usize>,
    /// How it was spelled, if some of it is lost.
    pub mended: Option<Vec<u8>>,
    /// Its hash.
    pub hash: Hex,
    /// The hash of the event before it; `None` if it was the first.
    pub prev: Option<Hex>,
}

/// What is known of the events of a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Behind {
    /// The hash that the line behind gives as its predecessor's.
    pub next: Option<Hex>,
    /// The hash of the event that was synced last.
    pub synced: Option<Hex>,
}

/// The events of a line, in order.
pub fn parts(line: &[u8], behind: Behind, budget: &mut Budget) -> Vec<EventPart> {
    let mut found = Vec::new();
    let (mut end, mut wanted) = (line.len(), behind.next);
    for part in believed(line, behind).into_iter().rev() {
        torn(line, part.bytes.end..end, wanted, budget, &mut found);
        (end, wanted) = (part.bytes.start, part.prev);
        found.push(part);
    }
    torn(line, 0..end, wanted, budget, &mut found);
    found.reverse();
    found
}

/// The whole events of a line. A record may quote one: it is believed only if an event behind names it, or if it names the
/// event that the line begins with and stands at its end. No event can quote one that names its own hash.
fn believed(line: &[u8], behind: Behind) -> Vec<EventPart> {
    let mut named: Vec<Hex> = behind.next.into_iter().chain(behind.synced).collect();
    let first = hash_at_beginning(line);
    let mut found = Vec::new();
    for part in whole(line).into_iter().rev() {
        let is_next = first.is_some() && part.prev == first && line[part.bytes.end..].trim_ascii().is_empty();
        if !is_inside(&line[..part.bytes.start]) || is_next || named.contains(&part.hash) {
            named.extend(part.prev);
            found.push(part);
        }
    }
    found.reverse();
    found
}

/// The hash that a line names for its own before anything else.
fn hash_at_beginning(line: &[u8]) -> Option<Hex> {
    let key = line.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start();
    let colon = key.strip_prefix(b"\"hash\"")?.trim_ascii_start();
    let value = colon.strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
    value
        .get(..64)
        .filter(|_| value.get(64) == Some(&b'"'))
        .and_then(Hex::read)
}

fn is_inside(before: &[u8]) -> bool {
    matches!(before.trim_ascii_end().last(), Some(b':' | b',' | b'['))
}

fn whole(line: &[u8]) -> Vec<EventPart> {
    let (mut found, mut from, mut looked) = (Vec::new(), 0, 0);
    while let Some(at) = memchr::memchr(b'{', &line[from..]).map(|at| from + at) {
        from = at + 1;
        if !begins_event(&line[from..]) || looked > MOST_LOOKS * line.len() {
            continue;
        }
        let Some(end) = json::end_of_object(line, at) else {
            looked += line.len() - at;
            continue;
        };
        looked += end - at;
        let text = &line[at..end];
        let event = Event::read(text, Trust::Nothing).ok();
        if let Some(event) = event.filter(|event| text.len() <= MAX_LINE_BYTES && !event.injected) {
            // Other tools end a line with a carriage return too.
            let returns = line[end..].iter().take_while(|byte| **byte == b'\r').count();
            let end = if event.is_our_spelling(text) {
                end
            } else {
                end + returns
            };
            found.push(EventPart {
                bytes: at..end,
                mended: None,
                hash: event.hash(text),
                prev: Hex::read(event.prev_hash(text)),
            });
            from = end;
        }
    }
    found
}

/// Whether an object has one of the fields of an event for its first.
fn begins_event(inside: &[u8]) -> bool {
    let key = inside.trim_ascii_start().strip_prefix(b"\"");
    key.is_some_and(|key| {
        FIELDS.iter().any(|field| {
            key.strip_prefix(field.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"\""))
        })
    })
}

/// The events that a stretch without a whole one was, from the last to the first, as far as each is named by the next.
fn torn(line: &[u8], within: Range<usize>, wanted: Option<Hex>, budget: &mut Budget, found: &mut Vec<EventPart>) {
    let (mut end, mut wanted) = (within.end, wanted);
    while let Some(hash) = wanted {
        let text = &line[within.start..end];
        let part = without_beginning(text, &hash).or_else(|| without_end(text, &hash, budget));
        let Some(mut part) = part else { return };
        part.bytes = within.start + part.bytes.start..within.start + part.bytes.end;
        (end, wanted) = (part.bytes.start, part.prev);
        found.push(part);
    }
}

fn part_of(bytes: Range<usize>, line: Vec<u8>, hash: &Hex) -> Option<EventPart> {
    let neighbours = Neighbours {
        before: None,
        after: Some(*hash),
    };
    neighbours.fit(&line)?;
    let event = Event::read(&line, Trust::Nothing).ok()?;
    let prev = Hex::read(event.prev_hash(&line));
    Some(EventPart {
        bytes,
        hash: *hash,
        prev,
        mended: Some(line),
    })
}

/// All of the payload is there, to the last brace.
fn without_beginning(text: &[u8], hash: &Hex) -> Option<EventPart> {
    let end = memrchr(b'}', text)? + 1;
    let beginning = [OPENING, hash.bytes(), b"\","].concat();
    let places: Vec<usize> = memmem::find_iter(&text[..end], b"\"op\":").collect();
    places.iter().rev().take(MOST_BEGINNINGS).find_map(|&payload| {
        let pairs = text[..payload].iter().rev().zip(beginning.iter().rev());
        let left = pairs.take_while(|(one, other)| one == other).count();
        let start = payload - left;
        // What is no longer than what is lost was that, before it was altered.
        let start = if start + left <= HASH_PREFIX_BYTES { 0 } else { start };
        part_of(start..end, [&beginning[..], &text[payload..end]].concat(), hash)
    })
}

/// All of it is there, up to some of the last digits of its moment.
fn without_end(text: &[u8], hash: &Hex, budget: &mut Budget) -> Option<EventPart> {
    let payload = text.strip_prefix(OPENING)?.get(HASH_PREFIX_BYTES - OPENING.len()..)?;
    let moment = memmem::rfind(payload, b"\"ts\":\"")? + 6;
    let is_alike = |(byte, form): &(&u8, &u8)| {
        if **form == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == form
        }
    };
    let left = payload[moment..].iter().zip(ENDING).take_while(is_alike).count();
    if left < TRIED_FROM {
        return None;
    }
    let digits = (ENDING.len() - CLOSING.len()).saturating_sub(left);
    let kept = &payload[..moment + left.min(ENDING.len() - CLOSING.len())];
    let mut before = Hasher::default();
    let tries = 10_u64.pow(digits as u32);
    let cost = (payload.len() / BLOCK_BYTES) as u64 + 2 * tries;
    if budget.for_one_line() < cost {
        return None;
    }
    budget.pay(cost);
    before.update(b"{");
    before.update(&json::raw_line_separators(kept));
    let wanted = hash.raw();
    let ending = (0..tries).find_map(|number| {
        let number = if digits > 0 {
            format!("{number:0digits$}")
        } else {
            String::new()
        };
        let mut hasher = before.clone();
        hasher.update(number.as_bytes());
        hasher.update(CLOSING);
        (hasher.finish_raw() == wanted).then(|| [number.as_bytes(), CLOSING].concat())
    })?;
    part_of(
        0..text.len(),
        [OPENING, hash.bytes(), b"\",", kept, &ending].concat(),
        hash,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256_after_brace;

    fn line(prev: Option<&Hex>, id: &str) -> (Vec<u8>, Hex) {
        let prev = prev.map_or("", Hex::text);
        let rest = format!(
            "\"op\":\"upsert\",\"prev_hash\":\"{prev}\",\"record\":{{\"id\":\"{id}\",\"label\":\"a {{ b\"}},\
             \"record_id\":\"{id}\",\"recursion_depth\":0,\"seq\":2,\"ts\":\"2026-01-01T09:00:00.000321Z\"}}"
        );
        let hash = sha256_after_brace(rest.as_bytes());
        ([OPENING, hash.bytes(), b"\",", rest.as_bytes()].concat(), hash)
    }

    fn found(text: &[u8], next: Option<Hex>) -> Vec<Vec<u8>> {
        let behind = Behind { next, synced: None };
        let parts = parts(text, behind, &mut Budget::of(100_000_000));
        let spelled = |part: EventPart| part.mended.unwrap_or_else(|| text[part.bytes].to_vec());
        parts.into_iter().map(spelled).collect()
    }

    #[test]
    fn whole_events_come_apart_whatever_stands_between_them() {
        let (first, hash) = line(None, "one");
        let (second, _) = line(Some(&hash), "two");
        for between in [&b""[..], b"\n", b"J", b"\0\0\0", b"{\"hash\":\"?", b" :\"} "] {
            let text = [&first[..], between, &second[..], b"??"].concat();
            assert_eq!(found(&text, None), [&first[..], &second[..]], "{between:?}");
        }
    }

    #[test]
    fn the_rest_of_a_torn_event_is_found_by_the_hash_behind_it() {
        let (first, one) = line(None, "one");
        let (second, two) = line(Some(&one), "two");
        for (before, behind) in [(0, 1), (0, 40), (0, 75), (1, 0), (9, 0), (4, 75), (9, 20)] {
            let left = &first[..first.len() - before];
            for between in [&b""[..], &[0; 60][..]] {
                let text = [left, between, &second[behind..]].concat();
                let told = format!("{before} and {behind} lost, {} zeros", between.len());
                assert_eq!(found(&text, Some(two)), [&first[..], &second[..]], "{told}");
                // A whole event behind names the one before, and only the next line names the last.
                let alone = match (before, behind) {
                    (_, 0) => 2,
                    (0, _) => 1,
                    _ => 0,
                };
                assert_eq!(found(&text, None).len(), alone, "{told}");
            }
        }
        let torn = [&first[..first.len() - 12], &second[76..]].concat();
        assert!(found(&torn, Some(two)).is_empty(), "more is lost than can be tried");
    }

    #[test]
    fn what_a_record_quotes_is_believed_only_if_it_is_named() {
        let (quoted, hash) = line(None, "one");
        let text = [b"{\"hash\":\"?\",\"record\":{\"data\":", &quoted[..], b"}}"].concat();
        assert!(found(&text, None).is_empty());
        assert_eq!(found(&text, Some(hash)), [&quoted[..]]);
    }

    #[test]
    fn an_event_is_no_quote_where_it_follows_the_one_that_it_stands_in() {
        let (first, one) = line(None, "one");
        let (second, two) = line(Some(&one), "two");
        // What is left of the first line ends where a value begins.
        let cut = first.len() - 30;
        assert!(first[..cut].ends_with(b"\"ts\":"), "{}", first[..cut].escape_ascii());
        let text = [&first[..cut], &second[..]].concat();
        assert_eq!(found(&text, None), [&second[..]]);
        // Behind a quote something is left of what quotes it, and the event that it follows is another one.
        let text = [&first[..cut], &second[..], b"}"].concat();
        assert!(found(&text, None).is_empty());
        let (third, _) = line(Some(&two), "three");
        let text = [&first[..cut], &third[..]].concat();
        assert!(found(&text, None).is_empty());
    }

    #[test]
    fn many_beginnings_are_looked_at_for_a_while_only() {
        let text = b"{\"seq\":".repeat(200_000);
        assert!(found(&text, None).is_empty());
    }
}
