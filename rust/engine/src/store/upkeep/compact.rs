//! How does a log become short without losing its evidence, and without anyone waiting for it?
//!
//! In three steps, as with a sync: a short start under the lock fixes a committed prefix; the long part writes its state and
//! packs its events without any lock; a short end under the lock adds what was appended meanwhile and swaps the logs. Before
//! the end, what was appended is followed in further rounds, each much shorter than the one before.

use std::io;
use std::sync::Arc;

use crate::digest::Hex;
use crate::disk::{DiskFile, Identity};
use crate::error::{At, Error, Result};
use crate::event::salt::SaltTerms;
use crate::hint::line_before;
use crate::layout::{NEW_ARCHIVE, NEW_BASE, archive_name};
use crate::log::files::Scratch;
use crate::log::{Log, OpenLog, Site};
use crate::origin::Origin;
use crate::snapshot::BaseWriter;
use crate::state::{Frozen, State};
use crate::wal::synced::names_hash;

use super::bases::thin_out;
use super::history_files::{PastFiles, clear_out, end_pruning};
use super::retire::{Retirement, base_salt};
use crate::store::Progress;
use crate::store::archives::packing::Packing;
use crate::store::care::{Turns, take_care};
use crate::store::files::snapshots::header_of;
use crate::store::load::tails::check_no_tail_is_left;
use crate::store::upkeep::compact_rows::compact_rows;

/// So many blank lines may stand at the end of a log that is compacted before the next write.
const MOST_BLANK_LINES: usize = 1000;

/// How often a compaction begins anew because somebody else replaced the log.
const MOST_STARTS: usize = 4;
/// How often what was appended meanwhile is followed without the lock.
const MOST_ROUNDS: usize = 8;
/// So little is left to the end, under the lock.
const REST_BYTES: u64 = 128 * 1024;

/// A compaction that is being prepared while others go on.
pub struct Compacting {
    identity: Identity,
    /// Up to here the log is accounted for, and its head there.
    end: u64,
    head: Option<Hex>,
    /// What is to be written next.
    records: Frozen,
    base: BaseWriter,
    base_scratch: Scratch,
    archive: Option<(Packing, Scratch)>,
}

impl Compacting {
    /// Writes down the state of the prefix and packs its events.
    ///
    /// # Errors
    /// `Io`.
    pub fn run(&mut self, progress: Progress<'_>) -> Result<()> {
        let path = self.base_scratch.path();
        self.base.add(self.records.rows(), progress).at(path)?;
        self.base.sync().at(path)?;
        if let Some((packing, scratch)) = &mut self.archive {
            packing.go_on(self.end, progress).at(scratch.path())?;
        }
        Ok(())
    }
}

impl Compacting {
    /// Under the lock: fixes what is to be retired; `None` if there is nothing worth it.
    fn start(live: &Log, site: &Site, state: &mut State, keep_history: bool, threads: usize) -> Result<Option<Self>> {
        let Some(log) = live.open() else {
            return Ok(None);
        };
        let mark = *log.walk.mark();
        // A log of one sentinel has nothing to retire, unless the history that it names is to be dropped.
        let is_short = match &log.origin {
            Origin::Ours(sentinel) => mark.events <= 1 && (keep_history || sentinel.archive.is_none()),
            _ => mark.events == 0,
        };
        if is_short {
            return Ok(None);
        }
        let (bases, archives) = (site.layout.bases(), site.layout.archives());
        site.make_folder(&bases, site.layout.folder())?;
        let base_scratch = Scratch::at(&site.disk, bases.join(NEW_BASE));
        let base = BaseWriter::create(&*site.disk, base_scratch.path()).at(base_scratch.path())?;
        let archive = if keep_history {
            site.make_folder(&archives, site.layout.folder())?;
            let scratch = Scratch::at(&site.disk, archives.join(NEW_ARCHIVE));
            let file = Arc::clone(&log.file);
            let packing = Packing::start(&*site.disk, file, scratch.path(), threads).at(scratch.path())?;
            Some((packing, scratch))
        } else {
            None
        };
        Ok(Some(Self {
            identity: log.identity,
            end: log.walk.end,
            head: mark.head,
            records: state.freeze()?,
            base,
            base_scratch,
            archive,
        }))
    }

    /// Whether a log is still the one that the compaction began with, and goes on where it has come to.
    fn is_continued_by(&self, log: &OpenLog) -> bool {
        let last = last_said(&*log.file, self.end).ok().flatten();
        log.identity == self.identity
            && log.walk.end >= self.end
            && last.is_some_and(|line| self.head.is_some_and(|head| names_hash(&line, &head)))
    }

    /// Takes what was appended meanwhile, to be written next; false if so little is left that the end can take it.
    fn follow(&mut self, log: &Log, state: &mut State) -> Result<bool> {
        let Some(log) = log.open().filter(|log| self.is_continued_by(log)) else {
            return Ok(false);
        };
        if log.walk.end - self.end <= REST_BYTES {
            return Ok(false);
        }
        self.take_over(log, state)?;
        Ok(true)
    }

    /// What changed since the compaction last looked is to be written next.
    fn take_over(&mut self, log: &OpenLog, state: &mut State) -> Result<()> {
        self.records = state.freeze_since(self.end)?;
        self.end = log.walk.end;
        self.head = log.walk.mark().head;
        Ok(())
    }

