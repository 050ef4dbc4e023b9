//! A chain over hashes alone, which also goes over lines that were erased.
//!
//! An erased event has no payload any more to cover the hash before it. The trail does, so what stands before a hole
//! cannot be changed without changing every trail behind it.

use crate::digest::{Hasher, Hex};
use crate::event::Op;
use crate::json;

/// After so many events the trail begins anew, with what it was.
const STRETCH: u64 = 1024;

/// A trail that goes on from event to event. It costs one block of SHA-256 for two events.
#[derive(Clone)]
pub struct Trail {
    hasher: Hasher,
    /// What it was when the open stretch began.
    pub(crate) start: [u8; 32],
    pub(crate) events: u64,
    /// The first seq that it covers.
    pub from: u64,
}

impl std::fmt::Debug for Trail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Trail({}, {} events behind it)",
            Hex::spell(&self.start).text(),
            self.events
        )
    }
}

impl Trail {
    /// A trail that begins with nothing, before the event with this seq.
    pub fn new(from: u64) -> Self {
        Self::after([0; 32], from)
    }

    /// The trail before the first event of a log: it goes on from the one in a sentinel, or begins anew.
    pub fn beginning(seq: u64, op: Op, record: &[u8]) -> Self {
        let told = (op == Op::Compact).then(|| told_in(record)).flatten();
        told.map_or_else(|| Self::new(seq), |(value, from)| Self::after(value.raw(), from))
    }

    /// One that goes on from another.
    pub fn after(start: [u8; 32], from: u64) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(&start);
        Self {
            hasher,
            start,
            events: 0,
            from,
        }
    }

    /// One that had come to the end of a stretch, after so many events.
    pub(crate) fn resume(start: [u8; 32], from: u64, events: u64) -> Self {
        Self {
            events,
            ..Self::after(start, from)
        }
    }

    /// How many of them are in the open stretch.
    pub(crate) fn open_events(&self) -> u64 {
        self.events % STRETCH
    }

    /// Takes the hash of the next event.
    #[inline]
    pub fn add(&mut self, hash: &[u8; 32]) {
        self.hasher.update(hash);
        self.events += 1;
        if self.events.is_multiple_of(STRETCH) {
            self.start = std::mem::take(&mut self.hasher).finish_raw();
            self.hasher.update(&self.start);
        }
    }

    /// What it is behind the last event.
    pub fn value(&self) -> Hex {
        match self.events.is_multiple_of(STRETCH) {
            true => Hex::spell(&self.start),
            false => self.hasher.clone().finish(),
        }
    }

    /// Where it has come to.
    pub fn end(&self) -> TrailEnd {
        TrailEnd {
            value: self.value(),
            from: self.from,
        }
    }
}

/// The trail in the record of a sentinel: its value, and the first seq that it covers.
fn told_in(record: &[u8]) -> Option<(Hex, u64)> {
    let record = json::parse(record).ok()?;
    let data = record.get("data")?;
    data.get("base_sha256")?;
    let value = Hex::read(data.get("trail")?.as_str()?.as_bytes())?;
    let from = u64::try_from(data.get("trail_from")?.as_i64()?).ok()?;
    Some((value, from))
}

/// A trail up to some event: what it is there, and the first seq that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailEnd {
    /// What it is.
    pub value: Hex,
    /// Where it began.
    pub from: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;

    #[test]
    fn a_trail_is_the_hash_of_hashes_and_begins_anew_after_1024() {
        let hash = |n: u64| sha256(&n.to_le_bytes()).raw();
        let mut trail = Trail::new(1);
        let mut bytes = vec![0; 32];
        for n in 0..1024 {
            trail.add(&hash(n));
            bytes.extend_from_slice(&hash(n));
            assert_eq!(trail.value(), sha256(&bytes), "{n}");
        }
        let mut next = sha256(&bytes).raw().to_vec();
        next.extend_from_slice(&hash(7));
        trail.add(&hash(7));
        assert_eq!(trail.value(), sha256(&next));
    }
}
