//! Reads earlier events from the live log and its archives, and shows the records as they were known then.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock, RwLock};

use crate::options::Checking;
use crate::store::archives::archive_index::{
    ArchiveCache, IndexedArchive, OrDamage, archive_altered, damaged, not_kept, why_not_kept,
};
use crate::store::archives::way::pruned_until;
use crate::store::load::base::Proof;
use crate::store::load::examine::{Look, examine, settled_seq};
use crate::store::load::load_sealing::LoadSealer;
use crate::store::load::loader::{Loader, Moment};
use chronolog::damage::Damage;
use chronolog::disk::{DiskFile, read_upto};
use chronolog::error::{At, Error, Result};
use chronolog::event::Op;
use chronolog::event::act::{each_concerned, each_subject};
use chronolog::event::faces::face_of;
use chronolog::event::line::{Event, Trust};
use chronolog::hint::{Hint, line_from};
use chronolog::layout::LOG;
use chronolog::log::{Log, OpenLog, Site};
use chronolog::origin::{Beginning, Origin, Sentinel, WayBack, beginning_of, foreign_traces};
use chronolog::scope::Viewer;
use chronolog::verify::{BaseState, Counted, Report, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_search::text::TextIndex;
use chronomemory_state::index::{FieldIndexes, Indexes};
use chronomemory_state::state::{State, spelled, unspelled};

fn speaks_of(event: &Event, line: &[u8], id: &[u8]) -> bool {
    let mut is_one = false;
    each_subject(event.op, event.record_id(line), event.record(line), |subject| {
        is_one |= subject == id;
    });
    is_one
}

/// What the archive starts from that a sentinel leads back to, as erasures since made it.
pub(super) fn one_back(way: &mut WayBack, sentinel: &Sentinel, indexed: &IndexedArchive) -> Result<Origin> {
    Ok(match indexed.beginning.origin.clone() {
        // A segment begins where the one before it ends.
        Origin::Ours(earlier) if earlier.last_seq >= sentinel.last_seq => {
            return Err(archive_altered(&indexed.name, "it leads in a circle".to_owned()));
        }
        Origin::Ours(earlier) => Origin::Ours(way.back(sentinel, earlier)),
        other => {
            way.pass(sentinel);
            other
        }
    })
}

/// The past of a log: its live lines and its archives.
pub struct History<'a> {
    /// Where the files are.
    pub(in crate::store) site: &'a Site,
    /// The log that is live.
    pub(in crate::store) log: &'a Log,
    /// What it says now, and the places of its events.
    pub(in crate::store) state: &'a State,
    /// The archives that were asked so far.
    pub(in crate::store) archives: &'a ArchiveCache,
    /// How many threads may be used.
    pub(in crate::store) threads: usize,
    /// So many events are sealed at once.
    pub(in crate::store) seal_events: usize,
}

impl<'a> History<'a> {
    /// The live log beside its state.
    pub(in crate::store) fn live(&self) -> LiveLog<'a> {
        LiveLog::of(self.site, self.log, self.state)
    }

    /// The lines that speak of a record, oldest first: those of the archives, then those of the live log.
    ///
    /// # Errors
    /// `HistoryUnavailable` if a kept archive is not there, `Corrupted`, `Io`.
    pub fn of_record(&self, id: &str) -> Result<Vec<Vec<u8>>> {
        self.log.check_is_there()?;
        let mut lines = Vec::new();
        let spelled = spelled(id);
        for indexed in self.indexed_archives(None)?.iter().rev() {
            let places = indexed.places(&*self.site.disk, &self.site.layout, self.threads, &spelled)?;
            for place in places {
                let line = line_from(&*indexed.archive.log, place, indexed.length).or_damage(&indexed.name)?;
                match Event::read(&line, Trust::Nothing) {
                    // The hash of another id may be the same.
                    Ok(event) if !speaks_of(&event, &line, &spelled) => {}
                    Ok(_) => lines.push(line),
                    Err(fault) => return Err(archive_altered(&indexed.name, fault.reason)),
                }
            }
            indexed.archive.rest();
        }
        for index in self.state.history(id) {
            let line = self.live().line_at(index as usize)?;
            // An act may have touched a record of which it does not speak.
            if Event::read(&line, Trust::Hashes).is_ok_and(|event| speaks_of(&event, &line, &spelled)) {
                lines.push(line);
            }
        }
        Ok(lines)
    }

    /// The archives with events from a seq on, newest first; without a seq all that are kept, and pruned ones are not missed.
    fn indexed_archives(&self, since: Option<u64>) -> Result<Vec<Arc<IndexedArchive>>> {
        let mut found: Vec<Arc<IndexedArchive>> = Vec::new();
        let mut origin = self.log.open().map(|log| log.origin.clone());
        let mut way = WayBack::default();
        while let Some(Origin::Ours(sentinel)) = origin {
            if since.is_some_and(|seq| sentinel.last_seq < seq) {
                break;
            }
            let Some(indexed) = self.indexed_before(&sentinel)? else {
                let is_dropped = sentinel.archive.is_none() || sentinel.last_seq <= pruned_until(self.state);
                match since.is_none() && is_dropped {
                    true => break,
                    false => return Err(not_kept(&sentinel)),
                }
            };
            origin = Some(one_back(&mut way, &sentinel, &indexed)?);
            found.push(indexed);
        }
        Ok(found)
    }

    /// The archive that a sentinel names; `None` if it was not kept or is not there.
    pub(in crate::store) fn indexed_before(&self, sentinel: &Sentinel) -> Result<Option<Arc<IndexedArchive>>> {
        match sentinel.safe_archive() {
            Some((name, digest)) => self.archives.find(&*self.site.disk, &self.site.layout, name, digest),
            None => Ok(None),
        }
    }

    /// Every line of the live log whose seq is at least `from_seq`.
    pub fn replay(&self, from_seq: u64) -> Result<Vec<Vec<u8>>> {
        self.log.check_is_there()?;
        let mut lines = Vec::new();
        for range in self.state.timeline().since(from_seq) {
            self.live().each_line(range, |line| lines.push(line.to_vec()))?;
        }
        Ok(lines)
    }
}

