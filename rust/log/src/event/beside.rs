//! Finds events again in lines that were damaged one beside the other.
//!
//! Of a damaged line between two whole ones both neighbours tell. Where several are damaged one behind the other, or one beside
//! those that are gone, each still says its own hash, and once the line behind it is found again that one says it too. So the
//! search goes from the last line to the first. A line that has the hash that it says, with one byte put right, is as good as one
//! that was never damaged: whether the chain leads through it is told by all of its lines together.

use std::ops::Range;

use memchr::memmem;

use super::HASH_PREFIX_BYTES;
use super::line::{Event, Trust};
use super::mend::{OPENING, mend};
use super::parts::{Behind, EventPart, parts};
use super::trial::{Budget, Neighbours};
use crate::digest::Hex;

/// No event is spelled in fewer bytes.
const LEAST_BYTES: usize = 2 * HASH_PREFIX_BYTES;
/// In so many places of a line at most an event may begin.
const MOST_BEGINNINGS: usize = 16;
/// What a line calls its hash.
const HASH_KEY: &[u8] = b"\"hash\"";

/// Lines that cannot be read, with nothing readable between them, and what was found in them.
#[derive(Debug)]
pub struct UnreadableLines {
    /// Their bytes, in order.
    pub lines: Vec<Vec<u8>>,
    /// The events of each, in order.
    pub found: Vec<Vec<EventPart>>,
    /// What was known of each when it was looked through.
    asked: Vec<Option<Option<Hex>>>,
    /// What is known of the last of them.
    behind: Behind,
    /// There is one, between two that tell all of it: it is not tried here.
    is_alone: bool,
}

impl UnreadableLines {
    /// Lines of which nothing was looked for yet.
    pub fn of(lines: Vec<Vec<u8>>, behind: Behind, is_alone: bool) -> Self {
        Self {
            found: lines.iter().map(|_| Vec::new()).collect(),
            asked: vec![None; lines.len()],
            lines,
            behind,
            is_alone,
        }
    }

    /// Looks through the lines, from the last to the first; again for those in which nothing was found before. Bytes are only
    /// tried briefly, if so wanted; what lines have lost at their ends is looked for at the cost of another budget, which is not
    /// used up by that.
    pub fn look(&mut self, is_brief: bool, budget: &mut Budget, for_ends: &mut Budget) {
        let mut next = self.behind.next;
        for (number, line) in self.lines.iter().enumerate().rev() {
            if self.found[number].is_empty() && self.asked[number] != Some(next) {
                self.found[number] = parts(line, Behind { next, ..self.behind }, for_ends);
                self.asked[number] = Some(next);
            }
            if !self.is_alone {
                budget.be_brief(is_brief);
                mend_rest(line, &mut self.found[number], next, budget);
                budget.be_brief(false);
            }
            let first = self.found[number].first().filter(|part| part.bytes.start == 0);
            next = first.and_then(|part| part.prev);
        }
    }
}

/// Tries what no event of a line covers.
fn mend_rest(line: &[u8], found: &mut Vec<EventPart>, next: Option<Hex>, budget: &mut Budget) {
    let mut all = Vec::new();
    let (mut end, mut wanted) = (line.len(), next);
    for part in std::mem::take(found).into_iter().rev() {
        mend_stretch(line, part.bytes.end..end, wanted, budget, &mut all);
        (end, wanted) = (part.bytes.start, part.prev);
        all.push(part);
    }
    mend_stretch(line, 0..end, wanted, budget, &mut all);
    all.reverse();
    *found = all;
}