    /// Under the lock: adds what is left, and gives base and archive their names; gives the digest of the base and what the
    /// sentinel says.
    fn finish(
        mut self,
        site: &Site,
        log: &Log,
        state: &mut State,
        salts: Option<SaltTerms<'_>>,
    ) -> Result<(Hex, Retirement)> {
        let salt = base_salt(salts)?;
        let header = header_of(log);
        if let Some(open) = log.open() {
            self.take_over(open, state)?;
        }
        let path = self.base_scratch.path();
        self.base.add(self.records.rows(), &mut |_, _| {}).at(path)?;
        let base = self.base.finish(&header, salt.as_deref()).at(path)?.sha256;
        self.base_scratch.name(&site.layout.base(base.text()))?;
        let archive = match self.archive {
            Some((packing, scratch)) => {
                let digest = packing.finish(self.end).at(scratch.path())?;
                let first_seq = log.open().and_then(|log| log.walk.mark().first_seq);
                let name = archive_name(first_seq.unwrap_or(0), header.seq, digest.text());
                scratch.name(&site.layout.inside(&name))?;
                Some((name, digest.text().to_owned()))
            }
            None => None,
        };
        let retirement = Retirement {
            label: format!("Compacted at seq={}", header.seq),
            archive,
            more: Vec::new(),
            repair: None,
            goes_on: true,
        };
        Ok((base, retirement))
    }
}

/// A damaged log must be repaired before it is retired.
pub(super) fn check_undamaged(log: &Log) -> Result<()> {
    match log.report.damage.first() {
        Some(damage) => Err(Error::Corrupted(Box::new(damage.clone()))),
        None => Ok(()),
    }
}

/// Retires the log of a store that others go on using; gives the number of events that it held.
///
/// # Errors
/// As [`Store::compact`](crate::store::Store::compact).
pub fn compact(turns: &impl Turns, keep_history: bool, now: &dyn Fn() -> i64, progress: Progress<'_>) -> Result<u64> {
    // First of all: whoever prepares a change moves a tail aside.
    turns.turn(|store| store.check_tail_at_the_end())?;
    let _care = take_care(turns, now())?;
    // Before anything moves: in a damaged log nobody knows for certain which rows are whose.
    turns.turn(|store| {
        store.with_lock(now(), |store| {
            check_undamaged(&store.log)?;
            store.log.check_head_is_kept()?;
            check_no_tail_is_left(&store.site, &store.log)
        })
    })?;
    let retired = turns.turn(|store| {
        let past = PastFiles::of(&store.site, &store.log, &store.state);
        past.retired(keep_history, store.vectors.named_rows(&store.state))
    })?;
    compact_rows(turns, now)?;
    for _ in 0..MOST_STARTS {
        sync(turns)?;
        let started = turns.turn(|store| {
            let now = now();
            store.with_lock(now, |store| {
                check_undamaged(&store.log)?;
                store.anchor(now)?;
                let threads = store.options.threads;
                Compacting::start(&store.log, &store.site, &mut store.state, keep_history, threads)
            })
        })?;
        let Some(mut work) = started else {
            return Ok(0);
        };
        work.run(progress)?;
        for _ in 0..MOST_ROUNDS {
            // First the slow part: what is appended meanwhile is followed, and little is left to sync under the lock.
            sync(turns)?;
            let is_behind = turns.turn(|store| {
                store.refresh()?;
                work.follow(&store.log, &mut store.state)
            })?;
            if !is_behind {
                break;
            }
            work.run(&mut |_, _| {})?;
        }
        // The system takes a file apart when its last handle is closed, and for a large one that takes long: others close
        // theirs under the lock, so this one is kept until nobody waits any more.
        let _retired = turns.turn(|store| Ok(store.log.open().map(|log| Arc::clone(&log.file))))?;
        if let Some(events) = turns.turn(|store| {
            let now = now();
            store.with_lock(now, |store| {
                check_undamaged(&store.log)?;
                if !store.log.open().is_some_and(|log| work.is_continued_by(log)) {
                    // It is another one by now, and all has to begin anew.
                    return Ok(None);
                }
                // Should the power fail behind the swap, the sentinel and the hint tell of the same head.
                store.settle_hint()?;
                let events = store.live().events();
                let salts = store.options.salts();
                let (base, retirement) = work.finish(&store.site, &store.log, &mut store.state, salts)?;
                store.retire(retirement, base, now)?;
                Ok(Some(events))
            })
        })? {
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

/// The last line before a place that says something: blank ones break nothing, wherever they stand.
fn last_said(log: &dyn DiskFile, mut end: u64) -> io::Result<Option<Vec<u8>>> {
    for _ in 0..MOST_BLANK_LINES {
        let line = line_before(log, end)?;
        match &line {
            Some(blank) if blank.iter().all(u8::is_ascii_whitespace) => end -= blank.len() as u64 + 1,
            _ => return Ok(line),
        }
    }
    Ok(None)
}

/// Syncs while others go on: what is left to sync under the lock is little then.
pub(in crate::store) fn sync(turns: &impl Turns) -> Result<()> {
    let Some(syncing) = turns.turn(|store| Ok(store.start_sync()))? else {
        return Ok(());
    };
    let outcome = syncing.run();
    turns.turn(|store| store.end_sync(&syncing, outcome))
}

/// Writes the state down, durably, while others go on: the log alone no longer tells it to other tools.
pub(in crate::store) fn write_snapshot(turns: &impl Turns) -> Result<()> {
    let Some(snapshot) = turns.turn(|store| store.snapshots.start_durable(&store.log, &mut store.state))? else {
        return Ok(());
    };
    snapshot.run_durably().at(snapshot.draft())?;
    turns.turn(|store| {
        store.end_snapshot(&snapshot)?;
        store
            .site
            .disk
            .sync_dir(store.site.layout.folder())
            .at(store.site.layout.folder())
    })
}
