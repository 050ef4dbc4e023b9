//! How is what a repair or a restore replaces kept, so that it can be brought back?
//!
//! As a store of its own, in a folder of `quarantine/`: the log, and every file that it stands on, each by a second name
//! where the file system can, else by a copy. So nothing whole is lost by being replaced: `restore` takes such a folder.

use std::path::Path;

use crate::disk::Disk;
use crate::error::{At, Result};
use crate::event::stamp;
use crate::layout::{LOG, Layout, SNAPSHOT, is_rows_file};
use crate::log::files::{copy_file, free_name, is_folder};

use super::copies::VECTORS;
use crate::store::Store;

/// What is replaced, and where it is kept.
pub(in crate::store) struct Aside {
    layout: Layout,
    name: String,
}

impl Aside {
    /// The folder, from the store's folder on.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Keeps one file under the name that it has in the store; one that is not there is passed over.
    ///
    /// # Errors
    /// `Io`.
    pub fn keep(&self, disk: &dyn Disk, from: &Layout, name: &str) -> Result<()> {
        let (source, target) = (from.inside(name), self.layout.inside(name));
        if disk.status(&source).is_err() || is_folder(disk, &source) {
            return Ok(());
        }
        if let Some(folder) = target.parent().filter(|folder| *folder != self.layout.folder()) {
            disk.create_dir(folder).at(folder)?;
        }
        if disk.status(&target).is_ok() {
            return Ok(());
        }
        // Rows are written to in place, and an empty log is nothing that a second name should keep anyone from replacing.
        let is_written = name.starts_with(VECTORS) || disk.status(&source).is_ok_and(|now| now.length == 0);
        if is_written || disk.link(&source, &target).is_err() {
            copy_file(disk, &source, &target, None)?;
        }
        Ok(())
    }

    /// Keeps one file by a copy, because the other one is written to.
    fn copy(&self, disk: &dyn Disk, source: &Path, name: &str) -> Result<()> {
        if disk.status(source).is_ok() && !is_folder(disk, source) {
            copy_file(disk, source, &self.layout.inside(name), None)?;
        }
        Ok(())
    }

    /// The folder, from the store's folder on, if it holds anything; an empty one is taken away again.
    ///
    /// # Errors
    /// `Io`.
    pub fn name_if_used(&self, disk: &dyn Disk) -> Result<Option<String>> {
        let folder = self.layout.folder();
        if !disk.list(folder).at(folder)?.is_empty() {
            return Ok(Some(self.name.clone()));
        }
        disk.remove_dir(folder).at(folder)?;
        Ok(None)
    }

    /// Makes the names durable.
    ///
    /// # Errors
    /// `Io`.
    pub fn sync(&self, disk: &dyn Disk) -> Result<()> {
        let folder = self.layout.folder();
        for inner in disk.list(folder).at(folder)? {
            let inner = folder.join(inner);
            if is_folder(disk, &inner) {
                disk.sync_dir(&inner).at(&inner)?;
            }
        }
        disk.sync_dir(folder).at(folder)
    }
}

impl Store {
    /// A new folder of `quarantine/`, its name durable.
    pub(in crate::store) fn begin_aside(&self, why: &str, now: i64) -> Result<Aside> {
        let quarantine = self.layout.quarantine();
        self.make_folder(&quarantine, self.layout.folder())?;
        let folder = free_name(&*self.disk, &quarantine, &format!("{}-{why}", stamp::spell_name(now)))?;
        self.make_folder(&folder, &quarantine)?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Aside {
            layout: Layout::of_folder(folder),
            name: format!("quarantine/{}", name.unwrap_or_default()),
        })
    }

    /// Keeps the log and all that it may stand on; gives the names of bases, archives and rows.
    pub(in crate::store) fn keep_everything(&self, aside: &Aside) -> Result<Vec<String>> {
        let names = self.own_files()?;
        for name in &names {
            aside.keep(&*self.disk, &self.layout, name)?;
        }
        aside.copy(&*self.disk, &self.layout.synced(), "synced")?;
        aside.copy(&*self.disk, &self.layout.snapshot(), SNAPSHOT)?;
        // Last: a folder is a store once it has a log.
        aside.keep(&*self.disk, &self.layout, LOG)?;
        aside.sync(&*self.disk)?;
        Ok(names)
    }

    /// Bases, archives and rows, from the store's folder on: what has our names.
    fn own_files(&self) -> Result<Vec<String>> {
        let mut found = self.past_files()?;
        let rows = self.layout.vectors();
        if is_folder(&*self.disk, &rows) {
            let names = self.disk.list(&rows).at(&rows)?;
            let ours = names.iter().filter(|name| is_rows_file(name));
            found.extend(ours.map(|name| format!("{VECTORS}/{name}")));
        }
        Ok(found)
    }
}
