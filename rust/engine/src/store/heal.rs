//! Which lines did a log have where it is damaged now?
//!
//! A gap is what stands between two good lines that do not follow from each other: damaged lines, or none where some were
//! taken out. The line before it says what the gap must follow from, the line behind it what it must end with. So whatever
//! fills a gap is proved by the chain: lines found again by trying ([`crate::event::mend`]), or those of a copy.

use std::io;
use std::sync::Arc;

use crate::damage::DamageKind;
use crate::digest::Hex;
use crate::disk::{Disk, DiskFile, read_upto};
use crate::error::{At, Result};
use crate::event::line::Fault;
use crate::event::mend::{Budget, mend, mend_cut};
use crate::hint::{Hint, hint_for, read_hint};
use crate::layout::Layout;
use crate::wal::reader::{Reading, read_pieces};

use super::care::Scratch;
use super::gaps::{BadLine, Finder, Gap, Stray};
use super::proofs::other_logs;
use super::seeming;

/// So much may be hashed in search of lost bytes, in one repair: some seconds.
const MENDING_BLOCKS: u64 = 100_000_000;
/// How much is copied at a time.
const BUFFER_BYTES: u64 = 1024 * 1024;
/// How many ids are told of one line.
pub(super) const MOST_TOLD: usize = 20;

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
    /// The records that it spoke of, as far as they can be read. Nothing proves them.
    pub ids: Vec<String>,
    /// The rows that it took back, as far as they can be read.
    pub gone_rows: Vec<u32>,
    /// It said which embeddings there are.
    pub is_of_embeddings: bool,
    /// How many events followed it as a batch, if it opened one and that can be read.
    pub batch: Option<u32>,
    /// What became doubtful with it, for people.
    pub doubt: Option<String>,
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
        if let Some(events) = self.batch {
            said += &format!(", it seems the begin of a batch of {events}");
        }
        let ids: Vec<String> = self.ids.iter().take(MOST_TOLD).map(|id| format!("{id:?}")).collect();
        if !ids.is_empty() {
            said += &format!(", it seems of {}", ids.join(", "));
        }
        if self.ids.len() > MOST_TOLD {
            said += &format!(" and {} more", self.ids.len() - MOST_TOLD);
        }
        let doubt = self.doubt.iter().map(|doubt| format!("; {doubt}"));
        format!("{said}: {}{}", self.reason, doubt.collect::<String>())
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
    strays: Vec<Stray>,
}

impl Gaps {
    /// Finds the gaps of a log.
    ///
    /// # Errors
    /// What the disk says.
    pub fn find(disk: &dyn Disk, layout: &Layout, log: &dyn DiskFile, threads: usize) -> io::Result<Self> {
        let length = log.length()?;
        let mut finder = Finder::of(log, length, threads)?;
        let hint = hint_for(read_hint(disk, layout)?, log, length)?;
        // What comes behind the last newline is a line that lost its end, if the log was whole up to there once.
        if finder.end < length && hint.promised().is_some_and(|whole| whole > finder.end) {
            let mut text = Vec::new();
            read_upto(log, &mut text, finder.end, (length - finder.end) as usize)?;
            let fault = Fault {
                kind: DamageKind::Unreadable,
                reason: "the line has lost its end".to_owned(),
                seq: None,
            };
            let number = finder.lines + 1;
            finder.bad(finder.end, &text, number, &fault);
        }
        let (highest_seq, strays) = (finder.highest_seq, std::mem::take(&mut finder.strays));
        let mut gaps = finder.finish();
        if let Some(gap) = gaps.last_mut().filter(|gap| gap.end == u64::MAX) {
            gap.end = length;
            // The last line of a log is named by nobody but the hint about the last sync.
            if let Hint::Contradicted(synced) = hint
                && synced.offset >= length
                && gap.neighbours.before != Some(Some(synced.head))
            {
                gap.neighbours.after = Some(synced.head);
            }
        }
        Ok(Self {
            gaps,
            length,
            promised: hint.promised().unwrap_or(0),
            highest_seq,
            strays,
        })
    }

    /// Looks for what stood in the gaps.
    ///
    /// # Errors
    /// What the disk says.
    pub fn fill(&mut self, disk: &dyn Disk, layout: &Layout, threads: usize) -> io::Result<()> {
        for gap in &mut self.gaps {
            gap.fill_with(&self.strays);
        }
        for log in other_logs(disk, layout)? {
            self.fill_from(&*log, threads)?;
        }
        let mut budget = Budget::of(MENDING_BLOCKS);
        for gap in self.gaps.iter_mut().filter(|gap| gap.filling.is_none()) {
            let mut neighbours = gap.neighbours;
            if gap.goes_on_before() {
                // Who wrote behind a damaged end linked to the last good line: that does not tell what stood between.
                neighbours.after = None;
            }
            gap.filling = match &gap.bad[..] {
                [line] => mend(&line.text, neighbours, &mut budget),
                [first, second] => mend_cut(&first.text, &second.text, neighbours),
                _ => None,
            };
        }
        Ok(())
    }

