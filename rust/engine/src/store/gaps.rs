//! Where does a log not follow from itself?
//!
//! A gap is what stands between two good lines that do not follow from each other. Lines that cannot be read make one, and so
//! do lines that were taken out. A line that can be read may still not belong where it stands: a copy of an earlier one, one
//! that was moved, one that somebody wrote with a hash of its own. Which lines belong to the chain is told by those that link
//! to them: two branches from one line are decided by the one that goes on.

use std::collections::{HashSet, VecDeque};
use std::io;

use crate::digest::Hex;
use crate::disk::{DiskFile, read_upto};
use crate::event::line::{Event, Fault};
use crate::event::mend::Neighbours;
use crate::wal::reader::{Piece, Reading, read_pieces};

/// How far back a branch may have begun that turns out to lead nowhere.
const LONGEST_BRANCH: usize = 256;

/// A line that cannot be read, or does not belong where it stands.
pub(super) struct BadLine {
    /// Where it stands.
    pub offset: u64,
    /// Its bytes.
    pub text: Vec<u8>,
    /// Its physical line.
    pub number: u64,
    /// The seq that it claims.
    pub seq: Option<u64>,
    /// What is wrong.
    pub reason: String,
    /// It is an event with the right hash, but not here.
    pub is_whole: bool,
    /// And no other line knows of it, or only lines of its own branch: it may stand in the place of a true one.
    pub is_foreign: bool,
    /// It is one of several that follow each other, beside others that do so too: nothing tells which of them are true.
    pub is_branch: bool,
}

/// A stretch of the log between two good lines that do not follow from each other.
pub(super) struct Gap {
    /// Where it begins.
    pub start: u64,
    /// Where the next good line begins.
    pub end: u64,
    /// What is known of what belongs into it.
    pub neighbours: Neighbours,
    /// What stands there now.
    pub bad: Vec<BadLine>,
    /// What belongs there, once it is found.
    pub filling: Option<Vec<u8>>,
}

/// An event that does not belong where it stands.
pub(super) struct Stray {
    /// What it follows.
    pub prev: Option<Hex>,
    /// Its hash.
    pub hash: Hex,
    /// Its line.
    pub text: Vec<u8>,
}

/// A good line that was passed not long ago.
struct Passed {
    offset: u64,
    length: usize,
    number: u64,
    seq: u64,
    hash: Hex,
    /// What it followed.
    before: Option<Hex>,
}

/// Finds gaps while a log passes by.
pub(super) struct Finder<'a> {
    log: &'a dyn DiskFile,
    gaps: Vec<Gap>,
    open: Option<Gap>,
    head: Option<Hex>,
    last_seq: u64,
    /// Hashes that some line names as its predecessor's.
    linked: HashSet<[u8; 32]>,
    passed: VecDeque<Passed>,
    /// Events that stand where they do not belong.
    pub strays: Vec<Stray>,
    /// The highest seq of any line that can be read.
    pub highest_seq: u64,
    /// How many physical lines were passed.
    pub lines: u64,
    /// Behind the last newline.
    pub end: u64,
}

impl<'a> Finder<'a> {
    /// Looks through a log.
    ///
    /// # Errors
    /// What the disk says.
    pub fn of(log: &'a dyn DiskFile, length: u64, threads: usize) -> io::Result<Self> {
        let mut finder = Self {
            log,
            gaps: Vec::new(),
            open: None,
            head: None,
            last_seq: 0,
            linked: HashSet::new(),
            passed: VecDeque::new(),
            strays: Vec::new(),
            highest_seq: 0,
            lines: 0,
            end: 0,
        };
        let reading = Reading {
            trusted_until: 0,
            threads,
        };
        read_pieces(log, 0..length, reading, |piece| {
            finder.note_links(piece);
            io::Result::Ok(true)
        })?;
        read_pieces(log, 0..length, reading, |piece| {
            finder.look(piece)?;
            io::Result::Ok(true)
        })?;
        Ok(finder)
    }

    fn note_links(&mut self, piece: &Piece) {
        for line in &piece.lines {
            if let Ok(event) = &line.event {
                let prev = Hex::read_raw(event.prev_hash(piece.text(line)));
                self.linked.extend(prev);
                self.highest_seq = self.highest_seq.max(event.spans.seq);
            }
        }
    }

    fn look(&mut self, piece: &Piece) -> io::Result<()> {
        for line in &piece.lines {
            let (text, number) = (piece.text(line), self.lines + line.number + 1);
            match &line.event {
                Err(fault) => self.bad(line.offset, text, number, fault),
                Ok(event) => self.good(line.offset, text, number, event)?,
            }
        }
        self.lines += piece.physical;
        self.end = piece.end.unwrap_or(self.end);
        Ok(())
    }

