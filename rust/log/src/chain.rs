//! Follows the hash chain line by line, for verification, loading and catching up alike.
//!
//! It checks the links, gathers batches and says for each line what a reader may believe: at once, once its batch is
//! whole, or never.

use crate::damage::{Damage, DamageKind};
use crate::digest::Hex;
use crate::event::Op;
use crate::event::line::{Event, Fault};
use crate::layout::LOG;
use crate::trail::Trail;

/// The place of a line in the log.
#[derive(Clone, Copy, Debug)]
pub struct LinePlace {
    /// Its first byte.
    pub offset: u64,
    /// Its physical line, counted from 1.
    pub line: u64,
}

/// What becomes of the events held back for an open batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchFate {
    /// Nothing yet.
    Stay,
    /// The batch is whole: they count.
    Count,
    /// The batch is broken: they are not applied.
    Drop,
    /// The batch was never finished, so it was never acknowledged.
    Cut,
}

/// What a reader does with the line just followed, in the order of the fields.
#[derive(Debug)]
pub struct Step {
    /// First for the batch that was open before this line.
    pub before: BatchFate,
    /// Then this line: an event that counts at once, or is held back until its batch is whole.
    pub counts: bool,
    /// Then for the batch that this line ended.
    pub after: BatchFate,
}

/// How far the chain is committed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChainMark {
    /// The hash of the last event that was loaded.
    pub head: Option<Hex>,
    /// The hash of the first event that was loaded.
    pub first: Option<Hex>,
    /// The first seq.
    pub first_seq: Option<u64>,
    /// The last seq.
    pub last_seq: u64,
    /// The highest seq, which is the last one where nothing was moved.
    pub highest_seq: u64,
    /// How many events were loaded.
    pub events: u64,
    /// Behind the line of the last event that was loaded.
    pub end: u64,
    /// Lines stand behind it that could not be loaded.
    pub gap: bool,
}

#[derive(Clone, Debug)]
struct Batch {
    /// The chain before the batch, if the batch never becomes whole.
    before: ChainMark,
    trail_before: Option<Trail>,
    place: LinePlace,
    seq: u64,
    last: u64,
    expected: u64,
    damaged: bool,
    /// Its `begin` is flawed: should the batch stay unfinished, that is damage. Bytes that show a fault are never cut.
    flawed: bool,
}

/// Follows a chain.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    /// How far the chain has come.
    pub mark: ChainMark,
    /// The chain of hashes alone, if it is followed.
    pub trail: Option<Trail>,
    /// The trail is followed: it begins with the first event.
    pub has_trail: bool,
    /// The last seq that a broken batch at the end of the log claims: what comes next must not seem to belong to it.
    pub claimed: u64,
    /// All that is wrong.
    pub damage: Vec<Damage>,
    /// Batches that are damaged but have a line in every place: where they begin, and where their last line does.
    pub scarred: Vec<(u64, u64)>,
    /// Where unsynced lines begin, if damage was found there.
    pub tail: Option<LinePlace>,
    /// Up to here the log is known to be on disk; beyond it, damage is an unsynced tail.
    pub synced: Option<u64>,
    batch: Option<Batch>,
}

impl Follower {
    /// A follower at the beginning of a log.
    pub fn new(synced: Option<u64>) -> Self {
        Self {
            synced,
            ..Self::default()
        }
    }

    /// Whether a batch is open.
    pub fn has_open_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// Follows one line. `None` once the tail has begun: nothing from there on counts, nor what was held.
    pub fn follow(&mut self, place: LinePlace, line: &[u8], read: &Result<Event, Fault>) -> Option<Step> {
        let mut step = Step {
            before: BatchFate::Stay,
            counts: false,
            after: BatchFate::Stay,
        };
        match read {
            Err(fault) => {
                self.report(place, fault.seq, fault.kind, &fault.reason)?;
                self.mark.gap = true;
                if let Some(batch) = &mut self.batch {
                    batch.damaged = true;
                    batch.expected += 1;
                }
            }
            Ok(event) => {
                let seq = event.spans.seq;
                if self.leaves_batch(event) {
                    step.before = BatchFate::Drop;
                    self.end_batch()?;
                }
                let flaw = self.flaw(event, line);
                if let Some((kind, reason)) = flaw {
                    self.report(place, Some(seq), kind, reason)?;
                }
                let before = self.mark;
                let trail_before = self.trail.as_ref().filter(|_| event.op == Op::Begin).cloned();
                self.take(event, line);
                self.mark.end = place.offset + line.len() as u64 + 1;
                match &mut self.batch {
                    Some(batch) => {
                        batch.damaged |= flaw.is_some() || seq != batch.expected;
                        batch.expected = seq + 1;
                    }
                    None if event.op == Op::Begin => {
                        self.batch = Some(Batch {
                            before,
                            trail_before,
                            place,
                            seq,
                            last: seq + u64::from(event.events),
                            expected: seq + 1,
                            damaged: false,
                            flawed: flaw.is_some(),
                        });
                    }
                    None => {
                        step.counts = true;
                        self.claimed = 0;
                    }
                }
            }
        }
        if let Some(batch) = self.batch.as_ref().filter(|batch| batch.expected > batch.last) {
            if batch.damaged {
                self.scarred.push((batch.place.offset, place.offset));
            }
            step.after = self.end_batch()?;
        }
        Some(step)
    }

