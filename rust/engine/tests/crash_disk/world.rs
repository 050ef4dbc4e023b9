//! The files and folders of the crash disk, with what of them was synced and what was not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chronomemory::testing::disk::{DiskFile, Identity, LockFile};

/// What a disk writes as a whole or not at all.
pub(super) const SECTOR_BYTES: usize = 512;

#[derive(Default)]
pub(super) struct World {
    pub(super) files: HashMap<u64, FileContents>,
    pub(super) folders: BTreeMap<PathBuf, Folder>,
    pub(super) locked: BTreeSet<u64>,
    pub(super) next_inode: u64,
    pub(super) steps: u64,
    pub(super) crash_at: Option<u64>,
    pub(super) fault_at: Option<u64>,
    pub(super) next_sync_fails: bool,
    pub(super) crashed: bool,
}

/// The world as a disk and its files share it.
#[derive(Clone, Default)]
pub(super) struct SharedWorld(Arc<Mutex<World>>);

impl SharedWorld {
    pub(super) fn of(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub(super) fn look(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Default)]
pub(super) struct FileContents {
    pub(super) live: Vec<u8>,
    pub(super) durable: Vec<u8>,
    pub(super) pending: Vec<PendingChange>,
}

#[derive(Clone)]
pub(super) enum PendingChange {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

#[derive(Clone, Default)]
pub(super) struct Folder {
    pub(super) live: BTreeMap<String, FolderEntry>,
    pub(super) durable: BTreeMap<String, FolderEntry>,
    /// Each step is a state of the whole folder: a rename appears as one.
    pub(super) pending: Vec<BTreeMap<String, FolderEntry>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderEntry {
    File(u64),
    Folder,
}

impl FileContents {
    /// Makes durable what was written since the last sync, and only that: what a failed sync gave up never gets there.
    pub(super) fn settle(&mut self) {
        for change in self.pending.drain(..) {
            match change {
                PendingChange::Truncate(length) => {
                    self.durable.resize(usize::try_from(length).unwrap_or(usize::MAX), 0)
                }
                PendingChange::Write(offset, data) => {
                    overwrite(&mut self.durable, usize::try_from(offset).unwrap_or(usize::MAX), &data);
                }
            }
        }
    }