    fn gap_at(&mut self, start: u64) -> &mut Gap {
        let head = self.head;
        self.open.get_or_insert_with(|| Gap {
            start,
            end: u64::MAX,
            neighbours: Neighbours {
                before: Some(head),
                after: None,
            },
            bad: Vec::new(),
            filling: None,
        })
    }

    /// A line that cannot be read.
    pub fn bad(&mut self, offset: u64, text: &[u8], number: u64, fault: &Fault) {
        self.passed.clear();
        let line = BadLine {
            offset,
            text: text.to_vec(),
            number,
            seq: fault.seq,
            reason: fault.reason.clone(),
            is_whole: false,
            is_foreign: false,
            is_branch: false,
        };
        self.gap_at(offset).bad.push(line);
    }

    fn good(&mut self, offset: u64, text: &[u8], number: u64, event: &Event) -> io::Result<()> {
        let (prev, hash) = (Hex::read(event.prev_hash(text)), event.hash(text));
        let passed = Passed {
            offset,
            length: text.len(),
            number,
            seq: event.spans.seq,
            hash,
            before: prev,
        };
        let is_first = self.head.is_none() && self.open.is_none();
        if prev != self.head && !is_first && self.is_astray(&passed) {
            return self.stray(passed, text);
        }
        if prev != self.head && self.open.is_none() {
            self.leave_branch(prev, passed.seq)?;
            self.gap_at(offset);
        }
        if let Some(mut gap) = self.open.take() {
            gap.end = offset;
            gap.neighbours.after = prev;
            self.gaps.push(gap);
        }
        (self.head, self.last_seq) = (Some(hash), passed.seq);
        if self.passed.len() == LONGEST_BRANCH {
            self.passed.pop_front();
        }
        self.passed.push_back(passed);
        Ok(())
    }

    /// Whether a line that does not follow from the last one belongs elsewhere, or nowhere.
    fn is_astray(&self, line: &Passed) -> bool {
        let goes_on = self.linked.contains(&line.hash.raw());
        let is_branch = self.passed.iter().any(|passed| passed.before == line.before);
        let is_again = self.passed.iter().any(|passed| passed.hash == line.hash);
        if is_branch && !is_again {
            // Two lines follow the same one: the one counts that others follow.
            return !goes_on && self.open.is_none();
        }
        line.before.is_none() || is_again || line.seq <= self.last_seq
    }

    fn stray(&mut self, line: Passed, text: &[u8]) -> io::Result<()> {
        self.strays.push(Stray {
            prev: line.before,
            hash: line.hash,
            text: text.to_vec(),
        });
        let bad = self.misplaced(&line, text.to_vec());
        self.gap_at(line.offset).bad.push(bad);
        Ok(())
    }

    /// The lines before this one do not lead to it. If it goes on from a line further back, or takes the very next place
    /// while nobody links to the last one, what stands between was put there.
    fn leave_branch(&mut self, prev: Option<Hex>, seq: u64) -> io::Result<()> {
        let fork = self.passed.iter().position(|passed| passed.before == prev);
        let replaced = self
            .passed
            .back()
            .filter(|last| last.seq + 1 == seq && !self.linked.contains(&last.hash.raw()))
            .map(|_| self.passed.len() - 1);
        let Some(first) = fork.or(replaced) else {
            return Ok(());
        };
        let branch: Vec<Passed> = self.passed.drain(first..).collect();
        let Some(start) = branch.first().map(|passed| passed.offset) else {
            return Ok(());
        };
        self.head = branch[0].before;
        let is_branch = branch.len() > 1;
        for passed in branch {
            let mut text = Vec::new();
            read_upto(self.log, &mut text, passed.offset, passed.length)?;
            let mut bad = self.misplaced(&passed, text);
            (bad.is_branch, bad.is_foreign) = (is_branch, bad.is_foreign || is_branch);
            self.gap_at(start).bad.push(bad);
        }
        Ok(())
    }

    fn misplaced(&self, line: &Passed, text: Vec<u8>) -> BadLine {
        BadLine {
            offset: line.offset,
            text,
            number: line.number,
            seq: Some(line.seq),
            reason: "the chain does not lead through this line".to_owned(),
            is_whole: true,
            is_foreign: !self.linked.contains(&line.hash.raw()),
            is_branch: false,
        }
    }

    /// The gaps, in order; one at the end of the log has no end yet.
    pub fn finish(mut self) -> Vec<Gap> {
        self.gaps.extend(self.open.take());
        self.gaps
    }
}
