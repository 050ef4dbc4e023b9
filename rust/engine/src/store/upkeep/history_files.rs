//! Decides which files of the past stay, and removes the oldest archives.
//!
//! Bases and archives that no log names and no compaction retired are quarantined. A pruning writes an event first, then
//! removes archives from the oldest on, so that there is never a hole; the next compaction or pruning finishes one.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::backup::order_of;
use super::bases::is_sound;
use super::compact::check_undamaged;
use crate::store::Store;
use crate::store::archives::way::{End, Hop, PastLogs, begin_archive, pruned_until};
use crate::store::files::erasing::remove_draft;
use crate::store::files::proofs::{immutable_names, past_files_beside, shown};
use crate::store::follow::is_erasing;
use crate::store::load::found::header_of;
use crate::store::load::tails::event_before;
use crate::store::turns::{StoreAccess, Turns, check_tail_at_the_end, sync, take_care};
use chronolog::archive;
use chronolog::digest::Hex;
use chronolog::disk::Access;
use chronolog::error::{At, Error, Result};
use chronolog::event::erasure::check_reason;
use chronolog::event::{Op, stamp};
use chronolog::hint::{line_from, names_hash};
use chronolog::json::Value;
use chronolog::layout::{
    LOG, base_name, is_backup_folder, is_history_index, last_seq_in_archive_name, packed_base_name,
};
use chronolog::log::files::{free_name, is_folder, is_ours, ours_in, remove_if_there, with_suffix};
use chronolog::log::{Log, Site};
use chronolog::origin::{Origin, Sentinel, beginning_of};

/// The bases and archives that a compaction retires, from the store's folder on: dropped history, and leftovers.
pub(in crate::store) fn retired_files(store: &Store, keep_history: bool) -> Result<BTreeSet<String>> {
    let named = NamedFiles::of(store)?.files;
    let unnamed = past_files_beside(&store.site, &named)?.into_iter();
    let mut retired: BTreeSet<String> = unnamed.filter(|name| is_left_over(store, name)).collect();
    retired.extend(named.into_iter().filter(|_| !keep_history));
    Ok(retired)
}

/// Whether an unnamed base or archive is left over from an interrupted compaction: the live log holds all of it.
fn is_left_over(store: &Store, name: &str) -> bool {
    let Ok(file) = archive::open(&*store.site.disk, &store.site.layout.inside(name)) else {
        return false;
    };
    let last = if name.starts_with("base/") {
        let header = header_of(&*file.log).ok().flatten();
        header.and_then(|header| Some((header.seq, Hex::read(header.last_hash.as_bytes())?)))
    } else {
        let seq = name.strip_prefix("archive/").and_then(last_seq_in_archive_name);
        let head = file.log.length().and_then(|length| event_before(&*file.log, length));
        seq.zip(head.ok().flatten().map(|(head, _)| head))
    };
    let (Some((seq, hash)), Some(log)) = (last, store.log.open()) else {
        return false;
    };
    let timeline = store.state.timeline();
    let offset = timeline.index_of(seq).and_then(|index| timeline.offset(index as usize));
    let line = offset.and_then(|offset| line_from(&*log.file, offset, log.walk.end).ok());
    line.is_some_and(|line| names_hash(&line, &hash))
}

/// The bases and archives that neither this log nor any of its archives names, and indexes of archives that are gone.
pub(in crate::store) fn garbage(store: &Store) -> Result<Vec<PathBuf>> {
    let named = NamedFiles::of(store)?;
    if !named.is_complete {
        return Ok(Vec::new());
    }
    let (disk, layout) = (&*store.site.disk, &store.site.layout);
    let unnamed = past_files_beside(&store.site, &named.files)?;
    let mut found: Vec<PathBuf> = unnamed.iter().map(|name| layout.inside(name)).collect();
    let needed: BTreeSet<PathBuf> = named.files.iter().map(|name| layout.history_index(name)).collect();
    let indexes = layout.indexes();
    let ours = ours_in(disk, &indexes, is_history_index)?.into_iter();
    let spare = ours.map(|name| indexes.join(name));
    found.extend(spare.filter(|path| !needed.contains(path) && is_ours(disk, path)));
    Ok(found)
}

#[derive(Default)]
struct NamedFiles {
    files: BTreeSet<String>,
    /// The logs, the oldest first; the last is the live one.
    logs: Vec<Hop>,
    /// The past could be followed to its end: files that are not among these are unnamed.
    is_complete: bool,
}

