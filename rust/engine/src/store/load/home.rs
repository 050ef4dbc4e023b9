//! Finds the folder of a project's store.
//!
//! `.chronomemory` in the project. A folder that holds the files of a store itself can be looked at as well: a backup, or a
//! copy of a store. But a file called `events.wal` does not make a store of a folder: other programs have such files too. So
//! the folder must show that it is one, and even then it is only read: what lies beside the log may be anybody's.

use std::path::Path;

use chronolog::disk::{Access, Disk, Manner, read_upto};
use chronolog::event::line::FIELDS;
use chronolog::hint::first_line;
use chronolog::json::{self, Value};
use chronolog::layout::{FOLDER, Layout, is_aside_folder, is_backup_folder};
use chronolog::log::files::is_folder;
use chronolog::wal::synced::{SYNCED_BYTES, begins_as_hint};

use super::found::Traces;

/// The store of a folder that somebody names as a project.
pub fn layout_of(disk: &dyn Disk, root: &Path) -> Layout {
    let project = Layout::of_project(root);
    if disk.exists(project.folder()) {
        return project;
    }
    let here = Layout::of_folder(root.to_owned());
    let has_files = disk.status(here.log()).is_ok() || disk.status(&here.synced()).is_ok();
    if root.file_name().is_some_and(|name| name == FOLDER) {
        // The folder of a project's store, named itself; it may have lost its log, and the hint with it.
        let is_store = has_files || matches!(Traces::look(disk, &here), Ok(Some(_)));
        return if is_store { here } else { project };
    }
    // A copy that lost its log is still one, as long as its hint is there.
    if !has_files {
        return project;
    }
    let copy = Layout::of_backup(disk.real_path(root));
    if is_store(disk, &copy) { copy } else { project }
}

/// The store that somebody names to bring it back: it is only read, and verified, so that any log will do.
pub fn source_of(disk: &dyn Disk, root: &Path) -> Layout {
    let project = Layout::of_project(root);
    let copy = Layout::of_backup(disk.real_path(root));
    // A folder of `quarantine/` may hold single files and no log, and a backup of an empty store nothing at all: whoever names it
    // should hear that of it.
    let is_aside = || {
        let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (is_aside_folder(&name) || is_backup_folder(&name)) && is_folder(disk, root)
    };
    if !disk.exists(project.folder()) && (disk.status(copy.log()).is_ok() || is_aside()) {
        return copy;
    }
    project
}

/// Whether the files in a folder show that they are a store's: by the hint about the last sync, which nobody else has, or by
/// an event in a folder that is named as backups are.
fn is_store(disk: &dyn Disk, layout: &Layout) -> bool {
    disk.guard(layout.folder(), Manner::default());
    // It may be damaged: then the store is, and whoever looks at it should hear of that.
    let mut hint = Vec::new();
    let read = disk
        .open(&layout.synced(), Access::Read)
        .and_then(|file| read_upto(&*file, &mut hint, 0, SYNCED_BYTES));
    if read.is_ok() && begins_as_hint(&hint) {
        return true;
    }
    let name = layout.folder().file_name().unwrap_or_default();
    is_backup_folder(&name.to_string_lossy()) && begins_with_event(disk, layout)
}

fn begins_with_event(disk: &dyn Disk, layout: &Layout) -> bool {
    let line = disk.open(layout.log(), Access::Read).and_then(|log| {
        let length = log.length()?;
        first_line(&*log, length)
    });
    let Ok(Some(line)) = line else {
        return false;
    };
    match json::parse(&line) {
        Ok(event @ Value::Object(_)) => FIELDS.iter().all(|field| event.get(field).is_some()),
        _ => false,
    }
}
