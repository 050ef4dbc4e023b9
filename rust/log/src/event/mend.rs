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
    with_hash_mended(line, neighbours)
        .or_else(|| with_hash_shifted(line, neighbours))
        .or_else(|| with_payload_mended(line, neighbours, budget))
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

/// The payload is whole: what was altered stands before it.
fn with_hash_mended(line: &[u8], neighbours: Neighbours) -> Option<Vec<u8>> {
    let written = line.get(OPENING.len()..HASH_END)?;
    let payload = line.get(PAYLOAD..)?;
    let hash = sha256_after_brace(&json::raw_line_separators(payload));
    let differing = hash
        .bytes()
        .iter()
        .zip(written)
        .filter(|(one, other)| one != other)
        .count();
    // Of 64 digits one may be wrong; if more are, only the line behind can tell.
    if differing > 1 && neighbours.after.is_none() {
        return None;
    }
    let candidate = [OPENING, hash.bytes(), b"\",", payload].concat();
    neighbours.fit(&candidate).map(|_| candidate)
}

/// The payload is whole but does not stand where it should: a byte before it is missing, or one too many.
fn with_hash_shifted(line: &[u8], neighbours: Neighbours) -> Option<Vec<u8>> {
    let hash = neighbours.after?;
    let payload = &line[memchr::memmem::find(line, b"\"op\":")?..];
    let candidate = [OPENING, hash.bytes(), b"\",", payload].concat();
    neighbours.fit(&candidate).map(|_| candidate)
}

/// One byte of the payload is another, is missing, or is one too many.
fn with_payload_mended(line: &[u8], neighbours: Neighbours, budget: &mut Budget) -> Option<Vec<u8>> {
    let wanted = neighbours
        .after
        .or_else(|| line.get(OPENING.len()..HASH_END).and_then(Hex::read))?;
    let payload = [b"{", &json::raw_line_separators(line.get(PAYLOAD..)?)[..]].concat();
    let search = PayloadSearch {
        payload: &payload,
        wanted: wanted.raw(),
        first: 1,
    };
    let found = search.find(budget)?;
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
    /// What was altered in the lines before, and what it was: somebody may have replaced it in all of them.
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
    let search = PayloadSearch {
        payload: bytes,
        wanted: wanted.raw(),
        first: 0,
    };
    search.find(budget)
}

/// Looks for the payload that has a hash.
pub(super) struct PayloadSearch<'a> {
    pub payload: &'a [u8],
    pub wanted: [u8; 32],
    /// What stands before this is known to be right.
    pub first: usize,
}

