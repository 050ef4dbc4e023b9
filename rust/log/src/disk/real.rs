//! The disk of the operating system.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Dir, Mode, OFlags};

use super::forked::Lockable;
use super::reach::Roots;
use super::{
    Access, Disk, DiskFile, FileStamp, FolderMode, Identity, LockFile, Mapping, MemoryFile, Status, UnexpectedEntry,
    UnexpectedKind,
};

/// The file system of the machine.
#[derive(Debug, Default)]
pub struct RealDisk {
    roots: Roots,
}

impl Disk for RealDisk {
    fn guard(&self, folder: &Path, manner: FolderMode) {
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

    fn create_unnamed(&self, folder: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let path = folder.join("unnamed");
        let place = self.roots.place_to_change(&path);
        Ok(match place.and_then(|place| place.create_unnamed()) {
            Ok(file) => Arc::new(RealFile(file)),
            // In a folder that may not be changed, or on a file system without such files.
            Err(_) => Arc::new(MemoryFile::default()),
        })
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
        // Every commit asks: one system call, without a look at the folders on the way.
        let there = fs::symlink_metadata(path)?;
        if there.is_file() {
            return Ok(Status {
                identity: identity_of(&there),
                length: there.len(),
            });
        }
        let found = UnexpectedKind::link_or(there.file_type().is_symlink(), UnexpectedKind::NoFile);
        Err(UnexpectedEntry::at(path, found))
    }

    fn exists(&self, path: &Path) -> bool {
        path.as_os_str().is_empty() || path.symlink_metadata().is_ok()
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn LockFile>> {
        let place = self.roots.place_to_change(path)?;
        let file = Lockable::of(|| place.open_or_create())?;
        Ok(Box::new(RealLock {
            file,
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            taken: Mutex::default(),
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
        // A look at the attributes would make the next write store its time in the inode.
        (&self.0).seek(SeekFrom::End(0))
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(identity_of(&self.0.metadata()?))
    }

    fn stamp(&self) -> Option<FileStamp> {
        let now = self.0.metadata().ok()?;
        Some(FileStamp {
            length: now.len(),
            links: now.nlink(),
            changed: (now.ctime(), now.ctime_nsec()),
        })
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
    folder: PathBuf,
    taken: Mutex<Taken>,
}

/// How a writer has taken the lock so far, for fair turns.
#[derive(Default)]
struct Taken {
    /// Since when this writer has taken the lock again and again.
    since: Option<Instant>,
    released: Option<Instant>,
    /// The folder, on a handle of this writer's own: waiting writers lock it.
    sign: Option<Lockable>,
    waits: u64,
}

/// A waiting writer looks again after this long at first, and up to [`LONGEST_PAUSE`] later.
/// INVARIANT: the longest is shorter than the gap that a fair writer leaves.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

impl LockFile for RealLock {
    fn acquire(&self, patience: Duration) -> io::Result<bool> {
        if !patience.is_zero()
            && let Some(pause) = self.pause()
        {
            std::thread::sleep(pause.min(patience));
        }
        if self.try_acquire()? {
            return Ok(true);
        }
        let outcome = self.wait(patience);
        let mut taken = self.taken();
        // A try without patience is no waiting.
        taken.waits += u64::from(!patience.is_zero());
        taken.since = Some(Instant::now());
        if let Some(sign) = &taken.sign {
            let _ = sign.unlock();
        }
        outcome
    }

    fn waits(&self) -> u64 {
        self.taken().waits
    }

    fn release(&self) -> io::Result<()> {
        self.taken().released = Some(Instant::now());
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
        let released = self.taken().released;
        // A writer that had the lock a moment ago has no hurry.
        let mut pause = match released.is_some_and(|released| released.elapsed() < A_MOMENT_AGO) {
            true => LONGEST_PAUSE,
            false => FIRST_PAUSE,
        };
        loop {
            let waited = began.elapsed();
            if waited >= patience {
                return Ok(false);
            }
            // Shows others that this writer waits. Without the sign it waits all the same.
            if let Some(sign) = self.taken().sign(&self.folder) {
                let _ = sign.try_lock_shared();
            }
            std::thread::sleep(pause.min(patience - waited));
            if self.try_acquire()? {
                return Ok(true);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// How long this writer should leave the lock alone before it takes it again.
    fn pause(&self) -> Option<Duration> {
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

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For how long a writer may go on taking the lock while others wait.
const SHARE: Duration = Duration::from_millis(8);

/// A gap of this length, with the lock free, is one that every waiting writer has seen.
const FAIR_GAP: Duration = Duration::from_millis(3);

const A_MOMENT_AGO: Duration = Duration::from_millis(100);

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
        let Some(sign) = self.sign(folder) else {
            return false;
        };
        let tried = sign.try_lock();
        if tried.is_ok() {
            let _ = sign.unlock();
        }
        matches!(tried, Err(TryLockError::WouldBlock))
    }
}
