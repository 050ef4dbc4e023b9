//! How is an open store held: shared between threads, closed once, useless after a fork?

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use chronomemory::blocks::{Answer, Ask};
use chronomemory::disk::forked;
use chronomemory::error::Error;
use chronomemory::event::draft::Draft;
use chronomemory::store::{self, Ahead, Committed, Hit, Kept, Repaired, Search, Shared, Store, Turns};
use pyo3::prelude::*;

use crate::enter::{Reporter, enter, enter_to_leave, is_from_before_a_fork, is_in_progress};
use crate::flusher::{Flusher, Wishes};
use crate::speller::Speller;

/// Now, in microseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// How many threads read a log.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// How many forks lie between this process and the one that loaded the module.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The interpreter calls this before it forks. Not with the interpreter in hand: whoever opens a store has let go of it.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    py.detach(forked::before_fork);
}

/// And this afterwards, in the parent.
#[pyfunction]
pub fn after_fork_in_parent() {
    forked::after_fork_in_parent();
}

/// And this in every child: asking the system for the process at each call would cost more than many a call does. The
/// child lets go of its parent's locks, or nobody could write after the parent was killed.
#[pyfunction]
pub fn after_fork(py: Python<'_>) -> PyResult<()> {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let locks = forked::after_fork_in_child();
    let Some((&first, others)) = locks.split_first() else {
        return Ok(());
    };
    let os = PyModule::import(py, "os")?;
    // Closed first, so that there is a free descriptor even where no more can be had; nobody else is here to take it.
    os.call_method1("close", (first,))?;
    let nothing: i32 = os
        .call_method1("open", (os.getattr("devnull")?, os.getattr("O_RDONLY")?))?
        .extract()?;
    let stays_here = false;
    if nothing != first {
        os.call_method1("dup2", (nothing, first, stays_here))?;
        os.call_method1("close", (nothing,))?;
    }
    for &lock in others {
        os.call_method1("dup2", (first, lock, stays_here))?;
    }
    Ok(())
}

thread_local! {
    /// The handle whose progress callback may be running on this thread: it holds the store and must not wait for it.
    static REPORTING: Cell<usize> = const { Cell::new(0) };
}

/// The threads of a store.
struct Crew {
    flusher: Flusher,
    /// There is one after the first large batch, unless another is being spelled.
    speller: Option<Speller>,
}

/// A store that any thread may use, and only the process that opened it.
pub struct Handle {
    store: Arc<Shared>,
    crew: Mutex<Option<Crew>>,
    wishes: Arc<Wishes>,
    forks: u32,
}

impl Handle {
    /// Holds a store and starts the thread that looks after it.
    pub fn new(store: Store) -> std::io::Result<Self> {
        let store = Arc::new(Shared::new(store));
        let flusher = Flusher::start(Arc::clone(&store))?;
        Ok(Self {
            wishes: flusher.wishes(),
            crew: Mutex::new(Some(Crew { flusher, speller: None })),
            store,
            forks: FORKS.load(Ordering::Relaxed),
        })
    }

    fn is_forked(&self) -> bool {
        FORKS.load(Ordering::Relaxed) != self.forks
    }

