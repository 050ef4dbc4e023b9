//! Restores a line of which a single byte was altered, lost or slipped in.
//!
//! A line names the hash of its payload, and so does the next line: the line is found by trying within a budget, and proved
//! by that hash. Only lines of our own form are mended, because there the hash covers the bytes as they stand.

use super::line::{Event, Trust};
use crate::digest::{Hasher, Hex, sha256_after_brace};
use crate::json;

/// How a line of our own form begins, and what stands between its hash and its payload.
const OPENING: &[u8] = b"{\"hash\":\"";
/// The same in a line with spaces: a space does no harm, so this is never ours with one byte too many.
const SPACED_OPENING: &[u8] = b"{\"hash\": \"";
const HASH_END: usize = OPENING.len() + 64;
const PAYLOAD: usize = HASH_END + 2;

/// The lines that a damaged line was before one byte was lost; `None` if that is not it, or takes too long.
pub fn mend(line: &[u8], neighbours: Neighbours, budget: &mut Budget) -> Option<Vec<u8>> {
    // No line holds such a byte, unless it was altered: with two of them the search would be in vain.
    let is_strange = |byte: &&u8| **byte < b' ' && !matches!(**byte, b'\t' | b'\r');
    if line.iter().filter(is_strange).nth(1).is_some() {
        return None;
    }
    // What has its hash, and no other is wanted, is whole: it does not belong here, and nothing was lost of it.
    let own = Neighbours::default().fit(line);
    if own.is_some() && neighbours.after.is_none_or(|after| own == Some(after)) {
        return None;
    }
    split(line, neighbours).or_else(|| mend_own(line, neighbours, budget).map(ended))
}

fn mend_own(line: &[u8], neighbours: Neighbours, budget: &mut Budget) -> Option<Vec<u8>> {
    let lengths = OPENING.len() - 1..=OPENING.len() + 1;
    let begins_alike = |length: usize| line.get(..length).is_some_and(|start| is_one_edit(start, OPENING));
    let is_own = line.starts_with(OPENING) || lengths.into_iter().any(begins_alike);
    if !is_own || line.starts_with(SPACED_OPENING) {
        return None;
    }
    with_hash_mended(line, neighbours).or_else(|| with_payload_mended(line, neighbours, budget))
}

