//! Looks through all that the store ever said, for the records that an erasure takes.

use std::collections::HashSet;
use std::sync::Arc;

use crate::store::archives::segments::RetiredSegment;
use chronolog::archive;
use chronolog::chain::BatchFate;
use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::error::{At, Result};
use chronolog::event::Known;
use chronolog::event::tie::SaidRecord;
use chronolog::json::RecordSpans;
use chronolog::log::Site;
use chronolog::log::files::open_base;
use chronolog::verify::{RedactedLines, Sink, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_state::snapshot::{self, Moments, Taker};

use super::chosen::{Chosen, Present, says_a_record};
use super::lines::{LinesOfLog, LiveLines, SeenStore};
use super::reach::{Asking, StoreAccess};

/// All that goes, wherever it is said.
#[derive(Default)]
pub(in crate::store) struct FoundToErase {
    /// The lines of the retired logs, the oldest first.
    pub retired: Vec<LinesOfLog>,
    /// The bases that hold one of the records.
    pub bases: HashSet<Hex>,
}

impl FoundToErase {
    /// Whether others are less without what goes of these and of the live log: then only a replay tells what they are.
    pub fn has_acts(&self, live: &LinesOfLog) -> bool {
        self.retired.iter().chain([live]).any(|lines| lines.has_acts)
    }
}

/// Shows who chooses every record that was ever said, and keeps the lines that go.
struct Everything<'a> {
    chosen: &'a mut Chosen,
    present: &'a dyn Present,
    lines: LinesOfLog,
    holds: bool,
    grew: bool,
}

impl Sink for Everything<'_> {
    fn count(&mut self, known: Known<'_>, _: i64) {
        if says_a_record(known.op) {
            let said = SaidRecord::of(known.id, known.record, known.fields);
            self.grew |= self.chosen.look(&said, self.present);
        }
        if self.chosen.doomed.takes(&known) {
            self.lines.take(&known);
        }
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        self.count(known, ts);
    }

    fn settle(&mut self, _: BatchFate) {}
}

impl Taker for Everything<'_> {
    fn take(&mut self, record: &[u8], fields: RecordSpans, _: Option<Moments>) {
        if let Some(id) = fields.id.map(|id| id.of(record)) {
            self.grew |= self.chosen.look(&SaidRecord::of(id, record, fields), self.present);
            self.holds |= self.chosen.doomed.has(id);
        }
    }

    fn start_over(&mut self) {
        self.holds = false;
    }
}

/// The logs and bases of a store, each to be looked through.
pub(super) struct LogsAndBases<'a> {
    /// Where they are.
    pub site: &'a Site,
    /// The retired logs, the oldest first.
    pub segments: &'a [RetiredSegment],
    /// The live log, and how much of it counts.
    pub live: (&'a Arc<dyn DiskFile>, u64),
    /// All bases on the way.
    pub bases: Vec<Hex>,
    /// How many threads read.
    pub threads: usize,
}

