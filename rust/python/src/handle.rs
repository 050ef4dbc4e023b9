//! How is an open store held: shared between threads, closed once, useless after a fork?

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::ThreadId;
use std::time::{SystemTime, UNIX_EPOCH};

use chronomemory::error::Error;
use chronomemory::event::draft::Draft;
use chronomemory::layout::{FOLDER, LOG, Layout};
use chronomemory::store::{Committed, Store, Turns};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::enter::{Reporter, enter, forked, to_python};
use crate::flusher::Flusher;

/// Now, in microseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// How many threads read a log.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// A project's store; a folder that holds the files themselves, such as a backup, is one too.
pub fn layout_of(root: PathBuf) -> Layout {
    if !root.join(FOLDER).exists() && root.join(LOG).is_file() {
        return Layout::of_folder(root);
    }
    Layout::of_project(&root)
}

/// A store that any thread may use, and only the process that opened it.
pub struct Handle {
    store: Arc<RwLock<Store>>,
    flusher: Mutex<Option<Flusher>>,
    process: u32,
    /// The thread whose progress callback may be running: it holds the store and must not wait for it.
    reporting: Mutex<Option<ThreadId>>,
}

impl Handle {
    /// Holds a store and starts the thread that looks after it.
    pub fn new(store: Store, syncs_later: bool) -> Self {
        let store = Arc::new(RwLock::new(store));
        Self {
            flusher: Mutex::new(Some(Flusher::start(Arc::clone(&store), syncs_later))),
            store,
            process: std::process::id(),
            reporting: Mutex::default(),
        }
    }

    /// Syncs and lets go; closing twice is fine.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        if std::process::id() != self.process {
            return Ok(());
        }
        let flusher = self.flusher.lock().unwrap_or_else(PoisonError::into_inner).take();
        enter(py, || {
            if let Some(mut flusher) = flusher {
                flusher.stop();
            }
            self.writing().close()
        })
    }

    fn check_caller(&self, py: Python<'_>) -> PyResult<()> {
        if std::process::id() != self.process {
            return Err(forked(py));
        }
        let reporting = *self.reporting.lock().unwrap_or_else(PoisonError::into_inner);
        if reporting == Some(std::thread::current().id()) {
            return Err(PyRuntimeError::new_err(
                "a progress callback cannot use the store that calls it",
            ));
        }
        Ok(())
    }

    fn writing(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a question on a state that has caught up with other processes.
    pub fn read<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&Store) -> Result<T, Error> + Send) -> PyResult<T> {
        self.check_caller(py)?;
        enter(py, || {
            let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
            if !store.is_behind()? {
                return ask(&store);
            }
            drop(store);
            let mut store = self.writing();
            store.refresh()?;
            ask(&store)
        })
    }

    /// Runs a change.
    pub fn change<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Store) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.check_caller(py)?;
        let (outcome, unsynced) = enter(py, || {
            let mut store = self.writing();
            let outcome = act(&mut store);
            Ok((outcome, store.unsynced_bytes()))
        })?;
        if let Some(flusher) = &*self.flusher.lock().unwrap_or_else(PoisonError::into_inner) {
            flusher.wake(unsynced);
        }
        outcome.map_err(|fault| to_python(py, fault))
    }

    /// Writes a draft.
    pub fn commit(&self, py: Python<'_>, draft: &Draft) -> PyResult<Committed> {
        self.change(py, |store| store.commit(draft, now()))
    }

    /// Runs a change that says how far it has come.
    pub fn with_progress<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        act: impl FnOnce(&mut Store, &mut dyn FnMut(u64, u64)) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let mut reporter = Reporter::new(progress);
        let caller = std::thread::current().id();
        let outcome = self.change(py, |store| {
            *self.reporting.lock().unwrap_or_else(PoisonError::into_inner) = Some(caller);
            let outcome = act(store, &mut |done, total| reporter.report(done, total));
            *self.reporting.lock().unwrap_or_else(PoisonError::into_inner) = None;
            outcome
        });
        reporter.finish()?;
        outcome
    }
}

/// A handle lets others have the store between two turns.
impl Turns for Handle {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        act(&mut self.writing())
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
}

impl Drop for Handle {
    fn drop(&mut self) {
        if std::process::id() == self.process {
            if let Some(mut flusher) = self.flusher.lock().unwrap_or_else(PoisonError::into_inner).take() {
                flusher.stop();
            }
            // Nobody is left to hear of a failure; what was acknowledged is with the system already.
            let _ = self.writing().close();
        } else if let Ok(mut flusher) = self.flusher.try_lock() {
            // The thread stayed in the parent; its handle means nothing here and must not be touched.
            std::mem::forget(flusher.take());
        }
    }
}
