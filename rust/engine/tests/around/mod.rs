//! A disk in memory that tells someone what is opened, and may do one thing differently.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::crash_disk::CrashDisk;
use chronomemory::{Access, Disk, DiskFile, LockFile, Status};

/// Does that one thing.
pub trait Twist: Send + Sync {
    /// Before a file is opened.
    fn before(&self, _disk: &CrashDisk, _path: &Path) {}

    /// Before a file is made.
    fn before_create(&self, _disk: &CrashDisk, _path: &Path) {}

    /// Before a file gets another name.
    fn before_rename(&self, _disk: &CrashDisk, _from: &Path) {}

    /// What comes of opening a file, if not the file.
    fn instead(&self, _path: &Path) -> Option<io::Result<Arc<dyn DiskFile>>> {
        None
    }

    /// What comes of looking into a folder, if not its names.
    fn unlisted(&self, _path: &Path) -> Option<io::Error> {
        None
    }

    /// What to hand out for a file.
    fn hand_out(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        file
    }
}

/// A place that somebody else made, and nobody else may look into.
#[derive(Clone)]
pub struct Closed(pub PathBuf);

impl Twist for Closed {
    fn unlisted(&self, path: &Path) -> Option<io::Error> {
        (path == self.0).then(|| io::ErrorKind::PermissionDenied.into())
    }

    fn instead(&self, path: &Path) -> Option<io::Result<Arc<dyn DiskFile>>> {
        (path == self.0).then(|| Err(io::ErrorKind::PermissionDenied.into()))
    }
}

/// A disk in memory with a twist.
#[derive(Clone)]
pub struct Around<T> {
    pub inner: CrashDisk,
    pub twist: T,
}

impl<T: Twist> Disk for Around<T> {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        self.twist.before(&self.inner, path);
        if let Some(other) = self.twist.instead(path) {
            return other;
        }
        self.inner.open(path, access).map(|file| self.twist.hand_out(file))
    }
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.twist.before_create(&self.inner, path);
        self.inner.create(path).map(|file| self.twist.hand_out(file))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.twist.before_rename(&self.inner, from);
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn create_new_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_new_dir(path)
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
        match self.twist.unlisted(path) {
            Some(fault) => Err(fault),
            None => self.inner.list(path),
        }
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
