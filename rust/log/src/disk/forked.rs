//! Lets go, in a forked child, of the file locks that belong to its parent.
//!
//! `flock` belongs to the open file, which a fork shares: a sleeping child would keep the lock of a killed parent. So
//! the descriptors of all locks are known here, and the child lets go of them. Opening, noting and closing happen
//! behind a gate that is shut during a fork: a child never has a descriptor that is not noted.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

static GATE: AtomicBool = AtomicBool::new(false);
/// How many forks lie between this process and the one that began.
static FORKS: AtomicU32 = AtomicU32::new(0);
static LOCKS: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// How long to wait between two tries at the gate.
const LOOK: Duration = Duration::from_micros(20);
/// A fork waits no longer than this for a file to be opened: a file system that hangs must not hang everything.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shuts the gate, within some time: no lock is opened until it is opened.
fn shut(patience: Duration) {
    let began = Instant::now();
    while GATE
        .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        if began.elapsed() >= patience {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

fn open() {
    GATE.store(false, Ordering::Release);
}

struct Passage;

impl Passage {
    fn enter() -> Self {
        // A fork takes far less, and one that never ends must not keep a store from opening.
        shut(PATIENCE * 2);
        Self
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        open();
    }
}

fn locks() -> MutexGuard<'static, Vec<RawFd>> {
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Before a fork: waits until no lock is being opened or closed, and prevents it. One of the two below must follow.
pub fn before_fork() {
    shut(PATIENCE);
}

/// After a fork, in the parent.
pub fn after_fork_in_parent() {
    open();
}

/// In a forked child: the descriptors that it shares with its parent. Their owners live on, so they must be replaced.
pub fn after_fork_in_child() -> Vec<RawFd> {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let shared = match LOCKS.try_lock() {
        Ok(mut locks) => std::mem::take(&mut *locks),
        Err(TryLockError::Poisoned(locks)) => std::mem::take(&mut *locks.into_inner()),
        // Only after a fork past the gate: the thread that has it is in the parent.
        Err(TryLockError::WouldBlock) => Vec::new(),
    };
    open();
    shared
}

/// How many forks this process knows of: what was opened at another count belongs to another process.
pub fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// A file that is opened to be locked.
pub(super) struct Lockable(Option<File>);

impl Lockable {
    pub(super) fn of(file: impl FnOnce() -> io::Result<File>) -> io::Result<Self> {
        let _passage = Passage::enter();
        let file = file()?;
        locks().push(file.as_raw_fd());
        Ok(Self(Some(file)))
    }
}

impl Deref for Lockable {
    type Target = File;

    fn deref(&self) -> &File {
        match &self.0 {
            Some(file) => file,
            // INVARIANT: it is only taken when this is dropped.
            None => unreachable!("a lockable file is open for as long as it lives"),
        }
    }
}

impl Drop for Lockable {
    fn drop(&mut self) {
        let _passage = Passage::enter();
        if let Some(file) = self.0.take() {
            let descriptor = file.as_raw_fd();
            locks().retain(|lock| *lock != descriptor);
        }
    }
}
