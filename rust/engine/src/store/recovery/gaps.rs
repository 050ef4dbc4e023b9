//! Finds the gaps of a log, where its lines do not follow from each other, and fills them with proved lines.
//!
//! A gap holds lines that cannot be read, that were moved or doubled, or that were forged with a hash of their own. An [`EventRoute`] tells which lines are the chain; here it is laid over the log as it stands.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::route::{Cuts, EventRoute, LineRun, RouteStep, Scan, each_event};
use crate::store::files::joined::JoinedFile;
use crate::store::files::proofs::{digests_of_bases, other_logs, was_restored};
use crate::store::load::found::missed_end;
use chronolog::damage::DamageKind;
use chronolog::digest::Hex;
use chronolog::disk::{Disk, DiskFile, read_upto};
use chronolog::event::line::{Event, Fault, Trust};
use chronolog::event::mend::{Budget, Neighbours, mend, mend_cut};
use chronolog::hint::{Hint, Synced, hint_for, read_hint};
use chronolog::layout::Layout;
use chronolog::origin::beginning_of;

/// Lines that stand elsewhere: the file (0 is the log itself, the others are copies), and the place there.
type CopyRange = (usize, Range<u64>);

/// A stretch of the log that is to be read differently.
#[derive(Default)]
struct Gap {
    start: u64,
    /// Where the next line of the chain begins.
    end: u64,
    next: Option<Hex>,
    /// Lines that follow from the line before it.
    first: Vec<CopyRange>,
    /// What is known of what is lost between those and the next; `None` if nothing is.
    hole: Option<Neighbours>,
    /// The seq of the event before those, and that of the event behind, if they tell how many came between.
    seqs: Option<(u64, u64)>,
    /// Lines that lead to the line behind it.
    then: Vec<CopyRange>,
    bad: Vec<BadLine>,
    filling: Option<Vec<u8>>,
}

impl Gap {
    /// Whether the line behind follows from the line before.
    fn goes_on_before(&self) -> bool {
        self.hole
            .is_some_and(|hole| hole.after.is_some() && hole.before == Some(hole.after))
    }
}

struct Layer<'a> {
    log: &'a dyn DiskFile,
    copies: &'a [Arc<dyn DiskFile>],
    bases: &'a [Hex],
    threads: usize,
    /// The log, with the runs of the copies behind its own.
    scan: Scan,
    route: EventRoute,
    unreadable: Vec<BadLine>,
    /// More stood behind its last line than copies account for.
    is_open: bool,
}

impl<'a> Layer<'a> {
    /// Finds the chain in a log and its copies, given its first event and the one that was synced last.
    fn of(
        log: &'a dyn DiskFile,
        copies: &'a [Arc<dyn DiskFile>],
        known: Option<Synced>,
        bases: &'a [Hex],
        threads: usize,
    ) -> io::Result<Self> {
        let mut layer = Self {
            log,
            copies,
            bases,
            threads,
            scan: Scan::default(),
            route: EventRoute::default(),
            unreadable: Vec::new(),
            is_open: false,
        };
        layer.scan(&Cuts::default())?;
        let head = known.map(|synced| synced.head);
        let mut cuts = Cuts::of(&layer.scan.runs, head);
        if let Some(synced) = known {
            cuts.cut_behind(&synced.first);
        }
        layer.scan(&cuts)?;
        layer.route = EventRoute::find(&layer.scan.runs, head, layer.sentinel());
        Ok(layer)
    }

    /// Whether the chain is there from its first event to the one that was synced last, and beyond, and nothing else.
    fn is_whole(&self, head: Option<Hex>, length: u64) -> bool {
        let is_chained = !self.route.is_broken() && (head.is_none() || self.route.anchor.is_some());
        is_chained && self.unreadable.is_empty() && self.scan.end >= length
    }

    /// Whether the event that was synced last was found, and neither it nor a way to it is in the log itself.
    fn is_of_copies(&self) -> bool {
        let is_own = |run: usize| self.scan.runs[run].source == 0;
        self.route.anchor.is_some_and(|run| !is_own(run)) && !self.route.steps.iter().any(|step| is_own(step.run))
    }

    /// Whether the event that was synced last is lost, and no later event follows from it.
    fn loses(&self, synced: &Synced) -> bool {
        let last = self
            .route
            .steps
            .last()
            .map_or(0, |step| self.scan.runs[step.run].last_seq);
        self.route.anchor.is_none() && last < synced.seq
    }

