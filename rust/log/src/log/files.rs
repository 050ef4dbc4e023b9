//! Writes, copies and removes files so that a crash leaves all of one or none, and touches no other files.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::archive::{self, Archive};
use crate::digest::{Hasher, Hex};
use crate::disk::{Access, Disk, DiskFile, Naming, PACE_BYTES, UnexpectedEntry, is_same, open_if_there, read_over};
use crate::error::{At, Result};
use crate::layout::{Layout, Shape, base_name, packed_base_name};

/// Shows how far a long task has come: done and total, in bytes or records.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

const BUFFER_BYTES: usize = 1024 * 1024;

/// A file of the store; `None` if it is not there.
pub fn open_inside(disk: &dyn Disk, layout: &Layout, name: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
    let path = layout.inside(name);
    open_if_there(disk, &path).naming(&path)
}

/// A base of the past, packed or not, with its name from the store's folder on; `None` if it is not there.
pub fn open_base(disk: &dyn Disk, layout: &Layout, sha256: &Hex) -> io::Result<Option<(String, Archive)>> {
    // In this order: it is packed before what is not packed goes.
    for name in [base_name(sha256.text()), packed_base_name(sha256.text())] {
        let path = layout.inside(&name);
        match archive::open(disk, &path) {
            Ok(base) => return Ok(Some((name, base))),
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
            Err(fault) => return Err(fault).naming(&path),
        }
    }
    Ok(None)
}

/// Copies part of a file into a new synced file under its final name, by way of a temporary one; gives the digest.
pub fn copy_range(
    disk: &dyn Disk,
    source: &dyn DiskFile,
    range: Range<u64>,
    target: &Path,
    progress: Option<Progress<'_>>,
) -> Result<Hex> {
    let draft = with_suffix(target, ".tmp");
    let digest = copy_bytes(disk, source, range, &draft, progress)?;
    disk.rename(&draft, target).at(target)?;
    Ok(digest)
}

/// A large file that is written from its beginning, and synced on the way because other syncs wait behind it.
pub struct PacedFile {
    file: Arc<dyn DiskFile>,
    /// How many bytes it has.
    pub written: u64,
    synced: u64,
}

impl PacedFile {
    /// A file that goes on from so many bytes.
    pub fn at(file: Arc<dyn DiskFile>, written: u64) -> Self {
        Self {
            file,
            written,
            synced: written,
        }
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(bytes, self.written)?;
        self.written += bytes.len() as u64;
        match self.written - self.synced >= PACE_BYTES {
            true => self.sync(),
            false => Ok(()),
        }
    }

    /// Adds part of another file, and shows each piece.
    pub fn copy(&mut self, source: &dyn DiskFile, range: Range<u64>, mut see: impl FnMut(&[u8])) -> io::Result<()> {
        let (mut offset, mut buffer) = (range.start, Vec::new());
        while offset < range.end {
            let wanted = (range.end - offset).min(BUFFER_BYTES as u64) as usize;
            if read_over(source, &mut buffer, offset, wanted)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.add(&buffer)?;
            offset += buffer.len() as u64;
            see(&buffer);
        }
        Ok(())
    }

    /// Makes it durable.
    pub fn sync(&mut self) -> io::Result<()> {
        self.synced = self.written;
        self.file.sync()
    }
}

/// Copies part of a file into a new synced file.
pub fn copy_bytes(
    disk: &dyn Disk,
    source: &dyn DiskFile,
    range: Range<u64>,
    target: &Path,
    mut progress: Option<Progress<'_>>,
) -> Result<Hex> {
    let mut file = PacedFile::at(disk.create(target).at(target)?, 0);
    let (mut hasher, total, mut done) = (Hasher::default(), range.end - range.start, 0);
    let see = |piece: &[u8]| {
        hasher.update(piece);
        done += piece.len() as u64;
        if let Some(progress) = progress.as_mut() {
            progress(done, total);
        }
    };
    file.copy(source, range, see).and_then(|()| file.sync()).at(target)?;
    Ok(hasher.finish())
}

/// Puts the first bytes of a file behind what another one holds, which ends at `offset`; gives that one, synced.
pub fn append_bytes(
    disk: &dyn Disk,
    source: &dyn DiskFile,
    length: u64,
    target: &Path,
    offset: u64,
) -> Result<Arc<dyn DiskFile>> {
    let file = disk.open(target, Access::Write).at(target)?;
    let mut paced = PacedFile::at(Arc::clone(&file), offset);
    let copied = paced.copy(source, 0..length, |_| {});
    copied.and_then(|()| paced.sync()).at(target)?;
    Ok(file)
}

