//! Who looks after a store between calls? A thread of its own, asleep unless something was written: it syncs when nobody
//! writes any more, writes snapshots while others go on, and gives back a lock that was kept for commits that never came.
//! What takes longer than others may wait for, sealing the index of the text, it leaves to another thread.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{JoinHandle, ScopedJoinHandle};
use std::time::{Duration, Instant};

use chronomemory::error::{Error, Result};
use chronomemory::store::{Needs, Shared, Syncing, seal_text};

use crate::handle::now;

/// Writes wait at most a second for their sync; the thread looks a little earlier.
const PATIENCE: Duration = Duration::from_millis(900);
/// `normal` leaves at most four mebibytes unsynced; from half of that on the thread does not wait. The rest is for what is
/// written while it syncs.
const URGENT_BYTES: u64 = 2 * 1024 * 1024;
/// How soon a lock that was kept is looked at.
const LEASE_LOOK: Duration = Duration::from_millis(1);

/// Something was written.
const WRITTEN: u8 = 1;
/// So much that a second is too long.
const URGENT: u8 = 2;
/// A lock is kept.
const LEASED: u8 = 4;
/// A snapshot is due.
const SNAPSHOT: u8 = 8;
/// The index of the text should be sealed again.
const SEALING: u8 = 16;

/// What the thread is asked for; a bit stays until the thread has begun to act on it.
pub struct Wishes {
    bits: AtomicU8,
    stopped: Mutex<bool>,
    moved: Condvar,
}

/// The thread.
pub struct Flusher {
    wishes: Arc<Wishes>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// Starts the thread.
    pub fn start(store: Arc<Shared>) -> std::io::Result<Self> {
        let wishes = Arc::new(Wishes {
            bits: AtomicU8::new(0),
            stopped: Mutex::new(false),
            moved: Condvar::new(),
        });
        let seen = Arc::clone(&wishes);
        let thread = std::thread::Builder::new()
            .name("chronomemory-sync".to_owned())
            .spawn(move || run(&seen, &store))?;
        Ok(Self {
            wishes,
            thread: Some(thread),
        })
    }

    /// How to reach the thread, also when it is no more.
    pub fn wishes(&self) -> Arc<Wishes> {
        Arc::clone(&self.wishes)
    }

