//! Which files of the past may stay, and which may go?
//!
//! Bases and archives are the store's history. Nothing is removed that nobody retired: what no log names is put aside.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::archive;
use crate::digest::Hex;
use crate::disk::Access;
use crate::error::{At, Result};
use crate::event::stamp;
use crate::hint::line_from;
use crate::layout::{LOG, base_name, is_history_index, last_seq_in_archive_name};
use crate::log::files::{free_name, is_folder, is_ours};
use crate::origin::{Origin, beginning_of};
use crate::wal::synced::names_hash;

use super::Store;
use super::care::Turns;
use super::copies::{IMMUTABLE, immutable_names};
use super::found::{head_of, header_of};
use super::proofs::shown;

impl Store {
    /// What a compaction retires, named from the store's folder on: the files of the past if that is to be dropped, what an
    /// interrupted one left behind, and the rows that may move.
    pub(super) fn retired_files(&self, keep_history: bool) -> Result<BTreeSet<String>> {
        let mut retired = BTreeSet::new();
        let named = self.named_files()?;
        if !keep_history {
            retired.extend(named.files.iter().cloned());
        }
        for name in self
            .past_files()?
            .into_iter()
            .filter(|name| !named.files.contains(name))
        {
            if self.is_left_over(&name) {
                retired.insert(name);
            }
        }
        let rows = self.named_rows().into_iter().map(|(name, _)| format!("vectors/{name}"));
        retired.extend(rows);
        Ok(retired)
    }

    /// Whether a base or an archive that nothing names holds only what the live log holds too: somebody began to compact it
    /// and could not finish.
    fn is_left_over(&self, name: &str) -> bool {
        let path = self.layout.inside(name);
        let last = if name.starts_with("base/") {
            let header = self.disk.open(&path, Access::Read).and_then(|file| header_of(&*file));
            header.ok().flatten().map(|header| (header.seq, header.last_hash))
        } else {
            let head = archive::open(&*self.disk, &path).and_then(|archive| head_of(&*archive.log));
            let seq = path
                .file_name()
                .and_then(|name| last_seq_in_archive_name(&name.to_string_lossy()));
            seq.zip(head.ok().flatten().map(|head| head.text().to_owned()))
        };
        last.is_some_and(|(seq, hash)| self.has_event(seq, &hash))
    }

    /// Whether the live log holds the event of this seq and hash.
    fn has_event(&self, seq: u64, hash: &str) -> bool {
        let (Some(log), Some(hash)) = (self.log.open(), Hex::read(hash.as_bytes())) else {
            return false;
        };
        let timeline = self.state.timeline();
        let offset = timeline.index_of(seq).and_then(|index| timeline.offset(index as usize));
        let line = offset.and_then(|offset| line_from(&*log.file, offset, log.walk.end).ok());
        line.is_some_and(|line| names_hash(&line, &hash))
    }

    /// Bases and archives of ours, from the store's folder on.
    pub(super) fn past_files(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for folder in IMMUTABLE {
            let names = immutable_names(&*self.disk, &self.layout, folder)?;
            found.extend(names.iter().map(|name| format!("{folder}/{name}")));
        }
        Ok(found)
    }

    /// The bases and archives that neither this log nor any of its archives names, rows that the log does not name, and
    /// indexes of archives that are gone.
    fn garbage(&self) -> Result<Vec<PathBuf>> {
        let mut found = self.unnamed_rows()?;
        let named = self.named_files()?;
        if named.is_complete {
            let unnamed = self
                .past_files()?
                .into_iter()
                .filter(|name| !named.files.contains(name));
            found.extend(unnamed.map(|name| self.layout.inside(&name)));
            found.extend(self.orphaned_indexes(&named.files)?);
        }
        Ok(found)
    }

    /// Indexes of archives that are gone, or about to go.
    fn orphaned_indexes(&self, named: &BTreeSet<String>) -> Result<Vec<PathBuf>> {
        let needed: BTreeSet<PathBuf> = named.iter().map(|name| self.layout.history_index(name)).collect();
        let indexes = self.layout.indexes();
        if !is_folder(&*self.disk, &indexes) {
            return Ok(Vec::new());
        }
        let names = self.disk.list(&indexes).at(&indexes)?;
        let ours = names.iter().filter(|name| is_history_index(name));
        Ok(ours
            .map(|name| indexes.join(name))
            .filter(|path| !needed.contains(path) && is_ours(&*self.disk, path))
            .collect())
    }

