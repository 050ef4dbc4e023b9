//! Removes the oldest archives.
//!
//! An event says so first, durably: up to which seq, how many, and why. Then they go, the oldest first, so that what is
//! left never has a hole; the next compaction or pruning finishes an interrupted one. What is kept begins with a base
//! that is there, or with the live log.

use std::sync::Arc;

use chronolog::error::{At, Error, Result};
use chronolog::event::Op;
use chronolog::event::erasure::check_reason;
use chronolog::json::Value;
use chronolog::layout::{is_backup_folder, is_in_draft};
use chronolog::log::Log;
use chronolog::log::files::{is_folder, with_suffix};
use chronolog::origin::Origin;

use super::backup::order_of;
use super::bases::is_sound;
use super::compact::check_undamaged;
use super::history_files::{end_pruning, past_logs};
use crate::store::files::erasing::remove_copy;
use crate::store::follow::is_erasing;
use crate::store::turns::{StoreAccess, Turns, check_tail_at_the_end, sync, take_care};

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
    /// The seq of the event that tells of it; `None` if no archive went.
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
    let (logs, began) = past_logs(turns)?;
    let site = turns.turn(|store| Ok(Arc::clone(&store.site)))?;
    // A log ended when the one behind it began.
    let ends = logs.iter().skip(1).map(|log| log.began).chain([began]);
    let old = ends.take_while(|end| *end <= before).count();
    let mut going = old;
    while going > 0 {
        let base = match logs.get(going) {
            Some(first) => first.base.map(|(sha256, _)| sha256),
            None => turns.turn(|store| {
                Ok(match store.log.open().map(|log| &log.origin) {
                    Some(Origin::Ours(sentinel)) => sentinel.base_sha256,
                    _ => None,
                })
            })?,
        };
        if let Some(sha256) = base
            && is_sound(&site, &sha256)?
        {
            break;
        }
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
    let record = Value::object([
        ("id", text(id)),
        ("kind", text("pruned")),
        ("label", text(reason)),
        (
            "data",
            Value::object([("archives", Value::from(archives)), ("last_seq", Value::from(last_seq))]),
        ),
    ]);
    record.to_bytes()
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
    if !is_folder(disk, &backups) {
        return Ok(());
    }
    let mut names = disk.list(&backups).at(&backups)?;
    names.retain(|name| is_backup_folder(name) && is_folder(disk, &backups.join(name)));
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
        remove_copy(disk, &draft, is_in_draft)?;
        disk.sync_dir(&backups).at(&backups)?;
    }
    Ok(())
}
