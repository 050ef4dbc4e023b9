//! Finds the gaps of a log: where its lines do not follow from each other.
//!
//! A gap is what stands between two lines of the chain that do not follow from each other, or between which something stands
//! that is not part of it: lines that cannot be read, lines that were moved or doubled, lines that somebody wrote with a hash
//! of their own. Which lines are the chain is told by its [`EventRoute`]; here it is laid over the log as it stands.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::event::mend::Neighbours;
use chronolog::wal::synced::Synced;

use super::bad_line::BadLine;
use super::route::{EventRoute, RouteStep};
use super::runs::{Cuts, LineRun, Scan, each_event};

/// Lines that stand elsewhere: in which file, and where there.
#[derive(Clone, Debug)]
pub(in crate::store) struct Elsewhere {
    /// The file: 0 is the log itself, the others are copies.
    pub source: usize,
    /// The lines, with their newlines.
    pub bytes: Range<u64>,
}

/// A stretch of the log that is to be read differently.
#[derive(Default)]
pub(in crate::store) struct Gap {
    /// Where it begins.
    pub start: u64,
    /// Where the next line of the chain begins.
    pub end: u64,
    /// The hash of that line, if there is one.
    pub next: Option<Hex>,
    /// Lines that follow from the line before it.
    pub first: Vec<Elsewhere>,
    /// What is known of what is lost between those and the next; `None` if nothing is.
    pub hole: Option<Neighbours>,
    /// The seq of the event before those, and that of the event behind, if they tell how many came between.
    pub seqs: Option<(u64, u64)>,
    /// Lines that lead to the line behind it.
    pub then: Vec<Elsewhere>,
    /// What stands there now.
    pub bad: Vec<BadLine>,
    /// What was lost, once it is found.
    pub filling: Option<Vec<u8>>,
}

impl Gap {
    /// Whether the line behind follows from the line before.
    pub(in crate::store) fn goes_on_before(&self) -> bool {
        self.hole
            .is_some_and(|hole| hole.after.is_some() && hole.before == Some(hole.after))
    }
}

/// A log and its copies, laid out.
pub(in crate::store) struct Layer<'a> {
    /// The log.
    log: &'a dyn DiskFile,
    /// Its copies.
    copies: &'a [Arc<dyn DiskFile>],
    /// The digests of the bases that are there.
    bases: &'a [Hex],
    threads: usize,
    /// What both are made of.
    runs: Vec<LineRun>,
    /// The chain.
    route: EventRoute,
    unreadable: Vec<BadLine>,
    /// More stood behind its last line than copies account for.
    is_open: bool,
    /// The highest seq of any line that can be read.
    pub highest_seq: u64,
    /// How many physical lines the log has.
    pub lines: u64,
    /// Behind the last newline of the log.
    pub end: u64,
}

