//! The disk of the operating system.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Dir, OFlags};

use super::forked::Lockable;
use super::reach::Roots;
use super::turn::FolderTurn;
use super::{Access, Disk, DiskFile, Identity, LockFile, Manner, Mapping, Status, Stranger, StrangerKind};

/// The file system of the machine.
#[derive(Debug, Default)]
pub struct RealDisk {
    roots: Roots,
}

impl Disk for RealDisk {
    fn guard(&self, folder: &Path, manner: Manner) {
        self.roots.add(folder, manner);
    }

    fn unguard(&self, folder: &Path) {
        self.roots.remove(folder);
    }

    fn real_path(&self, path: &Path) -> PathBuf {
        path.canonicalize().unwrap_or_else(|_| path.to_owned())
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let file = match access {
            Access::Read => self.roots.place(path)?.open(OFlags::RDONLY)?,
            Access::Write => self.roots.place_to_change(path)?.open(OFlags::RDWR)?,
        };
        Ok(Arc::new(RealFile(file)))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.roots.place_to_change(path)?.create()?;
        Ok(Arc::new(RealFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from = self.roots.place_to_change(from)?;
        from.rename(&self.roots.place_to_change(to)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.roots.place_to_change(path)?.remove()
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.roots.make_folder(path)
    }

    fn create_new_dir(&self, path: &Path) -> io::Result<()> {
        self.roots.place_to_change(path)?.make_new_folder()
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.roots.place_to_change(path)?.remove_folder()
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from = self.roots.place(from)?;
        from.link(&self.roots.place_to_change(to)?)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.roots.folder(path)?.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let folder = match self.roots.folder(path) {
            Ok(folder) => folder,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(fault) => return Err(fault),
        };
        let mut names = Vec::new();
        for entry in Dir::new(OwnedFd::from(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        // Every commit asks: one call to the system, and no look at the folders on the way. What they lead to is opened
        // step by step if it is another file than before.
        let there = fs::symlink_metadata(path)?;
        if there.is_file() {
            return Ok(Status {
                identity: identity_of(&there),
                length: there.len(),
            });
        }
        let is_link = there.file_type().is_symlink();
        Err(Stranger::at(
            path,
            if is_link {
                StrangerKind::Link
            } else {
                StrangerKind::NoFile
            },
        ))
    }

    fn exists(&self, path: &Path) -> bool {
        path.as_os_str().is_empty() || path.symlink_metadata().is_ok()
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn LockFile>> {
        let place = self.roots.place_to_change(path)?;
        let file = Lockable::of(|| place.open_or_create())?;
        Ok(Box::new(RealLock {
            file,
            turn: FolderTurn::at(path),
        }))
    }
}

fn identity_of(metadata: &fs::Metadata) -> Identity {
    Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(identity_of(&self.0.metadata()?))
    }

    fn is_shared(&self) -> io::Result<bool> {
        Ok(self.0.metadata()?.nlink() > 1)
    }

    fn map(&self, length: u64) -> io::Result<Mapping> {
        let there = self.length()?.min(length);
        Mapping::of(&self.0, usize::try_from(there).map_err(io::Error::other)?)
    }
}

struct RealLock {
    file: Lockable,
    turn: FolderTurn,
}

/// A waiting writer looks again after this long at first, and up to [`LONGEST_PAUSE`] later.
/// INVARIANT: the longest is shorter than the gap that a fair writer leaves.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

impl LockFile for RealLock {
    fn acquire(&self, patience: Duration) -> io::Result<bool> {
        if !patience.is_zero()
            && let Some(pause) = self.turn.pause()
        {
            std::thread::sleep(pause.min(patience));
        }
        if self.try_acquire()? {
            return Ok(true);
        }
        let outcome = self.wait(patience);
        self.turn.stop_waiting(!patience.is_zero());
        outcome
    }

    fn waits(&self) -> u64 {
        self.turn.waits()
    }

    fn release(&self) -> io::Result<()> {
        self.turn.release();
        self.file.unlock()
    }

    fn note(&self) -> io::Result<String> {
        let mut bytes = vec![0; 1024];
        let n = self.file.read_at(&mut bytes, 0)?;
        bytes.truncate(n);
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', ' ']).to_owned())
    }

    fn write_note(&self, note: &str) -> io::Result<()> {
        self.file.write_all_at(note.as_bytes(), 0)?;
        self.file.set_len(note.len() as u64)
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(identity_of(&self.file.metadata()?))
    }

    fn is_shared(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.nlink() > 1)
    }
}

impl RealLock {
    fn try_acquire(&self) -> io::Result<bool> {
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) => return Ok(false),
                Err(TryLockError::Error(fault)) if fault.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(fault)) => return Err(fault),
            }
        }
    }

    fn wait(&self, patience: Duration) -> io::Result<bool> {
        let began = Instant::now();
        let mut pause = if self.turn.was_just_here() {
            LONGEST_PAUSE
        } else {
            FIRST_PAUSE
        };
        loop {
            let waited = began.elapsed();
            if waited >= patience {
                return Ok(false);
            }
            self.turn.wait();
            std::thread::sleep(pause.min(patience - waited));
            if self.try_acquire()? {
                return Ok(true);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
