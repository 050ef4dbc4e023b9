//! What if a sync took its time? A disk that counts them and makes each one wait.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronomemory::disk::{Access, CrashDisk, Disk, DiskFile, Identity, LockFile, Status};

/// A disk in memory whose files are slow to sync.
#[derive(Clone)]
pub struct SlowDisk {
    pub inner: CrashDisk,
    pub delay: Duration,
    pub syncs: Arc<AtomicU64>,
}

impl SlowDisk {
    fn slow(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(SlowFile {
            inner: file,
            disk: self.clone(),
        })
    }
}

impl Disk for SlowDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        self.inner.open(path, access).map(|file| self.slow(file))
    }
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.inner.create(path).map(|file| self.slow(file))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir(path)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.link(from, to)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.inner.list(path)
    }
    fn status(&self, path: &Path) -> io::Result<Status> {
        self.inner.status(path)
    }
    fn exists(&self, path: &Path) -> bool {
        self.inner.exists(path)
    }
    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn LockFile>> {
        self.inner.lock_file(path)
    }
}

struct SlowFile {
    inner: Arc<dyn DiskFile>,
    disk: SlowDisk,
}

impl DiskFile for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(bytes, offset)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }
    fn sync(&self) -> io::Result<()> {
        self.disk.syncs.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.disk.delay);
        self.inner.sync()
    }
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn identity(&self) -> io::Result<Identity> {
        self.inner.identity()
    }
}