impl History<'_> {
    /// The ids of the records that changed at `seq` or later, in order of their first change; those of faces only if asked for.
    ///
    /// # Errors
    /// `HistoryUnavailable` if some of it was not kept, `Corrupted`, `Io`.
    pub fn changed_since(&self, seq: u64, faces: bool) -> Result<Vec<String>> {
        self.log.check_is_there()?;
        let mut changed = Changed {
            since: seq,
            faces,
            ..Changed::default()
        };
        for indexed in self.indexed_archives(Some(seq))?.iter().rev() {
            let mut walk = Walk::new(None);
            let mut sink = Counted::by(|known| changed.note(known.op, known.id, known.record, known.seq));
            walk.go(
                &*indexed.archive.log,
                indexed.length,
                Reading::new(self.threads),
                &mut sink,
            )
            .or_damage(&indexed.name)?;
            if let Some(found) = walk.follower.damage.first() {
                return Err(damaged(&indexed.name, found));
            }
            indexed.archive.rest();
        }
        for range in self.state.timeline().since(seq) {
            self.live().each_line(range, |line| {
                if let Ok(event) = Event::read(line, Trust::Hashes) {
                    changed.note(event.op, event.record_id(line), event.record(line), event.spans.seq);
                }
            })?;
        }
        // An act speaks of links that may not be there.
        let is_there = |id: &String| !changed.by_act.contains(id) || self.state.get(id).is_some();
        changed.ids.retain(is_there);
        Ok(changed.ids)
    }

    /// Whether the event with this seq is the one with this hash: a log that went back and on again has another.
    pub fn has_event(&self, seq: u64, hash: &str) -> Result<bool> {
        self.log.check_is_there()?;
        if let Some(Origin::Ours(sentinel)) = self.log.open().map(|log| &log.origin)
            && (sentinel.last_seq, sentinel.previous_head.as_str()) == (seq, hash)
        {
            // It was the last one of the log before: that need not be unpacked.
            return Ok(true);
        }
        let mut found = false;
        if let Some(oldest) = self.indexed_archives(Some(seq))?.last() {
            let log = &*oldest.archive.log;
            let traces = foreign_traces(log, oldest.length, seq, Hint::None).or_damage(&oldest.name)?;
            found = traces.hashes.iter().any(|there| there == hash.as_bytes());
            oldest.archive.rest();
        }
        for range in self.state.timeline().since(seq) {
            self.live().each_line(range.start..range.start + 1, |line| {
                let event = Event::read(line, Trust::Hashes);
                found |= event.is_ok_and(|event| event.spans.seq == seq && event.hash(line).text() == hash);
            })?;
        }
        Ok(found)
    }
}

#[derive(Default)]
struct Changed {
    since: u64,
    faces: bool,
    ids: Vec<String>,
    seen: HashSet<Vec<u8>>,
    /// Those of them of which only acts spoke.
    by_act: HashSet<String>,
}

impl Changed {
    fn note(&mut self, op: Op, id: &[u8], record: &[u8], seq: u64) {
        let is_change = matches!(op, Op::Upsert | Op::Migrate | Op::Patch | Op::Act);
        if !is_change || seq < self.since {
            return;
        }
        each_concerned(op, id, record, |id| {
            if !self.faces && face_of(id).is_some() {
                return;
            }
            if self.seen.insert(id.to_vec()) {
                self.ids.push(unspelled(id));
                if op == Op::Act {
                    self.by_act.insert(unspelled(id));
                }
            } else if op != Op::Act {
                self.by_act.remove(&unspelled(id));
            }
        });
    }
}

