//! How is the operating system asked?

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::forked::Lockable;
use super::turn::Turn;
use super::{Access, Disk, DiskFile, Identity, LockFile, Mapping, Status};

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let file = open_plain(path, OpenOptions::new().write(access == Access::Write))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = open_plain(path, OpenOptions::new().write(true).create(true).truncate(true))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        // Unlike opening a file, opening a folder is not tried again by the standard library after a signal.
        let entries = loop {
            match fs::read_dir(path) {
                Ok(entries) => break entries,
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
                Err(fault) => return Err(fault),
            }
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        fs::metadata(path).map(|metadata| Status {
            identity: identity_of(&metadata),
            length: metadata.len(),
        })
    }

    fn exists(&self, path: &Path) -> bool {
        path.as_os_str().is_empty() || path.exists()
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn LockFile>> {
        let options = || OpenOptions::new().write(true).create(true).truncate(false).clone();
        let file = Lockable::of(|| open_plain(path, &mut options()))?;
        Ok(Box::new(RealLock {
            file,
            turn: Turn::at(path),
        }))
    }
}

/// Opens a file, and nothing else: a pipe in its place would keep whoever opens it waiting for ever.
fn open_plain(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this is not a regular file",
        ));
    }
    options.read(true).open(path)
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

    fn map(&self, length: u64) -> io::Result<Mapping> {
        let there = self.length()?.min(length);
        Mapping::of(&self.0, usize::try_from(there).map_err(io::Error::other)?)
    }
}

struct RealLock {
    file: Lockable,
    turn: Turn,
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
        self.turn.stop_waiting();
        outcome
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
