//! Takes lines back that only a copy holds, if nothing behind them leads to them.
//!
//! Where lines are lost, a copy may hold those that follow the last whole one: each has the hash that it names, and names
//! that of the line before. They are taken as far as they go. Two copies that go on differently tell nothing any more, and
//! where somebody ever went back by a restore none does: a copy may be of the way that was left, and nobody can tell.

use std::io;
use std::ops::Range;

use chronolog::digest::Hex;
use chronolog::wal::synced::Synced;

use super::gaps::Layer;
use super::route::RouteStep;
use super::runs::{LineRun, each_event};

/// An event of a copy.
struct CopyEvent {
    hash: Hex,
    seq: u64,
    bytes: Range<u64>,
    is_our_spelling: bool,
}

impl Layer<'_> {
    /// Goes on in copies where lines are lost: behind the last one too, if the log did not end there.
    ///
    /// # Errors
    /// What the disk says.
    pub fn go_on_in_copies(&mut self, missed: Option<&Synced>, length: u64) -> io::Result<()> {
        if self.copies.is_empty() {
            return Ok(());
        }
        let mut steps = Vec::new();
        let old = std::mem::take(&mut self.route.steps);
        for (number, step) in old.iter().enumerate() {
            steps.push(*step);
            let limit = match old.get(number + 1) {
                Some(next) if next.follows => continue,
                Some(next) => self.runs[next.run].first_seq,
                None if !self.may_have_gone_on(step, missed, length) => continue,
                None => missed.map_or(u64::MAX, |synced| synced.seq + 1),
            };
            let last = self.runs[step.run].last;
            let found = self.behind(last, limit)?;
            if number + 1 == old.len() && !found.is_empty() {
                let taken: u64 = found.iter().map(|run| run.bytes.end - run.bytes.start).sum();
                self.is_open = length - self.runs[step.run].bytes.end.min(length) > taken;
            }
            for run in found {
                steps.push(RouteStep {
                    run: self.runs.len(),
                    follows: true,
                });
                self.runs.push(run);
            }
        }
        self.route.steps = steps;
        Ok(())
    }

    /// Takes the first event of a log from a copy, if the log has lost it: its hash proves it, and what the log starts from.
    pub fn begin_in_copies(&mut self, first: Hex) {
        let is_lost = self.route.steps.first().is_some_and(|step| !step.follows);
        let is_it = |run: &LineRun| run.source > 0 && run.prev.is_none() && run.last == first;
        if let Some(run) = self.runs.iter().position(is_it).filter(|_| is_lost) {
            self.route.steps.insert(0, RouteStep { run, follows: true });
        }
    }

    /// Whether something was there behind the last line of the chain.
    fn may_have_gone_on(&self, last: &RouteStep, missed: Option<&Synced>, length: u64) -> bool {
        let run = &self.runs[last.run];
        let is_anchored = self.route.anchor.is_some();
        let has_remains = run.source == 0 && self.has_unreadable_behind(run.bytes.end, length);
        !is_anchored && (missed.is_some_and(|synced| synced.seq > run.last_seq) || has_remains)
    }

    /// The lines of copies that follow from a line, up to a seq.
    fn behind(&self, mut head: Hex, limit: u64) -> io::Result<Vec<LineRun>> {
        let mut found = Vec::new();
        loop {
            let mut ways = Vec::new();
            for run in self.runs.iter().filter(|run| run.source > 0 && run.prev == Some(head)) {
                let mut events = Vec::new();
                each_event(
                    &*self.copies[run.source - 1],
                    run.bytes.clone(),
                    |offset, _, text, event| {
                        events.push(CopyEvent {
                            hash: event.hash(text),
                            seq: event.spans.seq,
                            bytes: offset..offset + text.len() as u64 + 1,
                            is_our_spelling: event.is_our_spelling(text),
                        });
                    },
                )?;
                ways.push((run, events));
            }
            let Some((run, longest)) = ways.iter().max_by_key(|(_, events)| events.len()) else {
                return Ok(found);
            };
            let is_agreed = |at: usize, next: &CopyEvent| {
                ways.iter()
                    .all(|(_, events)| events.get(at).is_none_or(|other| other.hash == next.hash))
            };
            let is_wanted = |(at, next): &(usize, &CopyEvent)| next.seq < limit && is_agreed(*at, next);
            let taken: Vec<&CopyEvent> = longest
                .iter()
                .enumerate()
                .take_while(is_wanted)
                .map(|(_, next)| next)
                .collect();
            let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
                return Ok(found);
            };
            found.push(LineRun {
                source: run.source,
                bytes: first.bytes.start..last.bytes.end,
                number: run.number,
                events: taken.len() as u64,
                prev: Some(head),
                base: None,
                first_seq: first.seq,
                last_seq: last.seq,
                first: first.hash,
                last: last.hash,
                are_ours: (first.is_our_spelling, last.is_our_spelling),
            });
            if taken.len() < longest.len() {
                return Ok(found);
            }
            head = last.hash;
        }
    }
}