    /// At the end of the file: steps back before an unfinished batch and gives its place; one begun before `promised` is damage.
    pub fn settle(&mut self, promised: u64) -> Option<LinePlace> {
        let is_damage = |batch: &Batch| batch.damaged || batch.flawed || batch.place.offset < promised;
        if let Some(batch) = self.batch.as_ref().filter(|batch| is_damage(batch)) {
            self.claimed = batch.last;
            // `None` would say that the tail began there, which `tail` tells too.
            let _ = self.end_batch();
            return None;
        }
        let batch = self.batch.take()?;
        let place = batch.place;
        self.step_back(batch);
        Some(place)
    }

    /// Stands where it stood before a batch.
    fn step_back(&mut self, batch: Batch) {
        self.mark = batch.before;
        if self.trail.is_some() {
            self.trail = batch.trail_before;
        }
    }

    fn leaves_batch(&self, event: &Event) -> bool {
        self.batch.as_ref().is_some_and(|batch| {
            matches!(event.op, Op::Begin | Op::Compact) || event.spans.seq <= batch.seq || event.spans.seq > batch.last
        })
    }

    fn flaw(&self, event: &Event, line: &[u8]) -> Option<(DamageKind, &'static str)> {
        if event.injected {
            return Some((DamageKind::Injected, "a field that the hash does not cover"));
        }
        // Its link was erased with it; the line behind it names its hash.
        if event.redacted {
            return None;
        }
        let prev = event.prev_hash(line);
        let expected: &[u8] = self.mark.head.as_ref().map_or(b"", |head| head.bytes());
        let linked = prev == expected || (self.mark.gap && !prev.is_empty());
        (!linked).then_some((DamageKind::Unlinked, "prev_hash is not the hash of the event before"))
    }

    fn take(&mut self, event: &Event, line: &[u8]) {
        let (hash, raw) = event.hash_and_raw(line);
        if self.has_trail && self.mark.first.is_none() {
            self.trail = Some(Trail::beginning(event.spans.seq, event.op, event.record(line)));
        }
        if let Some(trail) = &mut self.trail {
            trail.add(&raw);
        }
        let mark = &mut self.mark;
        mark.head = Some(hash);
        mark.first.get_or_insert(hash);
        mark.first_seq.get_or_insert(event.spans.seq);
        mark.last_seq = event.spans.seq;
        mark.highest_seq = mark.highest_seq.max(mark.last_seq);
        mark.events += 1;
        mark.gap = false;
    }

    fn end_batch(&mut self) -> Option<BatchFate> {
        let Some(batch) = &self.batch else {
            return Some(BatchFate::Stay);
        };
        let whole = !batch.damaged && batch.expected > batch.last;
        let (place, seq, last) = (batch.place, batch.seq, batch.last);
        if !whole {
            self.report(place, Some(seq), DamageKind::BrokenBatch, "the batch is not whole")?;
        }
        // What closed a broken batch may itself be cut away as a tail, and the batch be the end of the log again.
        self.claimed = if whole { 0 } else { last };
        self.batch = None;
        Some(if whole { BatchFate::Count } else { BatchFate::Drop })
    }

    fn report(&mut self, place: LinePlace, seq: Option<u64>, kind: DamageKind, reason: &str) -> Option<()> {
        let begins = self.batch.as_ref().map_or(place, |batch| batch.place);
        if self.damage.is_empty() && self.synced.is_some_and(|synced| begins.offset >= synced) {
            self.tail = Some(begins);
            if let Some(batch) = self.batch.take() {
                self.step_back(batch);
            }
            return None;
        }
        self.damage.push(Damage {
            path: LOG.to_owned(),
            offset: place.offset,
            line: place.line,
            seq,
            kind,
            reason: reason.to_owned(),
            id: None,
        });
        Some(())
    }
}
