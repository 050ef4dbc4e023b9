//! Writes a backup of everything, while others go on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolog::disk::{Access, Disk, DiskFile};
use chronolog::error::{At, Result};
use chronolog::event::stamp;
use chronolog::hint::{Synced, write_hint};
use chronolog::layout::{LOG, Layout, SNAPSHOT, is_backup_folder};
use chronolog::log::files::{copy_names, copy_range, with_suffix};
use chronolog::log::{Log, Site};

use crate::store::Progress;
use crate::store::files::erasing::remove_draft;
use crate::store::files::proofs::{IMMUTABLE, VECTORS, immutable_names};
use crate::store::turns::{StoreAccess, Turns, take_care};
use crate::store::vectors::is_no_file;
use crate::store::verifying::verify_opened;

/// A copy of a store that is being made: it has a draft name until it is whole.
pub struct BackingUp {
    disk: Arc<dyn Disk>,
    layout: Layout,
    pub(in crate::store) target: PathBuf,
    pub(in crate::store) draft: PathBuf,
    /// The log, and how much of it is committed.
    log: Option<(Arc<dyn DiskFile>, u64)>,
    /// Where the copied log ends, for the hint beside it; `None` if there is no log, or its end is not known.
    pub(in crate::store) reached: Option<Synced>,
    snapshot: Option<Arc<dyn DiskFile>>,
    /// Files of rows, and how many bytes of them the log names.
    rows: Vec<(String, u64)>,
    /// The draft stays when this value goes.
    pub(in crate::store) is_complete: bool,
}

impl BackingUp {
    /// Under the lock: fixes what is to be copied. The maintenance lock keeps these files in place until then.
    pub(in crate::store) fn start(site: &Site, log: &Log, rows: Vec<(String, u64)>, target: PathBuf) -> Self {
        let committed = log.open().map(|log| (Arc::clone(&log.file), log.walk.end));
        Self::of(&site.disk, &site.layout, committed, log.reached(), rows, target)
    }

    pub(in crate::store) fn of(
        disk: &Arc<dyn Disk>,
        layout: &Layout,
        log: Option<(Arc<dyn DiskFile>, u64)>,
        reached: Option<Synced>,
        rows: Vec<(String, u64)>,
        target: PathBuf,
    ) -> Self {
        Self {
            disk: Arc::clone(disk),
            layout: layout.clone(),
            draft: with_suffix(&target, ".tmp"),
            target,
            log,
            reached,
            // It is replaced, never changed: this handle keeps the one that belongs to the log of now.
            snapshot: disk.open(&layout.snapshot(), Access::Read).ok(),
            rows,
            is_complete: false,
        }
    }

    /// Copies everything, and gives the copy its name when all of it is durable; gives the folder.
    pub fn run(self, progress: Progress<'_>) -> Result<PathBuf> {
        self.disk.create_dir(&self.draft).at(&self.draft)?;
        self.write(progress)?;
        self.name()
    }

    pub(in crate::store) fn write(&self, progress: Progress<'_>) -> Result<()> {
        let (disk, draft) = (&*self.disk, &self.draft);
        copy_past(disk, &self.layout, &Layout::of_folder(draft.clone()))?;
        self.copy_rows(disk, draft)?;
        if let Some((log, end)) = &self.log {
            copy_range(disk, &**log, 0..*end, &draft.join(LOG), Some(progress))?;
        }
        if let Some(reached) = &self.reached {
            // Without it a log that was cut off would look like one whose end was never synced.
            let hint = write_hint(disk, &Layout::of_folder(draft.clone()), reached)?;
            hint.sync().at(draft)?;
        }
        if let Some(snapshot) = &self.snapshot {
            let length = snapshot.length().at(draft)?;
            copy_range(disk, &**snapshot, 0..length, &draft.join(SNAPSHOT), None)?;
        }
        disk.sync_dir(draft).at(draft)
    }

    pub(in crate::store) fn name(mut self) -> Result<PathBuf> {
        self.disk.rename(&self.draft, &self.target).at(&self.target)?;
        self.is_complete = true;
        let around = self.target.parent().unwrap_or(Path::new("/"));
        self.disk.sync_dir(around).at(around)?;
        Ok(self.target.clone())
    }

    /// Copies the rows that the log names. Of a damaged file that is too short there is less to copy.
    fn copy_rows(&self, disk: &dyn Disk, draft: &Path) -> Result<()> {
        let (from, to) = (self.layout.vectors(), draft.join(VECTORS));
        if self.rows.is_empty() {
            return Ok(());
        }
        disk.create_dir(&to).at(&to)?;
        disk.sync_dir(draft).at(draft)?;
        for (name, bytes) in &self.rows {
            let path = from.join(name);
            let rows = match disk.open(&path, Access::Read) {
                // No file, or something else in its place: these rows are missing here, and in the copy.
                Err(fault) if fault.kind() == io::ErrorKind::NotFound || is_no_file(&fault) => continue,
                opened => opened.at(&path)?,
            };
            let there = rows.length().at(&path)?.min(*bytes);
            copy_range(disk, &*rows, 0..there, &to.join(name), None)?;
        }
        disk.sync_dir(&to).at(&to)
    }
}

impl Drop for BackingUp {
    fn drop(&mut self) {
        if !self.is_complete {
            // If that fails, the next maintenance removes it.
            let _ = remove_draft(&*self.disk, &self.draft);
        }
    }
}

/// Copies a store that others go on using; gives the folder.
pub fn backup(turns: &impl Turns, now: &dyn Fn() -> i64, progress: Progress<'_>) -> Result<PathBuf> {
    let _care = take_care(turns, now())?;
    copy_inside(turns, now, progress)
}

/// The same with the maintenance lock held.
pub(in crate::store) fn copy_inside(
    turns: &impl Turns,
    now: &dyn Fn() -> i64,
    progress: Progress<'_>,
) -> Result<PathBuf> {
    verify_opened(turns, now())?;
    let access = StoreAccess::shared(turns, now);
    access.sync()?;
    let copy = access.locked(|store, now| {
        store.on_log(Log::sync)?;
        let rows = store.vectors.named_rows(&store.state);
        let backups = store.site.layout.backups();
        store.site.make_folder(&backups, store.site.layout.folder())?;
        let names = store.site.disk.list(&backups).at(&backups)?;
        let made_last = store.last_copy.take().into_iter();
        let name = next_name(
            names.into_iter().filter(|name| is_backup_folder(name)).chain(made_last),
            now,
        );
        let target = backups.join(&name);
        store.last_copy = Some(name);
        Ok(BackingUp::start(&store.site, &store.log, rows, target))
    })?;
    copy.run(progress)
}

/// A name behind those of all copies, whatever the clock says: pruning orders by name.
pub(in crate::store) fn next_name(copies: impl Iterator<Item = String>, now: i64) -> String {
    let stamp = stamp::spell_name(now);
    match copies.map(|name| order_of(&name)).max() {
        Some((last, number)) if last >= stamp => format!("{last}-{}", number.saturating_add(1)),
        _ => stamp,
    }
}

pub(in crate::store) fn copy_past(disk: &dyn Disk, from: &Layout, to: &Layout) -> Result<()> {
    for folder in IMMUTABLE {
        let names = immutable_names(disk, from, folder)?.into_iter();
        copy_names(disk, &from.inside(folder), &to.inside(folder), to.folder(), names)?;
    }
    Ok(())
}

pub(super) fn order_of(name: &str) -> (String, u64) {
    let (stamp, number) = name.split_once('-').unwrap_or((name, "1"));
    (stamp.to_owned(), number.parse().unwrap_or(u64::MAX))
}