impl NamedFiles {
    /// All files that this log and its past name, as far as the past can be followed.
    fn of(store: &Store) -> Result<Self> {
        let mut named = Self::default();
        let (site, pruned_until) = (&*store.site, pruned_until(&store.state));
        let is_log_damaged = store.log.report.damage.iter().any(|damage| damage.path == LOG);
        let live = match store.log.open() {
            // Damaged lines may have named any, and an adopted base is named somewhere inside.
            _ if is_log_damaged => return Ok(named),
            Some(log) if log.origin == Origin::Foreign => return Ok(named),
            Some(log) => Hop::new(
                LOG,
                log.walk.end,
                &beginning_of(&*log.file, log.walk.end).at(site.log())?,
            ),
            None => Hop::live(&Origin::Nothing),
        };
        let there = immutable_names(&*site.disk, &site.layout, "archive")?;
        let there: HashSet<String> = there.into_iter().collect();
        let way = PastLogs::find_with(&site.layout, live, &mut |name, _| {
            let is_there = name.strip_prefix("archive/").is_some_and(|file| there.contains(file));
            let seen = site.archives().beginnings.get(name).cloned();
            if let Some((length, beginning)) = seen.filter(|_| is_there) {
                named.files.insert(name.to_owned());
                return Ok((None, length, beginning));
            }
            let path = site.layout.inside(name);
            let archive = archive::open(&*site.disk, &path).map_err(|fault| End::Note(fault.to_string()))?;
            named.files.insert(name.to_owned());
            let (length, beginning) = begin_archive(&archive).map_err(|fault| match archive::damage_in(&fault) {
                Some(reason) => End::Note(reason),
                None => End::Fault(fault),
            })?;
            let seen = (length, beginning.clone());
            site.archives().beginnings.insert(name.to_owned(), seen);
            Ok((None, length, beginning))
        });
        let mut hops = way.at(&site.layout.archives())?.hops;
        // Something else stands before its first event, or it says nothing of what came before: the way ends there.
        let odd = hops.iter().skip(1).position(|hop| hop.offset > 0 || hop.is_foreign);
        hops.truncate(odd.map_or(hops.len(), |odd| odd + 2));
        for base in hops.iter().filter_map(|hop| hop.sentinel.as_ref()?.base_sha256) {
            named
                .files
                .extend([base_name(base.text()), packed_base_name(base.text())]);
        }
        let last = hops.last().and_then(|hop| hop.sentinel.as_ref());
        let is_pruned = |sentinel: &Sentinel| {
            let name = sentinel.safe_archive().filter(|_| sentinel.last_seq <= pruned_until);
            name.is_some_and(|(name, _)| !site.disk.exists(&site.layout.inside(name)))
        };
        let is_end = last.is_none_or(|sentinel| sentinel.archive.is_none() || is_pruned(sentinel));
        named.is_complete = odd.is_none() && is_end;
        hops.reverse();
        named.logs = hops;
        Ok(named)
    }
}

/// Removes what was retired and what is derived, and quarantines other unnamed files, each under its own lock.
pub(in crate::store) fn clear_out(turns: &impl Turns, retired: &BTreeSet<String>, now: i64) -> Result<()> {
    let garbage = turns.turn(|store| {
        let mut found = store.vectors.unnamed_rows(&store.state)?;
        found.extend(garbage(store)?);
        Ok(found)
    })?;
    clear_files(&StoreAccess::shared(turns, &|| now), garbage, retired)
}

/// Does the same with leftovers of a compaction: an erasure searches the quarantine, no log names the rest.
pub(in crate::store) fn clear_leftovers(access: &StoreAccess<'_, impl Turns>) -> Result<()> {
    let (garbage, retired) = access.look(|store| Ok((garbage(store)?, retired_files(store, true)?)))?;
    clear_files(access, garbage, &retired)
}

