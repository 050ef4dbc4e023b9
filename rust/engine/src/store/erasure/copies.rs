//! Finds the backups and quarantined files that hold what is to be erased.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chronolog::archive;
use chronolog::disk::Access;
use chronolog::error::Result;
use chronolog::event::Known;
use chronolog::event::tie::SaidRecord;
use chronolog::json::RecordSpans;
use chronolog::layout::{
    Layout, ROWS_SUFFIX, Shape, is_archive_draft, is_archive_file, is_backup_folder, is_base_draft, is_base_file,
    is_draft, is_kept_hint, is_quarantine_name, is_rows_draft, is_rows_file,
};
use chronolog::log::Site;
use chronolog::log::files::{is_folder, is_ours, names_in, ours_in};
use chronolog::verify::{Sink, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_state::snapshot::{self, Moments, RecordSink};

use super::chosen::{Chosen, says_a_record};
use crate::store::files::known_copies::{KnownCopies, look_into};

/// How a copy is treated that cannot be read to its end and in whose readable part nothing is to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum UnreadableCopy {
    /// It may hold it.
    Counts,
    /// It is not known to hold it.
    Passes,
}

/// Whether a file is a state that holds none of the records that go, read to its end.
fn is_state_without(site: &Site, path: &Path, chosen: &Chosen, doubt: UnreadableCopy) -> bool {
    let mut search = CopySearch {
        chosen,
        is_there: false,
    };
    let read = archive::open(&*site.disk, path).and_then(|base| snapshot::read(&*base.log, &mut search));
    (doubt == UnreadableCopy::Passes || read.is_ok_and(|contents| contents.header.is_ok())) && !search.is_there
}

/// Looks for a line or a record that goes.
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

/// What a copy must be free of.
pub(in crate::store) struct Unwanted<'a> {
    /// The records whose lines go, and what else would if the log told of it: what was set aside may know more.
    pub chosen: &'a Chosen,
    /// The spaces that ever had rows of them; `None` if the history that is kept does not tell.
    pub spaces: Option<&'a BTreeSet<String>>,
    /// No history is kept: pieces of it are no better, since the hashes in them go on from those that were.
    pub drops_history: bool,
    /// What becomes of what cannot be read to its end.
    pub doubt: UnreadableCopy,
}

impl Unwanted<'_> {
    /// Whether a file of rows may hold some of them: nothing in it tells whose they are.
    fn may_be_in_rows(&self, name: &str) -> bool {
        if self.doubt == UnreadableCopy::Passes {
            return false;
        }
        let space = name.strip_suffix(ROWS_SUFFIX).and_then(|name| name.rsplit_once('.'));
        match (self.spaces, space) {
            (Some(spaces), Some((space, _))) => spaces.contains(space),
            _ => true,
        }
    }
}

/// The backups that hold one of the records, or cannot be read to their end, named from the store's folder on.
pub(in crate::store) fn backups_holding(
    site: &Site,
    chosen: &Chosen,
    doubt: UnreadableCopy,
    threads: usize,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in ours_in(&*site.disk, &site.layout.backups(), is_backup_folder)? {
        if !is_copy_without(site, &site.layout.backups().join(&name), (chosen, doubt), threads)? {
            found.push(format!("backup/{name}"));
        }
    }
    Ok(found)
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
    pub fn look(&mut self, site: &Site, unwanted: &Unwanted<'_>, threads: usize) -> Result<()> {
        for name in ours_in(&*site.disk, &site.layout.quarantine(), is_quarantine_name)? {
            if self.seen.contains(&name) {
                continue;
            }
            if !is_aside_without(site, &name, unwanted, threads)? {
                self.holding.push(format!("quarantine/{name}"));
            }
            self.seen.insert(name);
        }
        Ok(())
    }
}

fn is_aside_without(site: &Site, name: &str, unwanted: &Unwanted<'_>, threads: usize) -> Result<bool> {
    let (chosen, doubt) = (unwanted.chosen, unwanted.doubt);
    let path = site.layout.quarantine().join(name);
    Ok(match names_in(&*site.disk, &path)?.is_some() {
        _ if unwanted.drops_history => false,
        // What was set aside need not have the log that tells whose its rows are.
        true => {
            let rows = ours_in(&*site.disk, &Layout::of_folder(path.clone()).vectors(), is_rows_file)?;
            (doubt == UnreadableCopy::Passes || !has_drafts(site, &path)?)
                && !rows.iter().any(|name| unwanted.may_be_in_rows(name))
                && is_copy_without(site, &path, (chosen, doubt), threads)?
        }
        false if is_rows_file(name) => !unwanted.may_be_in_rows(name),
        false if is_kept_hint(name) => true,
        false if is_base_file(name) => is_state_without(site, &path, chosen, doubt),
        false => is_log_without(site, &path, (chosen, doubt), threads),
    })
}

