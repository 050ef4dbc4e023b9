//! Which lines did a log have where it is damaged now?
//!
//! A gap is what stands between two good lines that do not follow from each other: damaged lines, or none where some were
//! taken out. The line before it says what the gap must follow from, the line behind it what it must end with. So whatever
//! fills a gap is proved by the chain: lines found again by trying ([`crate::event::mend`]), or those of a copy.

use std::io;
use std::sync::Arc;

use crate::damage::DamageKind;
use crate::disk::{Disk, DiskFile, read_upto};
use crate::error::{At, Result};
use crate::event::line::Fault;
use crate::event::mend::{Budget, mend, mend_cut};
use crate::hint::{Hint, hint_for, read_hint};
use crate::json::{self, Value};
use crate::layout::Layout;
use crate::log::files::Scratch;

use super::gaps::{BadLine, Elsewhere, Gap, Layer};
use super::proofs::other_logs;

/// So much may be hashed in search of lost bytes, in one repair: some seconds.
const MENDING_BLOCKS: u64 = 100_000_000;
/// How much is copied at a time.
const BUFFER_BYTES: u64 = 1024 * 1024;
/// What stands before the id of the record in a line of our own form.
const RECORD_ID: &[u8] = b"\"record_id\":";

/// An event that could not be brought back.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    /// Where it stood.
    pub offset: u64,
    /// Where that is once the other gaps are filled.
    pub healed_offset: u64,
    /// Its physical line; 0 if the line is gone.
    pub line: u64,
    /// Its seq, if that can be read.
    pub seq: Option<u64>,
    /// The record that it spoke of, if that can be read. Nothing proves it.
    pub id: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// A later line links to it, or to what came before it and is lost too.
    is_linked: bool,
}

impl Lost {
    /// For people.
    pub fn tell(&self) -> String {
        let mut said = format!("byte {}", self.offset);
        if self.line > 0 {
            said += &format!(" (line {})", self.line);
        }
        if let Some(seq) = self.seq {
            said += &format!(", event {seq}");
        }
        if let Some(id) = &self.id {
            said += &format!(", it seems of {id:?}");
        }
        format!("{said}: {}", self.reason)
    }
}

/// A log with its gaps.
pub(super) struct Gaps {
    gaps: Vec<Gap>,
    length: u64,
    /// Up to here the log was whole once.
    promised: u64,
    /// The highest seq of any line that can be read.
    pub highest_seq: u64,
    /// The log was cut, and a copy has what came behind.
    pub ends_in_copy: bool,
    copies: Vec<Arc<dyn DiskFile>>,
}

/// What is to be read in the place of a gap, piece by piece.
enum Instead<'a> {
    Bytes(&'a [u8]),
    Lines(&'a Elsewhere),
}

impl Instead<'_> {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Lines(lines) => lines.bytes.end - lines.bytes.start,
        }
    }
}

impl Gaps {
    /// Finds the gaps of a log, and what other logs of the folder have in their place.
    ///
    /// # Errors
    /// What the disk says.
    pub fn find(disk: &dyn Disk, layout: &Layout, log: &dyn DiskFile, threads: usize) -> io::Result<Self> {
        let length = log.length()?;
        let known = read_hint(disk, layout)?;
        let hint = hint_for(known, log, length)?;
        let speaks_of_it = hint != Hint::None;
        let head = known.map(|synced| synced.head);
        let mut copies = Vec::new();
        let mut layer = Layer::of(log, &[], head, threads)?;
        if !layer.is_whole(head) {
            copies = other_logs(disk, layout)?;
            layer = Layer::of(log, &copies, head, threads)?;
            if layer.ends_in_copy() && !speaks_of_it && !layer.meets_log() {
                // What was synced was another log.
                layer = Layer::of(log, &copies, None, threads)?;
            }
        }
        let (highest_seq, ends_in_copy) = (layer.highest_seq, layer.ends_in_copy());
        let promised = hint.promised().unwrap_or(0);
        // What comes behind the last newline is a line that lost its end, if the log was whole up to there once.
        let mut cut_line = None;
        if layer.end < length && promised > layer.end {
            let mut text = Vec::new();
            read_upto(log, &mut text, layer.end, (length - layer.end) as usize)?;
            let fault = Fault {
                kind: DamageKind::Unreadable,
                reason: "the line has lost its end".to_owned(),
                seq: None,
            };
            cut_line = Some(BadLine::unreadable(layer.end, &text, layer.lines + 1, &fault));
        }
        // The last line of a log is named by nobody but the hint about the last sync.
        let lost_end = match hint {
            Hint::Contradicted(synced) => layer.loses(&synced).then_some(synced.head),
            _ => None,
        };
        let gaps = layer.gaps(length, cut_line, lost_end)?;
        Ok(Self {
            gaps,
            length,
            promised,
            highest_seq,
            ends_in_copy,
            copies,
        })
    }

