//! The maintenance lock, and the removal of what others left unfinished.
//!
//! Compaction, backup, restore and repair use the store only for moments ([`Turns`]) and exclude each other by a lock of
//! their own. Under it unfinished files in `base/`, `archive/` and `backup/` are leftovers.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chronolog::disk::{Disk, LockFile};
use chronolog::error::{At, Error, Result};
use chronolog::layout::{Layout, is_backup_draft, is_quarantine_draft};
use chronolog::log::files::{is_folder, remove_ours};
use chronolog::log::{LOCK_FILE_TRIES, check_note};

use super::Store;
use super::files::erasing::remove_draft;
use super::files::proofs::parts_of;
use super::follow::LockPurpose;
use super::load::tails::check_no_tail_is_left;

/// Gives the store for a moment at a time.
pub trait Turns {
    /// Runs something on the store alone.
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T>;
}

/// A store that is not shared.
pub struct Alone<'a>(RefCell<&'a mut Store>);

impl<'a> Alone<'a> {
    /// For its owner.
    pub fn with(store: &'a mut Store) -> Self {
        Self(RefCell::new(store))
    }
}

impl Turns for Alone<'_> {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        act(&mut self.0.borrow_mut())
    }
}

/// A store during long work: others go on between the moments at which it is used.
pub(super) struct StoreAccess<'a, T> {
    turns: &'a T,
    now: &'a dyn Fn() -> i64,
    /// The writer lock is held all the time: others wait.
    is_locked: bool,
}

impl<'a, T: Turns> StoreAccess<'a, T> {
    /// Takes the writer lock for moments only.
    pub fn shared(turns: &'a T, now: &'a dyn Fn() -> i64) -> Self {
        Self {
            turns,
            now,
            is_locked: false,
        }
    }

    /// Under the lock, which stays held.
    pub fn locked_for_good(turns: &'a T, now: &'a dyn Fn() -> i64) -> Self {
        Self {
            is_locked: true,
            ..Self::shared(turns, now)
        }
    }

    pub fn look<U>(&self, act: impl FnOnce(&mut Store) -> Result<U>) -> Result<U> {
        self.turns.turn(|store| {
            if !self.is_locked {
                store.refresh()?;
            }
            store.settle();
            act(store)
        })
    }

    /// Runs something under the writer lock, with the current time.
    pub fn locked<U>(&self, act: impl FnOnce(&mut Store, i64) -> Result<U>) -> Result<U> {
        self.turns.turn(|store| {
            let now = (self.now)();
            let act = |store: &mut Store| {
                store.settle();
                act(store, now)
            };
            match self.is_locked {
                true => act(store),
                false => store.with_lock(now, act),
            }
        })
    }

    /// Syncs what was appended, so that little of it is left to sync under the lock.
    pub fn sync(&self) -> Result<()> {
        match self.is_locked {
            true => Ok(()),
            false => sync(self.turns),
        }
    }
}

/// Syncs while others go on, so that little is left to sync under the lock.
pub(super) fn sync(turns: &impl Turns) -> Result<()> {
    let Some(syncing) = turns.turn(|store| Ok(store.start_sync()))? else {
        return Ok(());
    };
    let outcome = syncing.run();
    turns.turn(|store| store.end_sync(&syncing, outcome))
}

/// The care of a store; it ends with this value.
pub(super) struct Care {
    lock: Box<dyn LockFile>,
}

impl Drop for Care {
    fn drop(&mut self) {
        // Closing the descriptor gives the lock back where unlocking does not.
        let _ = self.lock.release();
    }
}

/// Waits for the care of the store, without keeping the store meanwhile, and clears away what was left unfinished.
pub(super) fn take_care(turns: &impl Turns, now: i64) -> Result<Care> {
    let (site, patience, signature) = turns.turn(|store| {
        store.check_open()?;
        store.log.check_poison()?;
        // After this the folder is there, and with it the place for the lock.
        store.log.with_lock_for_a_moment(|_| Ok(()))?;
        let options = &store.options;
        Ok((Arc::clone(&store.site), options.lock_timeout, options.signature.clone()))
    })?;
    let care = wait_for_care(&*site.disk, &site.layout.care_lock(), patience, &signature)?;
    turns.turn(|store| {
        store.with_lock_to(LockPurpose::Judge, now, |store| {
            sweep(&*store.site.disk, &store.site.layout)
        })
    })?;
    Ok(care)
}

fn wait_for_care(disk: &dyn Disk, path: &Path, patience: Duration, signature: &str) -> Result<Care> {
    for _ in 0..LOCK_FILE_TRIES {
        let lock = disk.lock_file(path).at(path)?;
        check_note(&*lock, path)?;
        if !lock.acquire(patience).at(path)? {
            return Err(Error::Locked {
                holder: lock.note().unwrap_or_default(),
                path: path.to_owned(),
            });
        }
        let care = Care { lock };
        let identity = care.lock.identity().at(path)?;
        if disk.status(path).is_ok_and(|now| now.identity == identity) {
            care.lock.write_note(signature).at(path)?;
            return Ok(care);
        }
    }
    Err(Error::io(path, io::Error::other("the lock file keeps being replaced")))
}

/// Before a compaction: refuses a log with a tail of whole events, which the next writer would move aside.
pub(super) fn check_tail_at_the_end(store: &mut Store) -> Result<()> {
    store.refresh()?;
    if store.log.report.tail.as_ref().is_none_or(|tail| tail.events == 0) || store.log.check_poison().is_err() {
        return Ok(());
    }
    // Without the lock it may be a write that is not done.
    store.with_lock_for_a_moment(|store| {
        store.reload(&mut |_, _| {})?;
        check_no_tail_is_left(&store.site, &store.log)
    })
}

/// Removes what unfinished work left behind. Both locks are held, so none of it is in use.
fn sweep(disk: &dyn Disk, layout: &Layout) -> Result<()> {
    for (folder, _, is_draft) in parts_of(layout) {
        remove_ours(disk, &folder, is_draft)?;
    }
    remove_ours(disk, &layout.quarantine(), is_quarantine_draft)?;
    let backups = layout.backups();
    if is_folder(disk, &backups) {
        for name in disk.list(&backups).at(&backups)? {
            if is_backup_draft(&name) {
                remove_draft(disk, &backups.join(&name))?;
            }
        }
    }
    Ok(())
}
