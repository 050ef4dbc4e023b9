//! Rewrites the live log as a new base and archive while others go on, and begins a new log with a sentinel.
//!
//! A [`Rewrite`] freezes a committed prefix, writes it without the lock and follows what is appended in ever shorter
//! rounds; the rest is added under the lock. A compaction is a rewrite, an erasure one with a [`Filter`].

use std::io;
use std::sync::Arc;

use super::bases::{ArchiveTold, NewFiles, RewrittenFiles, thin_out};
use super::compact_rows::compact_rows;
use super::history_files::{clear_out, end_pruning, retired_files};
use crate::store::files::segments::remove_segments;
use crate::store::files::snapshots::header_of;
use crate::store::load::tails::check_no_tail_is_left;
use crate::store::sealing::{BaseSealWork, base_rows, start_sealing_base};
use crate::store::turns::{StoreAccess, Turns, check_tail_at_the_end, take_care};
use crate::store::verifying::verify_opened;
use crate::store::write::commit::system_event;
use crate::store::{Progress, Store};
use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::{Op, stamp};
use chronolog::json::Value;
use chronolog::layout::base_name;
use chronolog::log::{Log, OpenLog, Passed};
use chronolog::origin::{Origin, Repair};
use chronolog::wal::writer::{EventBody, Lines};
use chronomemory_state::state::{BaseRows, Frozen, State};

/// How often a compaction begins again because another process replaced the log.
const MOST_STARTS: usize = 4;

/// Whether a log has anything to retire. One of a sentinel alone has not, unless the history that it names is to be dropped.
fn is_worth_it(log: &OpenLog, keep_history: bool) -> bool {
    let events = log.mark().events;
    match &log.origin {
        Origin::Ours(sentinel) => events > 1 || (!keep_history && sentinel.archive.is_some()),
        _ => events > 0,
    }
}

/// A damaged log must be repaired before it is retired.
pub(in crate::store) fn check_undamaged(log: &Log) -> Result<()> {
    match log.report.damage.first() {
        Some(damage) => Err(Error::Corrupted(Box::new(damage.clone()))),
        None => Ok(()),
    }
}

/// Retires the log of a store that others go on using; gives the number of events that it held.
pub fn compact(turns: &impl Turns, keep_history: bool, now: &dyn Fn() -> i64, progress: Progress<'_>) -> Result<u64> {
    // First, because every preparation of a change moves a tail aside.
    turns.turn(check_tail_at_the_end)?;
    let _care = take_care(turns, now())?;
    let access = StoreAccess::shared(turns, now);
    // Before rows move: a damaged log does not say for certain whose they are.
    verify_opened(turns, now())?;
    access.locked(|store, _| {
        check_undamaged(&store.log)?;
        store.log.check_head_is_kept()?;
        check_no_tail_is_left(&store.site, &store.log)
    })?;
    let retired = turns.turn(|store| {
        let mut retired = retired_files(store, keep_history)?;
        let rows = store.vectors.named_rows(&store.state).into_iter();
        // Their space may move to another file.
        retired.extend(rows.map(|(name, _)| format!("vectors/{name}")));
        Ok(retired)
    })?;
    compact_rows(turns, now)?;
    for _ in 0..MOST_STARTS {
        access.sync()?;
        let started = access.locked(|store, now| {
            check_undamaged(&store.log)?;
            store.anchor(now)?;
            let Some(log) = store.log.open().filter(|log| is_worth_it(log, keep_history)) else {
                return Ok(None);
            };
            let beside_from = store.options.beside_from();
            let mut work = Rewrite::new(KeepAll, Arc::clone(&log.file), log.passing(), keep_history, beside_from);
            work.rows = base_rows(store);
            work.begin(store)?;
            Ok(Some(work))
        })?;
        let Some(mut work) = started else {
            return Ok(0);
        };
        work.run(progress)?;
        if !work.catch_up(&access)? {
            continue;
        }
        // Keeps the last handle of the large old file, so that it is closed outside of the lock.
        let _retired = turns.turn(|store| Ok(store.log.open().map(|log| Arc::clone(&log.file))))?;
        let retired_events = access.locked(|store, now| {
            check_undamaged(&store.log)?;
            if !work.follow_to_the_end(store)? {
                return Ok(None);
            }
            // Should the power fail behind the swap, the sentinel and the hint tell of the same head.
            store.on_log(Log::settle_hint)?;
            let events = store.live().events();
            let RewrittenFiles { base, archive, rows } = work.finish(store, "")?;
            let retirement = Retirement {
                label: format!("Compacted at seq={}", header_of(&store.log).seq),
                archive,
                more: Vec::new(),
                repair: None,
                goes_on: true,
            };
            retirement.carry_out(store, base, now)?;
            let segment = rows.and_then(|rows| start_sealing_base(store, rows));
            Ok(Some((events, segment)))
        })?;
        if let Some((events, segment)) = retired_events {
            seal_again(turns, segment)?;
            write_snapshot(turns)?;
            clear_out(turns, &retired, now())?;
            end_pruning(turns, now())?;
            thin_out(turns, now())?;
            return Ok(events);
        }
    }
    let path = turns.turn(|store| Ok(store.site.layout.log().to_owned()))?;
    Err(Error::io(&path, io::Error::other("the log keeps being replaced")))
}

