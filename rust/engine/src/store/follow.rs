//! Opens a store, follows what others write to it, and recovers what an interrupted writer left.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::archives::archive_index::ArchiveCache;
use super::archives::check::returned_at;
use super::files::erasing::Erasing;
use super::files::proofs::{other_logs, set_aside};
use super::files::segments::remove_segments;
use super::files::snapshots::{Snapshots, remove_indexes};
use super::load::examine::{Examined, ExaminedLog, Look, look_for_lost, look_twice, nothing};
use super::load::found::Traces;
use super::load::load_sealing::LoadSealer;
use super::load::loader::Loader;
use super::load::tails::{ends_with_event, keep_hint};
use super::recovery::returning::erasures_of;
use super::sealing::{keep_keys, seal_at_close};
use super::search::page::Views;
use super::vectors::Vectors;
use super::write::commit::Pending;
use super::{Progress, Store, VerifiedChain};
use crate::options::{Checking, Options};
use chronolog::damage::DamageKind;
use chronolog::disk::{Disk, DiskFile, FolderMode};
use chronolog::error::{At, Error, Result};
use chronolog::hint::{Hint, Synced, hint_for};
use chronolog::layout::{
    ERASING, LOG, Layout, digest_in_base_name, is_draft, is_text_draft, short_digest_in_archive_name,
};
use chronolog::log::files::{remove_if_there, remove_ours};
use chronolog::log::{Log, OpenLog, Site, gone};
use chronolog::origin::{Origin, Sentinel};
use chronolog::remembered::{HeadStanding, standing_to};
use chronolog::verify::finding;
use chronomemory_state::state::State;

impl Store {
    /// Reads what other processes committed since.
    pub fn refresh(&mut self) -> Result<()> {
        self.check_open()?;
        // What this store writes itself is not news to it.
        let is_writing = self.log.lock.held && self.log.lock.prepared;
        if self.has_failed() || (!is_writing && self.is_behind()?) {
            self.catch_up()?;
        }
        Ok(())
    }

    /// Whether others changed the files since the last look: a few system calls, no reading.
    pub fn is_behind(&self) -> Result<bool> {
        self.check_open()?;
        Ok(self.has_failed() || self.log.is_behind()?)
    }

    /// The same for a reader, as [`Log::is_behind_for_reader`].
    pub fn is_behind_for_reader(&self) -> Result<bool> {
        self.check_open()?;
        Ok(self.has_failed() || self.log.is_behind_for_reader()?)
    }

    /// Forgets the memory and loads base and log anew.
    pub(in crate::store) fn reload(&mut self, progress: Progress<'_>) -> Result<()> {
        let path = self.site.layout.log().to_owned();
        let has_failed = self.has_failed();
        self.is_distrusted = AtomicBool::default();
        if has_failed && self.options.checking == Checking::Quick {
            self.options.checking = Checking::Later;
        }
        let mut look = Look::at_log(self.options.threads, self.options.checking);
        // A state that has segments already was checked as a whole when it was opened.
        let trusts_segments = look.checking != Checking::Full || self.state.slots.sealed().is_some();
        look.sealed = trusts_segments && !self.options.strict && !has_failed;
        if has_failed {
            // They are made again from the log.
            let _ = remove_segments(&*self.site.disk, &self.site.layout, None);
        }
        let (disk, layout) = (&*self.site.disk, &self.site.layout);
        let loading = |log: &Arc<dyn DiskFile>| {
            let mut loader = Loader::loading();
            loader.sealer = Some(LoadSealer::new(disk, layout, self.options.seal.events, log));
            loader
        };
        let seen = look_twice(disk, layout, look, loading, progress).at(&path)?;
        let is_resumed = seen.as_ref().is_some_and(|seen| seen.is_resumed);
        let (open, report, state, is_synced) = match seen {
            Some(ExaminedLog { file, found, taker, .. }) => {
                let Examined {
                    walk,
                    report,
                    origin,
                    synced,
                    ..
                } = found;
                let is_synced = synced == Some(walk.end);
                let open = OpenLog::reading(file, walk, origin).at(&path)?;
                (Some(open.anchored(synced.is_some())), report, taker.state, is_synced)
            }
            None => {
                let mut loader = Loader::loading();
                let lost = look_for_lost(disk, layout, self.options.threads, &mut loader).at(&path)?;
                let state = loader.state.filter(|_| lost.is_some());
                (None, lost.unwrap_or_else(nothing), state, false)
            }
        };
        if self.options.strict {
            let cut = report.cut.as_deref();
            let cut = cut.map(|reason| finding(LOG, DamageKind::LogMissing, reason));
            if let Some(damage) = report.damage.first().cloned().or(cut) {
                return Err(Error::Corrupted(Box::new(damage)));
            }
        }
        let is_there = open.is_some();
        if !report.damage.is_empty() && report.damage != self.log.report.damage {
            self.new_damage.fetch_add(1, Ordering::Relaxed);
        }
        self.log.read_anew(open, report);
        self.state = state.unwrap_or_default();
        keep_keys(self);
        let is_read = !is_there || (!is_resumed && self.options.checking != Checking::Quick);
        self.verified = VerifiedChain {
            seq: is_read.then(|| self.last_seq()),
            at: None,
            is_pending: is_resumed && self.options.checking == Checking::Later,
        };
        self.clock.tell_again(&mut self.state);
        self.views.let_go();
        self.vectors.forget();
        let on_disk = is_synced.then(|| self.state.changes().watermark());
        self.vectors.on_disk.read_anew(on_disk.unwrap_or_default());
        let events = self.live().events();
        self.snapshots.read_anew(events.max(self.state.len() as u64));
        self.log.head.find_standing()
    }

