//! Writes the bases and archives of the past anew without the records that are erased.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::error::{At, Error, Result};
use chronolog::event::salt::SaltTerms;
use chronolog::json::{RecordSpans, Value};
use chronolog::layout::{LOG, NEW_BASE, base_name, packed_base_name};
use chronolog::log::Site;
use chronolog::log::files::{Scratch, open_base, open_inside};
use chronolog::memory::Refused;
use chronolog::verify::NoSink;
use chronomemory_state::snapshot::{self, BaseWriter, Moments, Taker};
use chronomemory_state::state::State;

use super::lines::LinesOfLog;
use super::order::Erase;
use super::redact::{DoomedLine, pack_without, unsalted};
use super::survey::{FoundToErase, walk, walk_without};
use crate::store::archives::doomed::Doomed;
use crate::store::archives::replay::Replay;
use crate::store::archives::segments::{RetiredSegment, Start};
use crate::store::upkeep::retire::base_salt;

/// The past without some records, as it is written anew from the oldest file on.
pub(in crate::store) struct Rewriting<'a> {
    site: &'a Site,
    doomed: Arc<Doomed>,
    salts: Option<SaltTerms<'a>>,
    threads: usize,
    /// What is kept adds up to this; `None` if it adds up to what is there without the records.
    pub replay: Option<Replay>,
    /// What the logs so far start from is known.
    is_known: bool,
    /// The bases that hold one of the records.
    bases: &'a HashSet<Hex>,
    is_begun: bool,
    /// Only what would be done is counted.
    is_dry: bool,
    /// The logs stay, without the lines that go.
    is_history_kept: bool,
    /// What a sentinel says of it.
    pub replaced: Vec<Value>,
    /// How many files of the past are made anew or dropped.
    pub files: u64,
    /// The files that go.
    pub remove: Vec<String>,
    /// The files that came. Nothing speaks of them yet.
    pub made: Vec<PathBuf>,
    /// Lines that go, in all and of each log.
    pub lines: u64,
    pub unsalted: u64,
    /// The seqs of the first and the last of them.
    pub span: Option<(u64, u64)>,
    pub by_log: Vec<(String, u64)>,
}

/// The records of a base that stay.
#[derive(Default)]
struct KeptRecords {
    doomed: Arc<Doomed>,
    rows: Vec<(Vec<u8>, Vec<u8>, Moments)>,
}

impl Taker for KeptRecords {
    fn take(&mut self, record: &[u8], fields: RecordSpans, moments: Option<Moments>) {
        let id = fields.id.map(|span| span.of(record)).unwrap_or_default();
        if !self.doomed.has(id) {
            self.rows
                .push((id.to_vec(), record.to_vec(), moments.unwrap_or(Moments::UNKNOWN)));
        }
    }

    fn date(&mut self, id: &[u8], moments: Moments) {
        if let Some(row) = self.rows.iter_mut().rfind(|row| row.0 == id) {
            row.2 = moments;
        }
    }

    fn start_over(&mut self) {
        self.rows.clear();
    }
}

