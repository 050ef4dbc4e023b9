//! How are bytes copied so that a crash leaves all of them or none?

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::digest::{Hasher, Hex};
use crate::disk::{Access, Disk, DiskFile, PACE_BYTES, read_over, read_upto};
use crate::error::{At, Error, Result};
use crate::layout::{Layout, is_archive_file, is_base_file};

use super::care::{is_folder, is_ours};
use super::{Progress, Store};

/// How much is copied at a time.
const BUFFER_BYTES: usize = 1024 * 1024;

/// Copies part of a file into a new synced file under its final name, by way of a temporary one; gives the digest.
pub(super) fn copy_range(
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

/// Copies part of a file into a new synced file.
pub(super) fn copy_bytes(
    disk: &dyn Disk,
    source: &dyn DiskFile,
    range: Range<u64>,
    target: &Path,
    mut progress: Option<Progress<'_>>,
) -> Result<Hex> {
    let file = disk.create(target).at(target)?;
    let mut hasher = Hasher::default();
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    let (mut offset, mut synced) = (range.start, range.start);
    while offset < range.end {
        buffer.clear();
        let wanted = (range.end - offset).min(BUFFER_BYTES as u64) as usize;
        if read_upto(source, &mut buffer, offset, wanted).at(target)? == 0 {
            return Err(Error::io(target, io::ErrorKind::UnexpectedEof.into()));
        }
        hasher.update(&buffer);
        file.write_at(&buffer, offset - range.start).at(target)?;
        offset += buffer.len() as u64;
        if offset - synced >= PACE_BYTES {
            file.sync().at(target)?;
            synced = offset;
        }
        if let Some(progress) = progress.as_mut() {
            progress(offset - range.start, range.end - range.start);
        }
    }
    file.sync().at(target)?;
    Ok(hasher.finish())
}

/// Puts the first bytes of a file behind what another one holds, which ends at `offset`; gives that one, synced.
pub(super) fn append_bytes(
    disk: &dyn Disk,
    source: &dyn DiskFile,
    length: u64,
    target: &Path,
    offset: u64,
) -> Result<Arc<dyn DiskFile>> {
    let file = disk.open(target, Access::Write).at(target)?;
    let (mut done, mut buffer) = (0, Vec::with_capacity(BUFFER_BYTES));
    while done < length {
        let wanted = (length - done).min(BUFFER_BYTES as u64) as usize;
        read_over(source, &mut buffer, done, wanted).at(target)?;
        if buffer.is_empty() {
            return Err(Error::io(target, io::ErrorKind::UnexpectedEof.into()));
        }
        file.write_at(&buffer, offset + done).at(target)?;
        done += buffer.len() as u64;
    }
    file.sync().at(target)?;
    Ok(file)
}

/// Copies a whole file; the target's name is the caller's to make durable.
pub(super) fn copy_file(disk: &dyn Disk, source: &Path, target: &Path, progress: Option<Progress<'_>>) -> Result<Hex> {
    let file = disk.open(source, Access::Read).at(source)?;
    let length = file.length().at(source)?;
    copy_range(disk, &*file, 0..length, target, progress)
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A name in a folder that nothing has yet: what is kept must not replace what was kept before.
pub(super) fn free_name(disk: &dyn Disk, folder: &Path, wanted: &str) -> Result<PathBuf> {
    let taken = disk.list(folder).at(folder)?;
    let numbered = (1_u64..).map(|n| {
        if n == 1 {
            wanted.to_owned()
        } else {
            format!("{wanted}-{n}")
        }
    });
    let free = numbered.into_iter().find(|name| !taken.contains(name));
    Ok(folder.join(free.unwrap_or_else(|| wanted.to_owned())))
}

/// The folders whose files never change once they have their name.
pub(super) const IMMUTABLE: [&str; 2] = ["base", "archive"];

/// The names in one of these folders that are ours: of the right shape, and files.
pub(super) fn immutable_names(disk: &dyn Disk, layout: &Layout, folder: &str) -> Result<Vec<String>> {
    let path = layout.inside(folder);
    let is_named_so = if path == layout.bases() {
        is_base_file
    } else {
        is_archive_file
    };
    if !is_folder(disk, &path) {
        return Ok(Vec::new());
    }
    let mut names = disk.list(&path).at(&path)?;
    names.retain(|name| is_named_so(name) && is_ours(disk, &path.join(name)));
    Ok(names)
}

/// The folder of rows. They do not change once the log names them, but more may come behind.
pub(super) const VECTORS: &str = "vectors";

impl Store {
    /// Makes sure of a folder, durably.
    pub(super) fn make_folder(&self, path: &Path, parent: &Path) -> Result<()> {
        self.disk.create_dir(path).at(path)?;
        self.disk.sync_dir(parent).at(parent)
    }
}

/// Copies files of one folder into another. Their names are their digests: what is replaced was the same or damaged.
pub(super) fn copy_names(
    disk: &dyn Disk,
    from: &Path,
    to: &Path,
    parent: &Path,
    names: impl Iterator<Item = String>,
) -> Result<()> {
    let mut made = false;
    for name in names {
        if !made {
            disk.create_dir(to).at(to)?;
            disk.sync_dir(parent).at(parent)?;
            made = true;
        }
        copy_file(disk, &from.join(&name), &to.join(&name), None)?;
    }
    if made { disk.sync_dir(to).at(to) } else { Ok(()) }
}

/// Whether one file begins with all that another holds.
pub(super) fn is_same(disk: &dyn Disk, part: &Path, whole: &Path) -> Result<bool> {
    let Ok(whole) = disk.open(whole, Access::Read) else {
        return Ok(false);
    };
    let file = disk.open(part, Access::Read).at(part)?;
    let length = file.length().at(part)?;
    let (mut offset, mut left, mut right) = (0, Vec::new(), Vec::new());
    while offset < length {
        let wanted = (length - offset).min(BUFFER_BYTES as u64) as usize;
        read_over(&*file, &mut left, offset, wanted).at(part)?;
        read_over(&*whole, &mut right, offset, wanted).at(part)?;
        if left != right || left.len() < wanted {
            return Ok(false);
        }
        offset += wanted as u64;
    }
    Ok(true)
}
