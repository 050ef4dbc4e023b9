//! Lists the files of a store and of its copies, and finds bytes that a digest names in backups and set-aside folders.
//!
//! A base or an archive proves itself by its digest. What cannot be read proves nothing and is passed over.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::store::load::found::our_names;
use chronolog::archive::{self, Archive};
use chronolog::digest::Hex;
use chronolog::disk::{Access, Disk, DiskFile, Naming, read_upto};
use chronolog::error::{At, Result};
use chronolog::layout::{
    Layout, Shape, base_name, digest_in_base_name, is_archive_draft, is_archive_file, is_aside_folder,
    is_backup_folder, is_base_draft, is_base_file, is_rows_draft, is_rows_file, packed_base_name,
};
use chronolog::log::Site;
use chronolog::log::files::{is_folder, open_base};
use chronolog::origin::ALONE;
use chronolog::wal::reader::read_pieces;

/// The folders beside the store that are laid out like it: backups, and what recovery set aside; newest first.
pub(in crate::store) fn other_folders(disk: &dyn Disk, layout: &Layout) -> Vec<Layout> {
    let mut found = folders_in(disk, &layout.backups(), |_| true);
    found.extend(folders_in(disk, &layout.quarantine(), |_| true));
    found
}

/// The folders of a place whose names are of a shape of ours, laid out like the store; newest first.
fn folders_in(disk: &dyn Disk, parent: &std::path::Path, is_named_so: Shape) -> Vec<Layout> {
    let folders = listed(disk, parent, is_named_so).into_iter().rev();
    let there = folders
        .map(|name| parent.join(name))
        .filter(|path| is_folder(disk, path));
    there.map(Layout::of_folder).collect()
}

/// The names in a folder that have a shape of ours; none if it cannot be read.
pub(in crate::store) fn listed(disk: &dyn Disk, folder: &std::path::Path, is_named_so: Shape) -> Vec<String> {
    let mut names = match is_folder(disk, folder) {
        true => disk.list(folder).unwrap_or_default(),
        false => Vec::new(),
    };
    names.retain(|name| is_named_so(name));
    names
}

/// The folders that recovery set aside.
pub(in crate::store) fn set_aside(disk: &dyn Disk, layout: &Layout) -> Vec<Layout> {
    folders_in(disk, &layout.quarantine(), is_aside_folder)
}

/// Backups and quarantined folders whose log holds an event: they show that there was a log.
pub(in crate::store) fn copies_of_logs(disk: &dyn Disk, layout: &Layout) -> impl Iterator<Item = Layout> {
    let folders = backup_folders(disk, layout).into_iter().chain(set_aside(disk, layout));
    folders.filter(|copy| disk.open(copy.log(), Access::Read).is_ok_and(|log| holds_event(&*log)))
}

fn holds_event(log: &dyn DiskFile) -> bool {
    let mut found = false;
    let looked = log.length().and_then(|length| {
        read_pieces(log, 0..length, ALONE, |piece| {
            found = piece.lines.iter().any(|line| line.event.is_ok());
            io::Result::Ok(!found)
        })
    });
    looked.is_ok() && found
}

pub(in crate::store) fn backup_folders(disk: &dyn Disk, layout: &Layout) -> Vec<Layout> {
    folders_in(disk, &layout.backups(), is_backup_folder)
}

/// A path as reports name it: from the store's folder on.
pub(in crate::store) fn shown(layout: &Layout, path: &std::path::Path) -> String {
    path.strip_prefix(layout.folder())
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

/// Where a file of this name may lie apart from its own place. Earlier versions put single files aside.
fn places(disk: &dyn Disk, layout: &Layout, name: &str) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = other_folders(disk, layout)
        .iter()
        .map(|other| other.inside(name))
        .collect();
    let quarantine = layout.quarantine();
    let short = name.rsplit('/').next().unwrap_or(name);
    let names = disk.list(&quarantine).unwrap_or_default();
    places.extend(
        names
            .iter()
            .filter(|other| other.starts_with(short))
            .map(|other| quarantine.join(other)),
    );
    places
}

/// Every file in the folders of ours: two may have been swapped.
fn misplaced(disk: &dyn Disk, layout: &Layout) -> Vec<PathBuf> {
    let folders = [layout.folder().to_owned(), layout.bases(), layout.archives()];
    let there = folders.into_iter().filter(|folder| is_folder(disk, folder));
    there
        .flat_map(|folder| {
            let names = disk.list(&folder).unwrap_or_default();
            names.into_iter().map(move |name| folder.join(name))
        })
        .filter(|path| path != layout.log())
        .collect()
}

/// Whether a file begins as bases do; what is packed does not, and may be long.
fn is_json(file: &dyn DiskFile) -> bool {
    let mut first = Vec::new();
    read_upto(file, &mut first, 0, 1).is_ok_and(|_| first == b"{")
}

/// A copy of a base elsewhere in the folder, proved by its digest, and where it lies.
pub(in crate::store) fn copy_of_base(
    disk: &dyn Disk,
    layout: &Layout,
    sha256: &Hex,
) -> Option<(String, Arc<dyn DiskFile>)> {
    called_copy_of_base(disk, layout, sha256).or_else(|| {
        misplaced(disk, layout).into_iter().find_map(|path| {
            let file = disk.open(&path, Access::Read).ok().filter(|file| is_json(&**file))?;
            archive::has_digest(&*file, sha256).then(|| (shown(layout, &path), file))
        })
    })
}

