//! What did a line say before one of its bytes was lost?
//!
//! A line names the hash of its payload, and the line behind it names it again. So if a single byte was altered, lost or
//! slipped in, the line can be found again by trying: no other bytes have that hash. What is found is proved, not guessed.
//! A search costs time, and it is done within a budget.

use super::line::{Event, Trust};
use crate::digest::{Hasher, Hex};

/// How a line of our own form begins, and what stands between its hash and its payload.
const OPENING: &[u8] = b"{\"hash\":\"";
const HASH_END: usize = OPENING.len() + 64;
const PAYLOAD: usize = HASH_END + 2;
/// How much SHA-256 takes at a time.
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
    /// Whether a line is an event that stands between these.
    fn fit(&self, line: &[u8]) -> Option<Hex> {
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
pub struct Budget(u64);

impl Budget {
    /// So many blocks of 64 bytes.
    pub fn of(blocks: u64) -> Self {
        Self(blocks)
    }

    fn take(&mut self, blocks: u64) -> bool {
        let is_enough = self.0 >= blocks;
        if is_enough {
            self.0 -= blocks;
        }
        is_enough
    }
}

/// The lines, each with its newline, that a damaged line was before one of its bytes was lost; `None` if that is not what
/// happened to it, or if the search would take too long.
pub fn mend(line: &[u8], neighbours: Neighbours, budget: &mut Budget) -> Option<Vec<u8>> {
    split(line, neighbours)
        .or_else(|| with_hash_mended(line, neighbours).map(ended))
        .or_else(|| with_hash_shifted(line, neighbours).map(ended))
        .or_else(|| with_payload_mended(line, neighbours, budget).map(ended))
}

/// The same for a line that a newline has cut in two.
pub fn mend_cut(first: &[u8], second: &[u8], neighbours: Neighbours) -> Option<Vec<u8>> {
    let mut line = [first, b" ", second].concat();
    (0..=u8::MAX).find_map(|byte| {
        line[first.len()] = byte;
        neighbours.fit(&line).map(|_| ended(line.clone()))
    })
}

/// The bytes that have a digest, before one of them was altered, lost or slipped in.
pub fn mend_bytes(bytes: &[u8], wanted: &Hex, budget: &mut Budget) -> Option<Vec<u8>> {
    let search = Search {
        payload: bytes,
        wanted: wanted.raw(),
        first: 0,
    };
    search.find(budget)
}

fn ended(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

/// Two lines that lost the newline between them.
fn split(line: &[u8], neighbours: Neighbours) -> Option<Vec<u8>> {
    memchr::memmem::find_iter(line, OPENING)
        .filter(|at| *at > 1)
        .find_map(|at| {
            // The newline became another byte, or it is gone.
            [at - 1, at].into_iter().find_map(|end| {
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
    let hash = crate::digest::sha256_after_brace(payload);
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
    let payload = [b"{", line.get(PAYLOAD..)?].concat();
    let search = Search {
        payload: &payload,
        wanted: wanted.raw(),
        first: 1,
    };
    let found = search.find(budget)?;
    let candidate = [OPENING, wanted.bytes(), b"\",", found.get(1..)?].concat();
    neighbours.fit(&candidate).map(|_| candidate)
}

/// Looks for the payload that has a hash.
struct Search<'a> {
    payload: &'a [u8],
    wanted: [u8; 32],
    /// What stands before this is known to be right.
    first: usize,
}

impl Search<'_> {
    /// The likely first: a single bit, then whatever is left of the budget.
    fn find(&self, budget: &mut Budget) -> Option<Vec<u8>> {
        let bits: Vec<u8> = (0..8).map(|bit| 1 << bit).collect();
        self.altered(budget, &bits)
            .or_else(|| self.one_too_many(budget))
            .or_else(|| self.altered(budget, &(1..=u8::MAX).collect::<Vec<u8>>()))
            .or_else(|| self.one_missing(budget))
    }

    /// What it costs to try so many variants at every place.
    fn cost(&self, variants: usize) -> u64 {
        let blocks = (self.payload.len() / BLOCK_BYTES + 2) as u64;
        // What stands before a place is hashed once for all.
        self.payload.len() as u64 * variants as u64 * blocks.div_ceil(2)
    }

    fn altered(&self, budget: &mut Budget, masks: &[u8]) -> Option<Vec<u8>> {
        let found = self.at_each_place(budget, masks.len(), |search, at, before| {
            masks.iter().find_map(|mask| {
                let byte = [search.payload[at] ^ mask];
                search.is_it(before, at, &byte, 1).then_some(byte.to_vec())
            })
        });
        found.map(|(at, bytes)| [&self.payload[..at], &bytes[..], &self.payload[at + 1..]].concat())
    }

    fn one_too_many(&self, budget: &mut Budget) -> Option<Vec<u8>> {
        let found = self.at_each_place(budget, 1, |search, at, before| {
            search.is_it(before, at, &[], 1).then(Vec::new)
        });
        found.map(|(at, _)| [&self.payload[..at], &self.payload[at + 1..]].concat())
    }

    fn one_missing(&self, budget: &mut Budget) -> Option<Vec<u8>> {
        let found = self.at_each_place(budget, 256, |search, at, before| {
            (0..=u8::MAX).find_map(|byte| search.is_it(before, at, &[byte], 0).then_some(vec![byte]))
        });
        found.map(|(at, bytes)| [&self.payload[..at], &bytes[..], &self.payload[at..]].concat())
    }

    /// Tries something at each place, with what stands in the blocks before it hashed already.
    fn at_each_place(
        &self,
        budget: &mut Budget,
        variants: usize,
        attempt: impl Fn(&Self, usize, &(usize, Hasher)) -> Option<Vec<u8>>,
    ) -> Option<(usize, Vec<u8>)> {
        if !budget.take(self.cost(variants)) {
            return None;
        }
        let mut before = (0, Hasher::default());
        // Behind the last byte only one can be missing.
        let places = self.payload.len() + usize::from(variants > usize::from(u8::MAX));
        for at in self.first..places {
            while before.0 + BLOCK_BYTES <= at {
                before.1.update(&self.payload[before.0..before.0 + BLOCK_BYTES]);
                before.0 += BLOCK_BYTES;
            }
            if let Some(bytes) = attempt(self, at, &before) {
                return Some((at, bytes));
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
    use crate::digest::{sha256, sha256_after_brace};

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
        let mut costly = whole;
        costly[100] ^= 1;
        assert_eq!(mend(&costly, Neighbours::default(), &mut Budget::of(10)), None);
    }
}
