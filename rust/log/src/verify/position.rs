//! Encodes how far a walk over a log without any finding has come, so that another process can continue it.

use super::{ErasureSeen, RedactedLines, Walk};
use crate::chain::{ChainMark, LinePlace};
use crate::digest::Hex;
use crate::disk::DiskFile;
use crate::event::erasure::Erasure;
use crate::event::line::{Event, Trust};
use crate::hint::line_from;
use crate::trail::Trail;

impl Walk {
    /// Encodes how far it has come; `None` if anything was found, or a line cannot be read. `offset_of` gives the offset of an event.
    pub fn position(&self, log: &dyn DiskFile, offset_of: impl Fn(u64) -> Option<u64>) -> Option<Vec<u8>> {
        let (follower, mark) = (&self.follower, &self.follower.mark);
        let is_clean = follower.damage.is_empty()
            && follower.scarred.is_empty()
            && follower.tail.is_none()
            && !follower.has_open_batch()
            && !mark.gap
            && !self.unterminated
            && self.blank_lines.is_empty()
            && self.unknown_fields.is_none()
            && self.redacted.count == 0;
        let (head, first) = (mark.head?, mark.first?);
        if !is_clean || mark.end != self.end {
            return None;
        }
        let mut out = Vec::new();
        let lines = [self.lines, self.latest as u64, self.fast_lines, self.slow_lines];
        push(&mut out, &[self.end]);
        push(&mut out, &lines);
        out.extend_from_slice(&head.raw());
        out.extend_from_slice(&first.raw());
        push(&mut out, &[mark.first_seq?, mark.last_seq, mark.highest_seq]);
        push(&mut out, &[mark.events, follower.claimed]);
        out.extend_from_slice(&self.redacted.step.unwrap_or(i128::MAX).to_le_bytes());
        push(
            &mut out,
            &[u64::from(self.redacted.is_jumping), self.erasures.len() as u64],
        );
        for seen in &self.erasures {
            push(&mut out, &[seen.index, seen.place.offset, seen.place.line]);
        }
        push(&mut out, &[u64::from(follower.has_trail)]);
        if let Some(trail) = &follower.trail {
            let open = trail.open_events();
            push(&mut out, &[trail.from, trail.events - open]);
            out.extend_from_slice(&trail.start);
            push(&mut out, &[open]);
            for index in mark.events.checked_sub(open)?..mark.events {
                let line = line_from(log, offset_of(index)?, self.end).ok()?;
                out.extend_from_slice(&event_of(&line)?.hash_and_raw(trimmed(&line)).1);
            }
        }
        Some(out)
    }

    /// Continues from what [`Walk::position`] encoded, in a log that was synced up to `synced`; `None` if it is no position.
    pub fn resume(position: &[u8], log: &dyn DiskFile, synced: Option<u64>) -> Option<Self> {
        let mut rest = Rest(position);
        let mut walk = Self::new(synced);
        walk.end = rest.take()?;
        walk.lines = rest.take()?;
        walk.latest = rest.take()? as i64;
        walk.fast_lines = rest.take()?;
        walk.slow_lines = rest.take()?;
        let (head, first) = (rest.raw()?, rest.raw()?);
        walk.follower.mark = ChainMark {
            head: Some(Hex::spell(&head)),
            first: Some(Hex::spell(&first)),
            first_seq: Some(rest.take()?),
            last_seq: rest.take()?,
            highest_seq: rest.take()?,
            events: rest.take()?,
            end: walk.end,
            gap: false,
        };
        walk.follower.claimed = rest.take()?;
        let (low, high) = (rest.take()?, rest.take()?);
        let step = i128::from(high as i64) << 64 | i128::from(low);
        walk.redacted = RedactedLines {
            step: (step != i128::MAX).then_some(step),
            is_jumping: rest.take()? != 0,
            ..RedactedLines::default()
        };
        for _ in 0..rest.take()? {
            let (index, offset, line) = (rest.take()?, rest.take()?, rest.take()?);
            let text = line_from(log, offset, walk.end).ok()?;
            let (event, text) = (event_of(&text)?, trimmed(&text));
            walk.erasures.push(ErasureSeen {
                index,
                place: LinePlace { offset, line },
                ts: String::from_utf8_lossy(event.ts(text)).into_owned(),
                told: Erasure::read(event.spans.seq, event.record_id(text), event.record(text))?,
            });
        }
        walk.follower.has_trail = rest.take()? != 0;
        if !rest.0.is_empty() {
            let (from, events, start) = (rest.take()?, rest.take()?, rest.raw()?);
            let mut trail = Trail::resume(start, from, events);
            for _ in 0..rest.take()? {
                trail.add(&rest.raw()?);
            }
            walk.follower.trail = Some(trail);
        }
        rest.0.is_empty().then_some(walk)
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn event_of(line: &[u8]) -> Option<Event> {
    Event::read(trimmed(line), Trust::Hashes).ok()
}

fn push(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers
        .iter()
        .for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

/// Numbers and digests, to be read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn take(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn raw(&mut self) -> Option<[u8; 32]> {
        self.bytes()
    }
}
