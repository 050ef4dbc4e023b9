//! The interface through which the engine uses files, so that a test can put another disk underneath.
//!
//! A write may be lost until `sync` returned, a name until `sync_dir` returned; `rename` replaces a name as a whole. In a
//! guarded folder no symbolic link is followed, and nothing but files and folders is touched.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub mod forked;
mod map;
mod reach;
mod real;
mod unexpected;

pub use map::Mapping;
pub use real::RealDisk;
pub use unexpected::{NamedFault, Naming, UnexpectedEntry, UnexpectedKind, is_swapped};

/// A large file is synced each time so much was written, because other syncs wait behind it.
pub const PACE_BYTES: u64 = 16 * 1024 * 1024;

/// What a caller wants to do with an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    Read,
    /// Read and write.
    Write,
}

/// Which file this is, whatever its name: equal for two handles of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The device it lies on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What one look at a name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Which file has the name.
    pub identity: Identity,
    /// Its length in bytes.
    pub length: u64,
}

/// The state of an open file: a write to the file changes it, and so does a change of one of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// Its length in bytes.
    pub length: u64,
    /// How many names it has.
    pub links: u64,
    /// When it was changed last, by the clock of its file system: seconds and nanoseconds.
    pub changed: (i64, i64),
}

/// How the folder of a store is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FolderMode {
    /// Nothing in it is changed.
    pub read_only: bool,
    /// If it has to be made, it is made for a group; otherwise for its owner alone.
    pub shared: bool,
}

