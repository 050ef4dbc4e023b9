//! Finds the backups and quarantined files that hold what is to be erased.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chronolog::archive;
use chronolog::damage::{Damage, DamageKind};
use chronolog::disk::Access;
use chronolog::error::Result;
use chronolog::event::Known;
use chronolog::event::tie::SaidRecord;
use chronolog::json::RecordSpans;
use chronolog::layout::{
    Layout, ROWS_SUFFIX, Shape, is_archive_file, is_backup_folder, is_base_file, is_draft, is_kept_hint,
    is_quarantine_name, is_rows_file,
};
use chronolog::log::Site;
use chronolog::log::files::{is_folder, is_ours, names_in, ours_in};
use chronolog::verify::{Sink, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_state::snapshot::{self, Moments, RecordSink};

use super::chosen::{Chosen, says_a_record};
use crate::store::files::known_copies::{KnownCopies, look_into};
use crate::store::files::proofs::parts_of;

struct CopySearch<'a> {
    chosen: &'a Chosen,
    is_there: bool,
}

impl RecordSink for CopySearch<'_> {
    fn take(&mut self, record: &[u8], fields: RecordSpans, _: Option<Moments>) {
        let said = fields.id.map(|id| SaidRecord::of(id.of(record), record, fields));
        self.is_there = self.is_there || said.is_some_and(|said| self.chosen.takes(&said));
    }
}

impl Sink for CopySearch<'_> {
    fn count(&mut self, known: Known<'_>, _: i64) {
        self.is_there = self.is_there || self.chosen.doomed.takes(&known) || {
            says_a_record(known.op) && {
                let said = SaidRecord::of(known.id, known.record, known.fields);
                self.chosen.would_take(&said)
            }
        };
    }
}

/// Looks whether copies are free of what is erased.
pub(in crate::store) struct CopyCheck<'a> {
    pub site: &'a Site,
    pub threads: usize,
    /// The records whose lines go, and what else would if the log told of it: what was set aside may know more.
    pub chosen: &'a Chosen,
    /// The spaces that ever had rows of them; `None` if the history that is kept does not tell.
    pub spaces: Option<&'a BTreeSet<String>>,
    /// No history is kept: pieces of it are no better, since the hashes in them go on from those that were.
    pub drops_history: bool,
    /// A copy that cannot be read to its end counts as free of it if its readable part is.
    pub passes_unread: bool,
}

impl<'a> CopyCheck<'a> {
    /// A check of copies that must be readable; every file of rows may hold an erased one.
    pub fn of(site: &'a Site, threads: usize, chosen: &'a Chosen) -> Self {
        Self {
            site,
            threads,
            chosen,
            spaces: None,
            drops_history: false,
            passes_unread: false,
        }
    }

