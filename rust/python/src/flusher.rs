//! Who syncs when nobody writes any more? A thread of the store's own, asleep unless something is unsynced.

use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use chronomemory::error::Error;
use chronomemory::store::Store;

/// Writes wait at most a second for their sync; the thread looks a little earlier.
const PATIENCE: Duration = Duration::from_millis(900);

#[derive(Default)]
struct Signal {
    written: bool,
    stopped: bool,
}

/// The thread and how to reach it.
pub struct Flusher {
    signal: Arc<(Mutex<Signal>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// Starts the thread.
    pub fn start(store: Arc<RwLock<Store>>) -> Self {
        let signal = Arc::new((Mutex::new(Signal::default()), Condvar::new()));
        let seen = Arc::clone(&signal);
        let thread = std::thread::Builder::new()
            .name("chronomemory-sync".to_owned())
            .spawn(move || run(&seen, &store))
            .ok();
        Self { signal, thread }
    }

    /// Tells the thread that something was written.
    pub fn wake(&self) {
        let (signal, moved) = &*self.signal;
        let mut signal = signal.lock().unwrap_or_else(PoisonError::into_inner);
        if !signal.written {
            signal.written = true;
            moved.notify_one();
        }
    }

    /// Ends the thread.
    pub fn stop(&mut self) {
        let (signal, moved) = &*self.signal;
        signal.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        moved.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been reported already; there is nothing to add.
            let _ = thread.join();
        }
    }
}

fn run(signal: &(Mutex<Signal>, Condvar), store: &RwLock<Store>) {
    let (signal, moved) = signal;
    let mut guard = signal.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        while !guard.written && !guard.stopped {
            guard = moved.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        let (waited, _) = moved
            .wait_timeout_while(guard, PATIENCE, |signal| !signal.stopped)
            .unwrap_or_else(PoisonError::into_inner);
        guard = waited;
        if guard.stopped {
            return;
        }
        guard.written = false;
        drop(guard);
        // A failed sync poisons the store, and the next write says so; a lock that another process keeps is tried again.
        let outcome = store.write().unwrap_or_else(PoisonError::into_inner).sync();
        guard = signal.lock().unwrap_or_else(PoisonError::into_inner);
        guard.written |= matches!(outcome, Err(Error::Locked { .. }));
    }
}