impl PayloadSearch<'_> {
    /// Tries likely changes first: one seen before, a single bit, an extra byte; then any byte, within the budget.
    pub(super) fn find(&self, budget: &mut Budget) -> Option<Vec<u8>> {
        let bits: Vec<u8> = (0..8).map(|bit| 1 << bit).collect();
        self.altered_as_before(budget)
            .or_else(|| self.altered(budget, &bits))
            .or_else(|| self.one_too_many(budget))
            .or_else(|| self.altered(budget, &(1..=u8::MAX).collect::<Vec<u8>>()))
            .or_else(|| self.one_missing(budget))
    }

    /// What it costs to try so often.
    fn cost(&self, tries: usize) -> u64 {
        let blocks = (self.payload.len() / BLOCK_BYTES + 2) as u64;
        // What stands before a place is hashed once for all.
        tries as u64 * blocks.div_ceil(2)
    }

    fn altered_as_before(&self, budget: &mut Budget) -> Option<Vec<u8>> {
        budget.seen.clone().into_iter().find_map(|(is, was)| {
            let tries = memchr::memchr_iter(is, self.payload).count();
            let found = self.at_each_place(budget, self.cost(tries), |search, at, before| {
                let fits = search.payload.get(at) == Some(&is) && search.is_it(before, at, &[was], 1);
                fits.then_some(was)
            });
            found.map(|(at, was)| self.with(at, &[was], 1))
        })
    }

    fn altered(&self, budget: &mut Budget, masks: &[u8]) -> Option<Vec<u8>> {
        let cost = self.cost(self.payload.len() * masks.len());
        let (at, was) = self.at_each_place(budget, cost, |search, at, before| {
            let is = search.payload.get(at)?;
            let mut bytes = masks.iter().map(|mask| is ^ mask);
            bytes.find(|byte| search.is_it(before, at, &[*byte], 1))
        })?;
        budget.remember((self.payload[at], was));
        Some(self.with(at, &[was], 1))
    }

    fn one_too_many(&self, budget: &mut Budget) -> Option<Vec<u8>> {
        let (at, ()) = self.at_each_place(budget, self.cost(self.payload.len()), |search, at, before| {
            (at < search.payload.len() && search.is_it(before, at, &[], 1)).then_some(())
        })?;
        Some(self.with(at, &[], 1))
    }

    fn one_missing(&self, budget: &mut Budget) -> Option<Vec<u8>> {
        let cost = self.cost(self.payload.len() * 256);
        let (at, byte) = self.at_each_place(budget, cost, |search, at, before| {
            (0..=u8::MAX).find(|byte| search.is_it(before, at, &[*byte], 0))
        })?;
        Some(self.with(at, &[byte], 0))
    }

    fn with(&self, at: usize, instead: &[u8], skipped: usize) -> Vec<u8> {
        [&self.payload[..at], instead, &self.payload[at + skipped..]].concat()
    }

    /// Tries something at each place, also behind the last byte, with the blocks before it hashed already.
    fn at_each_place<Found>(
        &self,
        budget: &mut Budget,
        cost: u64,
        attempt: impl Fn(&Self, usize, &(usize, Hasher)) -> Option<Found>,
    ) -> Option<(usize, Found)> {
        if !budget.take(cost) {
            return None;
        }
        let mut before = (0, Hasher::default());
        for at in self.first..=self.payload.len() {
            while before.0 + BLOCK_BYTES <= at {
                before.1.update(&self.payload[before.0..before.0 + BLOCK_BYTES]);
                before.0 += BLOCK_BYTES;
            }
            if let Some(found) = attempt(self, at, &before) {
                return Some((at, found));
            }
        }
        None
    }

    fn is_it(&self, (hashed, before): &(usize, Hasher), at: usize, instead: &[u8], skipped: usize) -> bool {
        let mut hasher = before.clone();
        hasher.update(&self.payload[*hashed..at]);
        hasher.update(instead);
        hasher.update(&self.payload[at + skipped..]);
        hasher.finish_raw() == self.wanted
    }
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

    #[test]
    fn any_single_byte_is_found_again() {
        let head = sha256(b"before");
        let whole = line(head.text(), "tea");
        let expected = [&whole[..], b"\n"].concat();
        let known = Neighbours {
            before: Some(Some(head)),
            after: hash_of(&whole),
        };
        let alone = Neighbours { after: None, ..known };
        for at in 0..whole.len() {
            for neighbours in [known, alone] {
                let mut altered = whole.clone();
                altered[at] ^= 1 << (at % 8);
                let mut budget = Budget::of(10_000_000);
                if altered[at] != b'\n' {
                    let found = mend(&altered, neighbours, &mut budget);
                    assert_eq!(found.as_deref(), Some(&expected[..]), "byte {at}");
                }
            }
        }
        for at in (0..whole.len()).rev().step_by(7) {
            let mut budget = Budget::of(10_000_000);
            let lost = [&whole[..at], &whole[at + 1..]].concat();
            assert_eq!(
                mend(&lost, known, &mut budget).as_deref(),
                Some(&expected[..]),
                "lost {at}"
            );
            let more = [&whole[..at], b"?", &whole[at..]].concat();
            assert_eq!(
                mend(&more, known, &mut budget).as_deref(),
                Some(&expected[..]),
                "more {at}"
            );
            let (first, second) = (&whole[..at], &whole[at + 1..]);
            assert_eq!(
                mend_cut(first, second, known).as_deref(),
                Some(&expected[..]),
                "cut {at}"
            );
        }
    }

    #[test]
    fn two_lines_that_grew_together_are_two_again() {
        let first = line("", "one");
        let second = line(
            hash_of(&first)
                .map_or(String::new(), |hash| hash.text().to_owned())
                .as_str(),
            "two",
        );
        let expected = [&first[..], b"\n", &second[..], b"\n"].concat();
        let neighbours = Neighbours {
            before: Some(None),
            after: hash_of(&second),
        };
        for between in [&b"J"[..], b""] {
            let grown = [&first[..], between, &second[..]].concat();
            assert_eq!(
                mend(&grown, neighbours, &mut Budget::of(0)).as_deref(),
                Some(&expected[..])
            );
        }
    }

    #[test]
    fn nothing_is_made_up() {
        let whole = line("", "tea");
        let other = Neighbours {
            before: Some(Some(sha256(b"elsewhere"))),
            after: None,
        };
        let mut altered = whole.clone();
        altered[100] ^= 1;
        assert_eq!(mend(&altered, other, &mut Budget::of(10_000_000)), None);
        let mut twice = altered;
        twice[120] ^= 1;
        assert_eq!(mend(&twice, Neighbours::default(), &mut Budget::of(10_000_000)), None);
        let mut zeroed = whole.clone();
        zeroed[100..102].fill(0);
        assert_eq!(mend(&zeroed, Neighbours::default(), &mut Budget::of(10_000_000)), None);
        let mut costly = whole;
        costly[100] ^= 1;
        assert_eq!(mend(&costly, Neighbours::default(), &mut Budget::of(10)), None);
    }
}
