//! Brings back a tail that was cut off and holds whole events.
//!
//! A repair before the next write treats its lines as what they are, and afterwards `restore` puts them back in their place
//! first. What the hint about the last sync knows of a log that was cut is kept before it is written over.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use chronolog::damage::DamageKind;
use chronolog::disk::Access;
use chronolog::error::{At, Error, Result};
use chronolog::layout::offset_of_tail;
use chronolog::log::Site;
use chronolog::log::files::{Scratch, append_bytes, copy_bytes, is_folder};
use chronolog::remembered;
use chronolog::verify::finding;
use chronomemory_state::state::State;

use super::restore::{Restoring, restore};
use crate::store::files::set_aside::QuarantineFolder;
use crate::store::load::home::source_of;
use crate::store::load::tails::{MENDING_BLOCKS, event_before, leads_to, whole_events};
use crate::store::recovery::repair::{Repaired, repair_now};
use crate::store::turns::{Turns, take_care};
use crate::store::upkeep::compact::write_snapshot;
use crate::store::upkeep::history_files::clear_out;
use crate::store::{Progress, Store};

/// Puts a tail back behind the place where it was cut; what came there since is set aside with the rest of the log. Gives
/// the state that was replaced, and where it is kept.
fn put_tail_back(store: &mut Store, name: &str, now: i64) -> Result<(State, String)> {
    let shown = format!("quarantine/{name}");
    let path = store.site.layout.quarantine().join(name);
    let refuse = |kind, reason: &str| Error::Corrupted(Box::new(finding(&shown, kind, reason)));
    store.with_lock(now, |store| {
        let tail = store.site.disk.open(&path, Access::Read).at(&path)?;
        let length = tail.length().at(&path)?;
        let offset = offset_of_tail(name).unwrap_or(0);
        let log = store.log.open().map(|log| Arc::clone(&log.file));
        let before = log.as_ref().map(|log| event_before(&**log, offset)).transpose();
        let (Some(log), Some(before)) = (log, before.at(&path)?.flatten()) else {
            let reason = "it was cut from another log: no line of this one ends where it began";
            return Err(refuse(DamageKind::Unlinked, reason));
        };
        if !leads_to(&*tail, length, before).at(&path)? {
            let reason = "it was cut from another log: what stands before its place does not lead to it";
            return Err(refuse(DamageKind::Unlinked, reason));
        }
        if whole_events(&*tail, 0..length, Some(before.0), MENDING_BLOCKS)
            .at(&path)?
            .is_none()
        {
            return Err(refuse(DamageKind::Unreadable, "it holds no whole event"));
        }
        let archives = store.site.layout.archives();
        store.site.make_folder(&archives, store.site.layout.folder())?;
        let draft = Scratch::at(&store.site.disk, store.site.layout.restored_draft());
        copy_bytes(&*store.site.disk, &*log, 0..offset, draft.path(), None)?;
        let joined = append_bytes(&*store.site.disk, &*tail, length, draft.path(), offset)?;
        let head = remembered::head_of(&*joined, offset + length).at(draft.path())?;
        store.anchor(now)?;
        store.settle_hint()?;
        let (_, kept) = QuarantineFolder::before_restore(&store.site, now)?;
        // It speaks of the log that was there: beside the other one it would make a tail of these lines again.
        store.site.forget_hint()?;
        store.log.head().announce(head)?;
        draft.name(store.site.layout.log())?;
        let before = std::mem::take(&mut store.state);
        if let Err(fault) = store.reload(&mut |_, _| {}) {
            store.state = before;
            return Err(fault);
        }
        store.accept_present_head()?;
        Ok((before, kept))
    })
}

/// Brings back what somebody names: a tail of this store's `quarantine/`, or a copy of a store as [`restore`] does; says what
/// was repaired on the way.
///
/// # Errors
/// As [`restore_tail`] and [`restore`].
pub fn bring_back(
    turns: &impl Turns,
    source: &Path,
    wanted: Restoring,
    now: &dyn Fn() -> i64,
    progress: Progress<'_>,
) -> Result<Option<Repaired>> {
    let (disk, quarantine) = turns.turn(|store| {
        store.check_open()?;
        Ok((Arc::clone(&store.site.disk), store.site.layout.quarantine()))
    })?;
    let name = source.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.filter(|name| offset_of_tail(name).is_some() && !is_folder(&*disk, source));
    let is_here = |parent: &Path| disk.real_path(parent) == disk.real_path(&quarantine);
    let is_file = disk.status(source).is_ok() && !is_folder(&*disk, source);
    match name.filter(|_| source.parent().is_some_and(is_here)) {
        Some(name) => restore_tail(turns, &name, now, progress).map(Some),
        None if is_file => Err(Error::Refused {
            path: source.display().to_string(),
            reason: "it is a single file, and no tail in quarantine/ of this store".to_owned(),
            instead: "restore() takes a folder with a log, which backup(), repair() or restore() made; a tail is taken back from \
                      quarantine/ of the store that it was cut from."
                .to_owned(),
        }),
        None => restore(turns, &source_of(&*disk, source), wanted, now, progress).map(|()| None),
    }
}

/// Takes back a tail of `quarantine/`, named as it is there, and repairs what is damaged in it; says what was done: which
/// records are other than before, and where the log is kept that was replaced, with all that was written since the cut.
///
/// # Errors
/// `Corrupted` if it was not cut from the present log, or holds nothing whole; as [`repair`](crate::store::repair).
pub fn restore_tail(turns: &impl Turns, name: &str, now: &dyn Fn() -> i64, progress: Progress<'_>) -> Result<Repaired> {
    let _care = take_care(turns, now())?;
    let (before, kept) = turns.turn(|store| put_tail_back(store, name, now()))?;
    let treated = turns.turn(|store| repair_now(store, false, false, now(), progress))?;
    let records = turns.turn(|store| Ok(store.state.len() as u64))?;
    let (repaired, replaced) = treated.unwrap_or_else(|| (Repaired::nothing(records), BTreeSet::new()));
    let changed = turns.turn(|store| {
        put_tail_away(&store.site, name, &kept)?;
        Ok(before.differences(&store.state))
    })?;
    write_snapshot(turns)?;
    clear_out(turns, &replaced, now())?;
    Ok(Repaired {
        changed,
        kept: Some(kept),
        ..repaired
    })
}

/// A tail that was taken back goes where the log is kept that was without it: nobody needs to hear of it any more.
fn put_tail_away(site: &Site, name: &str, kept: &str) -> Result<()> {
    let (quarantine, folder) = (site.layout.quarantine(), site.layout.inside(kept));
    let path = quarantine.join(name);
    site.disk.rename(&path, &folder.join(name)).at(&path)?;
    site.disk.sync_dir(&folder).at(&folder)?;
    site.disk.sync_dir(&quarantine).at(&quarantine)
}
