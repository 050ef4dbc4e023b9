//! The engine: one handle to an open store, which any thread may use.
//!
//! It looks after itself between calls, and a forked child cannot use it by accident.

mod ask;
mod batch;
mod upkeep;

use std::cell::Cell;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::load::examine::layout_of;
use super::worker::Worker;
use super::write::ingest::{RefusedChanges, commit_allowed, sweep};
use super::{Committed, Shared, Store, Turns, VerifiedChain};
use crate::options::{Options, WriterTerms};
use chronolog::disk::{Disk, RealDisk, forked};
use chronolog::error::{Error, Result};
use chronolog::event::draft::{Author, Draft};
use chronolog::event::stamp;
use chronolog::host::{Host, Join, Machine};
use chronolog::layout::Layout;
use chronolog::log::LogStatus;

pub use ask::Unchanged;
pub use batch::BatchWriter;
pub use upkeep::Verified;

thread_local! {
    /// The engine whose progress callback may be running on this thread: it holds the store and must not wait for it.
    static REPORTING: Cell<usize> = const { Cell::new(0) };
}

/// An open store.
///
/// In mode `normal` what it acknowledged is on disk a second later: a thread sees to that, which ends when the store is
/// closed or dropped. With [`Engine::open_unattended`] there is no such thread, and the caller sees to it.
///
/// Several may share a store, each with terms of its own: [`Engine::on_terms`].
///
/// Any call may fail with `Io`, with `Closed` after [`Engine::close`], with `Forked` in a forked child and with `InProgress`
/// inside a progress callback. A method names only the other errors that it returns.
pub struct Engine {
    body: Arc<Body>,
    terms: WriterTerms,
}

/// What all handles of a store share.
pub struct Body {
    store: Arc<Shared>,
    worker: Arc<Worker>,
    host: Arc<dyn Host>,
    /// `None` if the caller drives the worker.
    worker_thread: Mutex<Option<Join>>,
    threads: usize,
    /// How many forks lay behind the process when it was opened.
    forks: u32,
    terms: WriterTerms,
    /// The moment that expiries are held against, if the host's clock is not asked.
    moment: AtomicI64,
    new_damage: Arc<AtomicU64>,
}

/// In place of a moment: the clock of the host.
const BY_THE_CLOCK: i64 = i64::MIN;

impl Deref for Engine {
    type Target = Body;

    fn deref(&self) -> &Body {
        &self.body
    }
}

impl Engine {
    /// Opens the store of a project on this machine, or a backup; nothing is created before the first write.
    ///
    /// # Errors
    /// `OutOfMemory`; `Corrupted` if `strict` and anything is damaged.
    pub fn open(project: &Path, options: Options) -> Result<Self> {
        let (disk, host) = (RealDisk::default(), Machine::default());
        let layout = layout_of(&disk, project);
        let since = stamp::spell(host.now());
        let options = Options {
            threads: Machine::threads(),
            signature: format!("process {}, writing since {since}", std::process::id()),
            ..options
        };
        Self::open_on(Arc::new(disk), layout, options, Arc::new(host))
    }

    /// Opens a store on any disk, by any clock; a thread of the host looks after it.
    pub fn open_on(disk: Arc<dyn Disk>, layout: Layout, options: Options, host: Arc<dyn Host>) -> Result<Self> {
        let engine = Self::open_unattended(disk, layout, options, host)?;
        let thread = engine.worker.start()?;
        engine.worker.tell(engine.store.due_work(engine.host.now()));
        *engine.worker_thread() = Some(thread);
        Ok(engine)
    }

    /// The same without a thread: the caller calls [`Engine::attend`].
    pub fn open_unattended(disk: Arc<dyn Disk>, layout: Layout, options: Options, host: Arc<dyn Host>) -> Result<Self> {
        let options = Options {
            attended: true,
            ..options
        };
        let (threads, terms) = (options.threads, options.writer_terms());
        let store = Store::open(disk, layout, options, &mut |_, _| {})?;
        let new_damage = Arc::clone(&store.new_damage);
        let store = Arc::new(Shared::new(store));
        let body = Body {
            worker: Worker::new(Arc::clone(&store), Arc::clone(&host)),
            terms,
            worker_thread: Mutex::default(),
            store,
            host,
            threads,
            forks: forked::count(),
            moment: AtomicI64::new(BY_THE_CLOCK),
            new_damage,
        };
        Ok(Self {
            body: Arc::new(body),
            terms,
        })
    }

    /// The same store for a writer with other terms. Closing one of them closes all.
    #[must_use]
    pub fn on_terms(&self, terms: WriterTerms) -> Self {
        Self {
            body: Arc::clone(&self.body),
            terms,
        }
    }

    /// Begins work that is due; gives how long nothing more will be, `None` until the next call that writes or searches.
    pub fn attend(&self) -> Result<Option<Duration>> {
        self.check_process()?;
        Ok(self.worker.round().1)
    }

    /// Makes what was written durable and closes. Closing again, or in a forked child, does nothing.
    ///
    /// # Errors
    /// `Poisoned` if the last sync fails.
    pub fn close(&self) -> Result<()> {
        if self.is_forked() {
            return Ok(());
        }
        self.check_caller()?;
        self.let_go()
    }

    fn check_process(&self) -> Result<()> {
        if self.is_forked() { Err(Error::Forked) } else { Ok(()) }
    }

