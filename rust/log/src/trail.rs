//! A chain over hashes alone, which also goes over lines that were erased.
//!
//! An erased event has no payload any more to cover the hash before it. The trail does, so what stands before a hole
//! cannot be changed without changing every trail behind it.

use crate::digest::{Hasher, Hex};
use crate::event::Op;
use crate::json;

/// After so many events the trail begins anew, with what it was.
const STRETCH: u64 = 1024;
/// So many hashes are taken in at once: a writer of single events waits for each of them.
const AT_ONCE: usize = 8;

/// A trail that goes on from event to event. It costs one block of SHA-256 for two events.
#[derive(Clone)]
pub struct Trail {
    hasher: Hasher,
    start: [u8; 32],
    events: u64,
    /// The last hashes, as far as they were not taken in yet.
    held: [[u8; 32]; AT_ONCE],
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

    /// The trail before the first event of a log: it goes on from what a sentinel says, or begins anew.
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
            held: [[0; 32]; AT_ONCE],
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

    /// What it was when the open stretch began.
    pub(crate) fn start(&self) -> [u8; 32] {
        self.start
    }

    /// How many events it has taken in.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// How many of them are in the open stretch.
    pub(crate) fn open_events(&self) -> u64 {
        self.events % STRETCH
    }

    /// Takes the hash of the next event.
    #[inline]
    pub fn add(&mut self, hash: &[u8; 32]) {
        let held = self.held();
        self.held[held] = *hash;
        self.events += 1;
        if held + 1 == AT_ONCE {
            self.hasher.update(self.held.as_flattened());
        }
        // INVARIANT: nothing is held then.
        if self.events.is_multiple_of(STRETCH) {
            self.start = std::mem::take(&mut self.hasher).finish_raw();
            self.hasher.update(&self.start);
        }
    }

    #[inline]
    fn held(&self) -> usize {
        (self.events % AT_ONCE as u64) as usize
    }

    /// What it is behind the last event.
    pub fn value(&self) -> Hex {
        if self.events.is_multiple_of(STRETCH) {
            Hex::spell(&self.start)
        } else {
            let mut hasher = self.hasher.clone();
            hasher.update(self.held[..self.held()].as_flattened());
            hasher.finish()
        }
    }
}

/// What the record of a sentinel says of the trail before it, if that is one: what it is, and the first seq that it covers.
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

impl Trail {
    /// Where it has come to.
    pub fn end(&self) -> TrailEnd {
        TrailEnd {
            value: self.value(),
            from: self.from,
        }
    }
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
