//! Fills the gaps of a log with lines that the chain proves.
//!
//! A gap is what stands between two good lines that do not follow from each other: damaged lines, or none where some were
//! taken out. The line before it says what the gap must follow from, the line behind it what it must end with. So whatever
//! fills a gap is proved by the chain: lines found again by trying ([`chronolog::event::mend`]), or those of a copy.

use std::io;
use std::sync::Arc;

use chronolog::damage::DamageKind;
use chronolog::digest::Hex;
use chronolog::disk::{Disk, DiskFile, read_upto};
use chronolog::error::{At, Result};
use chronolog::event::line::{Event, Fault, Trust};
use chronolog::event::mend::{Budget, mend, mend_cut};
use chronolog::hint::{Hint, hint_for, read_hint};
use chronolog::layout::Layout;
use chronolog::log::files::Scratch;
use chronolog::origin::beginning_of;
use chronolog::wal::synced::Synced;

use super::bad_line::BadLine;
use super::gaps::{Elsewhere, Gap, Layer};
use super::losses::Lost;
use crate::store::files::proofs::{digests_of_bases, other_logs, was_restored};
use crate::store::load::found::missed_end;

/// So much may be hashed in search of lost bytes, in one repair: some seconds.
const MENDING_BLOCKS: u64 = 20_000_000;
/// How much is copied at a time.
const BUFFER_BYTES: u64 = 1024 * 1024;
/// A log with its gaps.
pub(in crate::store) struct Gaps {
    gaps: Vec<Gap>,
    length: u64,
    /// Up to here the log was whole once.
    promised: u64,
    /// The highest seq of any line that can be read.
    pub highest_seq: u64,
    copies: Vec<Arc<dyn DiskFile>>,
    /// The event that was synced last, if it is nowhere to be had and the log goes on as if it had never been.
    pub replaced_end: Option<Synced>,
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
        let bases = digests_of_bases(disk, layout);
        let mut layer = Layer::of(log, &[], known, &bases, threads)?;
        if !layer.is_whole(head) || layer.is_damaged(length) {
            copies = other_logs(disk, layout)?;
            layer = Layer::of(log, &copies, known, &bases, threads)?;
            if layer.ends_in_copy() && !speaks_of_it && !layer.meets_log() {
                // What was synced was another log.
                layer = Layer::of(log, &copies, None, &bases, threads)?;
            }
        }
        let highest_seq = layer.highest_seq;
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
        let missed = match hint {
            Hint::Contradicted(synced) => Some(synced),
            // Where no line can be read, its only one may be the event that it names.
            Hint::None if layer.is_unreadable() => known,
            Hint::None => missed_end(known, &beginning_of(log, length)?, highest_seq),
            Hint::Synced(_) => None,
        };
        if let Some(synced) = known.filter(|_| layer.is_anchored() || missed.is_some()) {
            layer.begin_in_copies(synced.first);
        }
        if !was_restored(disk, layout) {
            layer.go_on_in_copies(missed.as_ref(), length);
        }
        let lost_end = missed.filter(|synced| layer.loses(synced));
        let replaced_end = missed.filter(|synced| lost_end.is_none() && !layer.names(&synced.head));
        let gaps = layer.gaps(length, cut_line, lost_end)?;
        Ok(Self {
            gaps,
            length,
            promised,
            highest_seq,
            copies,
            replaced_end,
        })
    }

    /// Whether what the log began with stays lost.
    pub fn lose_the_first(&self) -> bool {
        self.gaps
            .first()
            .is_some_and(|gap| gap.start == 0 && gap.first.is_empty() && gap.filling.is_none())
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
            // The last line of the log may have lost nothing but its newline.
            let mut found_again = |line: &BadLine| {
                let mended = mend(&line.text, neighbours, &mut budget);
                mended.or_else(|| mend_cut(&line.text, b"", neighbours))
            };
            gap.filling = match (&unreadable[..], &gap.bad[..]) {
                ([line], _) => found_again(line),
                ([], [line]) => found_again(line),
                ([first, second], _) => mend_cut(&first.text, &second.text, neighbours),
                _ => None,
            };
            let next = gap.next.filter(|_| gap.goes_on_before());
            if let Some(line) = &gap.filling
                && next.is_some_and(|next| hash_of(line) == Some(next))
            {
                // It is the line behind it once more: nothing was lost with it.
                gap.filling = Some(Vec::new());
            }
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

    /// The events that stay lost, each with its place in the log as it stands.
    pub fn lost(&self) -> Vec<Lost> {
        let (mut found, mut shift) = (Vec::new(), 0);
        for gap in &self.gaps {
            if gap.filling.is_none() {
                let (first, kept) = gap.lengths();
                found.extend(gap.lost().into_iter().map(|lost| {
                    let place = lost.offset.min(gap.start + kept) + first;
                    Lost {
                        healed_offset: place.saturating_add_signed(shift),
                        ..lost
                    }
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

/// The hash of the event on a line.
fn hash_of(line: &[u8]) -> Option<Hex> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    Event::read(line, Trust::Hashes).ok().map(|event| event.hash(line))
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

    /// How long the lines are that come before what is lost, and those that are left of it.
    fn lengths(&self) -> (u64, u64) {
        let first = self.first.iter().map(|lines| lines.bytes.end - lines.bytes.start);
        let unreadable = self.bad.iter().filter(|line| !line.is_whole);
        (first.sum(), unreadable.map(|line| line.text.len() as u64 + 1).sum())
    }

    /// By how much that moves what comes behind it.
    fn shift(&self) -> i64 {
        let replaced = (self.end - self.start) as i64;
        let length = |pieces: Vec<Instead<'_>>| pieces.iter().map(Instead::length).sum::<u64>() as i64;
        self.instead().map_or(0, |pieces| length(pieces) - replaced)
    }
}