    /// All files that this log and its past name, as far as the past can be followed.
    fn named_files(&self) -> Result<Named> {
        let mut named = Named {
            files: BTreeSet::new(),
            is_complete: false,
        };
        let mut origin = self.log.open().map(|log| log.origin.clone());
        if origin == Some(Origin::Foreign) {
            // Its adopted base is named somewhere inside; finding it is not worth losing it.
            return Ok(named);
        }
        if self.log.report.damage.iter().any(|damage| damage.path == LOG) {
            // Who knows what the lines named that are damaged.
            return Ok(named);
        }
        while let Some(Origin::Ours(sentinel)) = origin {
            named
                .files
                .extend(sentinel.base_sha256.map(|sha256| base_name(sha256.text())));
            if sentinel.archive.is_none() {
                break;
            }
            let Some((name, _)) = sentinel.safe_archive() else {
                return Ok(named);
            };
            let path = self.layout.inside(name);
            let Ok(archive) = archive::open(&*self.disk, &path) else {
                return Ok(named);
            };
            named.files.insert(name.to_owned());
            let beginning = archive
                .log
                .length()
                .and_then(|length| beginning_of(&*archive.log, length));
            let earlier = match beginning {
                Ok(beginning) => beginning,
                Err(fault) if archive::damage_in(&fault).is_some() => return Ok(named),
                Err(fault) => return Err(fault).at(&path),
            };
            match &earlier.origin {
                // Something else stands before the first event: who knows what that event was.
                _ if earlier.offset > 0 => return Ok(named),
                Origin::Foreign => return Ok(named),
                Origin::Ours(before) if before.last_seq >= sentinel.last_seq => return Ok(named),
                _ => origin = Some(earlier.origin),
            }
        }
        named.is_complete = true;
        Ok(named)
    }

    /// Puts a file aside that no log names and nobody retired.
    fn put_aside(&self, file: &Path, now: i64) -> Result<()> {
        let quarantine = self.layout.quarantine();
        self.make_folder(&quarantine, self.layout.folder())?;
        let folder = quarantine.join(format!("{}-unnamed", stamp::spell_name(now)));
        let name = PathBuf::from(shown(&self.layout, file));
        let target = folder.join(name.parent().unwrap_or(Path::new("")));
        self.disk.create_dir(&target).at(&target)?;
        let name = name.file_name().map(|name| name.to_string_lossy().into_owned());
        let kept = free_name(&*self.disk, &target, &name.unwrap_or_default())?;
        self.disk.rename(file, &kept).at(file)?;
        self.disk.sync_dir(&target).at(&target)?;
        self.disk.sync_dir(&folder).at(&folder)?;
        self.disk.sync_dir(&quarantine).at(&quarantine)
    }
}

/// Files that a log names.
struct Named {
    files: BTreeSet<String>,
    /// The past could be followed to its end: what is not among the files is named by nobody.
    is_complete: bool,
}

/// Removes what was retired and what is derived, and puts aside what else nobody names, one file at a time: nobody waits for
/// more than one.
pub(super) fn clear_out(turns: &impl Turns, retired: &BTreeSet<String>, now: i64) -> Result<()> {
    let garbage = turns.turn(|store| store.garbage())?;
    let disk = turns.turn(|store| Ok(Arc::clone(&store.disk)))?;
    for file in garbage {
        // The handle is closed when nobody waits any more: only then the system takes the file apart.
        let _removed = disk.open(&file, Access::Read).ok();
        turns.turn(|store| {
            store.with_lock(now, |store| {
                // Bases and archives are only named by whoever looks after the store. Rows are named by every writer: now
                // that the lock is held and the log read to its end, it shows whether one has done so since.
                if store.names_rows(&file) {
                    return Ok(());
                }
                let is_derived = file.starts_with(store.layout.indexes());
                if is_derived || retired.contains(&shown(&store.layout, &file)) {
                    store.disk.remove(&file).at(&file)
                } else {
                    store.put_aside(&file, now)
                }
            })
        })?;
    }
    Ok(())
}