/// Writes the segment of the new log and opens it. Without one, the segments of the retired log are removed.
fn seal_again(turns: &impl Turns, segment: Option<BaseSealWork>) -> Result<()> {
    let site = turns.turn(|store| Ok(Arc::clone(&store.site)))?;
    // It is derived: without it the next opening takes longer.
    if !segment.is_some_and(|segment| segment.run()) {
        remove_segments(&*site.disk, &site.layout, None)?;
    }
    turns.turn(|store| match store.state.slots.sealed() {
        Some(_) => store.reload(&mut |_, _| {}),
        None => Ok(()),
    })
}

/// Writes the state down, durably, while others go on: the log alone no longer tells it to other tools.
pub(in crate::store) fn write_snapshot(turns: &impl Turns) -> Result<()> {
    let Some(snapshot) = turns.turn(|store| store.snapshots.start_durable(&store.log, &mut store.state))? else {
        return Ok(());
    };
    snapshot.write(true).at(&snapshot.draft)?;
    turns.turn(|store| {
        store.snapshots.end(&mut store.log, &snapshot)?;
        store
            .site
            .disk
            .sync_dir(store.site.layout.folder())
            .at(store.site.layout.folder())
    })
}

const SENTINEL_ID: &str = "__compact__";

/// What a sentinel says beside the state that it starts from.
pub(in crate::store) struct Retirement {
    pub label: String,
    /// The archive's name and digest, if there is one.
    pub archive: Option<ArchiveTold>,
    pub more: Vec<(String, Value)>,
    pub repair: Option<Repair>,
    /// The trail goes on, except behind a repair or a dropped history.
    pub goes_on: bool,
}

impl Retirement {
    /// The line that a new log begins with.
    pub(in crate::store) fn sentinel(self, log: &Log, base: &str, depth: i64, now: i64) -> Result<Lines> {
        let mark = log.open().map(|log| *log.mark()).unwrap_or_default();
        let text = |text: &str| Value::Str(text.to_owned());
        let (archive, archive_sha256) = match &self.archive {
            Some((name, digest)) => (text(name), text(digest.text())),
            None => (Value::Null, Value::Null),
        };
        let mut data = vec![
            ("archive".to_owned(), archive),
            ("archive_sha256".to_owned(), archive_sha256),
            ("base".to_owned(), text(&base_name(base))),
            ("base_sha256".to_owned(), text(base)),
            ("events".to_owned(), Value::from(mark.events)),
            ("first_seq".to_owned(), Value::from(mark.first_seq.unwrap_or(0))),
            ("last_seq".to_owned(), Value::from(mark.last_seq)),
            ("previous_head".to_owned(), text(&header_of(log).last_hash)),
        ];
        let trail = log.open().and_then(|log| log.walk.trail()).filter(|_| self.goes_on);
        if let Some(trail) = trail {
            data.push(("trail".to_owned(), text(trail.value.text())));
            data.push(("trail_from".to_owned(), Value::from(trail.from)));
        }
        data.extend(self.more);
        let repairs: Vec<Value> = repairs(log).chain(self.repair).map(|repair| repair.value()).collect();
        if !repairs.is_empty() {
            data.push(("repairs".to_owned(), Value::Array(repairs)));
        }
        let record = Value::object([
            ("id", text(SENTINEL_ID)),
            ("label", Value::Str(self.label)),
            ("data", Value::object(data)),
        ]);
        let mut draft = Draft::default();
        draft.upsert_value(&record, depth, None)?;
        let mut link = log.link();
        link.head = None;
        let mut lines = Lines::after(link);
        let change = &draft.changes()[0];
        lines.push(EventBody {
            op: Op::Compact,
            id: SENTINEL_ID.as_bytes(),
            record: draft.record(change),
            ts: &stamp::digits(now.max(log.latest())),
            depth,
        });
        Ok(lines)
    }