/// How much is read at once when neighbouring events are asked for.
const WINDOW_BYTES: usize = 256 * 1024;

/// A log that is open and the state that it tells.
#[derive(Clone, Copy)]
pub(in crate::store) struct LiveLog<'a> {
    pub site: &'a Site,
    pub open: Option<&'a OpenLog>,
    /// The state, and the places of its events.
    pub state: &'a State,
    /// Whether all of it could be read.
    is_whole: bool,
}

impl<'a> LiveLog<'a> {
    /// A log beside its state.
    pub fn of(site: &'a Site, log: &'a Log, state: &'a State) -> Self {
        Self {
            site,
            open: log.open(),
            state,
            is_whole: is_whole(&log.report),
        }
    }

    /// The hash of the first event, if records have the numbers that they have in every process that reads this log.
    pub fn numbered_from(&self) -> Option<[u8; 32]> {
        let log = self.open.filter(|_| self.is_whole && self.state.can_be_sealed())?;
        (self.events() == self.state.timeline().len() as u64).then(|| log.origin_hash())?
    }

    /// The last seq; 0 when nothing was written.
    pub fn last_seq(&self) -> u64 {
        self.open.map_or(0, |log| log.mark().last_seq)
    }

    pub fn events(&self) -> u64 {
        self.open.map_or(0, |log| log.mark().events)
    }

    /// The hash of the last event, or nothing.
    pub fn head(&self) -> String {
        let head = self.open.and_then(|log| log.mark().head);
        head.map(|head| head.text().to_owned()).unwrap_or_default()
    }

    pub fn line_at(&self, index: usize) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        self.each_line(index..index + 1, |line| found = line.to_vec())?;
        Ok(found)
    }

    /// Shows the lines of consecutive events, reading the log in large steps.
    pub fn each_line(&self, range: Range<usize>, mut show: impl FnMut(&[u8])) -> Result<()> {
        let Some(log) = self.open else {
            return Ok(());
        };
        let path = self.site.log().to_owned();
        let timeline = self.state.timeline();
        let end_of = |index: usize| timeline.offset(index + 1).unwrap_or(log.walk.end);
        let mut window: Vec<u8> = Vec::new();
        let mut window_start = 0;
        for index in range.clone() {
            let Some(start) = timeline.offset(index) else { break };
            let end = end_of(index);
            if start < window_start || end > window_start + window.len() as u64 {
                let far = end_of(range.end.saturating_sub(1).max(index)).min(start + WINDOW_BYTES as u64);
                window.clear();
                window_start = start;
                read_upto(&*log.file, &mut window, start, (far.max(end) - start) as usize).at(&path)?;
            }
            let from = (start - window_start) as usize;
            let Some(text) = window.get(from..(end - window_start) as usize) else {
                return Err(Error::io(&path, std::io::ErrorKind::UnexpectedEof.into()));
            };
            let line = memchr::memchr(b'\n', text).map_or(text, |newline| &text[..newline]);
            show(line.strip_suffix(b"\r").unwrap_or(line));
        }
        Ok(())
    }
}

/// Whether a log could be read as a whole, so that records are numbered as in every process.
pub(in crate::store) fn is_whole(report: &Report) -> bool {
    report.damage.is_empty() && report.cut.is_none() && matches!(report.base, BaseState::None | BaseState::Anchored)
}

/// The store as it was at some event; nothing can be written through it.
#[derive(Default)]
pub struct View {
    pub(in crate::store) state: State,
    seq: u64,
    /// The log that it was read from, and how much of it.
    pub(in crate::store) log: Option<(Arc<dyn DiskFile>, u64)>,
    /// Made when first searched.
    pub(in crate::store) text: OnceLock<TextIndex>,
    /// Made when first asked.
    pub(in crate::store) indexes: RwLock<Indexes>,
    /// Likewise.
    pub(in crate::store) field_indexes: RwLock<FieldIndexes>,
}

impl View {
    /// The last event that it knows.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The records as they were known.
    pub fn state(&self) -> &State {
        &self.state
    }
}

struct PastLog {
    name: String,
    log: Arc<dyn DiskFile>,
    length: u64,
    beginning: Beginning,
    way: WayBack,
}

