//! What did the store ever say?

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::archive;
use crate::chain::Held;
use crate::digest::Hex;
use crate::disk::DiskFile;
use crate::error::{At, Result};
use crate::event::tie::Said;
use crate::event::{Known, Op};
use crate::json::RecordSpans;
use crate::log::Site;
use crate::log::files::open_base;
use crate::snapshot::{self, Moments, Taker};
use crate::store::archives::segments::Segment;
use crate::store::load::examine::Onlooker;
use crate::verify::{RedactedLines, Sink, Walk};
use crate::wal::reader::Reading;

use super::chosen::Chosen;
use super::redact::Hit;
use crate::state::State;

/// Whether an event says what a record is.
fn says_a_record(op: Op) -> bool {
    matches!(op, Op::Upsert | Op::Migrate | Op::Patch)
}

/// The lines of one log that go.
#[derive(Debug, Default)]
pub(in crate::store) struct LinesOfLog {
    /// They, in order.
    pub hits: Vec<Hit>,
    /// One of them tells of several records: others are less without it.
    pub has_acts: bool,
    /// Each line of the log has the seq of its place.
    pub is_even: bool,
}

impl LinesOfLog {
    fn take(&mut self, known: &Known<'_>) {
        if let Some(hash) = Hex::read(known.hash) {
            self.has_acts |= known.op == Op::Act;
            self.hits.push(Hit {
                offset: known.offset,
                seq: known.seq,
                hash,
            });
        }
    }
}

/// What was seen of a log while it was proved.
#[derive(Debug, Default)]
pub(in crate::store) struct Sight {
    /// The lines that go.
    pub lines: LinesOfLog,
    /// The records that go and are in it.
    pub seen: BTreeSet<Vec<u8>>,
    /// The log says more of what is meant than was known.
    knows_more: bool,
    /// How far it was read, and its head there.
    end: Option<(u64, Option<Hex>)>,
}

impl Sight {
    /// Whether it tells all of a log that ends here, with this head.
    pub fn tells_all(&self, end: u64, head: Option<Hex>) -> bool {
        !self.knows_more && self.end == Some((end, head))
    }
}

/// Looks for what goes while the live log is proved.
pub(in crate::store) struct Watcher<'a> {
    chosen: &'a Chosen,
    sight: RefCell<Sight>,
}

impl<'a> Watcher<'a> {
    /// Who looks for these.
    pub fn of(chosen: &'a Chosen) -> Self {
        Self {
            chosen,
            sight: RefCell::default(),
        }
    }

    /// What was seen.
    pub fn sight(self) -> Sight {
        self.sight.into_inner()
    }
}

impl Onlooker for Watcher<'_> {
    fn begin(&self) {
        *self.sight.borrow_mut() = Sight::default();
    }

    fn see(&self, known: &Known<'_>) {
        let mut sight = self.sight.borrow_mut();
        if self.chosen.doomed.takes(known) {
            sight.lines.take(known);
        }
        if !says_a_record(known.op) {
            return;
        }
        if self.chosen.is_news(&Said::of(known.id, known.record, known.fields)) {
            sight.knows_more = true;
        } else if self.chosen.doomed.has(known.id) && !sight.seen.contains(known.id) {
            sight.seen.insert(known.id.to_vec());
        }
    }

    fn end(&self, walk: &Walk) {
        let mut sight = self.sight.borrow_mut();
        sight.lines.hits.retain(|hit| hit.offset < walk.end);
        sight.lines.is_even = walk.redacted.is_even();
        sight.end = Some((walk.end, walk.mark().head));
    }
}

/// All that goes, wherever it is said.
#[derive(Debug, Default)]
pub(in crate::store) struct Found {
    /// The lines of the retired logs, the oldest first.
    pub retired: Vec<LinesOfLog>,
    /// Those of the live one.
    pub live: LinesOfLog,
    /// The bases that hold one of the records.
    pub bases: HashSet<Hex>,
}

impl Found {
    /// Whether others are less without what goes: then only a replay tells what they are.
    pub fn has_acts(&self) -> bool {
        self.retired.iter().chain([&self.live]).any(|lines| lines.has_acts)
    }
}

/// Shows who chooses every record that was ever said, and keeps the lines that go.
struct Everything<'a> {
    chosen: &'a mut Chosen,
    state: &'a State,
    lines: LinesOfLog,
    holds: bool,
    grew: bool,
}