    fn search(&self) -> CopySearch<'a> {
        CopySearch {
            chosen: self.chosen,
            is_there: false,
        }
    }

    /// Whether a file of rows may hold some of them: nothing in it tells whose they are.
    fn may_be_in_rows(&self, name: &str) -> bool {
        if self.passes_unread {
            return false;
        }
        let space = name.strip_suffix(ROWS_SUFFIX).and_then(|name| name.rsplit_once('.'));
        match (self.spaces, space) {
            (Some(spaces), Some((space, _))) => spaces.contains(space),
            _ => true,
        }
    }

    /// The backups that hold one of the records, or cannot be read to their end, named from the store's folder on.
    pub fn backups(&self) -> Result<Vec<String>> {
        let (mut found, backups) = (Vec::new(), self.site.layout.backups());
        for name in ours_in(&*self.site.disk, &backups, is_backup_folder)? {
            if !self.is_copy_clean(&backups.join(&name))? {
                found.push(format!("backup/{name}"));
            }
        }
        Ok(found)
    }

    /// Whether something in `quarantine/` can be read and holds none of them.
    fn is_aside_clean(&self, name: &str) -> Result<bool> {
        let disk = &*self.site.disk;
        let path = self.site.layout.quarantine().join(name);
        Ok(match names_in(disk, &path)?.is_some() {
            _ if self.drops_history => false,
            // What was set aside need not have the log that tells whose its rows are.
            true => {
                let rows = ours_in(disk, &Layout::of_folder(path.clone()).vectors(), is_rows_file)?;
                (self.passes_unread || !has_drafts(self.site, &path)?)
                    && !rows.iter().any(|name| self.may_be_in_rows(name))
                    && self.is_copy_clean(&path)?
            }
            false if is_rows_file(name) => !self.may_be_in_rows(name),
            false if is_kept_hint(name) => true,
            false if is_base_file(name) => self.is_state_clean(&path),
            false => self.is_log_clean(&path),
        })
    }

    /// The known copies outside that hold one of the records or cannot be read, and those that are not there now.
    pub fn outside(&self, known: &KnownCopies) -> (Vec<String>, Vec<String>) {
        let (mut holding, mut missing) = (Vec::new(), Vec::new());
        let disk = &*self.site.disk;
        for copy in &known.0 {
            let mut there = [copy.folder(), copy.draft()]
                .into_iter()
                .filter(|path| disk.exists(path))
                .peekable();
            if there.peek().is_none() {
                missing.push(copy.path.clone());
            }
            for path in there {
                // An unfinished copy may hold anything: its files need not have their names yet.
                let is_clean = path != copy.draft()
                    && look_into(disk, &path, |inside| {
                        is_folder(disk, inside.folder()) && self.is_copy_clean(inside.folder()).unwrap_or(false)
                    });
                if !is_clean {
                    holding.push(path.display().to_string());
                }
            }
        }
        (holding, missing)
    }

    /// Whether all that a copy of a store holds can be read, and none of it goes.
    pub fn is_copy_clean(&self, folder: &Path) -> Result<bool> {
        let disk = &*self.site.disk;
        let inside = Layout::of_folder(folder.to_owned());
        names_in(disk, folder)?;
        let files = |folder: PathBuf, is_named_so: Shape| -> Result<Vec<PathBuf>> {
            let names = ours_in(disk, &folder, is_named_so)?.into_iter();
            Ok(names
                .map(|name| folder.join(name))
                .filter(|path| is_ours(disk, path))
                .collect())
        };
        // Both are listed before any is read: a folder that cannot be listed is an error, whatever the other one holds.
        let (bases, archives) = (
            files(inside.bases(), is_base_file)?,
            files(inside.archives(), is_archive_file)?,
        );
        if !bases.iter().all(|path| self.is_state_clean(path)) || !archives.iter().all(|path| self.is_log_clean(path)) {
            return Ok(false);
        }
        let snapshot = inside.snapshot();
        let is_clean = !is_ours(disk, &snapshot) || self.is_state_clean(&snapshot);
        Ok(is_clean && (!is_ours(disk, inside.log()) || self.is_log_clean(inside.log())))
    }

    /// Whether a file is a state that holds none of the records that go, read to its end.
    fn is_state_clean(&self, path: &Path) -> bool {
        let mut search = self.search();
        let read = archive::open(&*self.site.disk, path).and_then(|base| snapshot::read(&*base.log, &mut search));
        (self.passes_unread || read.is_ok_and(|contents| contents.header.is_ok())) && !search.is_there
    }

    /// Whether a log, packed or not, can be read to its end and has no line that goes.
    fn is_log_clean(&self, path: &Path) -> bool {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let log = match is_archive_file(&name) {
            true => archive::open(&*self.site.disk, path).map(|archive| archive.log),
            false => self.site.disk.open(path, Access::Read),
        };
        let Ok(log) = log else {
            return self.passes_unread;
        };
        let (mut search, mut walk) = (self.search(), Walk::new(None));
        let read = log
            .length()
            .and_then(|length| walk.go(&*log, length, Reading::new(self.threads), &mut search));
        // A tail begins somewhere in a log: what it was linked to is not in it.
        let is_start = |damage: &Damage| damage.kind == DamageKind::Unlinked && damage.line == 1;
        let is_whole = read.is_ok_and(|tail| tail.is_none()) && walk.follower.damage.iter().all(is_start);
        (is_whole || self.passes_unread) && !search.is_there
    }
}

/// What was looked at in `quarantine/`.
#[derive(Default)]
pub(in crate::store) struct SearchedQuarantine {
    seen: BTreeSet<String>,
    /// What holds one of the records, or cannot be read to its end, named from the store's folder on.
    pub holding: Vec<String>,
}

impl SearchedQuarantine {
    /// Looks at what was not looked at yet.
    pub fn look(&mut self, check: &CopyCheck<'_>) -> Result<()> {
        for name in ours_in(&*check.site.disk, &check.site.layout.quarantine(), is_quarantine_name)? {
            if !self.seen.contains(&name) {
                if !check.is_aside_clean(&name)? {
                    self.holding.push(format!("quarantine/{name}"));
                }
                self.seen.insert(name);
            }
        }
        Ok(())
    }
}

fn has_drafts(site: &Site, folder: &Path) -> Result<bool> {
    let drafts = parts_of(&Layout::of_folder(folder.to_owned())).map(|(part, _, is_named_so)| (part, is_named_so));
    for (place, is_named_so) in drafts.into_iter().chain([(folder.to_owned(), is_draft as Shape)]) {
        if !ours_in(&*site.disk, &place, is_named_so)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