    /// Syncs and lets go; closing twice is fine.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() {
            return Ok(());
        }
        self.check_caller(py)?;
        let crew = self.crew().take();
        enter_to_leave(py, || {
            if let Some(mut crew) = crew {
                crew.flusher.stop();
            }
            self.store.change(&now, Store::close).0
        })
    }

    fn check_caller(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() {
            return Err(is_from_before_a_fork(py));
        }
        if REPORTING.get() == self.address() {
            return Err(is_in_progress(py));
        }
        Ok(())
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Runs a question on a state that has caught up with other processes.
    pub fn read<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&Store) -> Result<T, Error> + Send) -> PyResult<T> {
        self.check_caller(py)?;
        enter(py, || self.store.read(ask))
    }

    /// Searches, without keeping anyone from writing meanwhile.
    pub fn search(&self, py: Python<'_>, search: &Search) -> PyResult<Vec<Hit>> {
        self.check_caller(py)?;
        enter(py, || {
            let found = store::search(&self.store, search);
            self.wishes.tell(self.store.needs(now()));
            found
        })
    }

    /// Recalls blocks, likewise.
    pub fn recall(&self, py: Python<'_>, ask: &Ask) -> PyResult<Answer> {
        self.check_caller(py)?;
        enter(py, || {
            let found = store::recall(&self.store, ask);
            self.wishes.tell(self.store.needs(now()));
            found
        })
    }

    /// Runs a change.
    pub fn change<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Store) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.check_caller(py)?;
        enter(py, || {
            let (outcome, needs) = self.store.change(&now, act);
            self.wishes.tell(needs);
            outcome
        })
    }

    /// Runs a question that shares the store in its own way.
    pub fn ask<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&Shared) -> Result<T, Error> + Send) -> PyResult<T> {
        self.check_caller(py)?;
        enter(py, || ask(&self.store))
    }

    /// Runs a change that writes much: a sync that is due then is waited for without keeping the store.
    pub fn write<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Store) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.check_caller(py)?;
        enter(py, || {
            let (outcome, needs) = self.store.change_and_sync(&now, act)?;
            self.wishes.tell(needs);
            Ok(outcome)
        })
    }

    /// Writes a draft; what it held may be gone then.
    pub fn commit(&self, py: Python<'_>, draft: &mut Draft) -> PyResult<Committed> {
        self.check_caller(py)?;
        enter(py, || {
            let (committed, needs) = self.store.commit(draft, &now)?;
            self.wishes.tell(needs);
            Ok(committed)
        })
    }

    /// Begins to spell a batch of so many changes.
    pub fn spell_ahead(&self, py: Python<'_>, changes: usize) -> PyResult<(Ahead, Vec<Draft>)> {
        self.check_caller(py)?;
        enter(py, || Ok(self.store.spell_ahead(changes, now())))
    }

    /// A thread that spells a batch; `None` if the system gives none.
    pub fn take_speller(&self) -> Option<Speller> {
        let waiting = self.crew().as_mut().and_then(|crew| crew.speller.take());
        waiting.or_else(|| Speller::start(Arc::clone(&self.store)).ok())
    }

    /// Keeps the thread for the next batch.
    pub fn keep_speller(&self, speller: Speller) {
        if let Some(crew) = self.crew().as_mut() {
            crew.speller = Some(speller);
        }
    }

    fn crew(&self) -> MutexGuard<'_, Option<Crew>> {
        self.crew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes several drafts as one batch.
    pub fn commit_parts(&self, py: Python<'_>, parts: &[Arc<Draft>], ahead: Ahead) -> PyResult<Committed> {
        self.check_caller(py)?;
        enter(py, || {
            let (committed, needs) = self.store.commit_parts(parts, ahead, &now)?;
            self.wishes.tell(needs);
            Ok(committed)
        })
    }

    /// Runs a change that says how far it has come.
    pub fn with_progress<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        act: impl FnOnce(&mut Store, &mut dyn FnMut(u64, u64)) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let mut reporter = Reporter::new(progress);
        let outcome = self.change(py, |store| {
            let before = REPORTING.replace(self.address());
            let outcome = act(store, &mut |done, total| reporter.report(done, total));
            REPORTING.set(before);
            outcome
        });
        reporter.finish()?;
        outcome
    }
}

/// A handle lets others have the store between two turns.
impl Turns for Handle {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        let (outcome, needs) = self.store.change(&now, act);
        self.wishes.tell(needs);
        outcome
    }
}

impl Handle {
    /// Runs long work that asks for the store only in turns, and says how far it has come.
    pub fn look_after<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(&Self, &mut dyn FnMut(u64, u64)) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.check_caller(py)?;
        let mut reporter = Reporter::new(progress);
        let outcome = enter(py, || work(self, &mut |done, total| reporter.report(done, total)));
        reporter.finish()?;
        outcome
    }

    /// Brings back a copy, or a tail that was cut away; says what was repaired on the way.
    pub fn bring_back(
        &self,
        py: Python<'_>,
        source: &Path,
        progress: Option<Py<PyAny>>,
        damaged: bool,
    ) -> PyResult<Option<Repaired>> {
        self.look_after(py, progress, |turns, report| {
            store::bring_back(turns, source, damaged, &now, report)
        })
    }

    /// Repairs the store; says what was done, and what lies in `quarantine/` beside whole stores.
    pub fn repair(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        unproven: bool,
    ) -> PyResult<(Option<Repaired>, Vec<Kept>)> {
        self.with_progress(py, progress, |store, report| {
            Ok((store.repair(unproven, now(), report)?, store.kept()?))
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.is_forked() {
            if let Some(mut crew) = self.crew().take() {
                crew.flusher.stop();
            }
            // Nobody is left to hear of a failure; what was acknowledged is with the system already.
            let _ = self.store.change(&now, Store::close);
        } else if let Ok(mut crew) = self.crew.try_lock() {
            // The threads stayed in the parent; their handles mean nothing here and must not be touched.
            std::mem::forget(crew.take());
        }
    }
}
