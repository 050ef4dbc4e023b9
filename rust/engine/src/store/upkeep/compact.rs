//! Compacts the log: writes a base and an archive beside others, and swaps the logs at the end.
//!
//! In three steps, as with a sync: a short start under the lock fixes a committed prefix; the long part writes its state and
//! packs its events without any lock; a short end under the lock adds what was appended meanwhile and swaps the logs. Before
//! the end, what was appended is followed in further rounds, each much shorter than the one before.

use std::io;
use std::sync::Arc;

use chronolog::digest::Hex;
use chronolog::error::{At, Error, Result};
use chronolog::event::salt::SaltTerms;
use chronolog::log::{Log, OpenLog, Passed, Site};
use chronolog::origin::Origin;
use chronomemory_state::state::State;

use super::bases::thin_out;
use super::history_files::{PastFiles, clear_out, end_pruning};
use super::new_files::NewFiles;
use super::retire::{Retirement, base_salt};
use crate::store::Progress;
use crate::store::files::snapshots::header_of;
use crate::store::load::tails::check_no_tail_is_left;
use crate::store::turns::{Turns, check_tail_at_the_end, take_care};
use crate::store::upkeep::compact_rows::compact_rows;

/// How often a compaction begins anew because somebody else replaced the log.
const MOST_STARTS: usize = 4;
/// How often what was appended meanwhile is followed without the lock.
pub(in crate::store) const MOST_ROUNDS: usize = 8;
/// So little is left to the end, under the lock.
pub(in crate::store) const REST_BYTES: u64 = 128 * 1024;

/// A compaction that is being prepared while others go on.
pub struct Compacting {
    /// Up to here the log is accounted for.
    until: Passed,
    files: NewFiles,
}

impl Compacting {
    /// Writes down the state of the prefix and packs its events.
    ///
    /// # Errors
    /// `Io`.
    pub fn run(&mut self, progress: Progress<'_>) -> Result<()> {
        self.files.run(self.until.end, false, progress)
    }

    /// Under the lock: fixes what is to be retired; `None` if there is nothing worth it.
    fn start(live: &Log, site: &Site, state: &mut State, keep_history: bool, threads: usize) -> Result<Option<Self>> {
        let Some(log) = live.open() else {
            return Ok(None);
        };
        let events = log.mark().events;
        // A log of one sentinel has nothing to retire, unless the history that it names is to be dropped.
        let is_short = match &log.origin {
            Origin::Ours(sentinel) => events <= 1 && (keep_history || sentinel.archive.is_none()),
            _ => events == 0,
        };
        if is_short {
            return Ok(None);
        }
        let kept = keep_history.then(|| Arc::clone(&log.file));
        Ok(Some(Self {
            until: log.passing(),
            files: NewFiles::start(site, state.freeze()?, kept, threads)?,
        }))
    }

    /// Takes what was appended meanwhile, to be written next; false if so little is left that the end can take it.
    fn follow(&mut self, log: &Log, state: &mut State) -> Result<bool> {
        let Some(log) = log.open().filter(|log| log.goes_on_from(&self.until)) else {
            return Ok(false);
        };
        if log.walk.end - self.until.end <= REST_BYTES {
            return Ok(false);
        }
        self.take_over(log, state)?;
        Ok(true)
    }

    /// What changed since the compaction last looked is to be written next.
    fn take_over(&mut self, log: &OpenLog, state: &mut State) -> Result<()> {
        self.files.take(state.freeze_since(self.until.end)?);
        self.until = log.passing();
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
        let mut first_seq = 0;
        if let Some(open) = log.open() {
            self.take_over(open, state)?;
            first_seq = open.mark().first_seq.unwrap_or(0);
        }
        let told = (&header, salt.as_deref());
        let (base, archive) = self.files.finish(site, told, self.until.end, (first_seq, ""))?;
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
    match log.report().damage.first() {
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
    turns.turn(check_tail_at_the_end)?;
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
                if !store.log.open().is_some_and(|log| log.goes_on_from(&work.until)) {
                    // It is another one by now, and all has to begin anew.
                    return Ok(None);
                }
                // Should the power fail behind the swap, the sentinel and the hint tell of the same head.
                store.settle_hint()?;
                let events = store.live().events();
                let salts = store.options.salts();
                let (base, retirement) = work.finish(&store.site, &store.log, &mut store.state, salts)?;
                retirement.carry_out(store, base, now)?;
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
        store.snapshots.end(&mut store.log, &snapshot)?;
        store
            .site
            .disk
            .sync_dir(store.site.layout.folder())
            .at(store.site.layout.folder())
    })
}
