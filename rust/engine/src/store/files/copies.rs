//! Lists the files of a store that are carried along when it is copied.

use std::collections::BTreeSet;

use chronolog::disk::Disk;
use chronolog::error::{At, Result};
use chronolog::layout::{Layout, is_archive_file, is_base_file};
use chronolog::log::Site;
use chronolog::log::files::{is_folder, is_ours};

/// The folders whose files never change once they have their name.
pub(in crate::store) const IMMUTABLE: [&str; 2] = ["base", "archive"];

/// The names in one of these folders that are ours: of the right shape, and files.
pub(in crate::store) fn immutable_names(disk: &dyn Disk, layout: &Layout, folder: &str) -> Result<Vec<String>> {
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

/// Bases and archives of ours that are not among these, from the store's folder on. Only of those the system is asked what
/// they are: the others are many.
pub(in crate::store) fn past_files_beside(site: &Site, named: &BTreeSet<String>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (folder, is_named_so) in [("base", is_base_file as fn(&str) -> bool), ("archive", is_archive_file)] {
        let names = names_in(site, folder)?.into_iter().filter(|name| is_named_so(name));
        let names = names.map(|name| format!("{folder}/{name}"));
        found.extend(names.filter(|name| !named.contains(name) && is_ours(&*site.disk, &site.layout.inside(name))));
    }
    Ok(found)
}

/// All names in a folder of the store; none if it is not there.
pub(in crate::store) fn names_in(site: &Site, folder: &str) -> Result<Vec<String>> {
    let path = site.layout.inside(folder);
    match is_folder(&*site.disk, &path) {
        true => site.disk.list(&path).at(&path),
        false => Ok(Vec::new()),
    }
}

/// Bases and archives of ours, from the store's folder on.
pub(in crate::store) fn past_files(site: &Site) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in IMMUTABLE {
        let names = immutable_names(&*site.disk, &site.layout, folder)?;
        found.extend(names.iter().map(|name| format!("{folder}/{name}")));
    }
    Ok(found)
}

/// The folder of rows. They do not change once the log names them, but more may come behind.
pub(in crate::store) const VECTORS: &str = "vectors";