impl<'a> Rewriting<'a> {
    /// Nothing yet.
    pub fn new(
        site: &'a Site,
        doomed: &Arc<Doomed>,
        salts: Option<SaltTerms<'a>>,
        threads: usize,
        order: &Erase,
        (found, live): (&'a FoundToErase, &LinesOfLog),
    ) -> Self {
        Self {
            site,
            doomed: Arc::clone(doomed),
            salts,
            threads,
            replay: found.has_acts(live).then(|| Replay::without(doomed)),
            is_known: false,
            bases: &found.bases,
            is_begun: false,
            is_dry: order.dry_run || order.drop_history,
            is_history_kept: !order.drop_history,
            replaced: Vec::new(),
            files: 0,
            remove: Vec::new(),
            made: Vec::new(),
            lines: 0,
            unsalted: 0,
            span: None,
            by_log: Vec::new(),
        }
    }

    /// Goes over a retired log, of which these lines go.
    ///
    /// # Errors
    /// `Io`, `OutOfMemory`.
    pub fn retired(&mut self, segment: &RetiredSegment, lines: &LinesOfLog) -> Result<()> {
        let log = &segment.archive.log;
        let path = self.site.layout.inside(&segment.name);
        let end = log.length().at(&path)?;
        self.take_in(&segment.start, &segment.name, (&**log, end), lines)?;
        if let Some(replay) = &mut self.replay {
            replay.leave_segment();
        }
        let hits = &lines.hits;
        self.files += u64::from(!hits.is_empty());
        if !hits.is_empty() && !self.is_dry {
            let (path, digest) = pack_without(self.site, (log, end), hits, segment.span, self.threads)?;
            self.made.push(path);
            let erased = segment.redacted + hits.len() as u64;
            self.replaced.push(Value::object([
                ("old", text(&segment.digest)),
                ("new", text(&digest)),
                ("erased", number(erased)),
            ]));
            self.remove.push(segment.name.clone());
        }
        segment.archive.rest();
        Ok(())
    }

    /// Goes over the live log as far as it was looked through, of which these lines go.
    ///
    /// # Errors
    /// `Io`, `OutOfMemory`.
    pub fn live(&mut self, start: &Start, log: &dyn DiskFile, end: u64, lines: &LinesOfLog) -> Result<()> {
        self.take_in(start, LOG, (log, end), lines)
    }

    /// What was appended to the live log meanwhile has been replayed; of it, these lines go.
    ///
    /// # Errors
    /// `Io`, `OutOfMemory`.
    pub fn more(&mut self, log: &dyn DiskFile, end: u64, hits: &[DoomedLine]) -> Result<()> {
        self.check_replay()?;
        self.count(LOG, (log, end), hits)
    }

    /// What is kept, as far as only a replay tells.
    pub fn kept(&mut self) -> Option<&mut State> {
        self.replay.as_mut()?.state.as_mut()
    }

    /// Refuses to go on where nobody knows what is kept.
    ///
    /// # Errors
    /// `Busy` if the base of the log is not there.
    pub fn check(&self) -> Result<()> {
        let is_known = match &self.replay {
            Some(replay) => replay.state.is_some(),
            None => self.is_known,
        };
        let why_not = || Error::busy("nothing is erased while the base of the log is missing");
        is_known.then_some(()).ok_or_else(why_not)
    }

    /// What is kept adds up to this; `None` if that is what is there without the records.
    pub fn sum(&mut self) -> Option<State> {
        let mut replay = self.replay.take()?;
        replay.leave_segment();
        replay.state
    }

    fn check_replay(&self) -> Result<()> {
        match self.replay.as_ref().is_some_and(|replay| replay.gave_up) {
            true => Err(Error::from(Refused)),
            false => Ok(()),
        }
    }

    fn take_in(
        &mut self,
        start: &Start,
        name: &str,
        (log, end): (&dyn DiskFile, u64),
        lines: &LinesOfLog,
    ) -> Result<()> {
        self.begin(start)?;
        let path = self.site.layout.inside(name);
        let found = &lines.hits;
        if !lines.is_even && !found.is_empty() && self.is_history_kept {
            self.check_seqs(name, log, end, found)?;
        }
        if let Some(replay) = &mut self.replay {
            replay.settled_until = start.settled_until;
            walk(log, end, self.threads, replay).at(&path)?;
        }
        self.check_replay()?;
        self.count(name, (log, end), found)
    }

    /// Counts lines of a log that go.
    fn count(&mut self, name: &str, (log, end): (&dyn DiskFile, u64), hits: &[DoomedLine]) -> Result<()> {
        self.lines += hits.len() as u64;
        self.unsalted += unsalted(log, end, hits).at(&self.site.layout.inside(name))?;
        for hit in hits {
            let (first, last) = self.span.unwrap_or((hit.seq, hit.seq));
            self.span = Some((first.min(hit.seq), last.max(hit.seq)));
        }
        match self.by_log.last_mut().filter(|(last, _)| last == name) {
            Some((_, count)) => *count += hits.len() as u64,
            None if hits.is_empty() => {}
            None => self.by_log.push((name.to_owned(), hits.len() as u64)),
        }
        Ok(())
    }

    /// Refuses what nobody could judge afterwards. Where another tool's seqs jump, those of the lines that stay may look as if
    /// they did not: then each erased line would have to have the seq of its place, and has not.
    fn check_seqs(&self, name: &str, log: &dyn DiskFile, end: u64, hits: &[DoomedLine]) -> Result<()> {
        let going = hits.iter().map(|hit| hit.offset).collect();
        let left = walk_without(log, end, self.threads, going, &mut NoSink).at(&self.site.layout.inside(name))?;
        match left.redacted.stray() {
            None => Ok(()),
            Some(_) => Err(Error::busy(format!(
                "the seqs in {name} jump, and what would be left of it does not show that: a verifier would take the erased \
                 lines for forged ones. Give history=\"drop\", which keeps no archive"
            ))),
        }
    }

    /// What a log starts from: the first base, and one that is somebody's word, without the records; any other is what came
    /// before it adds up to, or goes.
    fn begin(&mut self, start: &Start) -> Result<()> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let Some(sha256) = start.base else {
            if is_first {
                self.begin_from(Some(State::default()));
            }
            return Ok(());
        };
        let path = self.site.layout.base(sha256.text());
        let Some((_, base)) = open_base(&*self.site.disk, &self.site.layout, &sha256).at(&path)? else {
            return Ok(());
        };
        let file = base.log;
        // Where the base before is gone nothing adds up to this one: it counts as it is.
        if is_first || start.is_word || !self.is_known {
            return self.begin_with(&file, &sha256);
        }
        // A base that was proved is what the logs before it add up to: only one that holds some of the records is another now.
        let stays = match &mut self.replay {
            Some(replay) => replay.is_like(&*file, &sha256) == Some(true),
            None => !self.bases.contains(&sha256),
        };
        if stays {
            return Ok(());
        }
        self.files += 1;
        self.replaced
            .push(Value::object([("old", text(&sha256)), ("new", Value::Null)]));
        self.remove.extend(names_of_base(&sha256));
        Ok(())
    }

