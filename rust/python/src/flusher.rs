//! Who syncs when nobody writes any more, and writes large snapshots while others go on? A thread of the store's own,
//! asleep unless something was written.

use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use chronomemory::store::Store;

/// Writes wait at most a second for their sync; the thread looks a little earlier.
const PATIENCE: Duration = Duration::from_millis(900);

/// `normal` leaves at most four mebibytes unsynced; from half of that on the thread does not wait.
const URGENT_BYTES: u64 = 2 * 1024 * 1024;

#[derive(Default)]
struct Signal {
    written: bool,
    /// So much is unsynced that a second is too long.
    urgent: bool,
    stopped: bool,
}

/// The thread and how to reach it.
pub struct Flusher {
    signal: Arc<(Mutex<Signal>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// Starts the thread; it syncs if the store leaves that to it.
    pub fn start(store: Arc<RwLock<Store>>, syncs: bool) -> Self {
        let signal = Arc::new((Mutex::new(Signal::default()), Condvar::new()));
        let seen = Arc::clone(&signal);
        let thread = std::thread::Builder::new()
            .name("chronomemory-sync".to_owned())
            .spawn(move || run(&seen, &store, syncs))
            .ok();
        Self { signal, thread }
    }

    /// Tells the thread that something was written, and how much is unsynced by now.
    pub fn wake(&self, unsynced_bytes: u64) {
        let (signal, moved) = &*self.signal;
        let mut signal = signal.lock().unwrap_or_else(PoisonError::into_inner);
        let urgent = unsynced_bytes >= URGENT_BYTES && !signal.urgent;
        if urgent || !signal.written {
            signal.written = true;
            signal.urgent |= urgent;
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

fn run(signal: &(Mutex<Signal>, Condvar), store: &RwLock<Store>, syncs: bool) {
    let (signal, moved) = signal;
    let mut guard = signal.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        while !guard.written && !guard.stopped {
            guard = moved.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        let (waited, _) = moved
            .wait_timeout_while(guard, PATIENCE, |signal| !signal.stopped && !signal.urgent)
            .unwrap_or_else(PoisonError::into_inner);
        guard = waited;
        if guard.stopped {
            return;
        }
        (guard.written, guard.urgent) = (false, false);
        drop(guard);
        if syncs {
            sync(store);
        }
        write_snapshot(store);
        guard = signal.lock().unwrap_or_else(PoisonError::into_inner);
    }
}

/// Syncs without keeping anyone from reading or writing meanwhile. A failure poisons the store: the next write says so.
fn sync(store: &RwLock<Store>) {
    let started = store.read().unwrap_or_else(PoisonError::into_inner).start_sync();
    if let Some(syncing) = started {
        let outcome = syncing.run();
        let _ = store
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .end_sync(&syncing, outcome);
    }
}

/// Writes a large snapshot that is due. It is derived: if that fails, nothing is lost.
fn write_snapshot(store: &RwLock<Store>) {
    let started = store.write().unwrap_or_else(PoisonError::into_inner).start_snapshot();
    if let Some(snapshot) = started
        && snapshot.run().is_ok()
    {
        let _ = store
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .end_snapshot(&snapshot);
    }
}
