//! Which lines of a log go, and does what is appended meanwhile change what goes?

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;

use crate::chain::Held;
use crate::digest::Hex;
use crate::disk::DiskFile;
use crate::event::tie::Said;
use crate::event::{Coming, Known, Op};
use crate::memory::{self, Refused};
use crate::store::archives::replay::Replay;
use crate::store::load::examine::Onlooker;
use crate::verify::{Sink, Walk};
use crate::wal::reader::Reading;

use super::chosen::{Chosen, says_a_record};
use super::redact::Hit;

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
    /// One more.
    pub fn take(&mut self, known: &Known<'_>) {
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

/// The live log as far as it was looked through.
pub(in crate::store) struct LiveLines {
    /// The lines that go.
    pub lines: LinesOfLog,
    /// How far it was read.
    pub walk: Walk,
}

impl LiveLines {
    /// Goes on to a place that the log has come to since; whether what was appended changes what goes, so that all has to be
    /// looked through anew. What is kept is shown to a replay, if there is one.
    ///
    /// # Errors
    /// What the disk says, or that there is no memory.
    pub fn go_on(
        &mut self,
        log: &dyn DiskFile,
        end: u64,
        chosen: &mut Chosen,
        replay: Option<&mut Replay>,
    ) -> io::Result<bool> {
        let before = self.lines.hits.len();
        let mut rest = Rest {
            chosen,
            lines: &mut self.lines,
            replay,
            is_upset: false,
        };
        let reading = Reading {
            trusted_until: end,
            threads: 1,
        };
        let tail = self.walk.go(log, end, reading, &mut rest, &mut |_, _| {})?;
        let is_upset = rest.is_upset || tail.is_some();
        self.lines.is_even = self.walk.redacted.is_even();
        // Which lines may go where seqs jump is a question to all of them.
        Ok(is_upset || (self.lines.hits.len() > before && !self.lines.is_even))
    }
}

/// Looks at what was appended.
struct Rest<'a> {
    chosen: &'a mut Chosen,
    lines: &'a mut LinesOfLog,
    replay: Option<&'a mut Replay>,
    is_upset: bool,
}

impl Rest<'_> {
    fn see(&mut self, known: &Known<'_>) {
        self.is_upset |= self.chosen.is_upset_by(known);
        if self.chosen.doomed.takes(known) {
            self.lines.take(known);
            self.chosen.saw([known.id.to_vec()].into());
        }
    }
}

impl Sink for Rest<'_> {
    fn make_room(&mut self, coming: Coming) -> Result<(), Refused> {
        match &mut self.replay {
            Some(replay) => replay.make_room(coming),
            None => memory::check(),
        }
    }

    fn count(&mut self, known: Known<'_>, ts: i64) {
        self.see(&known);
        if let Some(replay) = &mut self.replay {
            replay.count(known, ts);
        }
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        self.see(&known);
        if let Some(replay) = &mut self.replay {
            replay.hold(known, ts);
        }
    }

    fn settle(&mut self, held: Held) {
        if let Some(replay) = &mut self.replay {
            replay.settle(held);
        }
    }
}

/// What was seen of a log while it was proved.
#[derive(Default)]
pub(in crate::store) struct SeenLog {
    /// The lines that go.
    lines: LinesOfLog,
    /// The records that go and are in it.
    seen: BTreeSet<Vec<u8>>,
    /// The log says more of what is meant than was known.
    knows_more: bool,
    /// How far it was read.
    walk: Option<Walk>,
}

impl SeenLog {
    /// The log as far as it was seen, and the records in it that go; `None` if it has to be looked through anew.
    pub fn lines(self) -> Option<(LiveLines, BTreeSet<Vec<u8>>)> {
        let walk = self.walk.filter(|_| !self.knows_more)?;
        let lines = self.lines;
        Some((LiveLines { lines, walk }, self.seen))
    }
}

/// Looks for what goes while the live log is proved.
pub(in crate::store) struct Watcher<'a> {
    chosen: &'a Chosen,
    /// The log ended here when that was chosen.
    chosen_at: u64,
    sight: RefCell<SeenLog>,
}

impl<'a> Watcher<'a> {
    /// Who looks for these, which were chosen when the log ended here.
    pub fn of(chosen: &'a Chosen, chosen_at: u64) -> Self {
        Self {
            chosen,
            chosen_at,
            sight: RefCell::default(),
        }
    }

    /// What was seen.
    pub fn sight(self) -> SeenLog {
        self.sight.into_inner()
    }
}

impl Onlooker for Watcher<'_> {
    fn begin(&self) {
        *self.sight.borrow_mut() = SeenLog::default();
    }

    fn see(&self, known: &Known<'_>) {
        let mut sight = self.sight.borrow_mut();
        if self.chosen.doomed.takes(known) {
            sight.lines.take(known);
        }
        sight.knows_more |= known.offset >= self.chosen_at && self.chosen.is_upset_by(known);
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
        sight.walk = Some(walk.clone());
    }
}
