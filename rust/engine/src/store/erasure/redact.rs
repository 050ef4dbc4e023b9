//! Finds the lines of a log that an erasure removes, and shows the log with only their seq and hash left.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use super::chosen::Chosen;
use crate::store::archives::replay::Replay;
use chronolog::chain::BatchFate;
use chronolog::digest::Hex;
use chronolog::disk::{DiskFile, Identity};
use chronolog::event::erasure::write_redacted;
use chronolog::event::line::{Event, Trust};
use chronolog::event::{IncomingEvents, Known, Op, salt};
use chronolog::hint::line_from;
use chronolog::memory::{self, Refused};
use chronolog::verify::{Sink, Walk};
use chronolog::wal::reader::Reading;

/// A line that goes.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct DoomedLine {
    pub offset: u64,
    pub seq: u64,
    pub hash: Hex,
}

/// What stands in the place of a line that went.
#[derive(Clone)]
struct Cut {
    /// Where that begins, in the log as it reads then.
    at: u64,
    left: Vec<u8>,
    /// Where the next line begins, in the log as it was.
    next: u64,
}

/// A log as it reads when only seq and hash are left of some lines. Nothing of it is in memory but that.
#[derive(Clone)]
pub(in crate::store) struct Redacted {
    log: Arc<dyn DiskFile>,
    pub length: u64,
    /// How many bytes less that is than it was, and how many more.
    taken: u64,
    left_over: u64,
    cuts: Arc<Vec<Cut>>,
}

impl Redacted {
    /// Nothing of a log yet.
    pub fn nothing_of(log: &Arc<dyn DiskFile>) -> Self {
        Self {
            log: Arc::clone(log),
            length: 0,
            taken: 0,
            left_over: 0,
            cuts: Arc::default(),
        }
    }

    /// Goes on to a later place, with all lines that go up to there, in order: those before it are known already.
    pub fn go_on(&mut self, end: u64, hits: &[DoomedLine]) -> io::Result<()> {
        let known = self.cuts.len();
        for hit in &hits[known..] {
            let length = line_from(&*self.log, hit.offset, end)?.len() as u64;
            let mut left = Vec::new();
            write_redacted(hit.seq, &hit.hash, &mut left);
            let at = hit.offset - self.taken + self.left_over;
            let next = end.min(hit.offset + length + 1);
            self.taken += next - hit.offset;
            self.left_over += left.len() as u64;
            Arc::make_mut(&mut self.cuts).push(Cut { at, left, next });
        }
        self.length = end - self.taken + self.left_over;
        Ok(())
    }
}

impl DiskFile for Redacted {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let following = self.cuts.partition_point(|cut| cut.at <= offset);
        let until = self.cuts.get(following).map_or(self.length, |cut| cut.at);
        let room = usize::try_from(until.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = room.min(buffer.len());
        let Some(cut) = following.checked_sub(1).map(|before| &self.cuts[before]) else {
            return self.log.read_at(&mut buffer[..wanted], offset);
        };
        let inside = offset - cut.at;
        match cut.left.get(inside as usize..).filter(|left| !left.is_empty()) {
            Some(left) => {
                let some = left.len().min(wanted);
                buffer[..some].copy_from_slice(&left[..some]);
                Ok(some)
            }
            None => {
                let behind = inside - cut.left.len() as u64;
                self.log.read_at(&mut buffer[..wanted], cut.next + behind)
            }
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.log.identity()
    }
}

/// How many of these lines have no salt.
pub(in crate::store) fn unsalted(log: &dyn DiskFile, end: u64, hits: &[DoomedLine]) -> io::Result<u64> {
    let mut found = 0;
    for hit in hits {
        let line = line_from(log, hit.offset, end)?;
        let is_salted = Event::read(&line, Trust::Hashes).is_ok_and(|event| salt::is_salted(event.record(&line)));
        found += u64::from(!is_salted);
    }
    Ok(found)
}

/// The lines of one log that are erased.
#[derive(Debug, Default)]
pub(in crate::store) struct LinesOfLog {
    pub hits: Vec<DoomedLine>,
    /// One of them is an act, which changed other records too.
    pub has_acts: bool,
    /// Each line of the log has the seq of its place.
    pub is_even: bool,
}

impl LinesOfLog {
    /// Adds a line.
    pub fn take(&mut self, known: &Known<'_>) {
        if let Some(hash) = Hex::read(known.hash) {
            self.has_acts |= known.op == Op::Act;
            self.hits.push(DoomedLine {
                offset: known.offset,
                seq: known.seq,
                hash,
            });
        }
    }
}

/// The live log as far as it was scanned.
pub(in crate::store) struct LiveLines {
    pub lines: LinesOfLog,
    pub walk: Walk,
}

impl LiveLines {
    /// Scans what was appended up to a place, and replays what is kept; true if the erasure has to begin again.
    pub fn go_on(
        &mut self,
        log: &dyn DiskFile,
        end: u64,
        chosen: &mut Chosen,
        replay: Option<&mut Replay>,
    ) -> io::Result<bool> {
        let before = self.lines.hits.len();
        let mut rest = Rest {
            chosen,
            lines: &mut self.lines,
            replay,
            is_upset: false,
        };
        let reading = Reading {
            trusted_until: end,
            threads: 1,
        };
        let tail = self.walk.go(log, end, reading, &mut rest)?;
        let is_upset = rest.is_upset || tail.is_some();
        self.lines.is_even = self.walk.redacted.is_even();
        // Which lines may go where seqs jump is a question to all of them.
        Ok(is_upset || (self.lines.hits.len() > before && !self.lines.is_even))
    }
}

/// Looks at what was appended.
struct Rest<'a> {
    chosen: &'a mut Chosen,
    lines: &'a mut LinesOfLog,
    replay: Option<&'a mut Replay>,
    is_upset: bool,
}