    /// Whether an event was found, or one that follows it.
    fn names(&self, hash: &Hex) -> bool {
        let is_it = |run: &LineRun| run.last == *hash || run.prev.as_ref() == Some(hash);
        self.route.anchor.is_some() || self.scan.runs.iter().any(is_it)
    }

    /// Whether bytes stand behind a place that are no whole line.
    fn has_unreadable_behind(&self, place: u64, length: u64) -> bool {
        self.scan.end < length || self.unreadable.iter().any(|line| line.offset >= place)
    }

    /// The run of the log that begins with the newest compaction of ours whose base is there: what is older was retired.
    fn sentinel(&self) -> Option<usize> {
        let is_there = |run: &LineRun| run.source == 0 && run.base.is_some_and(|base| self.bases.contains(&base));
        let begun = self.scan.runs.iter().enumerate().filter(|(_, run)| is_there(run));
        begun.max_by_key(|(_, run)| run.first_seq).map(|(number, _)| number)
    }

    fn scan(&mut self, cuts: &Cuts) -> io::Result<()> {
        let mut unreadable = Vec::new();
        self.scan = Scan::of(self.log, 0, cuts, self.threads, &mut |offset, text, number, fault| {
            unreadable.push(BadLine::unreadable(offset, text, number, fault));
        })?;
        self.unreadable = unreadable;
        for (number, copy) in self.copies.iter().enumerate() {
            let scan = Scan::of(&**copy, number + 1, cuts, self.threads, &mut |_, _, _, _| {})?;
            self.scan.runs.extend(scan.runs);
        }
        Ok(())
    }

    /// The gaps, in order. `behind` is an event that came last and is lost.
    fn gaps(mut self, length: u64, cut_line: Option<BadLine>, behind: Option<Synced>) -> io::Result<Vec<Gap>> {
        let in_place = self.in_place();
        self.unreadable.extend(cut_line);
        self.unreadable.extend(self.misplaced(&in_place)?);
        self.unreadable.sort_by_key(|line| line.offset);
        let mut bad = std::mem::take(&mut self.unreadable).into_iter().peekable();
        let mut draft = Drafting {
            // Where nothing was ever compacted, the first event is the first.
            last_seq: self.bases.is_empty().then_some(0),
            ..Drafting::default()
        };
        for step in &self.route.steps {
            let run = &self.scan.runs[step.run];
            if !step.follows {
                draft.lose(run.prev, Some(run.first_seq).filter(|_| run.are_ours.0));
            }
            if in_place.contains(&step.run) {
                let before = std::iter::from_fn(|| bad.next_if(|line| line.offset < run.bytes.start)).collect();
                draft.close(run.bytes.start, before, Some(run.first));
                draft.gap.start = run.bytes.end;
            } else {
                draft.add(run);
            }
            (draft.head, draft.last_seq) = (Some(run.last), Some(run.last_seq).filter(|_| run.are_ours.1));
        }
        if let Some(lost) = behind {
            draft.lose(Some(lost.head), Some(lost.seq + 1));
        } else if self.is_open {
            draft.lose(None, None);
        }
        draft.close(length, bad.collect(), None);
        Ok(draft.done)
    }

    /// The runs that stay where they are: the longest first, each that stands in the order of the chain among those kept.
    fn in_place(&self) -> HashSet<usize> {
        let own = |step: &RouteStep| self.scan.runs[step.run].source == 0;
        let steps = self.route.steps.iter().enumerate().filter(|(_, step)| own(step));
        let mut steps: Vec<(usize, usize)> = steps.map(|(order, step)| (order, step.run)).collect();
        steps.sort_by_key(|(_, run)| Reverse(self.scan.runs[*run].events));
        let mut kept: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
        for (order, run) in steps {
            let start = self.scan.runs[run].bytes.start;
            let follows = kept
                .range(..order)
                .next_back()
                .is_none_or(|(_, before)| before.0 < start);
            if follows && kept.range(order..).next().is_none_or(|(_, behind)| behind.0 > start) {
                kept.insert(order, (start, run));
            }
        }
        kept.into_values().map(|(_, run)| run).collect()
    }