    /// The next log starts from this, if it is known.
    fn begin_from(&mut self, state: Option<State>) {
        self.is_known = state.is_some();
        if let Some(replay) = &mut self.replay {
            replay.state = state;
        }
    }

    /// The next log starts from what a base holds, as far as that is kept.
    fn begin_replay(&mut self, file: &dyn DiskFile, sha256: &Hex) {
        self.is_known = true;
        if let Some(replay) = &mut self.replay {
            replay.begin_with(file, sha256);
            self.is_known = replay.state.is_some();
        }
    }

    fn begin_with(&mut self, file: &Arc<dyn DiskFile>, sha256: &Hex) -> Result<()> {
        if !self.bases.contains(sha256) {
            self.begin_replay(&**file, sha256);
            return Ok(());
        }
        if self.is_dry && self.replay.is_none() {
            self.files += 1;
            self.is_known = true;
            return Ok(());
        }
        let path = self.site.layout.base(sha256.text());
        let mut kept = KeptRecords {
            doomed: Arc::clone(&self.doomed),
            ..KeptRecords::default()
        };
        let contents = snapshot::read(&**file, &mut kept).at(&path)?;
        let unreadable = |reason: String| Error::io(&path, io::Error::new(io::ErrorKind::InvalidData, reason));
        let header = contents.header.map_err(unreadable)?;
        self.files += 1;
        if self.is_dry {
            // Nothing is written: what would be is taken in from memory.
            let mut state = State::default();
            for (_, record, moments) in &kept.rows {
                let fields = chronolog::json::scan_record(record).unwrap_or_default();
                Taker::take(&mut state, record, fields, Some(*moments));
            }
            self.begin_from(Some(state));
            return Ok(());
        }
        let salt = base_salt(self.salts)?;
        let scratch = Scratch::at(&self.site.disk, self.site.layout.bases().join(NEW_BASE));
        let mut writer = BaseWriter::create(&*self.site.disk, scratch.path()).at(scratch.path())?;
        let rows: Vec<(&[u8], Moments)> = kept.rows.iter().map(|row| (&row.1[..], row.2)).collect();
        writer.add(rows.iter().copied(), &mut |_, _| {}).at(scratch.path())?;
        let new = writer.finish(&header, salt.as_deref()).at(scratch.path())?.sha256;
        let target = self.site.layout.base(new.text());
        scratch.name(&target)?;
        self.made.push(target.clone());
        let written = open_inside(&*self.site.disk, &self.site.layout, &base_name(new.text())).at(&target)?;
        if let Some(written) = written {
            self.begin_replay(&*written, &new);
        }
        self.replaced
            .push(Value::object([("old", text(sha256)), ("new", text(&new))]));
        self.remove.extend(names_of_base(sha256));
        Ok(())
    }
}

/// What a base may be called: it may lie there packed, and both ways if somebody could not finish.
pub(super) fn names_of_base(sha256: &Hex) -> [String; 2] {
    [base_name(sha256.text()), packed_base_name(sha256.text())]
}

pub(super) fn text(digest: &Hex) -> Value {
    Value::Str(digest.text().to_owned())
}

pub(super) fn number(n: u64) -> Value {
    Value::from(i64::try_from(n).unwrap_or(i64::MAX))
}
