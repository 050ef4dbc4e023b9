//! Lets writers take turns at the lock when one of them is always faster than the others.
//!
//! A writer that lets go of the lock and takes it again at once leaves a gap of microseconds; those who wait look only
//! every millisecond or two and might never hit it. So whoever waits says so, by a shared `flock` on the store's folder.
//! A writer that has had the lock for its share of time looks whether someone does, and if so pauses for longer than the
//! others sleep. And who had the lock a moment ago waits without hurry: otherwise two writers could hand it to and fro
//! for ever, each quicker than those who have waited for long. Who is alone never pauses, and looks only once in a share.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use super::forked::Lockable;

/// For how long a writer may go on taking the lock while others wait.
const SHARE: Duration = Duration::from_millis(8);

/// A gap of this length, with the lock free, is one that every waiting writer has seen.
const FAIR_GAP: Duration = Duration::from_millis(3);

/// Who had the lock within this time has no hurry.
const A_MOMENT_AGO: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct FolderTurn {
    folder: PathBuf,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// Since when this writer has taken the lock again and again.
    since: Option<Instant>,
    released: Option<Instant>,
    /// The folder, on a handle of this writer's own.
    sign: Option<Lockable>,
    /// How often it had to wait.
    waits: u64,
}

impl FolderTurn {
    pub(super) fn at(lock: &Path) -> Self {
        Self {
            folder: lock.parent().map(Path::to_owned).unwrap_or_default(),
            taken: Mutex::default(),
        }
    }

    /// How long this writer should leave the lock alone before it takes it again.
    pub(super) fn pause(&self) -> Option<Duration> {
        let mut taken = self.taken();
        let now = Instant::now();
        let since = *taken.since.get_or_insert(now);
        if taken.released.is_none_or(|released| now - released >= FAIR_GAP) {
            taken.since = Some(now);
            return None;
        }
        if now - since < SHARE {
            return None;
        }
        taken.since = Some(now);
        taken.others_wait(&self.folder).then_some(FAIR_GAP)
    }

    /// Whether this writer had the lock a moment ago.
    pub(super) fn was_just_here(&self) -> bool {
        let released = self.taken().released;
        released.is_some_and(|released| released.elapsed() < A_MOMENT_AGO)
    }

    /// This writer waits: others shall know. Without a sign it waits all the same, only less lucky.
    pub(super) fn wait(&self) {
        if let Some(sign) = self.taken().sign(&self.folder) {
            let _ = sign.try_lock_shared();
        }
    }

    /// How often this writer waited.
    pub(super) fn waits(&self) -> u64 {
        self.taken().waits
    }

    /// This writer waits no more; a new turn begins. Who has no patience only looked, and did not wait.
    pub(super) fn stop_waiting(&self, has_waited: bool) {
        let mut taken = self.taken();
        taken.waits += u64::from(has_waited);
        taken.since = Some(Instant::now());
        if let Some(sign) = &taken.sign {
            let _ = sign.unlock();
        }
    }

    pub(super) fn release(&self) {
        self.taken().released = Some(Instant::now());
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn sign(&mut self, folder: &Path) -> Option<&File> {
        if self.sign.is_none() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let open = || {
                rustix::fs::open(folder, flags, Mode::empty())
                    .map(File::from)
                    .map_err(Into::into)
            };
            self.sign = Lockable::of(open).ok();
        }
        self.sign.as_deref()
    }

    fn others_wait(&mut self, folder: &Path) -> bool {
        match self.sign(folder).map(File::try_lock) {
            Some(Ok(())) => {
                if let Some(sign) = &self.sign {
                    let _ = sign.unlock();
                }
                false
            }
            Some(Err(std::fs::TryLockError::WouldBlock)) => true,
            _ => false,
        }
    }
}
