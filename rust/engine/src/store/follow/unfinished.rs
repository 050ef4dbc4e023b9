//! Ends an erasure that somebody could not finish.

use std::path::Path;

use chronolog::error::Result;
use chronolog::layout::{ERASING, digest_in_base_name, is_draft, is_text_draft, short_digest_in_archive_name};
use chronolog::log::files::{remove_if_there, remove_ours};
use chronolog::log::{Log, Site};
use chronolog::origin::{Origin, Sentinel};
use chronomemory_state::state::State;

use crate::store::files::erasing::Erasing;
use crate::store::files::snapshots::remove_indexes;
use crate::store::vectors::Vectors;

/// Whether a file is called as a base with this digest is, packed or not.
fn is_of(file: &str, sha256: &str) -> bool {
    digest_in_base_name(file) == Some(sha256)
}

/// Under the lock: if the log tells of the erasure that `erasing` speaks of, what that names is removed, and all that is
/// derived; if not, nothing has happened, and only what was begun aside goes.
///
/// # Errors
/// `Io`.
pub(in crate::store) fn finish_erasing(site: &Site, log: &Log, state: &State, vectors: &Vectors) -> Result<()> {
    let Some(left) = Erasing::read(site)? else {
        return Ok(());
    };
    match log.open().map(|log| &log.origin) {
        Some(Origin::Ours(sentinel)) if left.base.is_some() && sentinel.told.base == left.base => {
            let names_rows = |path: &Path| vectors.names_rows(state, path);
            left.carry_out(site, |name| may_go(site, sentinel, names_rows, name))?;
            // What somebody was sealing, and could not finish, holds words too. Drafts first, and files once more: one may get
            // its name while others are removed, and none has a draft that was begun before.
            remove_ours(&*site.disk, &site.layout.text_indexes(), is_text_draft)?;
            // A snapshot that somebody was writing, and could not finish, too.
            remove_ours(&*site.disk, site.layout.folder(), is_draft)?;
            remove_indexes(site)?;
            remove_indexes(site)?;
            remove_if_there(&*site.disk, &site.layout.snapshot())?;
        }
        _ => left.remove_drafts(site)?,
    }
    Erasing::end(site)
}

/// Whether a file is none that the log or its past names.
fn may_go(site: &Site, sentinel: &Sentinel, names_rows: impl Fn(&Path) -> bool, name: &str) -> bool {
    let path = site.layout.inside(name);
    match name.split_once('/') {
        Some(("vectors", _)) => !names_rows(&path),
        Some(("backup" | "quarantine", _)) => true,
        Some(("base", file)) if sentinel.told.base.is_some_and(|base| is_of(file, base.text())) => false,
        // Nothing of the past is named where none was kept.
        _ if sentinel.archive.is_none() => true,
        Some((folder, file)) => {
            let told = sentinel.told.erasure.iter().flat_map(|told| &told.replaced);
            let mut olds = told.map(|one| one.old.text());
            match folder {
                "base" => olds.any(|old| is_of(file, old)),
                _ => short_digest_in_archive_name(file).is_some_and(|short| olds.any(|old| old.starts_with(short))),
            }
        }
        None => false,
    }
}

/// Whether somebody left an erasure unfinished.
pub(in crate::store) fn is_erasing(site: &Site) -> bool {
    site.disk.exists(&site.layout.inside(ERASING))
}
