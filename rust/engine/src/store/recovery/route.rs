//! Divides a log and its copies into runs of chained lines, and finds those that lead from the first event to the last.
//!
//! A hash proves what came before, so the way is found from its end: the last synced event, or the end that most events lead
//! to. Across a hole it goes to the run that ends closest before it. Copies are only taken where a hash leads to them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::Range;

use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::event::Op;
use chronolog::event::line::{Event, Fault};
use chronolog::origin::{Origin, origin_in};
use chronolog::wal::reader::{Reading, read_pieces};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct RouteStep {
    pub run: usize,
    /// Whether it follows from the step before, or nothing came before it; otherwise something is lost.
    pub follows: bool,
}

#[derive(Debug, Default)]
pub(in crate::store) struct EventRoute {
    pub steps: Vec<RouteStep>,
    pub anchor: Option<usize>,
    /// The runs that cannot be part of the chain if that event is.
    pub refuted: HashSet<usize>,
}

struct Map<'a> {
    runs: &'a [LineRun],
    before: Vec<Option<usize>>,
    root: Vec<usize>,
    events: Vec<u64>,
    anchor: Option<Anchor>,
    /// What ends before this seq was retired, and is no part of the log any more.
    retired_before: u64,
    /// The first run of the way to the anchor that a run leads back through, itself perhaps.
    meets: Vec<Option<usize>>,
}

/// The event that was synced last, and what leads to it.
struct Anchor {
    run: usize,
    /// The seq of the first event that is proved by it.
    from: u64,
}

impl EventRoute {
    /// Finds the way to the synced event `head`; what came before the run `sentinel` is in its base.
    pub fn find(runs: &[LineRun], head: Option<Hex>, sentinel: Option<usize>) -> Self {
        let map = Map::of(runs, head, sentinel);
        let (hops, last) = map.hops();
        let mut steps = Vec::new();
        let mut at = last;
        while let Some(run) = at {
            let before = map.before[run];
            steps.push(RouteStep {
                run,
                follows: before.is_some() || runs[run].prev.is_none(),
            });
            at = before.or(hops[run]);
        }
        steps.reverse();
        Self {
            steps,
            refuted: (0..runs.len()).filter(|run| map.is_refuted(*run)).collect(),
            anchor: map.anchor.map(|anchor| anchor.run),
        }
    }

    pub fn is_broken(&self) -> bool {
        self.steps.iter().any(|step| !step.follows)
    }
}

impl<'a> Map<'a> {
    fn of(runs: &'a [LineRun], head: Option<Hex>, sentinel: Option<usize>) -> Self {
        let mut by_last: HashMap<[u8; 32], usize> = HashMap::new();
        for (number, run) in runs.iter().enumerate() {
            by_last.entry(run.last.raw()).or_insert(number);
        }
        let find = |hash: &Hex| by_last.get(&hash.raw()).copied();
        let before: Vec<Option<usize>> = runs.iter().map(|run| run.prev.as_ref().and_then(find)).collect();
        let anchor = head.as_ref().and_then(find);
        let mut is_proved = vec![false; runs.len()];
        let (mut at, mut from) = (anchor, 0);
        while let Some(run) = at {
            is_proved[run] = true;
            from = runs[run].first_seq;
            at = before[run];
        }
        let mut map = Self {
            runs,
            root: vec![usize::MAX; runs.len()],
            events: vec![0; runs.len()],
            meets: vec![None; runs.len()],
            anchor: anchor.map(|run| Anchor { run, from }),
            retired_before: sentinel.map_or(0, |run| runs[run].first_seq),
            before,
        };
        for run in 0..runs.len() {
            map.settle(run, &is_proved);
        }
        map
    }

    /// Finds out where a run leads back to, for it and for all on the way there.
    fn settle(&mut self, run: usize, is_proved: &[bool]) {
        let (mut way, mut at) = (Vec::new(), Some(run));
        while let Some(run) = at.filter(|run| self.root[*run] == usize::MAX) {
            way.push(run);
            at = self.before[run];
        }
        for run in way.into_iter().rev() {
            let before = self.before[run];
            self.root[run] = before.map_or(run, |before| self.root[before]);
            self.events[run] = self.runs[run].events + before.map_or(0, |before| self.events[before]);
            self.meets[run] = match is_proved[run] {
                true => Some(run),
                false => before.and_then(|before| self.meets[before]),
            };
        }
    }

    /// Whether a run comes behind the anchor, or is the one that ends with it.
    fn is_behind(&self, run: usize) -> bool {
        self.anchor.as_ref().is_some_and(|anchor| match self.meets[run] {
            Some(met) => met == anchor.run,
            None => self.runs[self.root[run]].first_seq > self.runs[anchor.run].last_seq + 1,
        })
    }

    /// Whether the anchor shows that a run is not part of the chain, or a compaction that it is not any more.
    fn is_refuted(&self, run: usize) -> bool {
        self.runs[run].last_seq < self.retired_before || self.is_refuted_by_anchor(run)
    }

    fn is_refuted_by_anchor(&self, run: usize) -> bool {
        self.anchor.as_ref().is_some_and(|anchor| {
            let comes_before = self.meets[run].is_none() && self.runs[run].last_seq < anchor.from;
            self.meets[run] != Some(run) && !comes_before && !self.is_behind(run)
        })
    }