/// Copies a whole file; the target's name is the caller's to make durable.
pub fn copy_file(disk: &dyn Disk, source: &Path, target: &Path, progress: Option<Progress<'_>>) -> Result<Hex> {
    let file = disk.open(source, Access::Read).at(source)?;
    let length = file.length().at(source)?;
    copy_range(disk, &*file, 0..length, target, progress)
}

/// The path with a suffix behind its file name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A free name in a folder: what is kept must not replace what was kept before.
pub fn free_name(disk: &dyn Disk, folder: &Path, wanted: &str) -> Result<PathBuf> {
    let taken = disk.list(folder).at(folder)?;
    let mut name = wanted.to_owned();
    let mut number = 1;
    while taken.contains(&name) {
        number += 1;
        name = format!("{wanted}-{number}");
    }
    Ok(folder.join(name))
}

/// Copies files of one folder into another. Their names are their digests: what is replaced was the same or damaged.
pub fn copy_names(
    disk: &dyn Disk,
    from: &Path,
    to: &Path,
    parent: &Path,
    names: impl Iterator<Item = String>,
) -> Result<()> {
    let mut names = names.peekable();
    if names.peek().is_none() {
        return Ok(());
    }
    disk.create_dir(to).at(to)?;
    disk.sync_dir(parent).at(parent)?;
    for name in names {
        copy_file(disk, &from.join(&name), &to.join(&name), None)?;
    }
    disk.sync_dir(to).at(to)
}

/// Whether one file begins with all that another holds.
pub fn begins_with(disk: &dyn Disk, whole: &Path, part: &Path) -> Result<bool> {
    let Ok(whole) = disk.open(whole, Access::Read) else {
        return Ok(false);
    };
    let file = disk.open(part, Access::Read).at(part)?;
    let length = file.length().at(part)?;
    is_same((&*file, 0), (&*whole, 0), length).at(part)
}

/// Removes the files in a folder whose names have a shape of ours, and nothing else.
pub fn remove_ours(disk: &dyn Disk, folder: &Path, is_named_so: impl Fn(&str) -> bool) -> Result<()> {
    if !is_folder(disk, folder) {
        return Ok(());
    }
    for name in disk.list(folder).at(folder)?.iter().filter(|name| is_named_so(name)) {
        let path = folder.join(name);
        if is_ours(disk, &path) {
            remove_if_there(disk, &path)?;
        }
    }
    Ok(())
}

/// Removes a file that may be gone already.
pub fn remove_if_there(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove(path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.at(path),
    }
}

/// The names in a folder; `None` if it is no folder of ours. One that cannot be read is an error.
pub fn names_in(disk: &dyn Disk, folder: &Path) -> Result<Option<Vec<String>>> {
    if !disk.exists(folder) {
        return Ok(None);
    }
    match disk.list(folder) {
        Err(fault) if UnexpectedEntry::in_error(&fault).is_some() || fault.kind() == io::ErrorKind::NotADirectory => {
            Ok(None)
        }
        listed => listed.at(folder).map(Some),
    }
}

/// Those of them that have a shape of ours, in order.
pub fn ours_in(disk: &dyn Disk, folder: &Path, is_named_so: Shape) -> Result<Vec<String>> {
    let mut names = names_in(disk, folder)?.unwrap_or_default();
    names.retain(|name| is_named_so(name));
    names.sort();
    Ok(names)
}

/// Whether a path is a folder, not a link to one.
pub fn is_folder(disk: &dyn Disk, path: &Path) -> bool {
    disk.exists(path) && disk.list(path).is_ok()
}

/// Whether a name of ours is that of a file: a folder, a link or a pipe in its place is not ours.
pub fn is_ours(disk: &dyn Disk, path: &Path) -> bool {
    disk.status(path).is_ok()
}

/// Whether something else than a file has a name that a file of ours should get.
pub fn is_taken_by_others(disk: &dyn Disk, path: &Path) -> bool {
    disk.exists(path) && !is_ours(disk, path)
}

/// A file that is removed unless it is given its name.
pub struct Scratch {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    is_named: bool,
}

impl Scratch {
    /// Watches over a file that is about to be written.
    pub fn at(disk: &Arc<dyn Disk>, path: PathBuf) -> Self {
        Self {
            disk: Arc::clone(disk),
            path,
            is_named: false,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, durably.
    pub fn name(mut self, path: &Path) -> Result<()> {
        self.disk.rename(&self.path, path).at(path)?;
        self.is_named = true;
        match path.parent() {
            Some(folder) => self.disk.sync_dir(folder).at(folder),
            None => Ok(()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_named {
            // If that fails, the next maintenance removes it.
            let _ = self.disk.remove(&self.path);
        }
    }
}