    /// Takes in what was appended; anything that does not simply follow means a reload.
    pub(in crate::store) fn catch_up(&mut self) -> Result<()> {
        if self.has_failed() {
            return self.reload(&mut |_, _| {});
        }
        let Some(length) = self.log.length_at_its_path()? else {
            check_follows(&self.site, &self.log)?;
            return self.reload(&mut |_, _| {});
        };
        if !self.log.still_holds(length)? {
            // It was cut, or another log was written over this one.
            check_follows(&self.site, &self.log)?;
            return self.reload(&mut |_, _| {});
        }
        let seen = self.log.look_at_tail()?;
        if seen.is_some() && seen == self.log.tail_known {
            return Ok(());
        }
        let damages = |log: &Log| log.open().map_or(0, |open| open.walk.follower.damage.len());
        let (before, threads) = (damages(&self.log), self.options.threads);
        let mut loader = Loader::going_on(std::mem::take(&mut self.state));
        let outcome = self.log.go_on(length, threads, &mut loader);
        self.state = loader.state.unwrap_or_default();
        if outcome.is_err() {
            // Half of a piece may have been taken in; the next look starts from nothing, and may need the memory.
            self.log.forget();
            self.state = State::default();
        }
        let tail = outcome?;
        let is_tail = self.log.open().is_some_and(|open| open.walk.follower.tail.is_some());
        if damages(&self.log) > before || is_tail {
            self.reload(&mut |_, _| {})?;
            // The same before and after: then it was this that was loaded.
            let now = self.log.look_at_tail()?;
            self.log.tail_known = now.filter(|now| seen.as_ref() == Some(now));
            return Ok(());
        }
        self.log.report.tail = tail;
        Ok(())
    }
}

/// The last moment that was set: records that expired by then are left out.
#[derive(Default)]
pub(in crate::store) struct ExpiryClock(Option<i64>);

impl ExpiryClock {
    /// Whether it makes a difference which moment it is now.
    #[inline]
    pub fn is_due(state: &State, clock: &dyn Fn() -> i64) -> bool {
        state.slots.knows_expiries() && state.is_due(clock())
    }

    /// From now on what has expired by this moment is left out of answers.
    pub fn tell(&mut self, state: &mut State, clock: &dyn Fn() -> i64) {
        if state.slots.knows_expiries() {
            state.expire(*self.0.insert(clock()));
        }
    }

    /// The same for a new state.
    pub fn tell_again(&self, state: &mut State) {
        state.expire(self.0.unwrap_or(i64::MIN));
    }
}

/// The error if the log at its path lacks what is known of it, unless a restore or repair moved it.
pub(in crate::store) fn missed(site: &Site, log: &Log) -> Result<Option<Error>> {
    let is_damaged = !log.report.damage.is_empty();
    let Some(known) = log.missed()?.filter(|_| !is_damaged) else {
        return Ok(None);
    };
    Ok((!is_our_deed(site, log, &known)?).then(|| gone(site, &known)))
}