    /// Takes lines from a copy that lead from the line before a gap to the line behind it.
    fn fill_from(&mut self, copy: &dyn DiskFile, threads: usize) -> io::Result<()> {
        let reading = Reading {
            trusted_until: 0,
            threads,
        };
        let mut open: Vec<(usize, Option<Hex>, Vec<u8>)> = self
            .gaps
            .iter()
            .enumerate()
            .filter(|(_, gap)| gap.filling.is_none() && gap.neighbours.after.is_some())
            .filter_map(|(number, gap)| Some((number, gap.neighbours.before?, Vec::new())))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        read_pieces(copy, 0..copy.length()?, reading, |piece| {
            for line in &piece.lines {
                let Ok(event) = &line.event else { continue };
                let text = piece.text(line);
                let (prev, hash) = (Hex::read(event.prev_hash(text)), event.hash(text));
                open.retain_mut(|(number, head, lines)| {
                    if prev != *head {
                        return true;
                    }
                    lines.extend_from_slice(text);
                    lines.push(b'\n');
                    *head = Some(hash);
                    let is_filled = self.gaps[*number].neighbours.after == Some(hash);
                    if is_filled {
                        self.gaps[*number].filling = Some(std::mem::take(lines));
                    }
                    !is_filled
                });
            }
            io::Result::Ok(!open.is_empty())
        })
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
        let copy = |range: std::ops::Range<u64>, to: &mut u64| -> Result<()> {
            let mut offset = range.start;
            let mut buffer = Vec::new();
            while offset < range.end {
                buffer.clear();
                let wanted = (range.end - offset).min(BUFFER_BYTES) as usize;
                if read_upto(log, &mut buffer, offset, wanted).at(path)? == 0 {
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
            copy(from..gap.start, &mut to)?;
            file.write_at(&instead, to).at(path)?;
            to += instead.len() as u64;
            from = gap.end;
        }
        copy(from..self.length, &mut to)?;
        file.sync().at(path)?;
        Ok(scratch)
    }
}

impl Gap {
    /// What is to be read in its place; `None` if that is what stands there. Lines that do not belong here are never read.
    fn instead(&self) -> Option<Vec<u8>> {
        if self.filling.is_some() {
            return self.filling.clone();
        }
        let unreadable = || self.bad.iter().filter(|line| !line.is_whole);
        let lines = || unreadable().flat_map(|line| [&line.text[..], b"\n"]);
        self.bad
            .iter()
            .any(|line| line.is_whole)
            .then(|| lines().collect::<Vec<&[u8]>>().concat())
    }

    /// By how much that moves what comes behind it.
    fn shift(&self) -> i64 {
        let replaced = (self.end - self.start) as i64;
        self.instead().map_or(0, |instead| instead.len() as i64 - replaced)
    }

    /// Takes lines that stand elsewhere in the same log, if they lead from the line before to the line behind. Lines that
    /// belong elsewhere are left out where nothing is missing.
    fn fill_with(&mut self, strays: &[Stray]) {
        let (Some(mut head), Some(after)) = (self.neighbours.before, self.neighbours.after) else {
            return;
        };
        let mut lines = Vec::new();
        let mut left = strays.len();
        while head != Some(after) {
            let Some(next) = strays.iter().find(|stray| stray.prev == head).filter(|_| left > 0) else {
                return;
            };
            lines.extend_from_slice(&next.text);
            lines.push(b'\n');
            head = Some(next.hash);
            left -= 1;
        }
        if !lines.is_empty() || self.bad.iter().all(|line| line.is_whole && !line.is_branch) {
            self.filling = Some(lines);
        }
    }

    /// Whether the line behind follows from the line before.
    fn goes_on_before(&self) -> bool {
        self.neighbours.after.is_some() && self.neighbours.before == Some(self.neighbours.after)
    }

    fn lost(&self) -> Vec<Lost> {
        if self.bad.is_empty() {
            return vec![Lost {
                offset: self.start,
                healed_offset: self.start,
                line: 0,
                seq: None,
                ids: Vec::new(),
                gone_rows: Vec::new(),
                is_of_embeddings: false,
                batch: None,
                doubt: None,
                reason: "lines were taken out, or others put in their place".to_owned(),
                is_linked: true,
            }];
        }
        let is_linked = self.neighbours.after.is_some() && !self.goes_on_before();
        let of_line = |line: &BadLine| {
            let says = |_: &&BadLine| !line.is_whole || line.is_foreign;
            let text = Some(line).filter(says).map(|line| &line.text[..]).unwrap_or_default();
            Lost {
                offset: line.offset,
                healed_offset: line.offset,
                line: line.number,
                seq: line.seq,
                gone_rows: seeming::gone_rows(text),
                is_of_embeddings: seeming::is_of_embeddings(text),
                batch: seeming::batch(text),
                doubt: None,
                ids: seeming::ids(text),
                reason: line.reason.clone(),
                is_linked,
            }
        };
        self.bad.iter().map(of_line).collect()
    }
}
