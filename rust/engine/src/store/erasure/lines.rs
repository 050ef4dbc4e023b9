//! Finds the lines of a log that an erasure takes, also those that are appended meanwhile.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use crate::store::archives::onlooker::Onlooker;
use crate::store::archives::replay::Replay;
use chronolog::chain::BatchFate;
use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::event::tie::SaidRecord;
use chronolog::event::{IncomingEvents, Known, Op};
use chronolog::memory::{self, Refused};
use chronolog::verify::{Sink, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_state::state::{Likeness, State};

use super::chosen::{Chosen, said_by, says_a_record};
use super::redact::DoomedLine;

/// The lines of one log that go.
#[derive(Debug, Default)]
pub(in crate::store) struct LinesOfLog {
    /// They, in order.
    pub hits: Vec<DoomedLine>,
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
            self.hits.push(DoomedLine {
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
    fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
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

    fn settle(&mut self, held: BatchFate) {
        if let Some(replay) = &mut self.replay {
            replay.settle(held);
        }
    }
}

/// What was seen of a store while it was proved, and need not be read again.
pub(in crate::store) struct SeenStore {
    /// The live log.
    pub live: LiveLines,
    /// The retired logs, by the digests of their archives.
    pub retired: HashMap<Hex, LinesOfLog>,
    /// The bases, by their digests, and whether they hold one of the records.
    pub bases: HashMap<Hex, bool>,
}

/// What was seen of a log and of its past while it was proved.
#[derive(Default)]
pub(in crate::store) struct SeenLog {
    /// The lines that go.
    lines: LinesOfLog,
    /// What is read is a retired log, of which these go.
    is_past: bool,
    past: LinesOfLog,
    retired: HashMap<Hex, LinesOfLog>,
    bases: HashMap<Hex, bool>,
    /// The records that go and are in it.
    seen: BTreeSet<Vec<u8>>,
    /// The log, or its past, says more of what is meant than was known.
    knows_more: bool,
    /// How far it was read.
    walk: Option<Walk>,
}

impl SeenLog {
    /// The store as far as it was seen, and the records in it that go; `None` if it has to be looked through anew.
    pub fn store(self) -> Option<(SeenStore, BTreeSet<Vec<u8>>)> {
        let walk = self.walk.filter(|_| !self.knows_more)?;
        let lines = self.lines;
        let seen = SeenStore {
            live: LiveLines { lines, walk },
            retired: self.retired,
            bases: self.bases,
        };
        Some((seen, self.seen))
    }
}

/// Looks for what goes while the live log and its past are proved.
pub(in crate::store) struct Watcher<'a> {
    chosen: &'a Chosen,
    /// The log ended here when that was chosen.
    chosen_at: u64,
    likeness: Option<Arc<Likeness>>,
    sight: RefCell<SeenLog>,
}

impl<'a> Watcher<'a> {
    /// Who looks for these, which were chosen when the log ended here, and may know records that are likely to come.
    pub fn of(chosen: &'a Chosen, chosen_at: u64, likeness: Option<Likeness>) -> Self {
        Self {
            chosen,
            chosen_at,
            likeness: likeness.map(Arc::new),
            sight: RefCell::default(),
        }
    }

    /// What was seen.
    pub fn sight(self) -> SeenLog {
        self.sight.into_inner()
    }

    /// Hears what a record was some time.
    fn hear(&self, sight: &mut SeenLog, said: &SaidRecord<'_>) {
        if self.chosen.is_news(said) {
            sight.knows_more = true;
        } else if self.chosen.doomed.has(said.id) && !sight.seen.contains(said.id) {
            sight.seen.insert(said.id.to_vec());
        }
    }
}

impl Onlooker for Watcher<'_> {
    fn likeness(&self) -> Option<Arc<Likeness>> {
        self.likeness.clone()
    }

    fn begin(&self) {
        *self.sight.borrow_mut() = SeenLog::default();
    }

    fn see(&self, known: &Known<'_>) {
        let mut sight = self.sight.borrow_mut();
        if self.chosen.doomed.takes(known) {
            match sight.is_past {
                true => sight.past.take(known),
                false => sight.lines.take(known),
            }
        }
        let is_later = !sight.is_past && known.offset >= self.chosen_at;
        sight.knows_more |= is_later && self.chosen.is_upset_by(known);
        if says_a_record(known.op) {
            self.hear(&mut sight, &SaidRecord::of(known.id, known.record, known.fields));
        }
    }

    fn end(&self, walk: &Walk) {
        let mut sight = self.sight.borrow_mut();
        sight.lines.hits.retain(|hit| hit.offset < walk.end);
        sight.lines.is_even = walk.redacted.is_even();
        sight.walk = Some(walk.clone());
    }

    fn begin_retired(&self) {
        let mut sight = self.sight.borrow_mut();
        (sight.is_past, sight.past) = (true, LinesOfLog::default());
    }

    fn end_retired(&self, digest: &Hex, is_even: bool) {
        let mut sight = self.sight.borrow_mut();
        let lines = std::mem::take(&mut sight.past);
        sight.retired.insert(*digest, LinesOfLog { is_even, ..lines });
    }

    fn base(&self, sha256: &Hex, state: &State) {
        let mut sight = self.sight.borrow_mut();
        let mut holds = false;
        for row in (0..state.slot_count() as u32).filter_map(|slot| state.row(slot)) {
            self.hear(&mut sight, &said_by(&row));
            holds |= self.chosen.doomed.has(row.id);
        }
        sight.bases.insert(*sha256, holds);
    }
}