    /// Looks for what was lost in the gaps, by trying.
    pub fn mend(&mut self) {
        let mut budget = Budget::of(MENDING_BLOCKS);
        for gap in &mut self.gaps {
            let Some(mut neighbours) = gap.hole else {
                gap.filling = Some(Vec::new());
                continue;
            };
            if gap.goes_on_before() {
                // Who wrote behind a damaged end linked to the last good line: that does not tell what stood between.
                neighbours.after = None;
            }
            // A line that can be read is tried only where no other stands: somebody may have altered it, and its hash too.
            let unreadable: Vec<&BadLine> = gap.bad.iter().filter(|line| !line.is_whole).collect();
            gap.filling = match (&unreadable[..], &gap.bad[..]) {
                ([line], _) => mend(&line.text, neighbours, &mut budget),
                ([], [line]) => mend(&line.text, neighbours, &mut budget),
                ([first, second], _) => mend_cut(&first.text, &second.text, neighbours),
                _ => None,
            };
        }
    }

    /// Up to which place the log was whole once, when the gaps are filled.
    pub fn healed_promise(&self) -> u64 {
        let before = self.gaps.iter().filter(|gap| gap.end <= self.promised);
        self.promised.saturating_add_signed(before.map(Gap::shift).sum())
    }

    /// Where lines are lost of which nothing tells that they ever were part of the chain, once the other gaps are filled.
    pub fn doubtful(&self) -> Vec<u64> {
        let is_told = |lost: &Lost| lost.is_linked || lost.offset < self.promised;
        let lost = self.lost().into_iter().filter(|lost| !is_told(lost));
        lost.map(|lost| lost.healed_offset).collect()
    }

    /// How many gaps were filled.
    pub fn filled(&self) -> u64 {
        self.gaps.iter().filter(|gap| gap.filling.is_some()).count() as u64
    }

    /// Whether the log reads differently once it is written with its gaps filled.
    pub fn are_changed(&self) -> bool {
        self.gaps.iter().any(|gap| gap.instead().is_some())
    }

    /// The events that stay lost.
    pub fn lost(&self) -> Vec<Lost> {
        let (mut found, mut shift) = (Vec::new(), 0);
        for gap in &self.gaps {
            if gap.filling.is_none() {
                found.extend(gap.lost().into_iter().map(|lost| Lost {
                    healed_offset: lost.offset.saturating_add_signed(shift),
                    ..lost
                }));
            }
            shift += gap.shift();
        }
        found
    }

