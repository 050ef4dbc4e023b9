//! Keeps what a repair or a restore replaces, in `quarantine/`, so that `restore` can bring it back.
//!
//! It is a store of its own: the log, and every file that it stands on, each by a second name where the file system
//! can, else by a copy.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use chronolog::error::{At, Result};
use chronolog::event::stamp;
use chronolog::layout::{LOG, Layout, SNAPSHOT, is_rows_file};
use chronolog::log::files::{copy_file, free_name, is_folder, ours_in};

use super::proofs::{VECTORS, past_files_beside};
use chronolog::log::Site;

/// A folder of `quarantine/` that keeps files of a store.
pub(in crate::store) struct QuarantineFolder {
    site: Arc<Site>,
    layout: Layout,
    name: String,
}

impl QuarantineFolder {
    /// A new folder of `quarantine/`, its name durable.
    pub fn begin(site: &Arc<Site>, why: &str, now: i64) -> Result<Self> {
        let quarantine = site.layout.quarantine();
        site.make_folder(&quarantine, site.layout.folder())?;
        let folder = free_name(&*site.disk, &quarantine, &format!("{}-{why}", stamp::spell_name(now)))?;
        site.make_folder(&folder, &quarantine)?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self {
            site: Arc::clone(site),
            layout: Layout::of_folder(folder),
            name: format!("quarantine/{}", name.unwrap_or_default()),
        })
    }

    /// Keeps all that a restore is about to replace; gives the names of bases, archives and rows, and where all of it is kept.
    pub fn before_restore(site: &Arc<Site>, now: i64) -> Result<(Vec<String>, String)> {
        let aside = Self::begin(site, "before-restore", now)?;
        Ok((aside.keep_everything()?, aside.name))
    }

    /// Keeps the log and all that it may stand on; gives the names of bases, archives and rows.
    pub fn keep_everything(&self) -> Result<Vec<String>> {
        let names = own_files(&self.site)?;
        for name in &names {
            self.keep(name)?;
        }
        self.copy(&self.site.layout.synced(), "synced")?;
        self.copy(&self.site.layout.snapshot(), SNAPSHOT)?;
        // Last: a folder is a store once it has a log.
        self.keep(LOG)?;
        self.sync()?;
        Ok(names)
    }

    /// Keeps one file under the name that it has in the store; one that is not there is passed over.
    pub fn keep(&self, name: &str) -> Result<()> {
        let disk = &*self.site.disk;
        let (source, target) = (self.site.layout.inside(name), self.layout.inside(name));
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
    fn copy(&self, source: &Path, name: &str) -> Result<()> {
        let disk = &*self.site.disk;
        if disk.status(source).is_ok() && !is_folder(disk, source) {
            copy_file(disk, source, &self.layout.inside(name), None)?;
        }
        Ok(())
    }

    /// The folder, from the store's folder on, if it holds anything; an empty one is taken away again.
    pub fn name_if_used(&self) -> Result<Option<String>> {
        let disk = &*self.site.disk;
        let folder = self.layout.folder();
        if !disk.list(folder).at(folder)?.is_empty() {
            return Ok(Some(self.name.clone()));
        }
        disk.remove_dir(folder).at(folder)?;
        Ok(None)
    }

    pub fn sync(&self) -> Result<()> {
        let disk = &*self.site.disk;
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

/// Bases, archives and rows, from the store's folder on: what has our names.
fn own_files(site: &Site) -> Result<Vec<String>> {
    let mut found = past_files_beside(site, &BTreeSet::new())?;
    let rows = ours_in(&*site.disk, &site.layout.vectors(), is_rows_file)?;
    found.extend(rows.into_iter().map(|name| format!("{VECTORS}/{name}")));
    Ok(found)
}
