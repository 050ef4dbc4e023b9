//! The file `erasing`: what is left to do of an erasure, so that the next process can finish it.
//!
//! It is written before the log is replaced, and removed when all that it names is gone; only names of our shape that the
//! log does not name are removed. While a restore cleans a copy, it names that folder and no base.

use std::path::Path;

use super::proofs::parts_of;

use chronolog::digest::Hex;
use chronolog::disk::{Disk, read_whole};
use chronolog::error::{At, Result};
use chronolog::json::{self, Value};
use chronolog::layout::{
    ERASING, Layout, Shape, is_archive_file, is_backup_draft, is_backup_folder, is_base_file, is_in_backup,
    is_in_draft, is_quarantine_name, is_rows_file,
};
use chronolog::log::Site;
use chronolog::log::files::{is_folder, is_ours, names_in, remove_if_there, remove_ours};

#[derive(Debug)]
pub(in crate::store) struct Erasing {
    /// The base of the log that tells of it; something else if it cannot be read.
    pub base: Option<Hex>,
    pub remove: Vec<String>,
}

impl Erasing {
    /// What is left to do; `None` if nothing is.
    pub fn read(site: &Site) -> Result<Option<Self>> {
        let path = site.layout.inside(ERASING);
        let Some(bytes) = read_whole(&*site.disk, &path).at(&path)? else {
            return Ok(None);
        };
        // One that a crash tore was never followed by a new log.
        let value = json::parse(&bytes).ok();
        let field = |name: &str| value.as_ref()?.get(name);
        let base = field("base").and_then(Value::as_str);
        let named = field("remove").and_then(Value::as_array).unwrap_or_default();
        let names = named.iter().filter_map(Value::as_str);
        Ok(Some(Self {
            base: base.and_then(|digits| Hex::read(digits.as_bytes())),
            remove: names.map(str::to_owned).collect(),
        }))
    }

    pub fn write(&self, site: &Site) -> Result<()> {
        let (path, folder) = (site.layout.inside(ERASING), site.layout.folder());
        let names = self.remove.iter().map(|name| Value::Str(name.clone())).collect();
        let base = self.base.map_or(Value::Null, |base| Value::Str(base.text().to_owned()));
        let mut bytes = Value::object([("base", base), ("remove", Value::Array(names))]).to_bytes();
        bytes.push(b'\n');
        let file = site.disk.create(&path).at(&path)?;
        file.write_at(&bytes, 0).at(&path)?;
        file.sync().at(&path)?;
        site.disk.sync_dir(folder).at(folder)
    }

    /// Removes what it names, as far as `may_go` lets it; each folder is synced.
    pub fn carry_out(&self, site: &Site, may_go: impl Fn(&str) -> bool) -> Result<()> {
        let disk = &*site.disk;
        for name in self.remove.iter().filter(|name| may_go(name)) {
            let path = site.layout.inside(name);
            match name.split_once('/') {
                Some(("base", file)) if is_base_file(file) => remove_file(disk, &path)?,
                Some(("archive", file)) if is_archive_file(file) => remove_file(disk, &path)?,
                Some(("vectors", file)) if is_rows_file(file) => remove_file(disk, &path)?,
                Some(("backup", folder)) if is_backup_folder(folder) => remove_copy(disk, &path, is_in_backup)?,
                Some(("quarantine", what)) if is_quarantine_name(what) => match names_in(disk, &path)?.is_some() {
                    true => remove_copy(disk, &path, is_in_backup)?,
                    false => remove_file(disk, &path)?,
                },
                _ => {}
            }
        }
        for folder in ["base", "archive", "vectors", "backup", "quarantine"] {
            let path = site.layout.inside(folder);
            if is_folder(disk, &path) {
                disk.sync_dir(&path).at(&path)?;
            }
        }
        Ok(())
    }

    /// If nothing has happened: removes the folders in which a restore was cleaning a copy, durably.
    pub fn remove_drafts(&self, site: &Site) -> Result<()> {
        let is_draft = |name: &&String| name.strip_prefix("backup/").is_some_and(is_backup_draft);
        let mut drafts = self.remove.iter().filter(is_draft);
        drafts.try_for_each(|name| remove_draft(&*site.disk, &site.layout.inside(name)))
    }

    pub fn end(site: &Site) -> Result<()> {
        let folder = site.layout.folder();
        remove_if_there(&*site.disk, &site.layout.inside(ERASING))?;
        site.disk.sync_dir(folder).at(folder)
    }
}

fn remove_file(disk: &dyn Disk, path: &Path) -> Result<()> {
    match is_ours(disk, path) {
        true => remove_if_there(disk, path),
        false => Ok(()),
    }
}

/// Removes a folder that is no copy yet, or not any more, durably.
pub(in crate::store) fn remove_draft(disk: &dyn Disk, folder: &Path) -> Result<()> {
    if !is_folder(disk, folder) {
        return Ok(());
    }
    remove_copy(disk, folder, is_in_draft)?;
    let around = folder.parent().unwrap_or(Path::new("/"));
    disk.sync_dir(around).at(around)
}

/// Removes a copy of a store: the files of ours in it, and the folders that are empty then. What others put there stays.
pub(in crate::store) fn remove_copy(disk: &dyn Disk, folder: &Path, is_directly_in_it: Shape) -> Result<()> {
    let remove = |path: &Path, is_named_so: &dyn Fn(&str) -> bool| -> Result<()> {
        // What cannot be looked into is no reason to say that it is gone.
        if names_in(disk, path)?.is_some() {
            remove_ours(disk, path, is_named_so)?;
            disk.sync_dir(path).at(path)?;
            if disk.list(path).at(path)?.is_empty() {
                disk.remove_dir(path).at(path)?;
            }
        }
        Ok(())
    };
    for (path, is_file, is_draft) in parts_of(&Layout::of_folder(folder.to_owned())) {
        remove(&path, &|name| is_file(name) || is_draft(name))?;
    }
    remove(folder, &is_directly_in_it)
}