impl Sink for Everything<'_> {
    fn count(&mut self, known: Known<'_>, _: i64) {
        if says_a_record(known.op) {
            let said = Said::of(known.id, known.record, known.fields);
            self.grew |= self.chosen.look(&said, self.state);
        }
        if self.chosen.doomed.takes(&known) {
            self.lines.take(&known);
        }
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        self.count(known, ts);
    }

    fn settle(&mut self, _: Held) {}
}

impl Taker for Everything<'_> {
    fn take(&mut self, record: &[u8], fields: RecordSpans, _: Option<Moments>) {
        if let Some(id) = fields.id.map(|id| id.of(record)) {
            self.grew |= self.chosen.look(&Said::of(id, record, fields), self.state);
            self.holds |= self.chosen.doomed.has(id);
        }
    }

    fn start_over(&mut self) {
        self.holds = false;
    }
}

/// The logs and bases of a store, each to be looked through.
pub(in crate::store) struct Volumes<'a> {
    /// Where they are.
    pub site: &'a Site,
    /// The retired logs, the oldest first.
    pub segments: &'a [Segment],
    /// The live log, and how much of it counts.
    pub live: (&'a Arc<dyn DiskFile>, u64),
    /// All bases on the way.
    pub bases: Vec<Hex>,
    /// How many threads read.
    pub threads: usize,
}

impl Volumes<'_> {
    /// Adds all that belongs to what goes to a choice that knows the present, whatever log or base says it, and finds it. What
    /// was seen of the live log for this choice is not read again.
    ///
    /// # Errors
    /// `Io`.
    pub fn look_through(&self, chosen: &mut Chosen, state: &State, mut sight: Option<Sight>) -> Result<Found> {
        loop {
            let (found, grew) = self.look_once(chosen, state, sight.take())?;
            if !grew {
                return Ok(found);
            }
            chosen.know(state);
        }
    }

    fn look_once(&self, chosen: &mut Chosen, state: &State, sight: Option<Sight>) -> Result<(Found, bool)> {
        let mut found = Found::default();
        let mut all = Everything {
            chosen,
            state,
            lines: LinesOfLog::default(),
            holds: false,
            grew: false,
        };
        for sha256 in &self.bases {
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
            let log = &*segment.archive.log;
            let path = self.site.layout.inside(&segment.name);
            let seqs = walk(log, log.length().at(&path)?, self.threads, &mut all).at(&path)?;
            all.lines.is_even = seqs.is_even();
            found.retired.push(std::mem::take(&mut all.lines));
            segment.archive.rest();
        }
        found.live = match sight {
            Some(sight) => {
                all.chosen.saw(sight.seen);
                sight.lines
            }
            None => {
                let seqs = walk(&**self.live.0, self.live.1, self.threads, &mut all).at(self.site.log())?;
                all.lines.is_even = seqs.is_even();
                all.lines
            }
        };
        Ok((found, all.grew))
    }
}

/// Reads a log to its end; gives what its seqs tell of lines that were erased.
pub(in crate::store) fn walk(
    log: &dyn DiskFile,
    end: u64,
    threads: usize,
    sink: &mut dyn Sink,
) -> std::io::Result<RedactedLines> {
    walk_without(log, end, threads, HashSet::new(), sink)
}

/// The same, as if the lines at some places were erased.
pub(in crate::store) fn walk_without(
    log: &dyn DiskFile,
    end: u64,
    threads: usize,
    going: HashSet<u64>,
    sink: &mut dyn Sink,
) -> std::io::Result<RedactedLines> {
    let reading = Reading {
        trusted_until: end,
        threads,
    };
    let mut walk = Walk::new(None);
    walk.redacted.going = going;
    walk.go(log, end, reading, sink, &mut |_, _| {})?;
    Ok(walk.redacted)
}

/// Whether a file is a state that holds none of the records that go, read to its end.
pub(in crate::store) fn is_state_without(site: &Site, path: &std::path::Path, chosen: &Chosen) -> bool {
    let mut search = StateSearch {
        chosen,
        is_there: false,
    };
    let read = archive::open(&*site.disk, path).and_then(|base| snapshot::read(&*base.log, &mut search));
    read.is_ok_and(|contents| contents.header.is_ok()) && !search.is_there
}

/// Looks for a record that goes.
struct StateSearch<'a> {
    chosen: &'a Chosen,
    is_there: bool,
}

impl Taker for StateSearch<'_> {
    fn take(&mut self, record: &[u8], fields: RecordSpans, _: Option<Moments>) {
        let said = fields.id.map(|id| Said::of(id.of(record), record, fields));
        self.is_there = self.is_there || said.is_some_and(|said| self.chosen.takes(&said));
    }

    fn start_over(&mut self) {}
}