/// The known copies outside that hold one of the records or cannot be read, and those that are not there now.
pub(in crate::store) fn outside(
    site: &Site,
    known: &KnownCopies,
    chosen: &Chosen,
    threads: usize,
) -> (Vec<String>, Vec<String>) {
    let (mut holding, mut missing) = (Vec::new(), Vec::new());
    for copy in &known.0 {
        let there: Vec<PathBuf> = [copy.folder(), copy.draft()]
            .into_iter()
            .filter(|path| site.disk.exists(path))
            .collect();
        if there.is_empty() {
            missing.push(copy.path.clone());
        }
        for path in there {
            // What cannot be looked at may hold it, and so may one that was not finished: its files need not have their names yet.
            let is_clean = path != copy.draft()
                && look_into(&*site.disk, &path, |inside| {
                    is_folder(&*site.disk, inside.folder())
                        && is_copy_without(site, inside.folder(), (chosen, UnreadableCopy::Counts), threads)
                            .unwrap_or(false)
                });
            if !is_clean {
                holding.push(path.display().to_string());
            }
        }
    }
    (holding, missing)
}

/// Whether somebody who set files aside could not finish one of them.
fn has_drafts(site: &Site, folder: &Path) -> Result<bool> {
    let inside = Layout::of_folder(folder.to_owned());
    let places: [(PathBuf, Shape); 4] = [
        (folder.to_owned(), is_draft),
        (inside.bases(), is_base_draft),
        (inside.archives(), is_archive_draft),
        (inside.vectors(), is_rows_draft),
    ];
    for (place, is_named_so) in places {
        if !ours_in(&*site.disk, &place, is_named_so)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The bases and archives of a copy.
fn immutable_files(site: &Site, inside: &Layout) -> Result<Vec<PathBuf>> {
    let folders: [(PathBuf, Shape); 2] = [(inside.bases(), is_base_file), (inside.archives(), is_archive_file)];
    let mut found = Vec::new();
    for (folder, is_named_so) in folders {
        let files = ours_in(&*site.disk, &folder, is_named_so)?
            .into_iter()
            .map(|name| folder.join(name));
        found.extend(files.filter(|path| is_ours(&*site.disk, path)));
    }
    Ok(found)
}

/// Whether all that a copy of a store holds can be read, and none of it goes.
pub(in crate::store) fn is_copy_without(
    site: &Site,
    folder: &Path,
    (chosen, doubt): (&Chosen, UnreadableCopy),
    threads: usize,
) -> Result<bool> {
    let disk = &*site.disk;
    let inside = Layout::of_folder(folder.to_owned());
    names_in(disk, folder)?;
    for path in immutable_files(site, &inside)? {
        let is_clean = match path.parent() == Some(&inside.archives()) {
            true => is_log_without(site, &path, (chosen, doubt), threads),
            false => is_state_without(site, &path, chosen, doubt),
        };
        if !is_clean {
            return Ok(false);
        }
    }
    let snapshot = inside.snapshot();
    if is_ours(disk, &snapshot) && !is_state_without(site, &snapshot, chosen, doubt) {
        return Ok(false);
    }
    Ok(!is_ours(disk, inside.log()) || is_log_without(site, inside.log(), (chosen, doubt), threads))
}

/// Whether a log, packed or not, can be read to its end and has no line that goes.
fn is_log_without(site: &Site, path: &Path, (chosen, doubt): (&Chosen, UnreadableCopy), threads: usize) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let log = match is_archive_file(&name) {
        true => archive::open(&*site.disk, path).map(|archive| archive.log),
        false => site.disk.open(path, Access::Read),
    };
    let Ok(log) = log else {
        return doubt == UnreadableCopy::Passes;
    };
    let mut search = CopySearch {
        chosen,
        is_there: false,
    };
    let mut walk = Walk::new(None);
    let read = log
        .length()
        .and_then(|length| walk.go(&*log, length, Reading::new(threads), &mut search));
    let is_whole = read.is_ok_and(|tail| tail.is_none())
        && walk.follower.damage.iter().all(|damage| {
            // A tail begins somewhere in a log: what it was linked to is not in it.
            damage.kind == chronolog::damage::DamageKind::Unlinked && damage.line == 1
        });
    (is_whole || doubt == UnreadableCopy::Passes) && !search.is_there
}
