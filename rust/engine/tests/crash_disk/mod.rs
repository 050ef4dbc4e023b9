//! A disk in memory that loses what was not synced.
//!
//! It records for every file and folder what was synced and what was not. `crash_at` stops the world at one operation; `after_crash` gives a disk as a machine might find it at the next start: unsynced writes are
//! dropped, torn at sector borders or kept out of order, unsynced names vanish. One seed, one outcome.

mod world;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

use world::{
    CrashFile, CrashLock, Dice, FileContents, Folder, FolderEntry, SharedWorld, World, forget_unnamed_folders,
};

use chronomemory::testing::disk::{Access, Disk, DiskFile, Identity, LockFile, Status};

/// A disk that can lose what was not synced.
#[derive(Clone, Default)]
pub struct CrashDisk {
    world: SharedWorld,
}

impl CrashDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations that change something were asked for so far.
    pub fn steps(&self) -> u64 {
        self.world().steps
    }

    /// Stops the world at this operation: it fails, perhaps half done, and so does all that follows.
    pub fn crash_at(&self, step: u64) {
        self.world().crash_at = Some(step);
    }

    /// Lets one operation fail with an I/O error; the world goes on.
    pub fn fail_at(&self, step: u64) {
        self.world().fault_at = Some(step);
    }

    /// Lets the next sync of a file fail; what it should have made durable never will be, though it can still be read.
    pub fn fail_next_sync(&self) {
        self.world().next_sync_fails = true;
    }

    /// Whether the crash has happened.
    pub fn crashed(&self) -> bool {
        self.world().crashed
    }

    /// The disk as the next start might find it.
    pub fn after_crash(&self, seed: u64) -> Self {
        let world = self.world();
        let mut dice = Dice::new(seed);
        let mut next = World {
            next_inode: world.next_inode,
            ..World::default()
        };
        for (path, folder) in &world.folders {
            let mut states = vec![&folder.durable];
            states.extend(&folder.pending);
            let kept = states[dice.below(states.len())].clone();
            next.folders.insert(
                path.clone(),
                Folder {
                    live: kept.clone(),
                    durable: kept,
                    pending: Vec::new(),
                },
            );
        }
        forget_unnamed_folders(&mut next.folders);
        let mut inodes: Vec<_> = world.files.keys().copied().collect();
        inodes.sort_unstable();
        for inode in inodes {
            let survived = world.files[&inode].survive(&mut dice);
            next.files.insert(
                inode,
                FileContents {
                    live: survived.clone(),
                    durable: survived,
                    pending: Vec::new(),
                },
            );
        }
        Self {
            world: SharedWorld::of(next),
        }
    }

    /// The disk after the process died and the machine went on: nothing is lost, no lock is held.
    pub fn after_kill(&self) -> Self {
        let world = self.world();
        let next = World {
            files: world.files.clone(),
            folders: world.folders.clone(),
            next_inode: world.next_inode,
            ..World::default()
        };
        Self {
            world: SharedWorld::of(next),
        }
    }

    /// A number for what can be read from it now, names and bytes: disks that differ there have different ones.
    pub fn fingerprint(&self) -> u64 {
        let world = self.world();
        let mut hasher = DefaultHasher::new();
        for (path, folder) in world.folders.iter().filter(|(path, _)| world.has_folder(path)) {
            path.hash(&mut hasher);
            folder.live.len().hash(&mut hasher);
            for (name, entry) in &folder.live {
                name.hash(&mut hasher);
                if let FolderEntry::File(inode) = entry {
                    world.files.get(inode).map(|file| &file.live).hash(&mut hasher);
                }
            }
        }
        hasher.finish()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.look()
    }
}

