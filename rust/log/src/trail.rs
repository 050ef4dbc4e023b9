//! A chain over hashes alone, which also goes over lines that were erased.
//!
//! An erased event has no payload any more to cover the hash before it. The trail does, so what stands before a hole
//! cannot be changed without changing every trail behind it.

use crate::digest::{Hasher, Hex};
use crate::event::Op;
use crate::json::{self, Value};

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
        let known = (op == Op::Compact).then(|| trail_in(record)).flatten();
        known.map_or_else(|| Self::new(seq), |known| Self::after(known.value.raw(), known.from))
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

/// The trail in the record of a sentinel.
fn trail_in(record: &[u8]) -> Option<TrailEnd> {
    let record = json::parse(record).ok()?;
    let data = record.get("data")?;
    data.get("base_sha256")?;
    SentinelTrail::read(data).known()
}

/// A trail up to some event: what it is there, and the first seq that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailEnd {
    /// What it is.
    pub value: Hex,
    /// Where it began.
    pub from: u64,
}

/// The trail of the log before a sentinel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SentinelTrail {
    /// None: the sentinel is of version 1, or of a repair.
    #[default]
    Nothing,
    /// A value that is no trail.
    Malformed,
    /// The trail up to the sentinel.
    Known(TrailEnd),
}

impl SentinelTrail {
    /// Reads the fields of a sentinel, or of a note.
    pub(super) fn read(data: &Value) -> Self {
        let (value, from) = (data.get("trail"), data.get("trail_from"));
        if value.is_none() && from.is_none() {
            return Self::Nothing;
        }
        let value = value.and_then(Value::as_str).and_then(Hex::read);
        let from = from.and_then(Value::as_i64).and_then(|from| u64::try_from(from).ok());
        let known = value
            .zip(from)
            .map(|(value, from)| Self::Known(TrailEnd { value, from }));
        known.unwrap_or(Self::Malformed)
    }

    /// The trail, if it is one.
    pub fn known(self) -> Option<TrailEnd> {
        match self {
            Self::Known(end) => Some(end),
            _ => None,
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