/// One that is called as it should be, in a copy of the store, or packed at its own place: the live log has none that is.
pub(in crate::store) fn called_copy_of_base(
    disk: &dyn Disk,
    layout: &Layout,
    sha256: &Hex,
) -> Option<(String, Arc<dyn DiskFile>)> {
    let packed = packed_base_name(sha256.text());
    let elsewhere = [base_name(sha256.text()), packed.clone()].map(|name| (places(disk, layout, &name), name));
    let own = (vec![layout.inside(&packed)], packed);
    [own].into_iter().chain(elsewhere).find_map(|(paths, name)| {
        paths.into_iter().find_map(|path| {
            let file = archive::open_as(disk, &path, &name).ok()?.log;
            archive::has_digest(&*file, sha256).then(|| (shown(layout, &path), file))
        })
    })
}

/// A base at its own place, packed or not, proved by its digest.
pub(in crate::store) fn own_base(disk: &dyn Disk, layout: &Layout, sha256: &Hex) -> Option<Arc<dyn DiskFile>> {
    let (_, base) = open_base(disk, layout, sha256).ok().flatten()?;
    archive::has_digest(&*base.log, sha256).then_some(base.log)
}

pub(in crate::store) fn proved_base(disk: &dyn Disk, layout: &Layout, sha256: &Hex) -> Option<Arc<dyn DiskFile>> {
    own_base(disk, layout, sha256).or_else(|| copy_of_base(disk, layout, sha256).map(|(_, file)| file))
}

/// The digests that the files of `base/` are called by.
pub(in crate::store) fn digests_of_bases(disk: &dyn Disk, layout: &Layout) -> Vec<Hex> {
    let names = listed(disk, &layout.bases(), is_base_file);
    let digest = |name: &String| Hex::read(digest_in_base_name(name)?.as_bytes());
    names.iter().filter_map(digest).collect()
}

/// A copy of an archive elsewhere in the folder, proved by its digest.
pub(in crate::store) fn copy_of_archive(disk: &dyn Disk, layout: &Layout, name: &str, digest: &str) -> Option<Archive> {
    let mut found = places(disk, layout, name).into_iter();
    found.find_map(|path| {
        let archive = archive::open_as(disk, &path, name).ok()?;
        is_it(&archive, digest).then_some(archive)
    })
}

/// An archive at its own place or elsewhere, proved by its digest.
pub(in crate::store) fn proved_archive(disk: &dyn Disk, layout: &Layout, name: &str, digest: &str) -> Option<Archive> {
    let own = archive::open(disk, &layout.inside(name)).ok();
    own.filter(|archive| is_it(archive, digest))
        .or_else(|| copy_of_archive(disk, layout, name, digest))
}

pub(in crate::store) fn is_it(archive: &Archive, digest: &str) -> bool {
    archive::file_digest(&*archive.packed).is_ok_and(|found| found.text() == digest)
}

/// The folders that restores have set aside, each with the log that was left; oldest first.
pub(in crate::store) fn left_by_restores(disk: &dyn Disk, layout: &Layout) -> Vec<Layout> {
    let mut folders = folders_in(disk, &layout.quarantine(), |name| name.contains("-before-restore"));
    folders.reverse();
    folders
}

/// Whether a restore ever went back here: then lines of copies may be of a history that was left behind.
pub(in crate::store) fn was_restored(disk: &dyn Disk, layout: &Layout) -> bool {
    let names = disk.list(&layout.quarantine()).unwrap_or_default();
    let marks = ["-before-restore", "-replaced-by-restore"];
    names.iter().any(|name| marks.iter().any(|mark| name.contains(mark)))
}

/// Logs elsewhere in the folder, which may hold lines that the live one has lost.
pub(in crate::store) fn other_logs(disk: &dyn Disk, layout: &Layout) -> io::Result<Vec<Arc<dyn DiskFile>>> {
    let mut paths: Vec<PathBuf> = other_folders(disk, layout)
        .iter()
        .map(|other| other.log().to_owned())
        .collect();
    let quarantine = layout.quarantine();
    for name in disk.list(&quarantine).naming(&quarantine)? {
        let path = quarantine.join(&name);
        if (name.contains("-damaged-log") || name.contains("-replaced-by-restore")) && !is_folder(disk, &path) {
            paths.push(path);
        }
    }
    Ok(paths
        .iter()
        .filter_map(|path| disk.open(path, Access::Read).ok())
        .collect())
}

/// The folders in which a store or a copy keeps files, and how finished and unfinished ones are named there.
pub(in crate::store) fn parts_of(layout: &Layout) -> [(PathBuf, Shape, Shape); 3] {
    [
        (layout.bases(), is_base_file, is_base_draft),
        (layout.archives(), is_archive_file, is_archive_draft),
        (layout.vectors(), is_rows_file, is_rows_draft),
    ]
}

/// The folders whose files never change once they have their name.
pub(in crate::store) const IMMUTABLE: [&str; 2] = ["base", "archive"];

/// The names in one of these folders that are ours: of the right shape, and files.
pub(in crate::store) fn immutable_names(disk: &dyn Disk, layout: &Layout, folder: &str) -> Result<Vec<String>> {
    let path = layout.inside(folder);
    let is_named_so: Shape = match path == layout.bases() {
        true => is_base_file,
        false => is_archive_file,
    };
    our_names(disk, &path, is_named_so).at(&path)
}

/// Bases and archives with our names that are not among these, from the store's folder on.
pub(in crate::store) fn past_files_beside(site: &Site, named: &BTreeSet<String>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in IMMUTABLE {
        let names = immutable_names(&*site.disk, &site.layout, folder)?.into_iter();
        let names = names.map(|name| format!("{folder}/{name}"));
        found.extend(names.filter(|name| !named.contains(name)));
    }
    Ok(found)
}

/// The folder of rows. They do not change once the log names them, but more may come behind.
pub(in crate::store) const VECTORS: &str = "vectors";