/// A place for files. One that is only read leaves out what changes files.
pub trait Disk: Send + Sync {
    /// From here on nothing in this folder of a store is reached through a symbolic link.
    fn guard(&self, _folder: &Path, _manner: FolderMode) {}
    /// Ends [`Disk::guard`].
    fn unguard(&self, _folder: &Path) {}
    /// Where a folder is, without the links that the way to it may lead through.
    fn real_path(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
    /// Opens an existing file.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates a file in place of the one that is there, which may live on under another name.
    fn create(&self, _path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Err(only_read())
    }
    /// Creates a file without a name, in this folder if files may be made there. It lives as long as it is open.
    fn create_unnamed(&self, _folder: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(MemoryFile::default()))
    }
    /// Gives a file another name, replacing what had it.
    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(only_read())
    }
    /// Removes a file's name.
    fn remove(&self, _path: &Path) -> io::Result<()> {
        Err(only_read())
    }
    /// Creates a folder and its parents.
    fn create_dir(&self, _path: &Path) -> io::Result<()> {
        Err(only_read())
    }
    /// Creates a folder, for its owner alone; there must be nothing of this name.
    fn create_new_dir(&self, _path: &Path) -> io::Result<()> {
        Err(only_read())
    }
    /// Removes an empty folder.
    fn remove_dir(&self, _path: &Path) -> io::Result<()> {
        Err(only_read())
    }
    /// Gives a file a second name, which must be free; not every file system can.
    fn link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(only_read())
    }
    /// Makes the names in a folder durable.
    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        Err(only_read())
    }
    /// The names in a folder, sorted; empty if there is no such folder.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Which file has this name now, and how long it is. A link is no file.
    fn status(&self, path: &Path) -> io::Result<Status>;
    /// Whether there is anything of this name.
    fn exists(&self, path: &Path) -> bool;
    /// Opens, or creates, the permanent file that writers lock.
    fn lock_file(&self, _path: &Path) -> io::Result<Box<dyn LockFile>> {
        Err(only_read())
    }
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Reads at most `buffer.len()` bytes; 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes`, looping over short writes. After an error any part may have been written.
    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(only_read())
    }
    /// Cuts the file to `length`.
    fn truncate(&self, _length: u64) -> io::Result<()> {
        Err(only_read())
    }
    /// Makes the contents durable. After an error what was written may be lost.
    fn sync(&self) -> io::Result<()> {
        Err(only_read())
    }
    /// The file's length now.
    fn length(&self) -> io::Result<u64>;
    /// Which file this is.
    fn identity(&self) -> io::Result<Identity>;
    /// Its stamp, unless this disk has none.
    fn stamp(&self) -> Option<FileStamp> {
        None
    }
    /// Whether another name leads to this file: what is written here is then written there.
    fn is_shared(&self) -> io::Result<bool> {
        Ok(false)
    }
    /// Whether lines of the log in it may be redacted: it is an archive that is named so.
    fn is_redacted(&self) -> bool {
        false
    }
    /// The first bytes of a file that is never cut, or as many as there are. What is written to them later may be seen.
    fn map(&self, length: u64) -> io::Result<Mapping> {
        let length = usize::try_from(length.min(self.length()?)).map_err(io::Error::other)?;
        Mapping::copied(|buffer| fill(self, buffer, 0), length)
    }
}

fn only_read() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this is only read")
}

/// The permanent file that writers lock.
pub trait LockFile: Send + Sync {
    /// Waits for the lock, at most `patience`; false if another kept it.
    fn acquire(&self, patience: Duration) -> io::Result<bool>;
    /// How often another one had to be waited for so far, as far as that is counted.
    fn waits(&self) -> u64 {
        0
    }
    /// Gives the lock back.
    fn release(&self) -> io::Result<()>;
    /// What the last holder wrote about itself.
    fn note(&self) -> io::Result<String>;
    /// Replaces that note.
    fn write_note(&self, note: &str) -> io::Result<()>;
    /// Which file this is.
    fn identity(&self) -> io::Result<Identity>;
    /// Whether another name leads to this file.
    fn is_shared(&self) -> io::Result<bool> {
        Ok(false)
    }
}

/// Makes room for more bytes. A file may name any number: memory that cannot be had is an error and does not end the process.
fn make_room(buffer: &mut Vec<u8>, more: usize) -> io::Result<()> {
    buffer.try_reserve(more).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

/// From this size on, clearing memory that nothing will be read into costs more than to ask how long a file is.
const LARGE_BYTES: usize = 64 * 1024;

/// How many of `length` bytes there are behind an offset; not looked up for few.
fn within(file: &dyn DiskFile, offset: u64, length: usize) -> io::Result<usize> {
    if length < LARGE_BYTES {
        return Ok(length);
    }
    let left = file.length()?.saturating_sub(offset);
    Ok(usize::try_from(left).map_or(length, |left| left.min(length)))
}

/// Reads exactly `length` bytes, or as many as there are before the end of the file, behind what `buffer` holds.
pub fn read_upto(file: &dyn DiskFile, buffer: &mut Vec<u8>, offset: u64, length: usize) -> io::Result<usize> {
    let start = buffer.len();
    let length = within(file, offset, length)?;
    make_room(buffer, length)?;
    buffer.resize(start + length, 0);
    let filled = fill(file, &mut buffer[start..], offset);
    buffer.truncate(start + filled.as_ref().copied().unwrap_or(0));
    filled
}

/// The same, in place of what `buffer` held: memory that was filled before is not cleared first.
pub fn read_over(file: &dyn DiskFile, buffer: &mut Vec<u8>, offset: u64, length: usize) -> io::Result<usize> {
    let length = within(file, offset, length)?;
    make_room(buffer, length.saturating_sub(buffer.len()))?;
    buffer.resize(length, 0);
    let filled = fill(file, buffer, offset);
    buffer.truncate(filled.as_ref().copied().unwrap_or(0));
    filled
}

/// So much of two files is compared at a time.
const COMPARED_BYTES: u64 = 1024 * 1024;

/// Whether two files hold the same bytes, each from its offset on.
pub fn is_same(left: (&dyn DiskFile, u64), right: (&dyn DiskFile, u64), length: u64) -> io::Result<bool> {
    let (mut one, mut other, mut at) = (Vec::new(), Vec::new(), 0);
    while at < length {
        let piece = (length - at).min(COMPARED_BYTES);
        read_over(left.0, &mut one, left.1 + at, piece as usize)?;
        read_over(right.0, &mut other, right.1 + at, piece as usize)?;
        if one != other || (one.len() as u64) < piece {
            return Ok(false);
        }
        at += piece;
    }
    Ok(true)
}

/// Reads until the target is full or the file ends; how many bytes that were.
pub fn fill(file: &(impl DiskFile + ?Sized), target: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < target.len() {
        match file.read_at(&mut target[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(filled)
}

/// Opens a file to be read; `None` if there is none.
pub fn open_if_there(disk: &dyn Disk, path: &Path) -> io::Result<Option<Arc<dyn DiskFile>>> {
    match disk.open(path, Access::Read) {
        Ok(file) => Ok(Some(file)),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Reads a whole file; `None` if there is none.
pub fn read_whole(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_if_there(disk, path)? else {
        return Ok(None);
    };
    let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    read_upto(&*file, &mut bytes, 0, length)?;
    Ok(Some(bytes))
}

/// Copies what bytes hold behind an offset; how many bytes that were.
pub(crate) fn copy_behind(bytes: &[u8], offset: u64, buffer: &mut [u8]) -> usize {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let rest = bytes.get(start..).unwrap_or_default();
    let length = rest.len().min(buffer.len());
    buffer[..length].copy_from_slice(&rest[..length]);
    length
}

/// Bytes that can only be read.
pub struct Bytes(pub Vec<u8>);

impl DiskFile for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(copy_behind(&self.0, offset, buffer))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn identity(&self) -> io::Result<Identity> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A file in memory that can be written.
#[derive(Default)]
pub struct MemoryFile(Mutex<Vec<u8>>);

impl MemoryFile {
    /// All its bytes.
    #[must_use]
    pub fn contents(&self) -> Vec<u8> {
        self.bytes().clone()
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(copy_behind(&self.bytes(), offset, buffer))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut all = self.bytes();
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        if all.len() < end {
            all.resize(end, 0);
        }
        all[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(Identity { device: 0, inode: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        let mut kept = b"kept".to_vec();
        let fault = make_room(&mut kept, isize::MAX as usize).expect_err("no machine has so much");
        assert_eq!(fault.kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(kept, b"kept");
    }

    #[test]
    fn only_what_is_there_is_asked_for() {
        let (file, mut bytes) = (Bytes(b"there".to_vec()), b"kept ".to_vec());
        let most = isize::MAX as usize;
        assert_eq!(read_upto(&file, &mut bytes, 0, most).expect("what is there"), 5);
        assert_eq!(bytes, b"kept there");
        assert_eq!(read_over(&file, &mut bytes, 2, most).expect("the end of it"), 3);
        assert_eq!(bytes, b"ere");
        assert_eq!(read_upto(&file, &mut bytes, 9, most).expect("nothing"), 0);
    }
}