/// Under the lock: whether a lost log left files that should be set aside. Copies stay where they are.
pub(in crate::store) fn has_remains(site: &Site, log: &Log) -> Result<bool> {
    let is_lost = log.check_is_there().is_err();
    let traces = Traces::look(&*site.disk, &site.layout).at(site.log())?;
    let has_events = log.open().is_some_and(|log| log.mark().events > 0);
    Ok(is_lost && (has_events || traces.is_some_and(|traces| traces.has_remains())))
}

/// Before the files are read again: fails with `Corrupted` if they do not follow from what is known of the log.
pub(in crate::store) fn check_follows(site: &Site, log: &Log) -> Result<()> {
    match log.find_loss()? {
        Some(known) if !is_our_deed(site, log, &known)? => Err(gone(site, &known)),
        _ => Ok(()),
    }
}

/// Whether a restore or repair took the known log away: it lies aside, or the note outside names the new one.
fn is_our_deed(site: &Site, log: &Log, known: &Synced) -> Result<bool> {
    Ok(is_kept_elsewhere(site, known)? || log.open().is_some_and(|open| log.head.tells_of_another(open)))
}

/// Whether a restore or a repair of ours put the log aside that is known here, or what became of it since.
fn is_kept_elsewhere(site: &Site, known: &Synced) -> Result<bool> {
    let quarantine = site.layout.quarantine();
    let standing = |copy: &Layout| standing_to(&*site.disk, copy, &(*known).into());
    let holds_it = |copy: &Layout| matches!(standing(copy), Ok(HeadStanding::Kept));
    if set_aside(&*site.disk, &site.layout).iter().any(holds_it) {
        return Ok(true);
    }
    for log in other_logs(&*site.disk, &site.layout).at(&quarantine)? {
        let length = log.length().at(&quarantine)?;
        if let Ok(Hint::Synced(_)) = hint_for(Some(*known), &*log, length) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What the lock is taken for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum LockPurpose {
    /// A change of a log that is there.
    Write,
    /// A log may be brought back that is lost.
    Restore,
    /// The same, and whole events behind the end of a damaged log are judged, so they are not moved aside.
    Judge,
}

impl Store {
    /// Runs a change under the lock, on the newest state.
    pub(in crate::store) fn with_lock<T>(
        &mut self,
        now: i64,
        change: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.with_lock_to(LockPurpose::Write, now, change)
    }

    pub(in crate::store) fn with_lock_to<T>(
        &mut self,
        purpose: LockPurpose,
        now: i64,
        change: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let rushed = self.begin(purpose, now)?;
        let outcome = change(self);
        // After an error the files may differ from the memory, and the caller ends no lease.
        if outcome.is_err() {
            self.log.lock.prepared = false;
        }
        self.log.release_or_lease(now, rushed && outcome.is_ok());
        outcome
    }

    /// Runs something short under the lock, whether this store has it already or not.
    pub(in crate::store) fn with_lock_for_a_moment<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.log.lock.held {
            return act(self);
        }
        self.log.hold_lock()?;
        let outcome = act(self);
        self.log.lock.let_go();
        outcome
    }

    /// Takes the lock and the newest state; gives whether the last change was a moment ago.
    pub(in crate::store) fn begin(&mut self, purpose: LockPurpose, now: i64) -> Result<bool> {
        self.check_open()?;
        self.log.check_poison()?;
        let rushed = self.log.take_lock(now)?;
        let ready = match self.prepare(purpose, now) {
            Ok(()) if purpose == LockPurpose::Write => self.log.check_is_there(),
            ready => ready,
        };
        if let Err(fault) = ready {
            self.log.lock.prepared = false;
            self.log.release_or_lease(now, false);
            return Err(fault);
        }
        Ok(rushed)
    }

    /// Under the lock, before anything is written: the newest state, and no bytes beyond the committed end.
    fn prepare(&mut self, purpose: LockPurpose, now: i64) -> Result<()> {
        if self.log.lock.prepared {
            return Ok(());
        }
        if self.log.lock.marked {
            recover(self, now)?;
        }
        if self.is_behind()? {
            self.catch_up()?;
            self.log.lock.signed = false;
        }
        if self.log.is_short_of_synced()? {
            self.reload(&mut |_, _| {})?;
        }
        self.log.lock.sign()?;
        self.log.check_is_ours()?;
        let mut is_spared = false;
        if self.log.report.tail.is_some() {
            // What others have synced since this store was opened is no tail: only a fresh look may cut.
            self.reload(&mut |_, _| {})?;
            // Of a log that is lost, these bytes may be all that is left.
            if self.log.check_is_there().is_ok() {
                is_spared = purpose == LockPurpose::Judge && has_event_in_tail(&self.site, &self.log)?;
                if !is_spared {
                    self.log.cut_tail(now)?;
                }
            }
        }
        if is_erasing(&self.site) {
            finish_erasing(&self.site, &self.log, &self.state, &self.vectors)?;
        }
        if !is_spared {
            self.log.lock.prepared = true;
        }
        Ok(())
    }

    /// Takes the log as it is now for the right one.
    pub fn accept_head(&mut self, now: i64) -> Result<()> {
        if self.log.open().is_none() && !self.log.head.is_there() {
            // Nothing is there and nothing is missed.
            return Ok(());
        }
        self.with_lock_to(LockPurpose::Restore, now, |store| {
            let is_replaced = store.log.accept_replaced();
            store.log.check_is_there()?;
            if !is_replaced && store.log.head.file.is_none() {
                return Ok(());
            }
            if store.log.report.cut.take().is_some()
                && let Some(log) = store.log.open()
            {
                keep_hint(&store.site, log, now)?;
            }
            store.on_log(Log::sync)?;
            let reached = store.log.seen_head();
            store.log.head.accept(reached)
        })
    }
}

/// After a failed sync of another process: copies the committed part of the log into a fresh file and removes the mark.
fn recover(store: &mut Store, now: i64) -> Result<()> {
    store.reload(&mut |_, _| {})?;
    store.log.keep_tail(now)?;
    store.vectors.renew_rows(&store.state)?;
    if store.log.renew()? {
        store.reload(&mut |_, _| {})?;
        store.on_log(Log::make_ready)?;
        store.on_log(Log::sync)?;
    }
    store.log.lock.remove_mark()?;
    let note = "after a failed sync the log was copied into a fresh file";
    store.log.report.notes.push(note.to_owned());
    Ok(())
}

/// Ends an erasure of another process. A process that may only read leaves it to others, with a note.
fn finish_what_others_erased(store: &mut Store) {
    let finished = store.with_lock_for_a_moment(|store| {
        if store.is_behind()? {
            store.catch_up()?;
        }
        finish_erasing(&store.site, &store.log, &store.state, &store.vectors)?;
        store.on_log(Log::make_ready)?;
        store.log.tell_head();
        Ok(())
    });
    if let Err(fault) = finished {
        let note = format!("an erasure is unfinished, and could not be ended here: {fault}");
        store.log.report.notes.push(note);
    }
}

/// Whether the log is damaged and ends with a whole event that lost its newline: so much of a tail is for a repair to judge.
fn has_event_in_tail(site: &Site, log: &Log) -> Result<bool> {
    let is_damaged = log.report.damage.iter().any(|damage| damage.path == LOG);
    match (&log.report.tail, log.open()) {
        (Some(tail), Some(open)) if is_damaged => ends_with_event(&*open.file, tail).at(site.log()),
        _ => Ok(false),
    }
}

fn is_of(file: &str, sha256: &str) -> bool {
    digest_in_base_name(file) == Some(sha256)
}

/// Under the lock: removes what a committed erasure left and all that is derived, or the drafts of one that was not.
pub(in crate::store) fn finish_erasing(site: &Site, log: &Log, state: &State, vectors: &Vectors) -> Result<()> {
    let Some(left) = Erasing::read(site)? else {
        return Ok(());
    };
    match log.open().map(|log| &log.origin) {
        Some(Origin::Ours(sentinel)) if left.base.is_some() && sentinel.told.base == left.base => {
            // The process that renamed the log may have been killed before the rename was on disk.
            site.disk.sync_dir(site.layout.folder()).at(site.layout.folder())?;
            let names_rows = |path: &Path| vectors.names_rows(state, path);
            left.carry_out(site, |name| may_go(site, sentinel, names_rows, name))?;
            // Drafts of indexes go first, then files again: a draft may get its name while others are removed.
            remove_ours(&*site.disk, &site.layout.text_indexes(), is_text_draft)?;
            // Also the draft of a snapshot.
            remove_ours(&*site.disk, site.layout.folder(), is_draft)?;
            let origin = log.open().and_then(OpenLog::origin_hash);
            remove_indexes(site, origin)?;
            remove_indexes(site, origin)?;
            remove_if_there(&*site.disk, &site.layout.snapshot())?;
        }
        _ => left.remove_drafts(site)?,
    }
    Erasing::end(site)
}

fn may_go(site: &Site, sentinel: &Sentinel, names_rows: impl Fn(&Path) -> bool, name: &str) -> bool {
    let path = site.layout.inside(name);
    match name.split_once('/') {
        Some(("vectors", _)) => !names_rows(&path),
        Some(("backup" | "quarantine", _)) => true,
        Some(("base", file)) if sentinel.told.base.is_some_and(|base| is_of(file, base.text())) => false,
        // Nothing of the past is named where none was kept.
        _ if sentinel.archive.is_none() => true,
        Some((folder, file)) => {
            let told = sentinel.told.erasure.iter().flat_map(|told| &told.replaced);
            let mut olds = told.map(|one| one.old.text());
            match folder {
                "base" => olds.any(|old| is_of(file, old)),
                _ => short_digest_in_archive_name(file).is_some_and(|short| olds.any(|old| old.starts_with(short))),
            }
        }
        None => false,
    }
}

/// Whether an erasure is unfinished.
pub(in crate::store) fn is_erasing(site: &Site) -> bool {
    site.disk.exists(&site.layout.inside(ERASING))
}

impl Store {
    /// Opens a store; nothing is created before the first write.
    ///
    /// # Errors
    /// `Io`; `Corrupted` if `strict` and anything is damaged.
    pub fn open(disk: Arc<dyn Disk>, layout: Layout, options: Options, progress: Progress<'_>) -> Result<Self> {
        disk.guard(
            layout.folder(),
            FolderMode {
                read_only: layout.is_backup(),
                shared: options.shared,
            },
        );
        let site = Arc::new(Site::new(disk, layout));
        let (lock, head_file) = (options.lock_terms(), options.head_file.clone());
        let log = Log::new(Arc::clone(&site), options.durability, lock, head_file, nothing())?;
        let snapshots = Snapshots::new(Arc::clone(&site));
        let vectors = Vectors::new(Arc::clone(&site), options.threads);
        let mut store = Self {
            site,
            options,
            log,
            state: State::default(),
            pending: Pending::default(),
            closed: false,
            snapshots,
            archives: ArchiveCache::default(),
            views: Views::default(),
            vectors,
            clock: ExpiryClock::default(),
            last_copy: None,
            seal_from: 0,
            verified: VerifiedChain::default(),
            is_distrusted: AtomicBool::default(),
            new_damage: Arc::default(),
        };
        store.reload(progress)?;
        if is_erasing(&store.site) {
            finish_what_others_erased(&mut store);
        }
        if !erasures_of(&store.state).is_empty()
            && let Some(log) = store.log.open()
        {
            store.log.report.returned = returned_at(&*store.site.disk, &store.site.layout, &log.origin);
        }
        store.log.tell_known_head();
        if store.options.exclusive {
            store.log.hold_lock()?;
        }
        Ok(store)
    }

    /// Makes what was written durable and lets go of everything. Closing twice is fine.
    ///
    /// # Errors
    /// `Io`, `Poisoned` if the last sync fails.
    pub fn close(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let missed = match self.log.lock.held {
            true => missed(&self.site, &self.log),
            false => Ok(None),
        };
        let missed = missed.and_then(|missed| missed.map_or(Ok(()), Err));
        let outcome = self.sync().and(self.log.end_lease_at_last()).and(missed);
        self.log.tell_known_head();
        self.write_wanted_snapshot();
        seal_at_close(self);
        self.closed = true;
        self.log.lock.let_go();
        self.log.forget();
        self.state = State::default();
        self.views.let_go();
        self.vectors.forget();
        outcome
    }
}