    /// Fills holes with following lines of copies, and continues behind a lost end; only for stores without restores.
    fn go_on_in_copies(&mut self, missed: Option<&Synced>, length: u64) {
        let mut steps = Vec::new();
        let old = std::mem::take(&mut self.route.steps);
        for (number, step) in old.iter().enumerate() {
            steps.push(*step);
            let run = &self.scan.runs[step.run];
            let limit = match old.get(number + 1) {
                Some(next) if next.follows => continue,
                Some(next) => self.scan.runs[next.run].first_seq,
                None if !self.may_have_gone_on(run, missed, length) => continue,
                None => missed.map_or(u64::MAX, |synced| synced.seq + 1),
            };
            let (mut head, mut taken) = (run.last, 0);
            let follows = |run: &LineRun, head: Hex| run.source > 0 && run.prev == Some(head) && run.last_seq < limit;
            while let Some(next) = self.longest(|run| follows(run, head)) {
                let run = &self.scan.runs[next];
                (head, taken) = (run.last, taken + run.bytes.end - run.bytes.start);
                steps.push(RouteStep {
                    run: next,
                    follows: true,
                });
            }
            if number + 1 == old.len() && taken > 0 {
                self.is_open = length - run.bytes.end.min(length) > taken;
            }
        }
        self.route.steps = steps;
    }

    fn longest(&self, is_wanted: impl Fn(&LineRun) -> bool) -> Option<usize> {
        let wanted = self.scan.runs.iter().enumerate().filter(|(_, run)| is_wanted(run));
        wanted.max_by_key(|(_, run)| run.events).map(|(number, _)| number)
    }

    /// Takes the first event of a log from a copy, if the log has lost it and its hash is known.
    fn begin_in_copies(&mut self, first: Hex) {
        let is_lost = self.route.steps.first().is_some_and(|step| !step.follows);
        let is_it = |run: &LineRun| run.source > 0 && run.prev.is_none() && run.last == first;
        if let Some(run) = self.scan.runs.iter().position(is_it).filter(|_| is_lost) {
            self.route.steps.insert(0, RouteStep { run, follows: true });
        }
    }

    /// Whether something stood behind the last line of the chain.
    fn may_have_gone_on(&self, last: &LineRun, missed: Option<&Synced>, length: u64) -> bool {
        let has_remains = last.source == 0 && self.has_unreadable_behind(last.bytes.end, length);
        self.route.anchor.is_none() && (missed.is_some_and(|synced| synced.seq > last.last_seq) || has_remains)
    }

    /// The lines of the log that can be read and do not belong where they stand.
    fn misplaced(&self, in_place: &HashSet<usize>) -> io::Result<Vec<BadLine>> {
        let steps = self.route.steps.iter();
        let lasts: HashSet<[u8; 32]> = steps.map(|step| self.scan.runs[step.run].last.raw()).collect();
        let own = self.scan.runs.iter().enumerate().filter(|(_, run)| run.source == 0);
        let out: Vec<(usize, &LineRun)> = own.filter(|(number, _)| !in_place.contains(number)).collect();
        let foreign = || {
            out.iter()
                .map(|(_, run)| run)
                .filter(|run| !lasts.contains(&run.last.raw()))
        };
        let ends: HashSet<[u8; 32]> = foreign().map(|run| run.last.raw()).collect();
        let begins: HashSet<[u8; 32]> = foreign().filter_map(|run| Some(run.prev?.raw())).collect();
        let mut found = Vec::new();
        for (number, run) in &out {
            let is_again = lasts.contains(&run.last.raw());
            let is_long = run.events > 1
                || begins.contains(&run.last.raw())
                || run.prev.is_some_and(|prev| ends.contains(&prev.raw()));
            // What was synced tells which of two branches is true.
            let is_branch = !is_again && is_long && !self.route.refuted.contains(number);
            each_event(self.log, run.bytes.clone(), |offset, line, text, event| {
                found.push(BadLine {
                    offset,
                    text: text.to_vec(),
                    number: run.number + line,
                    seq: Some(event.spans.seq),
                    reason: "the chain does not lead through this line".to_owned(),
                    is_whole: true,
                    is_foreign: !is_again,
                    is_branch,
                });
            })?;
        }
        Ok(found)
    }
}

#[derive(Default)]
struct Drafting {
    gap: Gap,
    done: Vec<Gap>,
    head: Option<Hex>,
    /// The seq of the event with that hash, if those before it were counted one by one.
    last_seq: Option<u64>,
}

impl Drafting {
    /// Something is lost here that ended with this hash, before the event with this seq.
    fn lose(&mut self, last: Option<Hex>, next_seq: Option<u64>) {
        if self.gap.hole.is_some() {
            // There is more than one hole between two lines that stand where they should.
            let start = self.gap.start;
            let gap = std::mem::take(&mut self.gap);
            self.done.push(Gap { end: start, ..gap });
            self.gap.start = start;
        }
        self.gap.hole = Some(Neighbours {
            before: Some(self.head),
            after: last,
        });
        self.gap.seqs = self.last_seq.zip(next_seq);
    }

