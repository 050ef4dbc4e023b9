//! Ends an erasure that somebody could not finish.

use crate::error::Result;
use crate::layout::{ERASING, digest_in_base_name, is_draft, is_text_draft, short_digest_in_archive_name};
use crate::log::files::{remove_if_there, remove_ours};
use crate::origin::{Origin, Sentinel};

use crate::store::Store;
use crate::store::files::erasing::Erasing;
use crate::store::files::snapshots::remove_indexes;

/// Whether a file is called as a base with this digest is, packed or not.
fn is_of(file: &str, sha256: &str) -> bool {
    digest_in_base_name(file) == Some(sha256)
}

impl Store {
    /// Under the lock: if the log tells of the erasure that `erasing` speaks of, what that names is removed, and all that is
    /// derived; if not, nothing has happened, and only what was begun aside goes.
    ///
    /// # Errors
    /// `Io`.
    pub(in crate::store) fn finish_erasing(&mut self) -> Result<()> {
        let Some(left) = Erasing::read(&self.site)? else {
            return Ok(());
        };
        let sentinel = match self.log.open().map(|log| &log.origin) {
            Some(Origin::Ours(sentinel)) if left.base.is_some() && sentinel.told.base == left.base => {
                Some(sentinel.clone())
            }
            _ => None,
        };
        if let Some(sentinel) = sentinel {
            left.carry_out(&self.site, |name| self.may_go(&sentinel, name))?;
            // What somebody was sealing, and could not finish, holds words too. Drafts first, and files once more: one may get
            // its name while others are removed, and none has a draft that was begun before.
            remove_ours(&*self.site.disk, &self.site.layout.text_indexes(), is_text_draft)?;
            // A snapshot that somebody was writing, and could not finish, too.
            remove_ours(&*self.site.disk, self.site.layout.folder(), is_draft)?;
            remove_indexes(&self.site)?;
            remove_indexes(&self.site)?;
            remove_if_there(&*self.site.disk, &self.site.layout.snapshot())?;
        } else {
            left.remove_drafts(&self.site)?;
        }
        Erasing::end(&self.site)
    }

    /// Whether a file is none that the log or its past names.
    fn may_go(&self, sentinel: &Sentinel, name: &str) -> bool {
        let path = self.site.layout.inside(name);
        match name.split_once('/') {
            Some(("vectors", _)) => !self.vectors.names_rows(&self.state, &path),
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
    pub(in crate::store) fn is_erasing(&self) -> bool {
        self.site.disk.exists(&self.site.layout.inside(ERASING))
    }
}