impl History<'_> {
    /// The store as it was at a moment, in the live log or in an archive.
    ///
    /// # Errors
    /// `HistoryUnavailable` if no kept segment reaches back so far, `Corrupted`, `Io`.
    pub fn as_of(&self, moment: Moment) -> Result<View> {
        self.log.check_is_there()?;
        let Some(log) = self.log.open() else {
            return Ok(View::default());
        };
        let length = log.file.length().or_damage(LOG)?;
        let mut segment = PastLog {
            name: LOG.to_owned(),
            log: Arc::clone(&log.file),
            length,
            beginning: beginning_of(&*log.file, length).or_damage(LOG)?,
            way: WayBack::default(),
        };
        // The first seq that can be reached if nothing before this segment can.
        let mut reachable = self.live().last_seq();
        while !self.reaches(&segment, moment)? {
            reachable = self.first_state(&segment)?;
            segment = self.before(&segment)?.ok_or_else(|| unavailable(&segment, reachable))?;
        }
        let view = self.view_in(&segment, moment, reachable);
        self.archives.rest();
        view
    }

    fn first_state(&self, segment: &PastLog) -> Result<u64> {
        match &segment.beginning.origin {
            Origin::Nothing => Ok(0),
            Origin::Ours(sentinel) => Ok(sentinel.last_seq),
            Origin::Foreign => {
                settled_seq(&*self.site.disk, &self.site.layout, &*segment.log, segment.length).or_damage(&segment.name)
            }
        }
    }

    fn reaches(&self, segment: &PastLog, moment: Moment) -> Result<bool> {
        if segment.beginning.origin == Origin::Nothing {
            return Ok(true);
        }
        Ok(match moment {
            Moment::Seq(seq) => seq >= self.first_state(segment)?,
            Moment::Time(micros) => micros >= segment.beginning.ts,
        })
    }

    /// The segment that another one followed; `None` if it was not kept or is not there.
    fn before(&self, segment: &PastLog) -> Result<Option<PastLog>> {
        let Origin::Ours(sentinel) = &segment.beginning.origin else {
            return Ok(None);
        };
        let Some(indexed) = self.indexed_before(sentinel)? else {
            return Ok(None);
        };
        let (mut way, mut beginning) = (segment.way.clone(), indexed.beginning.clone());
        beginning.origin = one_back(&mut way, sentinel, &indexed)?;
        Ok(Some(PastLog {
            name: indexed.name.clone(),
            log: Arc::clone(&indexed.archive.log),
            length: indexed.length,
            beginning,
            way,
        }))
    }

    fn view_in(&self, segment: &PastLog, moment: Moment, reachable: u64) -> Result<View> {
        let is_live = segment.name == LOG;
        // Opening checked every hash of the live log, and a damaged line must be found again.
        let is_proven = is_live && self.log.open().is_some_and(OpenLog::is_whole);
        let checking = if is_proven { Checking::Quick } else { Checking::Full };
        let look = Look {
            is_past: !is_live,
            way: Some(&segment.way),
            ..Look::at_log(self.threads, checking)
        };
        let (disk, layout) = (&*self.site.disk, &self.site.layout);
        let mut loader = Loader::loading();
        loader.until = Some(moment);
        loader.sealer = Some(LoadSealer::new(disk, layout, self.seal_events, &segment.log));
        if let Some(sealed) = self
            .state
            .slots
            .sealed()
            .filter(|_| is_proven && !self.state.is_outlived)
        {
            loader.resume_before(sealed, self.site).or_damage(LOG)?;
        }
        let found = examine(disk, layout, &*segment.log, look, &mut loader, &mut |_, _| {});
        let found = found.or_damage(&segment.name)?;
        if found.proof == Proof::Nothing && found.report.base == BaseState::Missing && !is_live {
            return Err(unavailable(segment, reachable));
        }
        // Damage in the live log was reported at open, and every good line counts; a past without its base would be a lie.
        let counts = |damage: &&Damage| {
            if damage.path == LOG {
                !is_live
            } else {
                found.proof == Proof::Nothing
            }
        };
        if let Some(worst) = found.report.damage.iter().rev().find(counts) {
            let path = if worst.path == LOG { &segment.name } else { &worst.path };
            return Err(damaged(path, worst));
        }
        let mut state = loader.state.unwrap_or_default();
        // It shows what was living then.
        state.expire(match moment {
            Moment::Time(micros) => micros,
            Moment::Seq(_) => match (loader.last_ts, state.scopes().seen_version(&Viewer::Everyone)) {
                (Some(micros), _) => micros,
                // All of it is in the base. The moment of its last event is known only if a record has it.
                (None, (seq, spoken)) if spoken > 0 && seq == loader.last_seq => spoken.min(segment.beginning.ts),
                (None, _) => loader.base_ts.unwrap_or(i64::MAX).min(segment.beginning.ts),
            },
        });
        Ok(View {
            seq: loader.last_seq,
            state,
            log: Some((Arc::clone(&segment.log), segment.length)),
            ..View::default()
        })
    }
}

fn unavailable(segment: &PastLog, first_seq: u64) -> Error {
    let reason = match &segment.beginning.origin {
        Origin::Ours(sentinel) => why_not_kept(sentinel),
        _ => format!("the base of {} is not there", segment.name),
    };
    Error::HistoryUnavailable { first_seq, reason }
}