fn clear_files(access: &StoreAccess<'_, impl Turns>, garbage: Vec<PathBuf>, retired: &BTreeSet<String>) -> Result<()> {
    let disk = access.look(|store| Ok(Arc::clone(&store.site.disk)))?;
    for file in garbage {
        // The handle is closed after the lock is released, because freeing a large file takes long.
        let _removed = disk.open(&file, Access::Read).ok();
        access.locked(|store, now| {
            // Any writer may have named these rows since; under the lock the newest state tells.
            if store.vectors.names_rows(&store.state, &file) {
                return Ok(());
            }
            let is_derived = file.starts_with(store.site.layout.indexes());
            if is_derived {
                // Its writer has finished meanwhile, or has removed it.
                remove_if_there(&*store.site.disk, &file)
            } else if retired.contains(&shown(&store.site.layout, &file)) {
                store.site.disk.remove(&file).at(&file)
            } else {
                put_aside(&store.site, &file, now)
            }
        })?;
    }
    Ok(())
}

/// Puts a file aside that no log names and no compaction retired.
pub(in crate::store) fn put_aside(site: &Site, file: &Path, now: i64) -> Result<()> {
    let quarantine = site.layout.quarantine();
    site.make_folder(&quarantine, site.layout.folder())?;
    let folder = quarantine.join(format!("{}-unnamed", stamp::spell_name(now)));
    let path = shown(&site.layout, file);
    let (around, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let target = folder.join(around);
    site.disk.create_dir(&target).at(&target)?;
    let kept = free_name(&*site.disk, &target, name)?;
    site.disk.rename(file, &kept).at(file)?;
    site.disk.sync_dir(&target).at(&target)?;
    site.disk.sync_dir(&folder).at(&folder)?;
    site.disk.sync_dir(&quarantine).at(&quarantine)
}

/// Removes a file of the past that is ours, durably; the lock is held for one at a time.
pub(super) fn remove(turns: &impl Turns, name: &str, now: i64) -> Result<()> {
    StoreAccess::shared(turns, &|| now).locked(|store, _| {
        let path = store.site.layout.inside(name);
        if !is_ours(&*store.site.disk, &path) {
            return Ok(());
        }
        store.site.disk.remove(&path).at(&path)?;
        let folder = path.parent().unwrap_or(store.site.layout.folder());
        store.site.disk.sync_dir(folder).at(folder)
    })
}

pub(super) fn remove_base(turns: &impl Turns, sha256: &Hex, now: i64) -> Result<()> {
    remove(turns, &base_name(sha256.text()), now)?;
    remove(turns, &packed_base_name(sha256.text()), now)
}

/// The logs of a store, the oldest first; the last is the live one.
pub(super) fn past_of_log(turns: &impl Turns) -> Result<Vec<Hop>> {
    turns.turn(|store| Ok(NamedFiles::of(store)?.logs))
}

/// Removes the archives that events say are pruned, the oldest first, each with the base that it started from.
pub(super) fn end_pruning(turns: &impl Turns, now: i64) -> Result<()> {
    let until = turns.turn(|store| Ok(pruned_until(&store.state)))?;
    if until == 0 {
        return Ok(());
    }
    let mut logs = past_of_log(turns)?;
    let live = logs.pop();
    let going = logs.iter().take_while(|log| log.last_seq <= until).count();
    let kept: Vec<Hex> = logs
        .iter()
        .skip(going)
        .chain(&live)
        .filter_map(|log| log.base.1)
        .collect();
    for log in logs.iter().take(going) {
        remove(turns, &log.name, now)?;
        let index = turns.turn(|store| {
            let path = store.site.layout.history_index(&log.name);
            Ok(shown(&store.site.layout, &path))
        })?;
        remove(turns, &index, now)?;
        if let Some(sha256) = log.base.1.filter(|sha256| !kept.contains(sha256)) {
            remove_base(turns, &sha256, now)?;
        }
    }
    Ok(())
}

/// What is to go.
#[derive(Clone, Debug, Default)]
pub struct Prune {
    /// Archives of logs that ended before this moment, in microseconds since 1970.
    pub before: Option<i64>,
    /// All backups but so many of the newest.
    pub keep_backups: Option<u64>,
    /// Why; it stays in the log.
    pub reason: String,
    /// Nothing is written: only what would be done is reported.
    pub dry_run: bool,
}

/// What went, or would go.
#[derive(Clone, Debug, Default)]
pub struct Pruned {
    /// The seq of the event that records it; `None` if no archive was removed.
    pub seq: Option<u64>,
    /// The archives, from the store's folder on, the oldest first.
    pub archives: Vec<String>,
    /// The last event in them.
    pub last_seq: u64,
    /// Archives that are old enough, and stay because no base behind them is there.
    pub held: u64,
    /// The copies, from the store's folder on, the oldest first.
    pub backups: Vec<String>,
}

/// Removes the oldest archives and backups of a store that others go on using; gives what went.
///
/// # Errors
/// `Busy` while an erasure is unfinished, `Corrupted`, `Invalid`, `Io`, `Locked`, `Closed`, `Poisoned`.
pub fn prune(turns: &impl Turns, order: &Prune, now: &dyn Fn() -> i64) -> Result<Pruned> {
    check_reason(&order.reason)?;
    turns.turn(check_tail_at_the_end)?;
    let _care = take_care(turns, now())?;
    StoreAccess::shared(turns, now).locked(|store, _| {
        check_undamaged(&store.log)?;
        store.log.check_head_is_kept()?;
        match is_erasing(&store.site) {
            true => Err(Error::busy("nothing is pruned while an erasure is unfinished")),
            false => Ok(()),
        }
    })?;
    if !order.dry_run {
        end_pruning(turns, now())?;
    }
    let mut pruned = Pruned::default();
    if let Some(before) = order.before {
        prune_archives(turns, order, before, now, &mut pruned)?;
    }
    if let Some(keep) = order.keep_backups {
        prune_backups(turns, keep, order.dry_run, now, &mut pruned)?;
    }
    Ok(pruned)
}

fn prune_archives(
    turns: &impl Turns,
    order: &Prune,
    before: i64,
    now: &dyn Fn() -> i64,
    pruned: &mut Pruned,
) -> Result<()> {
    let logs = past_of_log(turns)?;
    let site = turns.turn(|store| Ok(Arc::clone(&store.site)))?;
    // A log ended when the one behind it began.
    let old = logs.iter().skip(1).take_while(|log| log.began <= before).count();
    let mut going = old;
    while going > 0
        && !logs[going]
            .base
            .1
            .map_or(Ok(false), |sha256| is_sound(&site, &sha256))?
    {
        going -= 1;
    }
    pruned.held = (old - going) as u64;
    let Some(last) = going.checked_sub(1).and_then(|last| logs.get(last)) else {
        return Ok(());
    };
    pruned.last_seq = last.last_seq;
    pruned.archives = logs.iter().take(going).map(|log| log.name.clone()).collect();
    if order.dry_run {
        return Ok(());
    }
    let seq = StoreAccess::shared(turns, now).locked(|store, now| {
        let record = |id: &str| record(id, &order.reason, going as u64, last.last_seq);
        let seq = store.write_own(Op::Prune, "pruned", record, now)?;
        store.on_log(Log::sync)?;
        Ok(seq)
    })?;
    sync(turns)?;
    pruned.seq = Some(seq);
    end_pruning(turns, now())
}

fn record(id: &str, reason: &str, archives: u64, last_seq: u64) -> Vec<u8> {
    let text = |text: &str| Value::Str(text.to_owned());
    let data = Value::object([("archives", Value::from(archives)), ("last_seq", Value::from(last_seq))]);
    let fields = [
        ("id", text(id)),
        ("kind", text("pruned")),
        ("label", text(reason)),
        ("data", data),
    ];
    Value::object(fields).to_bytes()
}

/// Removes all backups but the newest. A backup is renamed to a draft first, so that half of it is no copy.
fn prune_backups(
    turns: &impl Turns,
    keep: u64,
    is_dry: bool,
    now: &dyn Fn() -> i64,
    pruned: &mut Pruned,
) -> Result<()> {
    let site = turns.turn(|store| Ok(Arc::clone(&store.site)))?;
    let (disk, backups) = (&*site.disk, site.layout.backups());
    let mut names = ours_in(disk, &backups, is_backup_folder)?;
    names.retain(|name| is_folder(disk, &backups.join(name)));
    names.sort_by_key(|name| order_of(name));
    let going = names.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
    for name in names.iter().take(going) {
        pruned.backups.push(format!("backup/{name}"));
        if is_dry {
            continue;
        }
        let (path, draft) = (backups.join(name), with_suffix(&backups.join(name), ".tmp"));
        StoreAccess::shared(turns, now).locked(|_, _| {
            disk.rename(&path, &draft).at(&path)?;
            disk.sync_dir(&backups).at(&backups)
        })?;
        remove_draft(disk, &draft)?;
    }
    Ok(())
}