    /// A run of the chain that stands elsewhere.
    fn add(&mut self, run: &LineRun) {
        let lines = match self.gap.hole {
            None => &mut self.gap.first,
            Some(_) => &mut self.gap.then,
        };
        lines.push((run.source, run.bytes.clone()));
    }

    /// The chain goes on here, or the log is at its end.
    fn close(&mut self, end: u64, bad: Vec<BadLine>, next: Option<Hex>) {
        let mut gap = std::mem::take(&mut self.gap);
        (gap.end, gap.next, gap.bad) = (end, next, bad);
        let is_explained = !gap.first.is_empty() || gap.bad.iter().all(|line| line.is_whole && !line.is_branch);
        if gap.hole.is_none() && !is_explained {
            // What follows from the line before does not tell what these were.
            gap.hole = Some(Neighbours {
                before: Some(self.head),
                after: self.head.filter(|_| next.is_some()),
            });
        }
        if gap.hole.is_some() || !gap.first.is_empty() || !gap.bad.is_empty() {
            self.done.push(gap);
        }
    }
}

struct BadLine {
    offset: u64,
    text: Vec<u8>,
    number: u64,
    seq: Option<u64>,
    reason: String,
    /// It is an event with the right hash, but not here.
    is_whole: bool,
    /// And it is part of the chain nowhere: it may stand in the place of a true one.
    is_foreign: bool,
    /// It is one of several that follow each other, beside others that do so too: nothing tells which of them are true.
    is_branch: bool,
}

impl BadLine {
    fn unreadable(offset: u64, text: &[u8], number: u64, fault: &Fault) -> Self {
        Self {
            offset,
            text: text.to_vec(),
            number,
            seq: fault.seq,
            reason: fault.reason.clone(),
            is_whole: false,
            is_foreign: false,
            is_branch: false,
        }
    }
}

pub(in crate::store) struct Lost {
    offset: u64,
    healed_offset: u64,
    pub seqs: Option<(u64, u64)>,
    pub text: String,
    /// A later line links to the last of them.
    is_linked: bool,
}

pub(in crate::store) fn events(first: u64, last: u64) -> String {
    match first == last {
        true => format!("event {first}"),
        false => format!("events {first}–{last}"),
    }
}

/// So much may be hashed in search of lost bytes, in one repair: some seconds.
const MENDING_BLOCKS: u64 = 20_000_000;

pub(in crate::store) struct Gaps {
    gaps: Vec<Gap>,
    length: u64,
    /// Up to here the log was whole once.
    promised: u64,
    pub highest_seq: u64,
    copies: Vec<Arc<dyn DiskFile>>,
    /// The event that was synced last, if no file has it and the log holds others in its place.
    pub replaced_end: Option<Synced>,
}

enum Replacement<'a> {
    Bytes(&'a [u8]),
    Lines(&'a CopyRange),
}

impl Gaps {
    /// Finds the gaps of a log, and what other logs of the folder have in their place.
    pub fn find(disk: &dyn Disk, layout: &Layout, log: &dyn DiskFile, threads: usize) -> io::Result<Self> {
        let length = log.length()?;
        let known = read_hint(disk, layout)?;
        let hint = hint_for(known, log, length)?;
        let head = known.map(|synced| synced.head);
        let mut copies = Vec::new();
        let bases = digests_of_bases(disk, layout);
        let mut layer = Layer::of(log, &[], known, &bases, threads)?;
        if !layer.is_whole(head, length) {
            copies = other_logs(disk, layout)?;
            layer = Layer::of(log, &copies, known, &bases, threads)?;
            if layer.is_of_copies() && hint == Hint::None {
                // What was synced was another log.
                layer = Layer::of(log, &copies, None, &bases, threads)?;
            }
        }
        let highest_seq = layer.scan.highest_seq;
        let promised = hint.promised().unwrap_or(0);
        // What comes behind the last newline is a line that lost its end, if the log was whole up to there once.
        let mut cut_line = None;
        if layer.scan.end < length && promised > layer.scan.end {
            let mut text = Vec::new();
            read_upto(log, &mut text, layer.scan.end, (length - layer.scan.end) as usize)?;
            let fault = Fault {
                kind: DamageKind::Unreadable,
                reason: "the line has lost its end".to_owned(),
                seq: None,
            };
            cut_line = Some(BadLine::unreadable(layer.scan.end, &text, layer.scan.lines + 1, &fault));
        }
        // Only the hint about the last sync names the last line of a log.
        let missed = match hint {
            Hint::Contradicted(synced) => Some(synced),
            // Where no line can be read, its only one may be the event that it names.
            Hint::None if layer.scan.runs.iter().all(|run| run.source > 0) => known,
            Hint::None => missed_end(known, &beginning_of(log, length)?, highest_seq),
            Hint::Synced(_) => None,
        };
        if let Some(synced) = known.filter(|_| layer.route.anchor.is_some() || missed.is_some()) {
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
            // A readable line is tried only if it is the only one: it and its hash may both be altered.
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
            found.extend(gap.lost(shift).filter(|_| gap.filling.is_none()));
            shift += gap.shift();
        }
        found
    }

    /// The log with its gaps filled.
    pub fn healed(&self, log: &Arc<dyn DiskFile>) -> JoinedFile {
        let mut healed = JoinedFile::in_place_of(log);
        let source = |source: usize| source.checked_sub(1).map_or(log, |copy| &self.copies[copy]);
        let mut from = 0;
        for gap in &self.gaps {
            let Some(instead) = gap.instead() else { continue };
            healed.add(log, from..gap.start);
            for piece in instead {
                match piece {
                    Replacement::Lines((copy, bytes)) => healed.add(source(*copy), bytes.clone()),
                    Replacement::Bytes(bytes) => healed.add_bytes(bytes.to_vec()),
                }
            }
            from = gap.end;
        }
        healed.add(log, from..self.length);
        healed
    }
}

fn hash_of(line: &[u8]) -> Option<Hex> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    Event::read(line, Trust::Hashes).ok().map(|event| event.hash(line))
}