/// The events of a stretch without a whole one, from the last to the first.
fn mend_stretch(line: &[u8], within: Range<usize>, next: Option<Hex>, budget: &mut Budget, found: &mut Vec<EventPart>) {
    let within = without_strange_ends(line, within);
    let begins: Vec<usize> = memmem::find_iter(&line[within.clone()], OPENING)
        .map(|at| within.start + at)
        .collect();
    if begins.first().is_none_or(|at| *at == within.start)
        && let Some(part) = mended(line, within.clone(), next, budget)
    {
        found.push(part);
        return;
    }
    // What is left of another line may stand before it, without a newline between them.
    let (mut end, mut next) = (within.end, next);
    for &at in begins
        .iter()
        .rev()
        .take(MOST_BEGINNINGS)
        .filter(|at| **at > within.start || begins.len() > 1)
    {
        let part = mended(line, without_strange_ends(line, at..end), next, budget);
        next = part.as_ref().and_then(|part| part.prev);
        end = at;
        found.extend(part);
    }
}

/// Zeros and the like stand in the place of what is gone, and in no line.
fn without_strange_ends(line: &[u8], within: Range<usize>) -> Range<usize> {
    let is_strange = |byte: &&u8| **byte < b' ';
    let text = &line[within.clone()];
    let before = text.iter().take_while(is_strange).count();
    let behind = text[before..].iter().rev().take_while(is_strange).count();
    within.start + before..within.end - behind
}

fn mended(line: &[u8], bytes: Range<usize>, next: Option<Hex>, budget: &mut Budget) -> Option<EventPart> {
    let text = line.get(bytes.clone()).filter(|text| text.len() >= LEAST_BYTES)?;
    // One digit of a hash may be wrong. If more are, this is not the line that the next one names: that one is gone.
    let own = own_hash(text);
    let next = next.filter(|next| own.is_none_or(|own| differing(&own, next) <= 1));
    let mut with = |after: Option<Hex>| mend(text, Neighbours { before: None, after }, budget);
    // Where its own hash cannot be read, only trying tells which it is.
    let by_itself = next.is_none() || own.is_none();
    let found = next.and_then(|next| with(Some(next)));
    let mut mended = found.or_else(|| by_itself.then(|| with(None)).flatten())?;
    mended.pop();
    let event = |line: &[u8]| {
        let event = Event::read(line, Trust::Hashes).ok()?;
        Some((event.hash(line), Hex::read(event.prev_hash(line))))
    };
    let mut events = mended.split(|byte| *byte == b'\n');
    let (_, prev) = event(events.clone().next()?)?;
    let (hash, _) = event(events.next_back()?)?;
    Some(EventPart {
        bytes,
        mended: Some(mended),
        hash,
        prev,
    })
}

/// The hash that a line says for its own, wherever it says it.
fn own_hash(text: &[u8]) -> Option<Hex> {
    memmem::find_iter(text, HASH_KEY).find_map(|at| {
        let colon = text[at + HASH_KEY.len()..].trim_ascii_start();
        let value = colon.strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
        value.get(..64).and_then(Hex::read)
    })
}