    /// Ends the thread.
    pub fn stop(&mut self) {
        *self.wishes.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wishes.moved.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been reported already; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl Wishes {
    /// Tells the thread what the store needs.
    pub fn tell(&self, needs: Needs) {
        let wish = |bit: u8, wanted: bool| if wanted { bit } else { 0 };
        let bits = wish(WRITTEN, needs.unsynced_bytes > 0)
            | wish(URGENT, needs.unsynced_bytes >= URGENT_BYTES)
            | wish(LEASED, needs.leased)
            | wish(SNAPSHOT, needs.snapshot)
            | wish(SEALING, needs.sealing);
        if bits & !self.bits.load(Ordering::Relaxed) != 0 {
            // Under the mutex, or the thread could miss it between its look and its sleep.
            let _stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
            self.bits.fetch_or(bits, Ordering::Relaxed);
            self.moved.notify_one();
        }
    }

    /// Sleeps until there is a wish beside those that are known, or for so long; gives the wishes, `None` at the end.
    fn wait(&self, known: u8, patience: Option<Duration>) -> Option<u8> {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing_new = |stopped: &mut bool| !*stopped && self.bits.load(Ordering::Relaxed) & !known == 0;
        let stopped = match patience {
            None => self
                .moved
                .wait_while(stopped, nothing_new)
                .unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                let waited = self.moved.wait_timeout_while(stopped, patience, nothing_new);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        (!*stopped).then(|| self.bits.load(Ordering::Relaxed))
    }

    fn taken_up(&self, bits: u8) {
        self.bits.fetch_and(!bits, Ordering::Relaxed);
    }
}

fn run(wishes: &Wishes, store: &Shared) {
    std::thread::scope(|scope| attend(wishes, store, scope));
}

fn attend<'scope>(wishes: &Wishes, store: &'scope Shared, scope: &'scope std::thread::Scope<'scope, '_>) {
    let mut known = 0;
    let mut sealing: Option<ScopedJoinHandle<'_, ()>> = None;
    let (mut written, mut outdated) = (Instant::now(), Instant::now());
    loop {
        let patience = if known & LEASED != 0 {
            Some(LEASE_LOOK)
        } else {
            let left = |bit: u8, since: Instant| (known & bit != 0).then(|| PATIENCE.saturating_sub(since.elapsed()));
            left(WRITTEN, written).into_iter().chain(left(SNAPSHOT, outdated)).min()
        };
        let Some(wished) = wishes.wait(known, patience) else {
            return;
        };
        let fresh = wished & !known;
        if fresh & WRITTEN != 0 {
            written = Instant::now();
        }
        if fresh & SNAPSHOT != 0 {
            outdated = Instant::now();
        }
        known = wished;
        let mut done = 0;
        if known & LEASED != 0 && is_given_back(store, wishes) {
            done |= LEASED;
        }
        if known & URGENT != 0 || known & WRITTEN != 0 && written.elapsed() >= PATIENCE {
            done |= WRITTEN | URGENT;
            wishes.taken_up(WRITTEN | URGENT);
            sync(store, wishes);
        }
        // Whoever writes much at once gets one snapshot of it, afterwards, and not one at each step on the way.
        if known & SNAPSHOT != 0 && outdated.elapsed() >= PATIENCE {
            done |= SNAPSHOT;
            wishes.taken_up(SNAPSHOT);
            write_snapshot(store);
        }
        if known & SEALING != 0 {
            done |= SEALING;
            wishes.taken_up(SEALING);
            if sealing.as_ref().is_none_or(ScopedJoinHandle::is_finished) {
                let seal = || drop(seal_text(store));
                sealing = std::thread::Builder::new().spawn_scoped(scope, seal).ok();
            }
        }
        known &= !done;
    }
}

/// Ends the lease unless commits go on; the wish is taken back while nobody can renew it.
fn is_given_back(store: &Shared, wishes: &Wishes) -> bool {
    let Some(mut store) = store.tending_at_once() else {
        return false;
    };
    let ended = !store.end_lease(now());
    if ended {
        wishes.taken_up(LEASED);
    }
    ended
}

/// Syncs without keeping anyone from reading or writing meanwhile. A failure poisons the store: the next write says so.
fn sync(store: &Shared, wishes: &Wishes) {
    let Some(syncing) = store.looking().start_sync() else {
        return;
    };
    let outcome = wait_for_disk(store, wishes, &syncing);
    let _ = store.tending().end_sync(&syncing, outcome);
}

/// Lets another thread wait for the disk: someone has to end leases meanwhile.
fn wait_for_disk(store: &Shared, wishes: &Wishes, syncing: &Syncing) -> Result<()> {
    let here = std::thread::current();
    std::thread::scope(|scope| {
        let wait = || {
            let outcome = syncing.run();
            here.unpark();
            outcome
        };
        match std::thread::Builder::new().spawn_scoped(scope, wait) {
            Ok(waiting) => {
                while !waiting.is_finished() {
                    std::thread::park_timeout(LEASE_LOOK);
                    is_given_back(store, wishes);
                }
                let died = || std::io::Error::other("the thread that waits for the disk died");
                waiting
                    .join()
                    .unwrap_or_else(|_| Err(Error::io(syncing.path(), died())))
            }
            Err(_) => {
                store.tending().leave_alone(true);
                let outcome = syncing.run();
                store.tending().leave_alone(false);
                outcome
            }
        }
    })
}

/// Writes a snapshot that is due. It is derived: if that fails, nothing is lost.
fn write_snapshot(store: &Shared) {
    let mut held = store.tending();
    if let Some(snapshot) = held.start_snapshot() {
        held.leave_alone(true);
        drop(held);
        let written = snapshot.run();
        held = store.tending();
        if written.is_ok() {
            let _ = held.end_snapshot(&snapshot);
        }
        held.leave_alone(false);
    }
}