    /// Writes the log with its gaps filled, durably.
    ///
    /// # Errors
    /// `Io`.
    pub fn write(&self, disk: &Arc<dyn Disk>, log: &dyn DiskFile, layout: &Layout) -> Result<Scratch> {
        let archives = layout.archives();
        disk.create_dir(&archives).at(&archives)?;
        disk.sync_dir(layout.folder()).at(layout.folder())?;
        let scratch = Scratch::at(disk, layout.healed_draft());
        let path = scratch.path();
        let file = disk.create(path).at(path)?;
        let (mut from, mut to) = (0, 0);
        let copy = |source: usize, range: std::ops::Range<u64>, to: &mut u64| -> Result<()> {
            let source = match source.checked_sub(1) {
                None => log,
                Some(copy) => &*self.copies[copy],
            };
            let mut offset = range.start;
            let mut buffer = Vec::new();
            while offset < range.end {
                buffer.clear();
                let wanted = (range.end - offset).min(BUFFER_BYTES) as usize;
                if read_upto(source, &mut buffer, offset, wanted).at(path)? == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof)).at(path);
                }
                file.write_at(&buffer, *to).at(path)?;
                offset += buffer.len() as u64;
                *to += buffer.len() as u64;
            }
            Ok(())
        };
        for gap in &self.gaps {
            let Some(instead) = gap.instead() else { continue };
            copy(0, from..gap.start, &mut to)?;
            for piece in &instead {
                match piece {
                    Instead::Lines(lines) => copy(lines.source, lines.bytes.clone(), &mut to)?,
                    Instead::Bytes(bytes) => {
                        file.write_at(bytes, to).at(path)?;
                        to += piece.length();
                    }
                }
            }
            from = gap.end;
        }
        copy(0, from..self.length, &mut to)?;
        file.sync().at(path)?;
        Ok(scratch)
    }
}

impl Gap {
    /// What is to be read in its place; `None` if that is what stands there. Lines that do not belong here are never read.
    fn instead(&self) -> Option<Vec<Instead<'_>>> {
        let is_same = self.filling.is_none() && self.bad.iter().all(|line| !line.is_whole);
        if is_same && self.first.is_empty() && self.then.is_empty() {
            return None;
        }
        let unreadable = self.bad.iter().filter(|line| !line.is_whole);
        let kept = || unreadable.flat_map(|line| [Instead::Bytes(&line.text), Instead::Bytes(b"\n")]);
        let mut pieces: Vec<Instead<'_>> = self.first.iter().map(Instead::Lines).collect();
        match &self.filling {
            Some(lines) => pieces.push(Instead::Bytes(lines)),
            None => pieces.extend(kept()),
        }
        pieces.extend(self.then.iter().map(Instead::Lines));
        Some(pieces)
    }

    /// By how much that moves what comes behind it.
    fn shift(&self) -> i64 {
        let replaced = (self.end - self.start) as i64;
        let length = |pieces: Vec<Instead<'_>>| pieces.iter().map(Instead::length).sum::<u64>() as i64;
        self.instead().map_or(0, |pieces| length(pieces) - replaced)
    }

    /// Whether the line behind follows from the line before.
    fn goes_on_before(&self) -> bool {
        self.hole
            .is_some_and(|hole| hole.after.is_some() && hole.before == Some(hole.after))
    }

    fn lost(&self) -> Vec<Lost> {
        if self.bad.is_empty() {
            return vec![Lost {
                offset: self.start,
                healed_offset: self.start,
                line: 0,
                seq: None,
                id: None,
                reason: "lines were taken out, or others put in their place".to_owned(),
                is_linked: true,
            }];
        }
        let of_line = |line: &BadLine| Lost {
            offset: line.offset,
            healed_offset: line.offset,
            line: line.number,
            seq: line.seq,
            id: seeming_id(&line.text).filter(|_| !line.is_whole || line.is_foreign),
            reason: line.reason.clone(),
            is_linked: self.hole.is_some_and(|hole| hole.after.is_some()) && !self.goes_on_before(),
        };
        self.bad.iter().map(of_line).collect()
    }
}

/// The record that a damaged line seems to speak of.
fn seeming_id(line: &[u8]) -> Option<String> {
    let start = memchr::memmem::rfind(line, RECORD_ID)? + RECORD_ID.len();
    let rest = line.get(start..)?;
    let end = (1..rest.len()).find(|at| rest[*at] == b'"' && rest[at - 1] != b'\\')?;
    match json::parse(&rest[..=end]) {
        Ok(Value::Str(id)) if !id.is_empty() => Some(id),
        _ => None,
    }
}
