//! Checks that every copy can be read that may prove something, before a repair.
//!
//! What is lost in the log may lie whole in a copy. Who repairs beside a copy that only others may read would give it up for
//! good: afterwards nothing is damaged, and nobody looks for it any more.

use std::io;
use std::path::{Path, PathBuf};

use chronolog::disk::{Access, Stranger};
use chronolog::error::{At, Result};
use chronolog::layout::is_rows_file;
use chronolog::layout::{
    Layout, Shape, is_archive_file, is_backup_folder, is_base_file, is_in_backup, is_quarantine_name,
};
use chronolog::log::Site;
use chronolog::log::files::{names_in, ours_in};

/// Refuses if a copy, or what was set aside, cannot be looked into.
///
/// # Errors
/// `Io`, which names it.
pub(super) fn check_copies_can_be_read(site: &Site) -> Result<()> {
    let kept: [(PathBuf, Shape); 2] = [
        (site.layout.backups(), is_backup_folder),
        (site.layout.quarantine(), is_quarantine_name),
    ];
    for (folder, is_named_so) in kept {
        for name in ours_in(&*site.disk, &folder, is_named_so)? {
            check_copy(site, &folder.join(name))?;
        }
    }
    Ok(())
}

/// The same of one copy: a folder, or a file alone.
fn check_copy(site: &Site, path: &Path) -> Result<()> {
    if names_in(&*site.disk, path)?.is_none() {
        return check_file(site, path);
    }
    let inside = Layout::of_folder(path.to_owned());
    let folders: [(PathBuf, Shape); 4] = [
        (path.to_owned(), is_in_backup),
        (inside.bases(), is_base_file),
        (inside.archives(), is_archive_file),
        (inside.vectors(), is_rows_file),
    ];
    for (folder, is_named_so) in folders {
        for name in ours_in(&*site.disk, &folder, is_named_so)? {
            check_file(site, &folder.join(name))?;
        }
    }
    Ok(())
}

fn check_file(site: &Site, path: &Path) -> Result<()> {
    match site.disk.open(path, Access::Read) {
        Ok(_) => Ok(()),
        // Somebody removed it meanwhile, or what is there is nobody's copy.
        Err(fault) if fault.kind() == io::ErrorKind::NotFound || Stranger::in_error(&fault).is_some() => Ok(()),
        Err(fault) => Err(fault).at(path),
    }
}