impl Gap {
    /// The events that are lost here; `None` if all of them are elsewhere in the chain. What is before moves by `shift`.
    fn lost(&self, shift: i64) -> Option<Lost> {
        let hole = self.hole?;
        // A whole line that stands elsewhere too is not lost.
        let bad: Vec<_> = self
            .bad
            .iter()
            .filter(|line| !line.is_whole || line.is_foreign)
            .collect();
        let between = self.seqs.map(|(before, after)| (before + 1, after.saturating_sub(1)));
        let (shown, reason) = match bad[..] {
            [] => (None, "the lines are missing".to_owned()),
            [line] => (
                line.seq.map(|seq| (seq, seq)),
                format!("line {} is damaged: {}", line.number, line.reason),
            ),
            [first, .., last] => (
                None,
                format!(
                    "lines {} to {} are damaged, the first because: {}",
                    first.number, last.number, first.reason
                ),
            ),
        };
        let offset = bad.first().map_or(self.start, |line| line.offset);
        let seqs = between.filter(|(first, last)| first <= last).or(shown);
        let which = seqs.map_or("an unknown number of events".to_owned(), |(first, last)| {
            events(first, last)
        });
        let before: u64 = self.first.iter().map(|(_, bytes)| bytes.end - bytes.start).sum();
        Some(Lost {
            offset,
            healed_offset: (self.start + before).saturating_add_signed(shift),
            seqs,
            text: format!("{which} lost at byte {offset}: {reason}"),
            is_linked: bad.is_empty() || hole.after.is_some() && !self.goes_on_before(),
        })
    }

    /// What is to be read in its place; `None` if that is what stands there. Lines that do not belong here are never read.
    fn instead(&self) -> Option<Vec<Replacement<'_>>> {
        let is_same = self.filling.is_none() && self.bad.iter().all(|line| !line.is_whole);
        if is_same && self.first.is_empty() && self.then.is_empty() {
            return None;
        }
        let mut pieces: Vec<Replacement<'_>> = self.first.iter().map(Replacement::Lines).collect();
        match &self.filling {
            Some(lines) => pieces.push(Replacement::Bytes(lines)),
            None => {
                let unreadable = self.bad.iter().filter(|line| !line.is_whole);
                let kept = unreadable.flat_map(|line| [Replacement::Bytes(&line.text), Replacement::Bytes(b"\n")]);
                pieces.extend(kept);
            }
        }
        pieces.extend(self.then.iter().map(Replacement::Lines));
        Some(pieces)
    }

    /// By how much that moves what comes behind it.
    fn shift(&self) -> i64 {
        let length = |piece: &Replacement<'_>| match piece {
            Replacement::Bytes(bytes) => bytes.len() as u64,
            Replacement::Lines((_, bytes)) => bytes.end - bytes.start,
        };
        let pieces = self.instead();
        let added = pieces.map(|pieces| pieces.iter().map(length).sum::<u64>());
        added.map_or(0, |added| added as i64 - (self.end - self.start) as i64)
    }
}