/// Whether one byte was altered, lost or added between two texts.
fn is_one_edit(one: &[u8], other: &[u8]) -> bool {
    let (short, long) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let same_behind = short
        .iter()
        .rev()
        .zip(long.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    match long.len() - short.len() {
        0 => one != other && same + same_behind + 1 == long.len(),
        1 => same + same_behind >= short.len(),
        _ => false,
    }
}

/// The same for a line that a newline has cut in two: it came in, or in the place of another byte.
pub fn mend_cut(first: &[u8], second: &[u8], neighbours: Neighbours) -> Option<Vec<u8>> {
    // In a line of another tool nothing but the usual form tells whether there was a space.
    let joined = [first, second].concat();
    let mut line = [first, b" ", second].concat();
    let is_own = Event::read(&joined, Trust::Nothing).is_ok_and(|event| event.is_our_spelling(&joined));
    if !is_own && neighbours.fit(&line).is_some() {
        return Some(ended(line));
    }
    if neighbours.fit(&joined).is_some() {
        return Some(ended(joined));
    }
    (0..=u8::MAX).find_map(|byte| {
        line[first.len()] = byte;
        neighbours.fit(&line).map(|_| ended(line.clone()))
    })
}

fn ended(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

/// Two lines that lost the newline between them. Between the braces of one event there is always a comma.
fn split(line: &[u8], neighbours: Neighbours) -> Option<Vec<u8>> {
    let begins = memchr::memchr_iter(b'{', line).filter(|at| *at > 1);
    let ends_before = |at: usize| {
        let mut before = line[..at].iter().rev().skip_while(|byte| **byte == b'\r');
        before.next() == Some(&b'}') || before.find(|byte| **byte != b'\r') == Some(&b'}')
    };
    begins.filter(|at| ends_before(*at)).find_map(|at| {
        // The newline became another byte, or it is gone.
        let mut ends = [at - 1, at];
        if line[at - 1] == b'\r' {
            ends.reverse();
        }
        ends.into_iter().find_map(|end| {
            let (left, right) = (&line[..end], &line[at..]);
            let before = Neighbours {
                after: None,
                ..neighbours
            };
            let head = before.fit(left)?;
            let after = Neighbours {
                before: Some(Some(head)),
                ..neighbours
            };
            after.fit(right).map(|_| [left, b"\n", right, b"\n"].concat())
        })
    })
}

/// The payload is whole: a byte before it was altered, lost or added.
fn with_hash_mended(line: &[u8], neighbours: Neighbours) -> Option<Vec<u8>> {
    let start = memchr::memmem::find(line, b"\"op\":")?;
    let payload = &line[start..];
    let hash = sha256_after_brace(&json::raw_line_separators(payload));
    let written = line.get(OPENING.len()..HASH_END)?;
    let differing = hash.bytes().iter().zip(written).filter(|(one, other)| one != other);
    // Of 64 digits one may be wrong; otherwise only the line behind can tell.
    if (start != PAYLOAD || differing.count() > 1) && neighbours.after.is_none() {
        return None;
    }
    let candidate = [OPENING, hash.bytes(), b"\",", payload].concat();
    neighbours.fit(&candidate).map(|_| candidate)
}

/// One byte of the payload is another, is missing, or is one too many.
fn with_payload_mended(line: &[u8], neighbours: Neighbours, budget: &mut Budget) -> Option<Vec<u8>> {
    let wanted = neighbours
        .after
        .or_else(|| line.get(OPENING.len()..HASH_END).and_then(Hex::read))?;
    let payload = [b"{", &json::raw_line_separators(line.get(PAYLOAD..)?)[..]].concat();
    let found = find_edit(&payload, 1, &wanted, budget)?;
    let mut candidate = [OPENING, wanted.bytes(), b"\","].concat();
    json::escape_line_separators(found.get(1..)?, &mut candidate);
    neighbours.fit(&candidate).map(|_| candidate)
}

const BLOCK_BYTES: usize = 64;

/// What is known of the place of a line in the chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neighbours {
    /// The hash of the event before; `Some(None)` if there is none before.
    pub before: Option<Option<Hex>>,
    /// The hash that the line behind gives as its predecessor's.
    pub after: Option<Hex>,
}

impl Neighbours {
    /// The hash of a line, if it is an event that stands between these.
    pub(super) fn fit(&self, line: &[u8]) -> Option<Hex> {
        let event = Event::read(line, Trust::Nothing).ok().filter(|event| !event.injected)?;
        let hash = event.hash(line);
        let prev = event.prev_hash(line);
        let follows = self
            .before
            .is_none_or(|before| prev == before.as_ref().map_or(&b""[..], |head| head.bytes()));
        (follows && self.after.is_none_or(|after| after == hash)).then_some(hash)
    }
}

/// How many blocks may still be hashed in search of lost bytes.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    /// The bytes altered in the lines before, and what they were: an editor may have replaced all of them.
    seen: Vec<(u8, u8)>,
}

const MOST_SEEN: usize = 4;

impl Budget {
    /// So many blocks of 64 bytes.
    pub fn of(blocks: u64) -> Self {
        Self {
            left: blocks,
            seen: Vec::new(),
        }
    }

    fn remember(&mut self, altered: (u8, u8)) {
        if !self.seen.contains(&altered) {
            self.seen.insert(0, altered);
            self.seen.truncate(MOST_SEEN);
        }
    }

    fn take(&mut self, blocks: u64) -> bool {
        let is_enough = self.left >= blocks;
        if is_enough {
            self.left -= blocks;
        }
        is_enough
    }
}

/// The bytes that have a digest, before one of them was altered, lost or slipped in.
pub fn mend_bytes(bytes: &[u8], wanted: &Hex, budget: &mut Budget) -> Option<Vec<u8>> {
    find_edit(bytes, 0, wanted, budget)
}

/// A byte to insert, and how many bytes it replaces.
type Edit = (Option<u8>, usize);
/// The edits to try at a byte.
type Edits<'a> = &'a dyn Fn(u8) -> Vec<Edit>;

