//! What would have survived if the power had failed just now?
//!
//! A disk in memory that remembers, for every file and folder, what was synced and what was not. `crash_at` stops the
//! world at one operation; `after_crash` gives a disk as a machine might find it at the next start: unsynced writes are
//! dropped, torn at sector borders or kept out of order, unsynced names vanish. One seed, one outcome.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Access, Disk, DiskFile, Identity, LockFile};

/// What a disk writes as a whole or not at all.
const SECTOR_BYTES: usize = 512;

/// A disk that can lose what was not synced.
#[derive(Clone, Default)]
pub struct CrashDisk {
    world: Arc<Mutex<World>>,
}

#[derive(Default)]
struct World {
    files: HashMap<u64, Contents>,
    folders: BTreeMap<PathBuf, Folder>,
    locked: BTreeSet<u64>,
    next_inode: u64,
    steps: u64,
    crash_at: Option<u64>,
    fault_at: Option<u64>,
    crashed: bool,
}

#[derive(Clone, Default)]
struct Contents {
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

#[derive(Clone, Default)]
struct Folder {
    live: BTreeMap<String, Entry>,
    durable: BTreeMap<String, Entry>,
    /// Each step is a state of the whole folder: a rename appears as one.
    pending: Vec<BTreeMap<String, Entry>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    File(u64),
    Folder,
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
                Contents {
                    live: survived.clone(),
                    durable: survived,
                    pending: Vec::new(),
                },
            );
        }
        Self {
            world: Arc::new(Mutex::new(next)),
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A folder whose own name was lost takes everything in it along.
fn forget_unnamed_folders(folders: &mut BTreeMap<PathBuf, Folder>) {
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

impl Contents {
    fn survive(&self, dice: &mut Dice) -> Vec<u8> {
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
                Change::Truncate(length) if keep => bytes.truncate(usize::try_from(*length).unwrap_or(usize::MAX)),
                Change::Truncate(_) => {}
                Change::Write(offset, data) => {
                    // The write at which a prefix ends may be torn; in the random style every sector decides for itself.
                    let torn = style == 3 || (style == 2 && index == kept_whole);
                    write_sectors(&mut bytes, *offset, data, |dice| if torn { dice.below(2) == 0 } else { keep }, dice);
                }
            }
        }
        bytes
    }
}

fn write_sectors(bytes: &mut Vec<u8>, offset: u64, data: &[u8], keep: impl Fn(&mut Dice) -> bool, dice: &mut Dice) {
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

fn overwrite(bytes: &mut Vec<u8>, at: usize, data: &[u8]) {
    if bytes.len() < at + data.len() {
        bytes.resize(at + data.len(), 0);
    }
    bytes[at..at + data.len()].copy_from_slice(data);
}

/// A small reproducible source of choices (splitmix64).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

impl World {
    /// Counts one changing operation; `Err` if the world ends here or the operation is to fail.
    fn step(&mut self) -> io::Result<()> {
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

    fn folder(&mut self, path: &Path) -> io::Result<(&mut Folder, String)> {
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

    fn find(&mut self, path: &Path) -> io::Result<u64> {
        let (folder, name) = self.folder(path)?;
        match folder.live.get(&name) {
            Some(Entry::File(inode)) => Ok(*inode),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Folder {
    fn change(&mut self, alter: impl FnOnce(&mut BTreeMap<String, Entry>)) {
        alter(&mut self.live);
        self.pending.push(self.live.clone());
    }
}

impl Disk for CrashDisk {
    fn open(&self, path: &Path, _access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.world().find(path)?;
        Ok(Arc::new(CrashFile {
            disk: self.clone(),
            inode,
        }))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut world = self.world();
        world.step()?;
        let existing = world.find(path).ok();
        let inode = existing.unwrap_or(world.next_inode + 1);
        if existing.is_none() {
            world.next_inode = inode;
            let (folder, name) = world.folder(path)?;
            folder.change(|names| {
                names.insert(name, Entry::File(inode));
            });
        }
        let contents = world.files.entry(inode).or_default();
        contents.live.clear();
        contents.pending.push(Change::Truncate(0));
        Ok(Arc::new(CrashFile {
            disk: self.clone(),
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
        if entry == Entry::Folder {
            let moved: Vec<PathBuf> = world.folders.keys().filter(|p| p.starts_with(from)).cloned().collect();
            for path in moved {
                if let (Some(folder), Ok(rest)) = (world.folders.get(&path).cloned(), path.strip_prefix(from)) {
                    // Both names keep the contents: which one survives is decided by the parent's entries.
                    let target = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
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
        if world.folders.contains_key(path) {
            return Ok(());
        }
        world.step()?;
        let ancestors: Vec<&Path> = path.ancestors().collect();
        for folder in ancestors.into_iter().rev() {
            if world.folders.contains_key(folder) {
                continue;
            }
            world.folders.insert(folder.to_owned(), Folder::default());
            if let Ok((above, name)) = world.folder(folder) {
                above.change(|names| {
                    names.insert(name, Entry::Folder);
                });
            }
        }
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
        let world = self.world();
        Ok(world
            .folders
            .get(path)
            .map(|folder| folder.live.keys().cloned().collect())
            .unwrap_or_default())
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        let inode = self.world().find(path)?;
        Ok(Identity { device: 0, inode })
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
            disk: self.clone(),
            inode,
        }))
    }
}

struct CrashFile {
    disk: CrashDisk,
    inode: u64,
}

impl CrashFile {
    fn with<T>(&self, act: impl FnOnce(&mut Contents) -> T) -> T {
        act(self.disk.world().files.entry(self.inode).or_default())
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
        let was_off = self.disk.crashed();
        let verdict = self.disk.world().step();
        // A write that meets the crash was under way: any part of it may have reached the disk.
        if verdict.is_ok() || (!was_off && self.disk.crashed()) {
            self.with(|contents| {
                overwrite(&mut contents.live, usize::try_from(offset).unwrap_or(usize::MAX), bytes);
                contents.pending.push(Change::Write(offset, bytes.to_vec()));
            });
        }
        verdict
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.disk.world().step()?;
        self.with(|contents| {
            contents.live.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
            contents.pending.push(Change::Truncate(length));
        });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.world().step()?;
        self.with(|contents| {
            contents.durable = contents.live.clone();
            contents.pending.clear();
        });
        Ok(())
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

struct CrashLock {
    disk: CrashDisk,
    inode: u64,
}

impl LockFile for CrashLock {
    fn acquire(&self, _patience: Duration) -> io::Result<bool> {
        Ok(self.disk.world().locked.insert(self.inode))
    }

    fn release(&self) -> io::Result<()> {
        self.disk.world().locked.remove(&self.inode);
        Ok(())
    }

    fn note(&self) -> io::Result<String> {
        let world = self.disk.world();
        let bytes = world.files.get(&self.inode).map(|contents| contents.live.clone());
        Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
    }

    fn write_note(&self, note: &str) -> io::Result<()> {
        let mut world = self.disk.world();
        world.step()?;
        let contents = world.files.entry(self.inode).or_default();
        contents.live = note.as_bytes().to_vec();
        contents.pending.push(Change::Truncate(0));
        contents.pending.push(Change::Write(0, note.as_bytes().to_vec()));
        Ok(())
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(Identity {
            device: 0,
            inode: self.inode,
        })
    }
}
