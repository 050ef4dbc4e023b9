//! How is everything saved elsewhere, and brought back?

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::digest::{Hasher, Hex};
use crate::disk::{Access, Disk, DiskFile, read_upto};
use crate::error::{At, Error, Result};
use crate::event::stamp;
use crate::layout::{LOG, Layout};

use super::{Progress, Store};

/// What the system calls a missing file.
const NO_SUCH_FILE: i32 = 2;
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
    let mut offset = range.start;
    while offset < range.end {
        buffer.clear();
        let wanted = (range.end - offset).min(BUFFER_BYTES as u64) as usize;
        if read_upto(source, &mut buffer, offset, wanted).at(target)? == 0 {
            return Err(Error::io(target, io::ErrorKind::UnexpectedEof.into()));
        }
        hasher.update(&buffer);
        file.write_at(&buffer, offset - range.start).at(target)?;
        offset += buffer.len() as u64;
        if let Some(progress) = progress.as_mut() {
            progress(offset - range.start, range.end - range.start);
        }
    }
    file.sync().at(target)?;
    Ok(hasher.finish())
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
const IMMUTABLE: [&str; 2] = ["base", "archive"];

impl Store {
    /// Copies everything into a new folder under `backup/`; gives the folder.
    ///
    /// # Errors
    /// `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn backup(&mut self, now: i64, progress: Progress<'_>) -> Result<PathBuf> {
        self.with_lock(now, |store| {
            store.sync_log()?;
            store.copy_out(now, progress)
        })
    }

    fn copy_out(&self, now: i64, progress: Progress<'_>) -> Result<PathBuf> {
        let backups = self.layout.backups();
        self.make_folder(&backups, self.layout.folder())?;
        let target = free_name(&*self.disk, &backups, &stamp::spell_name(now))?;
        let name = target
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let draft = backups.join(format!("{name}.tmp"));
        self.make_folder(&draft, &backups)?;
        for folder in IMMUTABLE {
            let from = self.layout.inside(folder);
            let names = self.disk.list(&from).at(&from)?;
            let whole = names.into_iter().filter(|name| !name.ends_with(".tmp"));
            copy_names(&*self.disk, &from, &draft.join(folder), &draft, whole)?;
        }
        if let Some(log) = &self.log {
            copy_range(
                &*self.disk,
                &*log.file,
                0..log.walk.end,
                &draft.join(LOG),
                Some(progress),
            )?;
        }
        let snapshot = self.layout.snapshot();
        if self.disk.status(&snapshot).is_ok() {
            copy_file(
                &*self.disk,
                &snapshot,
                &Layout::of_folder(draft.clone()).snapshot(),
                None,
            )?;
        }
        self.disk.sync_dir(&draft).at(&draft)?;
        self.disk.rename(&draft, &target).at(&target)?;
        self.disk.sync_dir(&backups).at(&backups)?;
        Ok(target)
    }

    fn make_folder(&self, path: &Path, parent: &Path) -> Result<()> {
        self.disk.create_dir(path).at(path)?;
        self.disk.sync_dir(parent).at(parent)
    }

    /// Brings a copy back. The present log is kept in `quarantine/`.
    ///
    /// # Errors
    /// `Corrupted` if the copy is damaged, `Io`, `Locked`, `Closed`, `Poisoned`; the present state stays then.
    pub fn restore(&mut self, source: &Layout, now: i64, progress: Progress<'_>) -> Result<()> {
        let report = Self::verify(&*self.disk, source, self.options.threads, progress)?;
        if let Some(damage) = report.damage.first() {
            return Err(Error::Corrupted(Box::new(damage.clone())));
        }
        if report.events == 0 {
            return Err(Error::io(source.log(), io::Error::from_raw_os_error(NO_SUCH_FILE)));
        }
        self.with_lock(now, |store| {
            store.bring_in(source, report.committed_end, now)?;
            store.reload(&mut |_, _| {})?;
            // The hint about the last sync spoke of the log that was there before.
            store.make_ready()?;
            store.sync_log()?;
            // Bases and archives of the log that was replaced lie beside it now.
            let quarantine = store.layout.quarantine();
            store.clear_out(Some(&quarantine))?;
            store.accept_present_head()?;
            store.write_durable_snapshot()
        })
    }

    fn bring_in(&mut self, source: &Layout, committed_end: u64, now: i64) -> Result<()> {
        // The present log must not lose its only base to the snapshot that is copied below.
        self.anchor(now)?;
        let folder = self.layout.folder().to_owned();
        for name in IMMUTABLE {
            let from = source.inside(name);
            let names = self.disk.list(&from).at(&from)?;
            copy_names(
                &*self.disk,
                &from,
                &self.layout.inside(name),
                &folder,
                names.into_iter(),
            )?;
        }
        let quarantine = self.layout.quarantine();
        self.make_folder(&quarantine, &folder)?;
        self.put_snapshot_aside(&quarantine, now)?;
        if let Some(log) = &self.log {
            let name = format!("{}-replaced-by-restore", stamp::spell_name(now));
            let kept = free_name(&*self.disk, &quarantine, &name)?;
            copy_range(&*self.disk, &*log.file, 0..log.walk.end, &kept, None)?;
            self.disk.sync_dir(&quarantine).at(&quarantine)?;
        }
        // A foreign log without an anchor stands on its snapshot: that one must be there before the log is.
        let snapshot = source.snapshot();
        if self.disk.status(&snapshot).is_ok() {
            copy_file(&*self.disk, &snapshot, &self.layout.snapshot(), None)?;
            self.disk.sync_dir(&folder).at(&folder)?;
        }
        let path = source.log();
        let file = self.disk.open(path, Access::Read).at(path)?;
        copy_bytes(&*self.disk, &*file, 0..committed_end, &self.layout.log_draft(), None)?;
        self.disk
            .rename(&self.layout.log_draft(), self.layout.log())
            .at(self.layout.log())?;
        self.disk.sync_dir(&folder).at(&folder)
    }
}

/// Copies files of one folder into another. Their names are their digests: what is replaced was the same or damaged.
fn copy_names(
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