/// Finds the edit from `first` on that gives bytes the wanted hash.
///
/// Tries likely edits first: one seen before, a single bit, an extra byte; then any byte, within the budget.
fn find_edit(bytes: &[u8], first: usize, wanted: &Hex, budget: &mut Budget) -> Option<Vec<u8>> {
    let seen = budget.seen.clone();
    let as_before = |is: u8| {
        seen.iter()
            .filter(move |known| known.0 == is)
            .map(|known| (Some(known.1), 1))
    };
    let seen_tries = bytes.iter().map(|is| as_before(*is).count()).sum();
    let passes: [(usize, Edits<'_>); 5] = [
        (seen_tries, &|is| as_before(is).collect()),
        (bytes.len() * 8, &|is| {
            (0..8).map(|bit| (Some(is ^ 1 << bit), 1)).collect()
        }),
        (bytes.len(), &|_| vec![(None, 1)]),
        (bytes.len() * 255, &|is| {
            (1..=u8::MAX).map(|mask| (Some(is ^ mask), 1)).collect()
        }),
        (bytes.len() * 256, &|_| {
            (0..=u8::MAX).map(|byte| (Some(byte), 0)).collect()
        }),
    ];
    let wanted = wanted.raw();
    // What precedes a place is hashed once for all edits.
    let cost = (bytes.len() / BLOCK_BYTES + 2).div_ceil(2);
    for (tries, edits) in passes {
        if !budget.take((tries * cost) as u64) {
            continue;
        }
        let (mut hashed, mut before) = (0, Hasher::default());
        for at in first..=bytes.len() {
            while hashed + BLOCK_BYTES <= at {
                before.update(&bytes[hashed..hashed + BLOCK_BYTES]);
                hashed += BLOCK_BYTES;
            }
            let is = bytes.get(at).copied();
            for (byte, skipped) in edits(is.unwrap_or_default()) {
                // Behind the last byte there is nothing to replace.
                let Some(rest) = bytes.get(at + skipped..) else {
                    continue;
                };
                let mut hasher = before.clone();
                hasher.update(&bytes[hashed..at]);
                hasher.update(byte.as_slice());
                hasher.update(rest);
                if hasher.finish_raw() != wanted {
                    continue;
                }
                if let (Some(is), Some(was), 1) = (is, byte, skipped) {
                    budget.remember((is, was));
                }
                return Some([&bytes[..at], byte.as_slice(), rest].concat());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;

    fn line(prev: &str, id: &str) -> Vec<u8> {
        let rest = format!(
            "\"op\":\"upsert\",\"prev_hash\":\"{prev}\",\"record\":{{\"id\":\"{id}\",\"label\":\"give 10 mg\"}},\
             \"record_id\":\"{id}\",\"recursion_depth\":0,\"seq\":2,\"ts\":\"2026-01-01T09:00:00.000000Z\"}}"
        );
        let hash = sha256_after_brace(rest.as_bytes());
        [OPENING, hash.bytes(), b"\",", rest.as_bytes()].concat()
    }

    fn hash_of(line: &[u8]) -> Option<Hex> {
        Hex::read(&line[9..73])
    }

    fn known(head: Option<Hex>, after: Option<Hex>) -> Neighbours {
        let before = Some(head);
        Neighbours { before, after }
    }

    #[test]
    fn any_single_byte_is_found_again() {
        let head = sha256(b"before");
        let whole = line(head.text(), "tea");
        let expected = [&whole[..], b"\n"].concat();
        let both = known(Some(head), hash_of(&whole));
        let mended = |line: &[u8], neighbours| mend(line, neighbours, &mut Budget::of(10_000_000));
        for at in 0..whole.len() {
            let mut altered = whole.clone();
            altered[at] ^= 1 << (at % 8);
            for neighbours in [both, known(Some(head), None)] {
                if altered[at] != b'\n' {
                    assert_eq!(mended(&altered, neighbours).as_ref(), Some(&expected), "byte {at}");
                }
            }
        }
        for at in (0..whole.len()).rev().step_by(7) {
            let (first, second) = (&whole[..at], &whole[at + 1..]);
            let lost = [first, second].concat();
            let more = [first, b"?", &whole[at..]].concat();
            assert_eq!(mended(&lost, both).as_ref(), Some(&expected), "lost {at}");
            assert_eq!(mended(&more, both).as_ref(), Some(&expected), "more {at}");
            assert_eq!(mend_cut(first, second, both).as_ref(), Some(&expected), "cut {at}");
        }
    }

    #[test]
    fn two_lines_that_grew_together_are_two_again() {
        let first = line("", "one");
        let second = line(hash_of(&first).expect("a hash").text(), "two");
        let expected = [&first[..], b"\n", &second[..], b"\n"].concat();
        let neighbours = known(None, hash_of(&second));
        for between in [&b"J"[..], b""] {
            let grown = [&first[..], between, &second[..]].concat();
            assert_eq!(mend(&grown, neighbours, &mut Budget::of(0)).as_ref(), Some(&expected));
        }
    }

    #[test]
    fn nothing_is_made_up() {
        let whole = line("", "tea");
        let with = |places: &[usize]| {
            let mut altered = whole.clone();
            places.iter().for_each(|at| altered[*at] ^= 1);
            altered
        };
        let mut zeroed = whole.clone();
        zeroed[100..102].fill(0);
        let elsewhere = known(Some(sha256(b"elsewhere")), None);
        for (altered, neighbours, blocks) in [
            (with(&[100]), elsewhere, 10_000_000),
            (with(&[100, 120]), Neighbours::default(), 10_000_000),
            (zeroed, Neighbours::default(), 10_000_000),
            (with(&[100]), Neighbours::default(), 10),
        ] {
            assert_eq!(mend(&altered, neighbours, &mut Budget::of(blocks)), None);
        }
    }
}
