//! A disk that shows some files as others, or as gone, and on which nothing can be changed.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolog::disk::{Access, Disk, DiskFile, LockFile, Status};

/// A disk with some files in the place of others.
pub(in crate::store) struct Overlay<'a> {
    disk: &'a dyn Disk,
    /// What is read at a path; `None` if nothing is there.
    files: HashMap<PathBuf, Option<Arc<dyn DiskFile>>>,
}

impl<'a> Overlay<'a> {
    /// The disk as it is.
    pub fn of(disk: &'a dyn Disk) -> Self {
        Self {
            disk,
            files: HashMap::new(),
        }
    }

    /// Shows this file at a path.
    pub fn show(&mut self, path: PathBuf, file: Arc<dyn DiskFile>) {
        self.files.insert(path, Some(file));
    }

    /// Shows nothing at a path.
    pub fn hide(&mut self, path: PathBuf) {
        self.files.insert(path, None);
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "files that are held are only read")
}

impl Disk for Overlay<'_> {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        if access == Access::Write {
            return Err(read_only());
        }
        match self.files.get(path) {
            Some(Some(file)) => Ok(Arc::clone(file)),
            Some(None) => Err(io::ErrorKind::NotFound.into()),
            None => self.disk.open(path, access),
        }
    }

    fn create(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Err(read_only())
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(read_only())
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(read_only())
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Err(read_only())
    }

    fn create_new_dir(&self, _: &Path) -> io::Result<()> {
        Err(read_only())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Err(read_only())
    }

    fn link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(read_only())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        match self.files.get(path) {
            Some(None) => Err(io::ErrorKind::NotFound.into()),
            _ => self.disk.status(path),
        }
    }

    fn exists(&self, path: &Path) -> bool {
        match self.files.get(path) {
            Some(file) => file.is_some(),
            None => self.disk.exists(path),
        }
    }

    fn lock_file(&self, _: &Path) -> io::Result<Box<dyn LockFile>> {
        Err(read_only())
    }
}