impl<'a> Layer<'a> {
    /// Finds the chain in a log, with what copies of it have, and with what is known of its first event and of the one that
    /// was synced last.
    ///
    /// # Errors
    /// What the disk says.
    pub fn of(
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
            runs: Vec::new(),
            route: EventRoute::default(),
            unreadable: Vec::new(),
            is_open: false,
            highest_seq: 0,
            lines: 0,
            end: 0,
        };
        layer.scan(&Cuts::default(), true)?;
        let head = known.map(|synced| synced.head);
        let mut cuts = Cuts::of(&layer.runs, head);
        if let Some(synced) = known {
            cuts.cut_behind(&synced.first);
        }
        layer.find(&cuts, head)?;
        if layer.divide_by_copies(&mut cuts)? {
            layer.find(&cuts, head)?;
        }
        Ok(layer)
    }

    /// Whether the chain is there from its first event to the one that was synced last, and beyond.
    pub fn is_whole(&self, head: Option<Hex>) -> bool {
        !self.route.is_broken() && (head.is_none() || self.route.anchor.is_some())
    }

    /// Whether the event that was synced last was found.
    pub fn is_anchored(&self) -> bool {
        self.route.anchor.is_some()
    }

    /// Whether the event that was synced last stands only in a copy.
    pub fn ends_in_copy(&self) -> bool {
        self.route.anchor.is_some_and(|run| self.runs[run].source > 0)
    }

    /// Whether a line of the log itself is part of the way to what the copies have.
    pub fn meets_log(&self) -> bool {
        self.route.steps.iter().any(|step| self.runs[step.run].source == 0)
    }

    /// Whether the event that was synced last is lost, and nothing behind it tells of it.
    pub fn loses(&self, synced: &Synced) -> bool {
        let last = self.route.steps.last().map_or(0, |step| self.runs[step.run].last_seq);
        self.route.anchor.is_none() && last < synced.seq
    }

    /// Whether an event was found, or one that follows it.
    pub fn names(&self, hash: &Hex) -> bool {
        let is_it = |run: &LineRun| run.last == *hash || run.prev.as_ref() == Some(hash);
        self.route.anchor.is_some() || self.runs.iter().any(is_it)
    }

    /// Whether no line of the log can be read.
    pub fn is_unreadable(&self) -> bool {
        !self.runs.iter().any(|run| run.source == 0)
    }

    /// Whether anything stands in it that is no whole line.
    pub fn is_damaged(&self, length: u64) -> bool {
        !self.unreadable.is_empty() || self.end < length
    }

    /// Whether bytes stand behind a place that are no whole line.
    fn has_unreadable_behind(&self, place: u64, length: u64) -> bool {
        self.end < length || self.unreadable.iter().any(|line| line.offset >= place)
    }

    fn find(&mut self, cuts: &Cuts, head: Option<Hex>) -> io::Result<()> {
        self.scan(cuts, false)?;
        self.route = EventRoute::find(&self.runs, head, self.sentinel());
        Ok(())
    }

    /// The run of the log that begins with the newest compaction of ours whose base is there: what is older was retired.
    fn sentinel(&self) -> Option<usize> {
        let is_there = |run: &LineRun| run.source == 0 && run.base.is_some_and(|base| self.bases.contains(&base));
        let begun = self.runs.iter().enumerate().filter(|(_, run)| is_there(run));
        begun.max_by_key(|(_, run)| run.first_seq).map(|(number, _)| number)
    }

    fn scan(&mut self, cuts: &Cuts, is_first: bool) -> io::Result<()> {
        let unreadable = &mut self.unreadable;
        let scan = Scan::of(self.log, 0, cuts, self.threads, &mut |offset, text, number, fault| {
            if is_first {
                unreadable.push(BadLine::unreadable(offset, text, number, fault));
            }
        })?;
        (self.highest_seq, self.lines, self.end) = (scan.highest_seq, scan.lines, scan.end);
        self.runs = scan.runs;
        for (number, copy) in self.copies.iter().enumerate() {
            let scan = Scan::of(&**copy, number + 1, cuts, self.threads, &mut |_, _, _, _| {})?;
            self.runs.extend(scan.runs);
        }
        Ok(())
    }

    /// Lines of a copy may stand in the log too, beside others that do not belong there: divides the runs where they part.
    fn divide_by_copies(&self, cuts: &mut Cuts) -> io::Result<bool> {
        let mut proved: HashSet<[u8; 32]> = HashSet::new();
        for step in &self.route.steps {
            let run = &self.runs[step.run];
            if let Some(copy) = run.source.checked_sub(1).and_then(|copy| self.copies.get(copy)) {
                each_event(&**copy, run.bytes.clone(), |_, _, text, event| {
                    proved.insert(event.hash(text).raw());
                })?;
            }
        }
        let (mut is_divided, mut last) = (false, None);
        if proved.is_empty() {
            return Ok(false);
        }
        each_event(self.log, 0..self.end, |_, _, text, event| {
            let hash = event.hash(text);
            let is_proved = proved.contains(&hash.raw());
            if let Some((before, was_proved)) = last
                && was_proved != is_proved
            {
                is_divided |= cuts.cut_behind(&before);
            }
            last = Some((hash, is_proved));
        })?;
        Ok(is_divided)
    }

    /// The gaps, in order. `behind` is an event that came last and is lost.
    ///
    /// # Errors
    /// What the disk says.
    pub fn gaps(mut self, length: u64, cut_line: Option<BadLine>, behind: Option<Synced>) -> io::Result<Vec<Gap>> {
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
            let run = &self.runs[step.run];
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
        let own = |step: &RouteStep| self.runs[step.run].source == 0;
        let steps = self.route.steps.iter().enumerate().filter(|(_, step)| own(step));
        let mut steps: Vec<(usize, usize)> = steps.map(|(order, step)| (order, step.run)).collect();
        steps.sort_by_key(|(_, run)| Reverse(self.runs[*run].events));
        let mut kept: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
        for (order, run) in steps {
            let start = self.runs[run].bytes.start;
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

    /// Fills holes with the lines of copies that follow from the line before: behind the last line too, if the log did not end
    /// there. Only for a store that was never restored: then all copies are of one history.
    pub fn go_on_in_copies(&mut self, missed: Option<&Synced>, length: u64) {
        let mut steps = Vec::new();
        let old = std::mem::take(&mut self.route.steps);
        for (number, step) in old.iter().enumerate() {
            steps.push(*step);
            let run = &self.runs[step.run];
            let limit = match old.get(number + 1) {
                Some(next) if next.follows => continue,
                Some(next) => self.runs[next.run].first_seq,
                None if !self.may_have_gone_on(run, missed, length) => continue,
                None => missed.map_or(u64::MAX, |synced| synced.seq + 1),
            };
            let (mut head, mut taken) = (run.last, 0);
            let follows = |run: &LineRun, head: Hex| run.source > 0 && run.prev == Some(head) && run.last_seq < limit;
            while let Some(next) = self.longest(|run| follows(run, head)) {
                let run = &self.runs[next];
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
        let wanted = self.runs.iter().enumerate().filter(|(_, run)| is_wanted(run));
        wanted.max_by_key(|(_, run)| run.events).map(|(number, _)| number)
    }

    /// Takes the first event of a log from a copy, if the log has lost it and its hash is known.
    pub fn begin_in_copies(&mut self, first: Hex) {
        let is_lost = self.route.steps.first().is_some_and(|step| !step.follows);
        let is_it = |run: &LineRun| run.source > 0 && run.prev.is_none() && run.last == first;
        if let Some(run) = self.runs.iter().position(is_it).filter(|_| is_lost) {
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
        let lasts: HashSet<[u8; 32]> = steps.map(|step| self.runs[step.run].last.raw()).collect();
        let own = self.runs.iter().enumerate().filter(|(_, run)| run.source == 0);
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

/// Gaps, while they are found.
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
        lines.push(Elsewhere {
            source: run.source,
            bytes: run.bytes.clone(),
        });
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