    /// Swaps the log for one sentinel; the base must be there.
    pub(in crate::store) fn carry_out(self, store: &mut Store, base: Hex, now: i64) -> Result<()> {
        let lines = self.sentinel(&store.log, base.text(), store.options.recursion_depth, now)?;
        store.log.retire(&lines, now)?;
        // The memory follows the new log: the records stay, the events are those of the sentinel.
        store.state.forget_events();
        store.state.note(system_event(0, lines.link.next_seq - 1), now);
        store.snapshots.read_anew(store.state.len() as u64);
        // Committed from here on. The hint must be about the new log before anyone appends to it.
        store.on_log(Log::make_ready)?;
        store.log.tell_head();
        Ok(())
    }
}

fn repairs(log: &Log) -> impl Iterator<Item = Repair> {
    let known = match log.open().map(|log| &log.origin) {
        Some(Origin::Ours(sentinel)) => sentinel.repairs.clone(),
        _ => Vec::new(),
    };
    known.into_iter()
}

const MOST_ROUNDS: usize = 8;
/// So few bytes are left to the end, under the lock.
const REST_BYTES: u64 = 128 * 1024;

/// Decides what of the log and of its records is kept. The default is everything.
pub(in crate::store) trait Filter {
    /// The kept records that were changed since a place in the log, or all; `None` if only `freeze_replayed` knows them.
    fn freeze(&mut self, state: &mut State, since: Option<u64>) -> Result<Option<Frozen>> {
        Ok(Some(match since {
            Some(since) => state.freeze_those(state.slots_since(since)?.into_iter())?,
            None => state.freeze()?,
        }))
    }

    /// Reads what was appended up to a place; false if that changes what is kept, so that all has to begin anew.
    fn follow(&mut self, _log: &dyn DiskFile, _end: u64) -> Result<bool> {
        Ok(true)
    }

    /// After `follow`: the same as `freeze` if the kept records are known from a replay.
    fn freeze_replayed(&mut self, _since: Option<u64>) -> Result<Option<Frozen>> {
        Ok(None)
    }

    /// The log up to a place as it is archived, and how long that is.
    fn archived(&mut self, log: &Arc<dyn DiskFile>, end: u64) -> Result<(Arc<dyn DiskFile>, u64)> {
        Ok((Arc::clone(log), end))
    }
}

/// Keeps every record and every line.
pub(super) struct KeepAll;

impl Filter for KeepAll {}

/// A new base and archive of the live log.
pub(in crate::store) struct Rewrite<F> {
    pub filter: F,
    log: Arc<dyn DiskFile>,
    /// The log is accounted for up to here.
    until: Passed,
    /// What is written; `None` before `begin`.
    files: Option<NewFiles>,
    keep_history: bool,
    /// Up to here the archive is to be packed.
    length: u64,
    /// Logs from this length on are packed beside the base, on a thread of its own.
    beside_from: u64,
    /// The rows of the base, if a segment of it is to be written.
    pub rows: Option<BaseRows>,
}

impl<F: Filter> Rewrite<F> {
    /// Accounts for a log up to a place, with nothing written yet.
    pub fn new(filter: F, log: Arc<dyn DiskFile>, until: Passed, keep_history: bool, beside_from: u64) -> Self {
        Self {
            filter,
            log,
            until,
            files: None,
            keep_history,
            length: 0,
            beside_from,
            rows: None,
        }
    }