fn differing(one: &Hex, other: &Hex) -> usize {
    let pairs = one.bytes().iter().zip(other.bytes());
    pairs.filter(|(one, other)| one != other).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256_after_brace;

    /// Lines that follow each other, and their hashes.
    fn chain(count: usize) -> (Vec<Vec<u8>>, Vec<Hex>) {
        let (mut lines, mut hashes) = (Vec::new(), Vec::<Hex>::new());
        for number in 0..count {
            let prev = hashes.last().map_or("", Hex::text);
            let rest = format!(
                "\"op\":\"upsert\",\"prev_hash\":\"{prev}\",\"record\":{{\"id\":\"{number}\",\"label\":\"drinks tea\"}},\
                 \"record_id\":\"{number}\",\"recursion_depth\":0,\"seq\":{number},\"ts\":\"2026-01-01T09:00:00.000000Z\"}}"
            );
            let hash = sha256_after_brace(rest.as_bytes());
            lines.push([OPENING, hash.bytes(), b"\",", rest.as_bytes()].concat());
            hashes.push(hash);
        }
        (lines, hashes)
    }

    fn found(damaged: &[Vec<u8>], next: Option<Hex>, blocks: u64) -> Vec<Vec<Vec<u8>>> {
        let mut beside = UnreadableLines::of(damaged.to_vec(), Behind { next, synced: None }, false);
        let mut budget = Budget::of(blocks);
        for is_brief in [true, false] {
            beside.look(is_brief, &mut budget, &mut Budget::of(0));
        }
        let spelled = |(line, parts): (&Vec<u8>, Vec<EventPart>)| {
            let text = |part: EventPart| part.mended.unwrap_or_else(|| line[part.bytes].to_vec());
            parts.into_iter().map(text).collect()
        };
        damaged.iter().zip(beside.found).map(spelled).collect()
    }

    fn altered(line: &[u8], at: usize, mask: u8) -> Vec<u8> {
        let mut altered = line.to_vec();
        altered[at] ^= mask;
        altered
    }

    #[test]
    fn lines_in_a_row_come_back_wherever_each_was_altered() {
        let (lines, hashes) = chain(4);
        for at in 0..lines[1].len() {
            let places = [
                (1, at),
                (2, (at * 7 + 3) % lines[2].len()),
                (3, (at * 5 + 90) % lines[3].len()),
            ];
            let damaged: Vec<Vec<u8>> = places
                .iter()
                .map(|(line, at)| altered(&lines[*line], *at, 1 << (at % 7)))
                .collect();
            let expected: Vec<Vec<Vec<u8>>> = lines[1..].iter().map(|line| vec![line.clone()]).collect();
            for next in [Some(hashes[3]), None] {
                assert_eq!(found(&damaged, next, 100_000_000), expected, "{places:?}");
            }
        }
    }

    #[test]
    fn a_line_comes_back_beside_what_is_gone() {
        let (lines, hashes) = chain(3);
        let damaged = altered(&lines[1], 200, 4);
        let alone = vec![lines[1].clone()];
        let only = || vec![alone.clone()];
        let zeros = vec![0; 300];
        for next in [Some(hashes[1]), Some(hashes[2]), None] {
            assert_eq!(found(std::slice::from_ref(&damaged), next, 1_000_000), only());
            for mask in [1, 0xc0] {
                let in_its_hash = altered(&lines[1], 20, mask);
                assert_eq!(found(&[in_its_hash], next, 10_000_000), only(), "{next:?}");
            }
            let before = [zeros.clone(), damaged.clone()];
            assert_eq!(found(&before, next, 1_000_000), [vec![], alone.clone()]);
            let behind = [damaged.clone(), zeros.clone()];
            assert_eq!(found(&behind, next, 1_000_000), [alone.clone(), vec![]]);
            for rest in [&zeros[..], &lines[0][..100], &lines[0][..lines[0].len() - 12]] {
                let grown = [rest, &damaged].concat();
                assert_eq!(found(&[grown], next, 2_000_000), only(), "{}", rest.escape_ascii());
            }
        }
    }

    #[test]
    fn what_was_altered_alike_costs_little() {
        let (lines, hashes) = chain(400);
        let damaged: Vec<Vec<u8>> = lines
            .iter()
            .map(|line| {
                let at = memmem::find(line, b"tea").expect("tea") + 2;
                altered(line, at, b'a' ^ b'x')
            })
            .collect();
        let found = found(&damaged, hashes.last().copied(), 20_000_000);
        assert!(
            found
                .iter()
                .zip(&lines)
                .all(|(found, line)| found == std::slice::from_ref(line))
        );
    }

    #[test]
    fn what_was_altered_twice_stays_lost() {
        let (lines, hashes) = chain(3);
        let twice = altered(&altered(&lines[1], 200, 4), 210, 4);
        let damaged = [altered(&lines[0], 200, 4), twice, altered(&lines[2], 200, 4)];
        let expected = [vec![lines[0].clone()], vec![], vec![lines[2].clone()]];
        assert_eq!(found(&damaged, hashes.last().copied(), 20_000_000), expected);
    }
}