    pub(super) fn survive(&self, dice: &mut Dice) -> Vec<u8> {
        let style = dice.below(4);
        let kept_whole = dice.below(self.pending.len() + 1);
        let mut bytes = self.durable.clone();
        for (index, change) in self.pending.iter().enumerate() {
            let keep = match style {
                0 => false,
                1 => true,
                2 => index < kept_whole,
                _ => dice.below(2) == 0,
            };
            match change {
                PendingChange::Truncate(length) if keep => {
                    bytes.truncate(usize::try_from(*length).unwrap_or(usize::MAX))
                }
                PendingChange::Truncate(_) => {}
                PendingChange::Write(offset, data) => {
                    // The write at which a prefix ends may be torn; in the random style every sector decides for itself.
                    let torn = style == 3 || (style == 2 && index == kept_whole);
                    write_sectors(
                        &mut bytes,
                        *offset,
                        data,
                        |dice| if torn { dice.below(2) == 0 } else { keep },
                        dice,
                    );
                }
            }
        }
        bytes
    }
}

pub(super) fn write_sectors(
    bytes: &mut Vec<u8>,
    offset: u64,
    data: &[u8],
    keep: impl Fn(&mut Dice) -> bool,
    dice: &mut Dice,
) {
    let mut at = usize::try_from(offset).unwrap_or(usize::MAX);
    let mut rest = data;
    while !rest.is_empty() {
        let room = (SECTOR_BYTES - at % SECTOR_BYTES).min(rest.len());
        let (sector, after) = rest.split_at(room);
        if keep(dice) {
            overwrite(bytes, at, sector);
        }
        at += room;
        rest = after;
    }
}

pub(super) fn overwrite(bytes: &mut Vec<u8>, at: usize, data: &[u8]) {
    if bytes.len() < at + data.len() {
        bytes.resize(at + data.len(), 0);
    }
    bytes[at..at + data.len()].copy_from_slice(data);
}

/// A small reproducible source of choices (splitmix64).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

impl World {
    /// Counts one changing operation; `Err` if the world ends here or the operation is to fail.
    pub(super) fn step(&mut self) -> io::Result<()> {
        if self.crashed {
            return Err(io::Error::other("the machine is off"));
        }
        self.steps += 1;
        if self.crash_at == Some(self.steps) {
            self.crashed = true;
            return Err(io::Error::other("the power failed"));
        }
        if self.fault_at == Some(self.steps) {
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(())
    }

    /// The same for a sync, which may have been told to fail.
    pub(super) fn step_of_sync(&mut self) -> io::Result<()> {
        self.step()?;
        if std::mem::take(&mut self.next_sync_fails) {
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(())
    }

    pub(super) fn folder(&mut self, path: &Path) -> io::Result<(&mut Folder, String)> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .ok_or(io::ErrorKind::InvalidInput)?;
        let folder = path
            .parent()
            .and_then(|parent| self.folders.get_mut(parent))
            .ok_or(io::ErrorKind::NotFound)?;
        Ok((folder, name))
    }

    /// Whether there is such a folder now: one that lost its name is known but not there.
    pub(super) fn has_folder(&self, path: &Path) -> bool {
        self.folders.contains_key(path)
            && match (path.parent(), path.file_name()) {
                (Some(parent), Some(name)) if self.folders.contains_key(parent) => {
                    let named = self.folders[parent].live.get(&*name.to_string_lossy());
                    named == Some(&FolderEntry::Folder) && self.has_folder(parent)
                }
                _ => true,
            }
    }

    pub(super) fn find(&mut self, path: &Path) -> io::Result<u64> {
        let (folder, name) = self.folder(path)?;
        match folder.live.get(&name) {
            Some(FolderEntry::File(inode)) => Ok(*inode),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Folder {
    pub(super) fn change(&mut self, alter: impl FnOnce(&mut BTreeMap<String, FolderEntry>)) {
        alter(&mut self.live);
        self.pending.push(self.live.clone());
    }
}

/// A folder whose own name was lost takes everything in it along.
pub(super) fn forget_unnamed_folders(folders: &mut BTreeMap<PathBuf, Folder>) {
    let paths: Vec<PathBuf> = folders.keys().cloned().collect();
    for path in paths {
        let lost = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => match folders.get(parent) {
                Some(above) => !above.live.contains_key(&*name.to_string_lossy()),
                None => path.components().count() > 1,
            },
            _ => false,
        };
        if lost {
            folders.remove(&path);
        }
    }
}

pub(super) struct CrashFile {
    pub(super) world: SharedWorld,
    pub(super) inode: u64,
}

impl CrashFile {
    fn with<T>(&self, act: impl FnOnce(&mut FileContents) -> T) -> T {
        act(self.world.look().files.entry(self.inode).or_default())
    }
}

impl DiskFile for CrashFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|contents| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(contents.live.len());
            let n = buffer.len().min(contents.live.len() - start);
            buffer[..n].copy_from_slice(&contents.live[start..start + n]);
            Ok(n)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let was_off = self.world.look().crashed;
        let verdict = self.world.look().step();
        // A write that meets the crash was under way: any part of it may have reached the disk.
        if verdict.is_ok() || (!was_off && self.world.look().crashed) {
            self.with(|contents| {
                overwrite(&mut contents.live, usize::try_from(offset).unwrap_or(usize::MAX), bytes);
                contents.pending.push(PendingChange::Write(offset, bytes.to_vec()));
            });
        }
        verdict
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.world.look().step()?;
        self.with(|contents| {
            contents.live.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
            contents.pending.push(PendingChange::Truncate(length));
        });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let was_off = self.world.look().crashed;
        let verdict = self.world.look().step_of_sync();
        match &verdict {
            Ok(()) => self.with(FileContents::settle),
            // The system gives up on what it could not write: the pages count as clean from now on.
            Err(_) if !was_off && !self.world.look().crashed => self.with(|contents| contents.pending.clear()),
            Err(_) => {}
        }
        verdict
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.with(|contents| contents.live.len() as u64))
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(Identity {
            device: 0,
            inode: self.inode,
        })
    }
}

pub(super) struct CrashLock {
    pub(super) world: SharedWorld,
    pub(super) inode: u64,
}

impl LockFile for CrashLock {
    fn acquire(&self, _patience: Duration) -> io::Result<bool> {
        Ok(self.world.look().locked.insert(self.inode))
    }

    fn release(&self) -> io::Result<()> {
        self.world.look().locked.remove(&self.inode);
        Ok(())
    }

    fn note(&self) -> io::Result<String> {
        let world = self.world.look();
        let bytes = world.files.get(&self.inode).map(|contents| contents.live.clone());
        Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
    }

    fn write_note(&self, note: &str) -> io::Result<()> {
        let mut world = self.world.look();
        world.step()?;
        let contents = world.files.entry(self.inode).or_default();
        contents.live = note.as_bytes().to_vec();
        contents.pending.push(PendingChange::Truncate(0));
        contents.pending.push(PendingChange::Write(0, note.as_bytes().to_vec()));
        Ok(())
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(Identity {
            device: 0,
            inode: self.inode,
        })
    }
}
