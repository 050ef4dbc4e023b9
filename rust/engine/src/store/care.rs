//! Who looks after the store, and what did those leave behind who could not finish?
//!
//! Compaction, backup, restore and repair take long, and others must not wait for them. So they ask for the store only for
//! moments ([`Turns`]), and a lock of their own keeps them from each other. Whoever has it knows that unfinished files in
//! `base/`, `archive/` and `backup/` belong to nobody.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::disk::{Disk, LockFile};
use crate::error::{At, Error, Result};
use crate::layout::Layout;

use super::Store;
use super::copies::{IMMUTABLE, VECTORS};
use super::lock::LOCK_FILE_TRIES;

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
    let candidate = turns.turn(|store| store.candidate())?;
    let care = candidate.wait()?;
    turns.turn(|store| store.with_lock_regardless(now, |store| sweep(&*store.disk, &store.layout)))?;
    Ok(care)
}

/// What it takes to wait for the care of a store.
struct Candidate {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    patience: Duration,
    signature: String,
}

impl Candidate {
    fn wait(&self) -> Result<Care> {
        let path = &self.path;
        for _ in 0..LOCK_FILE_TRIES {
            let lock = self.disk.lock_file(path).at(path)?;
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

impl Store {
    fn candidate(&mut self) -> Result<Candidate> {
        self.check_open()?;
        self.check_poison()?;
        // After this the folder is there, and with it the place for the other lock.
        self.with_lock_for_a_moment(self.options.lock_timeout, |_| Ok(()))?;
        Ok(Candidate {
            disk: Arc::clone(&self.disk),
            path: self.layout.care_lock(),
            patience: self.options.lock_timeout,
            signature: self.options.signature.clone(),
        })
    }
}

/// Removes what unfinished work left behind. Both locks are held: nobody is at work on any of it.
fn sweep(disk: &dyn Disk, layout: &Layout) -> Result<()> {
    for folder in IMMUTABLE {
        remove_drafts(disk, &layout.inside(folder))?;
    }
    if is_folder(disk, &layout.vectors()) {
        remove_drafts(disk, &layout.vectors())?;
    }
    remove_drafts(disk, &layout.quarantine())?;
    let backups = layout.backups();
    for name in disk.list(&backups).at(&backups)? {
        if is_draft(&name) {
            remove_backup(disk, &backups.join(name))?;
        }
    }
    Ok(())
}

fn is_draft(name: &str) -> bool {
    name.ends_with(".tmp")
}

fn remove_drafts(disk: &dyn Disk, folder: &Path) -> Result<()> {
    for name in disk.list(folder).at(folder)? {
        let path = folder.join(&name);
        // A folder in this place is somebody else's.
        if is_draft(&name) && !is_folder(disk, &path) {
            disk.remove(&path).at(&path)?;
        }
    }
    Ok(())
}

pub(super) fn is_folder(disk: &dyn Disk, path: &Path) -> bool {
    disk.exists(path) && disk.list(path).is_ok()
}

/// Removes a backup that was not finished: its folder, and the folders in it.
pub(super) fn remove_backup(disk: &dyn Disk, draft: &Path) -> Result<()> {
    for inner in IMMUTABLE.into_iter().chain([VECTORS]) {
        let inner = draft.join(inner);
        if disk.exists(&inner) {
            remove_all(disk, &inner)?;
        }
    }
    remove_all(disk, draft)
}

fn remove_all(disk: &dyn Disk, folder: &Path) -> Result<()> {
    for name in disk.list(folder).at(folder)? {
        let path = folder.join(name);
        disk.remove(&path).at(&path)?;
    }
    disk.remove_dir(folder).at(folder)
}

/// A file that is removed unless it is given its name.
pub(super) struct Scratch {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    is_named: bool,
}

impl Scratch {
    /// Watches over a file that is about to be written.
    pub fn at(disk: &Arc<dyn Disk>, path: PathBuf) -> Self {
        Self {
            disk: Arc::clone(disk),
            path,
            is_named: false,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, durably.
    ///
    /// # Errors
    /// `Io`.
    pub fn name(mut self, path: &Path) -> Result<()> {
        self.disk.rename(&self.path, path).at(path)?;
        self.is_named = true;
        match path.parent() {
            Some(folder) => self.disk.sync_dir(folder).at(folder),
            None => Ok(()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_named {
            // What is left is swept away by whoever looks after the store next.
            let _ = self.disk.remove(&self.path);
        }
    }
}