    /// From where the way goes on where something is lost, and the run that it ends with.
    fn hops(&self) -> (Vec<Option<usize>>, Option<usize>) {
        let mut roots: Vec<usize> = (0..self.runs.len()).filter(|run| self.root[*run] == *run).collect();
        roots.sort_by_key(|root| (self.runs[*root].first_seq, self.runs[*root].bytes.start));
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.runs.len()];
        for (run, root) in self.root.iter().enumerate() {
            members[*root].push(run);
        }
        // By the seq that a run ends with: of two that end alike the one that more events lead to.
        let (mut earlier, mut behind) = (BTreeMap::new(), BTreeMap::new());
        let mut hops = vec![None; self.runs.len()];
        let mut total = self.events.clone();
        let mut is_done = vec![false; self.runs.len()];
        for root in roots {
            let run = &self.runs[root];
            if run.source == 0 && run.prev.is_some() {
                let is_new = self.meets[root].is_none() && self.is_behind(root);
                let known = if is_new { &behind } else { &earlier };
                let by_seq = known
                    .range(..run.first_seq.saturating_sub(1))
                    .next_back()
                    .map(|(_, run)| *run);
                // Other tools may count otherwise: then what stands before it is all there is to go by.
                hops[root] = by_seq.or_else(|| self.standing_before(root).filter(|before| is_done[*before]));
            }
            let carried = hops[root].map_or(0, |before: usize| total[before]);
            for &member in &members[root] {
                total[member] += carried;
                is_done[member] = true;
                let is_anchor = self.anchor.as_ref().is_some_and(|anchor| anchor.run == member);
                if self.is_refuted(member) || self.runs[member].source != 0 && !is_anchor {
                    continue;
                }
                let known = if self.is_behind(member) {
                    &mut behind
                } else {
                    &mut earlier
                };
                let known = known.entry(self.runs[member].last_seq).or_insert(member);
                if total[*known] < total[member] {
                    *known = member;
                }
            }
        }
        (hops, self.last(&total))
    }

    /// The run of the log that stands directly before another, unless the anchor has something to say of either.
    fn standing_before(&self, root: usize) -> Option<usize> {
        let before = root.checked_sub(1)?;
        (self.anchor.is_none() && self.runs[before].last_seq >= self.runs[root].first_seq).then_some(before)
    }

    /// The run that most events lead to, behind the anchor if there is one. Of two, the one that stands first.
    fn last(&self, total: &[u64]) -> Option<usize> {
        let mut last = self.anchor.as_ref().map(|anchor| anchor.run);
        for run in 0..self.runs.len() {
            let is_behind = self.anchor.is_none() || self.is_behind(run);
            let may_be = self.runs[run].source == 0 && is_behind && !self.is_refuted(run);
            if may_be && last.is_none_or(|last| total[last] < total[run]) {
                last = Some(run);
            }
        }
        last
    }
}

#[derive(Clone, Debug)]
pub(in crate::store) struct LineRun {
    /// The file that it stands in: 0 is the log itself, the others are copies.
    pub source: usize,
    pub bytes: Range<u64>,
    pub number: u64,
    pub events: u64,
    pub prev: Option<Hex>,
    /// The base that its first event names, if that is a compaction of ours.
    pub base: Option<Hex>,
    pub first_seq: u64,
    pub last_seq: u64,
    pub first: Hex,
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
    /// Divides runs where others branch off or end, so that a run belongs to a chain as a whole or not at all.
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

    /// Divides runs behind an event as well.
    pub fn cut_behind(&mut self, hash: &Hex) {
        self.behind.insert(hash.raw());
    }

    fn is_between(&self, last: &LineRun, next: &Event) -> bool {
        self.behind.contains(&last.last.raw()) || self.before.contains(&next.spans.seq)
    }
}

#[derive(Debug, Default)]
pub(in crate::store) struct Scan {
    pub runs: Vec<LineRun>,
    pub highest_seq: u64,
    pub lines: u64,
    pub end: u64,
}

/// A line that cannot be read: its place, its bytes, its physical line, and what is wrong.
pub(in crate::store) type OnBad<'a> = &'a mut dyn FnMut(u64, &[u8], u64, &Fault);

impl Scan {
    pub fn of(file: &dyn DiskFile, source: usize, cuts: &Cuts, threads: usize, on_bad: OnBad<'_>) -> io::Result<Self> {
        let mut scan = Self::default();
        let mut open: Option<LineRun> = None;
        read_pieces(file, 0..file.length()?, Reading::new(threads), |piece| {
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

fn base_named(text: &[u8], event: &Event) -> Option<Hex> {
    let is_first = event.op == Op::Compact && event.prev_hash(text).is_empty();
    match is_first.then(|| origin_in(text)).flatten() {
        Some(Origin::Ours(sentinel)) => sentinel.base_sha256,
        _ => None,
    }
}

/// Hands over every event of a stretch of whole lines: its place, its physical line counted from 0, its bytes, itself.
pub(in crate::store) fn each_event(
    file: &dyn DiskFile,
    bytes: Range<u64>,
    mut take: impl FnMut(u64, u64, &[u8], &Event),
) -> io::Result<()> {
    let mut lines = 0;
    read_pieces(file, bytes, Reading::new(1), |piece| {
        for line in &piece.lines {
            if let Ok(event) = &line.event {
                take(line.offset, lines + line.number, piece.text(line), event);
            }
        }
        lines += piece.physical;
        io::Result::Ok(true)
    })
}