impl Rest<'_> {
    fn see(&mut self, known: &Known<'_>) {
        self.is_upset |= self.chosen.is_upset_by(known);
        if self.chosen.doomed.takes(known) {
            self.lines.take(known);
            self.chosen.saw([known.id.to_vec()].into());
        }
    }
}

impl Sink for Rest<'_> {
    fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        match &mut self.replay {
            Some(replay) => replay.make_room(coming),
            None => memory::check(),
        }
    }

    fn count(&mut self, known: Known<'_>, ts: i64) {
        self.see(&known);
        if let Some(replay) = &mut self.replay {
            replay.count(known, ts);
        }
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        self.see(&known);
        if let Some(replay) = &mut self.replay {
            replay.hold(known, ts);
        }
    }

    fn settle(&mut self, held: BatchFate) {
        if let Some(replay) = &mut self.replay {
            replay.settle(held);
        }
    }
}

/// Reads a trusted log to its end.
pub(in crate::store) fn walk(log: &dyn DiskFile, end: u64, threads: usize, sink: &mut dyn Sink) -> io::Result<Walk> {
    walk_without(log, end, threads, HashSet::new(), sink)
}

/// The same, as if the lines at some places were erased.
pub(super) fn walk_without(
    log: &dyn DiskFile,
    end: u64,
    threads: usize,
    going: HashSet<u64>,
    sink: &mut dyn Sink,
) -> io::Result<Walk> {
    let reading = Reading {
        trusted_until: end,
        threads,
    };
    let mut walk = Walk::new(None);
    walk.redacted.going = going;
    walk.go(log, end, reading, sink)?;
    Ok(walk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronolog::disk::{Bytes, read_upto};

    /// Reads all of it in pieces of this size.
    fn text(log: &Redacted, piece: usize) -> Vec<u8> {
        let mut text = Vec::new();
        while read_upto(log, &mut text.clone(), text.len() as u64, 1).expect("read") > 0 {
            let at = text.len() as u64;
            read_upto(log, &mut text, at, piece).expect("read");
        }
        text
    }

    #[test]
    fn a_log_reads_with_what_is_left_of_its_lines() {
        let lines = ["first line\n", "x\n", "\n", "another that is long\n", "last\n"];
        let log: Arc<dyn DiskFile> = Arc::new(Bytes(lines.concat().into_bytes()));
        let hash = Hex::read(&[b'a'; 64]).expect("digits");
        let end = log.length().expect("a length");
        for going in 0_u32..1 << lines.len() {
            let (mut offset, mut hits, mut awaited) = (0, Vec::new(), Vec::new());
            for (seq, line) in lines.iter().enumerate() {
                if going & 1 << seq == 0 {
                    awaited.extend_from_slice(line.as_bytes());
                } else {
                    let seq = seq as u64;
                    hits.push(DoomedLine { offset, seq, hash });
                    write_redacted(seq, &hash, &mut awaited);
                }
                offset += line.len() as u64;
            }
            let mut redacted = Redacted::nothing_of(&log);
            redacted.go_on(end, &hits).expect("read");
            assert_eq!(redacted.length, awaited.len() as u64);
            for piece in [1, 2, 7, 50, 1000] {
                assert_eq!(text(&redacted, piece), awaited, "{going:b} {piece}");
            }
            let half = lines[..3].concat().len() as u64;
            let before = hits.partition_point(|hit| hit.offset < half);
            let mut grown = Redacted::nothing_of(&log);
            grown.go_on(half, &hits[..before]).expect("read");
            assert!(awaited.starts_with(&text(&grown, 7)), "what was read before stays");
            grown.go_on(end, &hits).expect("read");
            assert_eq!(text(&grown, 7), awaited, "{going:b} in two steps");
        }
    }
}
