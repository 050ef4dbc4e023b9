//! Tries changes of one byte until the bytes have a known hash, within a budget.
//!
//! If a single byte was altered, lost or slipped in, what was there before is found by trying: no other bytes have that hash.

use super::line::{Event, Trust};
use crate::digest::{Hasher, Hex};

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

/// So many of these are tried.
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
    /// What is there now.
    pub payload: &'a [u8],
    /// What its hash should be.
    pub wanted: [u8; 32],
    /// What stands before this is known to be right.
    pub first: usize,
}

impl PayloadSearch<'_> {
    /// The likely first: an alteration that was found before, a single bit, a byte that slipped in. Then any byte that was
    /// altered or lost, as far as the budget goes.
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

    /// Tries something at each place, with what stands in the blocks before it hashed already. Behind the last byte there is
    /// a place too: one may be missing there.
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