impl Disk for CrashDisk {
    fn open(&self, path: &Path, _access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.world().find(path)?;
        Ok(Arc::new(CrashFile {
            world: self.world.clone(),
            inode,
        }))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut world = self.world();
        world.step()?;
        let inode = world.next_inode + 1;
        world.next_inode = inode;
        let is_there = world.find(path).is_ok();
        let (folder, name) = world.folder(path)?;
        if is_there {
            folder.change(|names| {
                names.remove(&name);
            });
        }
        folder.change(|names| {
            names.insert(name, FolderEntry::File(inode));
        });
        world.files.entry(inode).or_default();
        Ok(Arc::new(CrashFile {
            world: self.world.clone(),
            inode,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.step()?;
        let (source, old) = world.folder(from)?;
        let entry = *source.live.get(&old).ok_or(io::ErrorKind::NotFound)?;
        if from.parent() == to.parent() {
            let (folder, new) = world.folder(to)?;
            folder.change(|names| {
                names.remove(&old);
                names.insert(new, entry);
            });
        } else {
            let (folder, new) = world.folder(to)?;
            folder.change(|names| {
                names.insert(new, entry);
            });
            let (folder, _) = world.folder(from)?;
            folder.change(|names| {
                names.remove(&old);
            });
        }
        if entry == FolderEntry::Folder {
            let moved: Vec<PathBuf> = world.folders.keys().filter(|p| p.starts_with(from)).cloned().collect();
            for path in moved {
                if let (Some(folder), Ok(rest)) = (world.folders.get(&path).cloned(), path.strip_prefix(from)) {
                    // Both names keep the contents: which one survives is decided by the parent's entries.
                    let target = if rest.as_os_str().is_empty() {
                        to.to_owned()
                    } else {
                        to.join(rest)
                    };
                    world.folders.insert(target, folder);
                }
            }
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.step()?;
        world.find(path)?;
        let (folder, name) = world.folder(path)?;
        folder.change(|names| {
            names.remove(&name);
        });
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        if world.has_folder(path) {
            return Ok(());
        }
        world.step()?;
        let ancestors: Vec<&Path> = path.ancestors().collect();
        for folder in ancestors.into_iter().rev() {
            if world.has_folder(folder) {
                continue;
            }
            world.folders.insert(folder.to_owned(), Folder::default());
            if let Ok((above, name)) = world.folder(folder) {
                above.change(|names| {
                    names.insert(name, FolderEntry::Folder);
                });
            }
        }
        Ok(())
    }

    fn create_new_dir(&self, path: &Path) -> io::Result<()> {
        match self.exists(path) {
            true => Err(io::ErrorKind::AlreadyExists.into()),
            false => self.create_dir(path),
        }
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.step()?;
        if world.folders.get(path).is_none_or(|folder| !folder.live.is_empty()) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (above, name) = world.folder(path)?;
        above.change(|names| {
            names.remove(&name);
        });
        // What it held stays known: its name may come back with a crash.
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.step()?;
        let inode = world.find(from)?;
        let (folder, name) = world.folder(to)?;
        if folder.live.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        folder.change(|names| {
            names.insert(name, FolderEntry::File(inode));
        });
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.step()?;
        let folder = world.folders.get_mut(path).ok_or(io::ErrorKind::NotFound)?;
        folder.durable = folder.live.clone();
        folder.pending.clear();
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut world = self.world();
        if !world.has_folder(path) && world.find(path).is_ok() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let names = world
            .folders
            .get(path)
            .map(|folder| folder.live.keys().cloned().collect());
        Ok(names.unwrap_or_default())
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        let mut world = self.world();
        let inode = world.find(path)?;
        let length = world.files.get(&inode).map_or(0, |contents| contents.live.len() as u64);
        Ok(Status {
            identity: Identity { device: 0, inode },
            length,
        })
    }

    fn exists(&self, path: &Path) -> bool {
        let mut world = self.world();
        world.has_folder(path) || world.find(path).is_ok()
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn LockFile>> {
        let inode = self.world().find(path);
        let inode = match inode {
            Ok(inode) => inode,
            Err(_) => {
                self.create(path)?;
                self.world().find(path)?
            }
        };
        Ok(Box::new(CrashLock {
            world: self.world.clone(),
            inode,
        }))
    }
}
