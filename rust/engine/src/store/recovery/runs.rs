//! Divides a file into runs of lines that follow directly from each other.
//!
//! A log without damage is one run. Only where runs begin and end is kept, so what this takes grows with what is wrong with a
//! log, not with its length.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::event::Op;
use chronolog::event::line::{Event, Fault};
use chronolog::origin::{Origin, origin_in};
use chronolog::wal::reader::{Reading, read_pieces};

/// Lines that follow each other.
#[derive(Clone, Debug)]
pub(in crate::store) struct LineRun {
    /// The file that it stands in: 0 is the log itself, the others are copies.
    pub source: usize,
    /// Where it stands there.
    pub bytes: Range<u64>,
    /// The physical line that it begins with.
    pub number: u64,
    /// How many events it has.
    pub events: u64,
    /// What its first event follows.
    pub prev: Option<Hex>,
    /// The base that its first event names, if that is a compaction of ours.
    pub base: Option<Hex>,
    /// The seq of its first event.
    pub first_seq: u64,
    /// The seq of its last event.
    pub last_seq: u64,
    /// The hash of its first event.
    pub first: Hex,
    /// The hash of its last event.
    pub last: Hex,
    /// Whether its first and its last line are of our own form, and so are counted one by one: other tools may count otherwise.
    pub are_ours: (bool, bool),
}

/// Where runs are divided although their lines follow each other: another run may go on from there.
#[derive(Debug, Default)]
pub(in crate::store) struct Cuts {
    behind: HashSet<[u8; 32]>,
    before: HashSet<u64>,
}

impl Cuts {
    /// Divides runs where others branch off or end, and where an event stands whose place the first one of another run
    /// takes: so a run belongs to a chain as a whole or not at all.
    pub fn of(runs: &[LineRun], anchor: Option<Hex>) -> Self {
        let mut cuts = Self::default();
        cuts.behind.extend(anchor.map(|head| head.raw()));
        for run in runs {
            cuts.behind.extend(run.prev.map(|prev| prev.raw()));
            if run.source == 0 {
                cuts.behind.insert(run.last.raw());
                cuts.before.extend(run.first_seq.checked_sub(1));
            }
        }
        cuts
    }

    /// Divides runs behind an event as well; says whether they were not divided there before.
    pub fn cut_behind(&mut self, hash: &Hex) -> bool {
        self.behind.insert(hash.raw())
    }

    fn is_between(&self, last: &LineRun, next: &Event) -> bool {
        self.behind.contains(&last.last.raw()) || self.before.contains(&next.spans.seq)
    }
}

/// What stands in a file.
#[derive(Debug, Default)]
pub(in crate::store) struct Scan {
    /// Its runs, in order.
    pub runs: Vec<LineRun>,
    /// The highest seq of any line that can be read.
    pub highest_seq: u64,
    /// How many physical lines there are.
    pub lines: u64,
    /// Behind the last newline.
    pub end: u64,
}

/// A line that cannot be read: its place, its bytes, its physical line, and what is wrong.
pub(in crate::store) type OnBad<'a> = &'a mut dyn FnMut(u64, &[u8], u64, &Fault);

impl Scan {
    /// Reads a file.
    ///
    /// # Errors
    /// What the disk says.
    pub fn of(file: &dyn DiskFile, source: usize, cuts: &Cuts, threads: usize, on_bad: OnBad<'_>) -> io::Result<Self> {
        let mut scan = Self::default();
        let mut open: Option<LineRun> = None;
        let reading = Reading {
            trusted_until: 0,
            threads,
        };
        read_pieces(file, 0..file.length()?, reading, |piece| {
            for line in &piece.lines {
                let (text, number) = (piece.text(line), scan.lines + line.number + 1);
                let event = match &line.event {
                    Ok(event) => event,
                    Err(fault) => {
                        scan.runs.extend(open.take());
                        on_bad(line.offset, text, number, fault);
                        continue;
                    }
                };
                let (prev, last, seq) = (Hex::read(event.prev_hash(text)), event.hash(text), event.spans.seq);
                let end = line.offset + text.len() as u64 + 1;
                scan.highest_seq = scan.highest_seq.max(seq);
                match &mut open {
                    Some(run) if prev == Some(run.last) && !cuts.is_between(run, event) => {
                        run.are_ours.1 = event.is_our_spelling(text);
                        (run.bytes.end, run.last, run.last_seq) = (end, last, seq);
                        run.events += 1;
                    }
                    _ => scan.runs.extend(open.replace(LineRun {
                        source,
                        bytes: line.offset..end,
                        number,
                        events: 1,
                        prev,
                        base: base_named(text, event),
                        first_seq: seq,
                        last_seq: seq,
                        first: last,
                        last,
                        are_ours: (event.is_our_spelling(text), event.is_our_spelling(text)),
                    })),
                }
            }
            scan.lines += piece.physical;
            scan.end = piece.end.unwrap_or(scan.end);
            io::Result::Ok(true)
        })?;
        scan.runs.extend(open);
        Ok(scan)
    }
}

/// The base that the first event of a log names.
fn base_named(text: &[u8], event: &Event) -> Option<Hex> {
    let is_first = event.op == Op::Compact && event.prev_hash(text).is_empty();
    match is_first.then(|| origin_in(text)).flatten() {
        Some(Origin::Ours(sentinel)) => sentinel.base_sha256,
        _ => None,
    }
}

/// Hands over every event of a stretch of whole lines: its place, its physical line counted from 0, its bytes, itself.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn each_event(
    file: &dyn DiskFile,
    bytes: Range<u64>,
    mut take: impl FnMut(u64, u64, &[u8], &Event),
) -> io::Result<()> {
    let reading = Reading {
        trusted_until: 0,
        threads: 1,
    };
    let mut lines = 0;
    read_pieces(file, bytes, reading, |piece| {
        for line in &piece.lines {
            if let Ok(event) = &line.event {
                take(line.offset, lines + line.number, piece.text(line), event);
            }
        }
        lines += piece.physical;
        io::Result::Ok(true)
    })
}