impl LogsAndBases<'_> {
    /// Adds all that belongs to what goes to a choice that knows the present, whatever log or base says it, and finds it. What
    /// was seen already for this choice is not read again.
    ///
    /// # Errors
    /// `Io`.
    pub fn look_through(
        &self,
        chosen: &mut Chosen,
        reach: &impl StoreAccess,
        mut seen: Option<SeenStore>,
    ) -> Result<(FoundToErase, LiveLines)> {
        loop {
            let present = Asking::of(reach);
            let (found, live, grew) = self.look_once(chosen, &present, seen.take())?;
            present.check()?;
            if !grew {
                return Ok((found, live));
            }
            reach.look(|store| {
                chosen.know(&store.state);
                Ok(())
            })?;
        }
    }

    fn look_once(
        &self,
        chosen: &mut Chosen,
        present: &dyn Present,
        seen: Option<SeenStore>,
    ) -> Result<(FoundToErase, LiveLines, bool)> {
        let mut found = FoundToErase::default();
        let (live, mut retired, bases) = match seen {
            Some(seen) => (Some(seen.live), seen.retired, seen.bases),
            None => Default::default(),
        };
        let mut all = Everything {
            chosen,
            present,
            lines: LinesOfLog::default(),
            holds: false,
            grew: false,
        };
        for sha256 in &self.bases {
            if let Some(&holds) = bases.get(sha256) {
                found.bases.extend(holds.then_some(*sha256));
                continue;
            }
            let path = self.site.layout.base(sha256.text());
            if let Some((_, base)) = open_base(&*self.site.disk, &self.site.layout, sha256).at(&path)? {
                all.holds = false;
                // It was proved: its digest need not be looked at again, unless it is of another form.
                if !snapshot::read_undigested(&*base.log, &mut all).at(&path)? {
                    snapshot::read(&*base.log, &mut all).at(&path)?;
                }
                if all.holds {
                    found.bases.insert(*sha256);
                }
            }
        }
        for segment in self.segments {
            if let Some(lines) = retired.remove(&segment.digest) {
                found.retired.push(lines);
                continue;
            }
            let log = &*segment.archive.log;
            let path = self.site.layout.inside(&segment.name);
            let seqs = walk(log, log.length().at(&path)?, self.threads, &mut all).at(&path)?;
            all.lines.is_even = seqs.is_even();
            found.retired.push(std::mem::take(&mut all.lines));
            segment.archive.rest();
        }
        let live = match live {
            Some(live) => live,
            None => {
                let (log, end) = self.live;
                let walk = walk_without(&**log, end, self.threads, HashSet::new(), &mut all).at(self.site.log())?;
                all.lines.is_even = walk.redacted.is_even();
                let lines = all.lines;
                LiveLines { lines, walk }
            }
        };
        Ok((found, live, all.grew))
    }
}

/// Reads a log to its end; gives what its seqs tell of lines that were erased.
pub(in crate::store) fn walk(
    log: &dyn DiskFile,
    end: u64,
    threads: usize,
    sink: &mut dyn Sink,
) -> std::io::Result<RedactedLines> {
    Ok(walk_without(log, end, threads, HashSet::new(), sink)?.redacted)
}

/// The same, as if the lines at some places were erased; gives how far it came.
pub(in crate::store) fn walk_without(
    log: &dyn DiskFile,
    end: u64,
    threads: usize,
    going: HashSet<u64>,
    sink: &mut dyn Sink,
) -> std::io::Result<Walk> {
    let reading = Reading {
        trusted_until: end,
        threads,
    };
    let mut walk = Walk::new(None);
    walk.redacted.going = going;
    walk.go(log, end, reading, sink, &mut |_, _| {})?;
    Ok(walk)
}

/// What a copy is that cannot be read to its end, and shows nothing of what goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum UnreadableCopy {
    /// It may hold it.
    Counts,
    /// It is not known to hold it.
    Passes,
}

/// Whether a file is a state that holds none of the records that go, read to its end.
pub(in crate::store) fn is_state_without(
    site: &Site,
    path: &std::path::Path,
    chosen: &Chosen,
    doubt: UnreadableCopy,
) -> bool {
    let mut search = StateSearch {
        chosen,
        is_there: false,
    };
    let read = archive::open(&*site.disk, path).and_then(|base| snapshot::read(&*base.log, &mut search));
    (doubt == UnreadableCopy::Passes || read.is_ok_and(|contents| contents.header.is_ok())) && !search.is_there
}

/// Looks for a record that goes.
struct StateSearch<'a> {
    chosen: &'a Chosen,
    is_there: bool,
}

impl Taker for StateSearch<'_> {
    fn take(&mut self, record: &[u8], fields: RecordSpans, _: Option<Moments>) {
        let said = fields.id.map(|id| SaidRecord::of(id.of(record), record, fields));
        self.is_there = self.is_there || said.is_some_and(|said| self.chosen.takes(&said));
    }

    fn start_over(&mut self) {}
}