    /// Refuses a call from a forked child or from a progress callback.
    fn check_caller(&self) -> Result<()> {
        self.check_process()?;
        if REPORTING.get() == self.address() {
            return Err(Error::InProgress);
        }
        Ok(())
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.body).addr()
    }

    /// How the log is, from memory: nothing is read for it.
    pub fn log_status(&self) -> Result<LogStatus> {
        self.check_caller()?;
        Ok(self.store.read_guard().log.log_status())
    }

    /// How often damage was found so far that was not known before. It is read without a lock.
    pub fn new_damage(&self) -> u64 {
        self.new_damage.load(Ordering::Relaxed)
    }

    /// How far the chain was verified since the store was opened.
    ///
    /// # Errors
    /// As [`Engine::read`].
    pub fn verified(&self) -> Result<VerifiedChain> {
        self.check_caller()?;
        Ok(self.store.read_guard().verified)
    }

    /// Runs a question on a state that has caught up with other processes.
    pub fn read<T>(&self, ask: impl FnMut(&Store) -> Result<T>) -> Result<T> {
        self.check_caller()?;
        self.store.read_at(Some(&|| self.moment()), ask)
    }

    /// Sets the moment, in microseconds since 1970, that decides expiry for all who share the store; `None` for the clock.
    pub fn set_moment(&self, moment: Option<i64>) {
        self.moment.store(moment.unwrap_or(BY_THE_CLOCK), Ordering::Relaxed);
    }

    /// The moment that expiries are held against.
    pub fn moment(&self) -> i64 {
        match self.moment.load(Ordering::Relaxed) {
            BY_THE_CLOCK => self.host.now(),
            moment => moment,
        }
    }

    /// Runs a short change as the only writer, with the time. The store is locked meanwhile.
    pub fn change<T>(&self, act: impl FnOnce(&mut Store, i64) -> Result<T>) -> Result<T> {
        self.turn(|store| act(store, self.host.now()))
    }

    /// Runs a change that writes much: a sync that is due then is waited for without keeping the store.
    pub fn write<T>(&self, act: impl FnOnce(&mut Store, i64) -> Result<T>) -> Result<T> {
        self.check_caller()?;
        let clock = || self.host.now();
        let (outcome, due_work) = self
            .store
            .change_and_sync(self.terms, &clock, |store| act(store, clock()))?;
        self.worker.tell(due_work);
        Ok(outcome)
    }

    /// Writes a draft as one atomic batch, together with those of other threads. The draft is empty then.
    ///
    /// # Errors
    /// `Locked`, `Poisoned`, `Invalid`, `TooLarge`, `Limit`; nothing is written then.
    pub fn commit(&self, draft: &mut Draft) -> Result<Committed> {
        self.check_caller()?;
        let (committed, due_work) = self.store.commit(draft, self.terms, &|| self.host.now())?;
        self.worker.tell(due_work);
        draft.recycle();
        Ok(committed)
    }

    /// Does the same if it waits for no other writer and no disk; otherwise `None`, and the draft is unchanged.
    ///
    /// # Errors
    /// As [`Engine::commit`], but for `Locked`.
    pub fn commit_at_once(&self, draft: &mut Draft) -> Result<Option<Committed>> {
        self.check_caller()?;
        let written = self.store.commit_at_once(draft, self.terms, &|| self.host.now())?;
        Ok(written.map(|(committed, due_work)| {
            self.worker.tell(due_work);
            draft.recycle();
            committed
        }))
    }

    /// Writes a draft as one batch without the changes that its writer may not make; gives these with their places.
    ///
    /// # Errors
    /// As [`Engine::commit`], but for the refusal of a change.
    pub fn commit_allowed(&self, draft: &mut Draft) -> Result<(Option<Committed>, RefusedChanges)> {
        self.change(|store, now| commit_allowed(store, draft, now))
    }

    /// Runs work that reads, computes and commits as the only writer of all processes, for at most a second.
    ///
    /// # Errors
    /// As [`Engine::commit`]; the work has not begun then.
    pub fn in_turn<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        self.check_caller()?;
        let _turn = self.store.begin_turn(self.terms, &|| self.host.now())?;
        self.worker.tell(self.store.due_work(self.host.now()));
        Ok(work())
    }

    /// Deletes an author's own records that have expired, by now or by a moment, as one batch; gives their ids.
    pub fn sweep(&self, author: &Author, moment: Option<i64>) -> Result<Vec<String>> {
        let moment = moment.unwrap_or_else(|| self.moment());
        self.change(|store, now| sweep(store, author, moment, now))
    }

    /// Makes everything written so far durable.
    pub fn sync(&self) -> Result<()> {
        self.change(|store, _| store.sync())
    }
}

/// An engine lets others have the store between two turns.
impl Turns for Engine {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        self.check_caller()?;
        let (outcome, due_work) = self.store.change(self.terms, &|| self.host.now(), act);
        self.worker.tell(due_work);
        outcome
    }
}

impl Body {
    fn let_go(&self) -> Result<()> {
        let thread = self.worker_thread().take();
        self.worker.stop(thread);
        self.store.change(self.terms, &|| self.host.now(), Store::close).0
    }

    fn is_forked(&self) -> bool {
        forked::count() != self.forks
    }

    fn worker_thread(&self) -> MutexGuard<'_, Option<Join>> {
        self.worker_thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if self.is_forked() {
            // The threads stayed in the parent; handles to them must not be touched here.
            std::mem::forget((Arc::clone(&self.worker), Arc::clone(&self.store)));
            if let Ok(mut thread) = self.worker_thread.try_lock() {
                std::mem::forget(thread.take());
            }
        } else {
            // There is no caller to report a failure to; what was acknowledged is with the system already.
            let _ = self.let_go();
        }
    }
}
