//! The lock of those who look after a store, and the removal of what others left unfinished.
//!
//! Compaction, backup, restore and repair take long, and others must not wait for them. So they ask for the store only for
//! moments ([`Turns`]), and a lock of their own keeps them from each other. Whoever has it knows that unfinished files in
//! `base/`, `archive/` and `backup/` belong to nobody.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chronolog::disk::{Disk, LockFile};
use chronolog::error::{At, Error, Result};
use chronolog::layout::{
    Layout, Shape, is_archive_draft, is_archive_file, is_backup_draft, is_base_draft, is_base_file, is_in_draft,
    is_quarantine_draft, is_rows_draft, is_rows_file,
};
use chronolog::log::files::{is_folder, remove_ours};
use chronolog::log::{LOCK_FILE_TRIES, check_note};

use super::Store;
use super::load::tails::check_no_tail_is_left;

/// Whoever can be asked for the store, a moment at a time.
pub trait Turns {
    /// Runs something on the store while nobody else uses it.
    ///
    /// # Errors
    /// What `act` says.
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T>;
}

/// A store that nobody shares.
pub(super) struct Alone<'a>(RefCell<&'a mut Store>);

impl<'a> Alone<'a> {
    pub fn with(store: &'a mut Store) -> Self {
        Self(RefCell::new(store))
    }
}

impl Turns for Alone<'_> {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        act(&mut self.0.borrow_mut())
    }
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
    let candidate = turns.turn(CareWaiter::of)?;
    let care = candidate.wait()?;
    turns.turn(|store| store.with_lock_sparing_tail(now, |store| sweep(&*store.site.disk, &store.site.layout)))?;
    Ok(care)
}

/// What it takes to wait for the care of a store.
struct CareWaiter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    patience: Duration,
    signature: String,
}

impl CareWaiter {
    /// After this the folder is there, and with it the place for the lock.
    fn of(store: &mut Store) -> Result<Self> {
        store.check_open()?;
        store.log.check_poison()?;
        store.log.with_lock_for_a_moment(|_| Ok(()))?;
        Ok(Self {
            disk: Arc::clone(&store.site.disk),
            path: store.site.layout.care_lock(),
            patience: store.options.lock_timeout,
            signature: store.options.signature.clone(),
        })
    }

    fn wait(&self) -> Result<Care> {
        let path = &self.path;
        for _ in 0..LOCK_FILE_TRIES {
            let lock = self.disk.lock_file(path).at(path)?;
            check_note(&*lock, path)?;
            if !lock.acquire(self.patience).at(path)? {
                return Err(Error::Locked {
                    holder: lock.note().unwrap_or_default(),
                    path: path.clone(),
                });
            }
            let care = Care { lock };
            let identity = care.lock.identity().at(path)?;
            if self.disk.status(path).is_ok_and(|now| now.identity == identity) {
                care.lock.write_note(&self.signature).at(path)?;
                return Ok(care);
            }
        }
        Err(Error::io(path, io::Error::other("the lock file keeps being replaced")))
    }
}

/// Before a compaction: whether the log ends in a tail with whole events, which the next writer would move aside.
///
/// # Errors
/// `Refused` if so; `Io`, `Locked`, `Closed`.
pub(super) fn check_tail_at_the_end(store: &mut Store) -> Result<()> {
    store.refresh()?;
    if store.log.report().tail.as_ref().is_none_or(|tail| tail.events == 0) || store.log.check_poison().is_err() {
        return Ok(());
    }
    // Without the lock it may have been somebody's write that was not done.
    store.with_lock_for_a_moment(|store| {
        store.reload(&mut |_, _| {})?;
        check_no_tail_is_left(&store.site, &store.log)
    })
}

/// Removes what unfinished work left behind. Both locks are held: nobody is at work on any of it.
fn sweep(disk: &dyn Disk, layout: &Layout) -> Result<()> {
    remove_ours(disk, &layout.bases(), is_base_draft)?;
    remove_ours(disk, &layout.archives(), is_archive_draft)?;
    remove_ours(disk, &layout.vectors(), is_rows_draft)?;
    remove_ours(disk, &layout.quarantine(), is_quarantine_draft)?;
    let backups = layout.backups();
    if is_folder(disk, &backups) {
        for name in disk.list(&backups).at(&backups)? {
            let path = backups.join(&name);
            if is_backup_draft(&name) && is_folder(disk, &path) {
                remove_backup(disk, &path)?;
            }
        }
    }
    Ok(())
}

/// Removes a backup that was not finished: its files, and the folders that are empty then. What somebody else put there
/// stays.
pub(super) fn remove_backup(disk: &dyn Disk, draft: &Path) -> Result<()> {
    let inside = Layout::of_folder(draft.to_owned());
    let folders: [(PathBuf, Shape); 4] = [
        (inside.bases(), |name| is_base_file(name) || is_base_draft(name)),
        (inside.archives(), |name| {
            is_archive_file(name) || is_archive_draft(name)
        }),
        (inside.vectors(), |name| is_rows_file(name) || is_rows_draft(name)),
        (draft.to_owned(), is_in_draft),
    ];
    for (folder, is_named_so) in folders {
        remove_ours(disk, &folder, is_named_so)?;
        if is_folder(disk, &folder) && disk.list(&folder).at(&folder)?.is_empty() {
            disk.remove_dir(&folder).at(&folder)?;
        }
    }
    Ok(())
}