    /// Under the lock: freezes the state and begins the files; false if all has to begin anew.
    pub fn begin(&mut self, store: &mut Store) -> Result<bool> {
        if !self.follow_to_the_end(store)? {
            return Ok(false);
        }
        let records = match self.filter.freeze(&mut store.state, None)? {
            Some(records) => Some(records),
            None => self.filter.freeze_replayed(None)?,
        };
        let log = self.archived()?;
        let threads = store.options.threads;
        self.files = Some(NewFiles::start(
            &store.site,
            records.ok_or(Error::Closed)?,
            log,
            self.rows.take(),
            threads,
        )?);
        Ok(true)
    }

    /// Writes what is known so far.
    pub fn run(&mut self, progress: Progress<'_>) -> Result<()> {
        let is_worth_a_thread = self.until.end >= self.beside_from;
        match &mut self.files {
            Some(files) => files.run(self.length, is_worth_a_thread, progress),
            None => Ok(()),
        }
    }

    /// Follows what others append until little is left; false if all has to begin anew.
    pub fn catch_up(&mut self, access: &StoreAccess<'_, impl Turns>) -> Result<bool> {
        for _ in 0..MOST_ROUNDS {
            // The slow part comes first, so that little is left to sync under the lock.
            access.sync()?;
            let Some((until, changed)) = access.look(|store| self.appended(store, REST_BYTES))? else {
                return Ok(false);
            };
            if until.end - self.until.end <= REST_BYTES {
                break;
            }
            if !self.advance(until, changed)? {
                return Ok(false);
            }
            self.run(&mut |_, _| {})?;
        }
        Ok(true)
    }

    /// Under the lock: follows the rest; false if all has to begin anew.
    pub fn follow_to_the_end(&mut self, store: &mut Store) -> Result<bool> {
        match self.appended(store, 0)? {
            None => Ok(false),
            Some((until, _)) if until.end == self.until.end => Ok(true),
            Some((until, changed)) => self.advance(until, changed),
        }
    }

    /// Under the lock, after `follow_to_the_end`: names the files, that of the archive with a suffix.
    pub fn finish(&mut self, store: &Store, suffix: &str) -> Result<RewrittenFiles> {
        let files = self.files.take().ok_or(Error::Closed)?;
        let first_seq = store.log.open().and_then(|open| open.mark().first_seq).unwrap_or(0);
        let header = (&header_of(&store.log), store.options.salts());
        files.finish(&store.site, header, self.length, (first_seq, suffix))
    }

    /// Where the log ends now, and the records that were changed if that is more than a rest; `None` if it was replaced.
    fn appended(&mut self, store: &mut Store, rest: u64) -> Result<Option<(Passed, Option<Frozen>)>> {
        let open = store.log.open().filter(|open| open.goes_on_from(&self.until));
        let Some(until) = open.map(|open| open.passing()) else {
            return Ok(None);
        };
        let since = self.until.end;
        let changed = match self.files {
            Some(_) if until.end - since > rest => self.filter.freeze(&mut store.state, Some(since))?,
            _ => None,
        };
        Ok(Some((until, changed)))
    }

    fn advance(&mut self, until: Passed, changed: Option<Frozen>) -> Result<bool> {
        if !self.filter.follow(&*self.log, until.end)? {
            return Ok(false);
        }
        let since = std::mem::replace(&mut self.until, until).end;
        if self.files.is_none() {
            return Ok(true);
        }
        let changed = match changed {
            Some(changed) => Some(changed),
            None => self.filter.freeze_replayed(Some(since))?,
        };
        let log = self.archived()?;
        if let Some(files) = &mut self.files {
            files.take(changed, log);
        }
        Ok(true)
    }

    fn archived(&mut self) -> Result<Option<Arc<dyn DiskFile>>> {
        if !self.keep_history {
            return Ok(None);
        }
        let (log, length) = self.filter.archived(&self.log, self.until.end)?;
        self.length = length;
        Ok(Some(log))
    }
}
