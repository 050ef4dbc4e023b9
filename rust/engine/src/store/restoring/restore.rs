//! Brings a copy back, while others go on until it is there.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::cleaning::{Cleaned, all_erasures, clean};
use crate::store::files::known_copies::note_restored;
use crate::store::files::proofs::immutable_names;
use crate::store::files::set_aside::QuarantineFolder;
use crate::store::follow::{LockPurpose, has_remains};
use crate::store::load::examine::source_of;
use crate::store::load::tails::{MENDING_BLOCKS, event_before, keep_missed, leads_to, whole_events};
use crate::store::recovery::judge::verify;
use crate::store::recovery::repair::{Repaired, repair_in_turn, repair_now};
use crate::store::recovery::returning::Returning;
use crate::store::turns::{Turns, sync, take_care};
use crate::store::upkeep::backup::copy_past;
use crate::store::upkeep::compact::write_snapshot;
use crate::store::upkeep::compact_rows::make_way;
use crate::store::upkeep::history_files::clear_out;
use crate::store::{Progress, Store};
use chronolog::damage::{Damage, DamageKind};
use chronolog::disk::{Access, Bytes, Disk};
use chronolog::error::{At, Error, Result};
use chronolog::hint::{Hint, Synced, hint_for, read_hint, write_hint};
use chronolog::layout::{LOG, Layout, RESTORED_LOG, RESTORED_SNAPSHOT, is_rows_file, offset_of_tail};
use chronolog::log::files::{Scratch, append_bytes, begins_with, copy_bytes, copy_names, is_folder};
use chronolog::log::{Log, Site};
use chronolog::remembered;
use chronolog::verify::finding;
use chronomemory_state::state::{State, differences};

const NO_SUCH_FILE: i32 = 2;

/// What may come back with a copy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Restoring {
    /// Damage: it comes back as it is.
    pub damaged: bool,
    /// What was erased since it was made.
    pub bring_back: bool,
}

/// A copy that lies ready to take the place of the log.
struct Restored {
    log: Scratch,
    head: Option<Synced>,
    /// What the hint beside the copy knows of its end, if the copy does not hold that any more.
    missed: Option<Synced>,
    snapshot: Option<Scratch>,
}

impl Restored {
    /// Copies everything under draft names; bases and archives have their digests as names and no log names them yet.
    fn fetch(
        disk: &Arc<dyn Disk>,
        here: &Layout,
        source: &Layout,
        (end, behind): (u64, Vec<u8>),
        progress: Progress<'_>,
    ) -> Result<Self> {
        let folder = here.folder();
        let archives = here.archives();
        disk.create_dir(&archives).at(&archives)?;
        disk.sync_dir(folder).at(folder)?;
        let fetch = |path: &Path, name: &str, end: Option<u64>, progress: Option<Progress<'_>>| -> Result<Scratch> {
            let file = disk.open(path, Access::Read).at(path)?;
            let scratch = Scratch::at(disk, archives.join(name));
            let end = end.map_or_else(|| file.length(), Ok).at(path)?;
            copy_bytes(&**disk, &*file, 0..end, scratch.path(), progress)?;
            Ok(scratch)
        };
        // First: beside the next files and without a log it shows that a restore was interrupted.
        let log = fetch(source.log(), RESTORED_LOG, Some(end), Some(progress))?;
        let whole = end + behind.len() as u64;
        if whole > end {
            append_bytes(&**disk, &Bytes(behind), whole - end, log.path(), end)?;
        }
        disk.sync_dir(&archives).at(&archives)?;
        copy_past(&**disk, source, here)?;
        let snapshot = source.snapshot();
        let snapshot = match disk.status(&snapshot).is_ok() {
            true => Some(fetch(&snapshot, RESTORED_SNAPSHOT, None, None)?),
            false => None,
        };
        let file = disk.open(log.path(), Access::Read).at(log.path())?;
        let head = remembered::head_of(&*file, whole).at(log.path())?;
        let hint = read_hint(&**disk, source).at(source.log())?;
        let missed = match hint_for(hint, &*file, end).at(log.path())? {
            Hint::Contradicted(missed) => Some(missed),
            _ => None,
        };
        Ok(Self {
            log,
            head,
            missed,
            snapshot,
        })
    }

    /// Gives the names of the files that are kept elsewhere now.
    fn install(self, store: &mut Store, now: i64) -> Result<Vec<String>> {
        store.with_lock_to(LockPurpose::Restore, now, |store| {
            let (_, kept, _) = self.swap(store, now)?;
            store.on_log(Log::make_ready)?;
            accept_head(store)?;
            Ok(kept)
        })
    }

    /// Under the lock: replaces the present log; gives the replaced state, and the names and the place of the files that are kept.
    fn swap(self, store: &mut Store, now: i64) -> Result<(State, Vec<String>, String)> {
        let mut kept = (Vec::new(), String::new());
        if store.log.open().is_some() {
            // The present log must not lose its only base to the snapshot that comes along.
            store.anchor(now)?;
            store.on_log(Log::settle_hint)?;
            kept = QuarantineFolder::before_restore(&store.site, now)?;
        }
        // A foreign log without an anchor stands on its snapshot: that one must be there before the log is.
        if let Some(snapshot) = self.snapshot {
            snapshot.name(&store.site.layout.snapshot())?;
        }
        // The hint is about the replaced log; beside the new one it would report a lost end, or make a tail of whole lines.
        store.site.forget_hint()?;
        store.log.head.announce(self.head)?;
        self.log.name(store.site.layout.log())?;
        if let Some(missed) = &self.missed {
            // Only the hint beside the copy knows an end that the copy lost; a repair needs it.
            keep_missed(&store.site, missed, now)?;
            let (layout, disk) = (&store.site.layout, &*store.site.disk);
            write_hint(disk, layout, missed)?.sync().at(&layout.synced())?;
            disk.sync_dir(layout.folder()).at(layout.folder())?;
        }
        let before = std::mem::take(&mut store.state);
        if let Err(fault) = store.reload(&mut |_, _| {}) {
            store.state = before;
            return Err(fault);
        }
        Ok((before, kept.0, kept.1))
    }
}

/// Under the lock, after a swap of logs: what was missed before stays missed, unless this log has it.
fn accept_head(store: &mut Store) -> Result<()> {
    store.on_log(Log::sync)?;
    store.log.tell_head();
    store.log.head.find_standing()
}

/// Brings a copy back into a store that others use.
pub fn restore(
    turns: &impl Turns,
    source: &Layout,
    wanted: Restoring,
    now: &dyn Fn() -> i64,
    progress: Progress<'_>,
) -> Result<()> {
    let (site, options) = turns.turn(|store| {
        store.check_open()?;
        Ok((Arc::clone(&store.site), store.options.clone()))
    })?;
    let (disk, layout) = (&site.disk, &site.layout);
    let report = verify(&**disk, source, options.threads, progress)?;
    let end = match report.events {
        // A log is one line after a compaction. If that is damaged, all its records still lie in what stands beside it.
        0 if has_past(&**disk, source)? => {
            if !wanted.damaged {
                return Err(refused(
                    source.folder(),
                    "no line of its log is a whole event, though what it stands on lies beside it",
                    "Bring it back as it is with damaged=True, and then call repair().",
                ));
            }
            disk.status(source.log()).at(source.log())?.length
        }
        0 => return Err(nothing_in(&**disk, source)),
        _ => report.committed_end,
    };
    // A damaged row is a missing vector, and no reason to refuse the backup.
    if !wanted.damaged {
        if let Some(damage) = report.damage.iter().find(|damage| !damage.kind.is_of_row()) {
            return Err(Error::Corrupted(Box::new(damage.clone())));
        }
        check_end(&**disk, source)?;
    }
    for inner in [source.bases(), source.archives(), source.vectors()] {
        // A link in the place of a folder would be passed over, and what should lie there be missing.
        disk.list(&inner).at(&inner)?;
    }
    let _care = take_care(turns, now())?;
    // What a lost log left becomes a store again, so that it can be set aside as one.
    if turns
        .turn(|store| store.with_lock_to(LockPurpose::Judge, now(), |store| has_remains(&store.site, &store.log)))?
    {
        repair_in_turn(turns, now)?;
    }
    let known = turns.turn(|store| {
        store.refresh()?;
        store.settle();
        all_erasures(store)
    })?;
    let returning = Returning::find(&**disk, source, known, options.threads)?;
    let comes_back = wanted.bring_back || returning.is_nothing();
    let cleaned = match comes_back {
        true => None,
        false => clean(turns, (source, &report), &returning, now(), progress)?,
    };
    let from = &cleaned
        .as_ref()
        .map_or_else(|| source.clone(), |cleaned| cleaned.folder.layout());
    let copied = match &cleaned {
        Some(Cleaned { report, by, .. }) => {
            let behind = returning.upheld(Some(*by), report, &options, now())?;
            (report.committed_end, behind)
        }
        None if comes_back => (end, returning.returned(&report, &options, now())?),
        None => (report.committed_end, returning.upheld(None, &report, &options, now())?),
    };
    fetch_rows(turns, &site, from, now)?;
    let restored = Restored::fetch(disk, layout, from, copied, progress)?;
    sync(turns)?;
    let kept = turns
        .turn(|store| restored.install(store, now()))?
        .into_iter()
        .collect();
    note_restored(&site, source.folder(), &report, now())?;
    clear_out(turns, &kept, now())?;
    cleaned.map_or(Ok(()), |cleaned| cleaned.folder.take_away())?;
    write_snapshot(turns)
}

/// Whether a copy has a log in which something stands, and a base or an archive that it may stand on.
fn has_past(disk: &dyn Disk, source: &Layout) -> Result<bool> {
    let (bases, archives) = (
        immutable_names(disk, source, "base")?,
        immutable_names(disk, source, "archive")?,
    );
    let is_there = !bases.is_empty() || !archives.is_empty();
    Ok(is_there && disk.status(source.log()).is_ok_and(|log| log.length > 0))
}

fn refused(path: &Path, reason: &str, instead: &str) -> Error {
    Error::Refused {
        path: path.display().to_string(),
        reason: reason.to_owned(),
        instead: instead.to_owned(),
    }
}

fn nothing_in(disk: &dyn Disk, source: &Layout) -> Error {
    let is_here = |folder: &Path| is_folder(disk, folder) && disk.list(folder).is_ok_and(|names| !names.is_empty());
    let reason = if disk.status(source.log()).is_ok_and(|log| log.length > 0) {
        "no line of its log is a whole event, so that there is no state in it to go back to"
    } else if is_here(source.folder()) {
        "it holds no log, only files that were replaced or left over, so that there is no state in it to go back to"
    } else if is_folder(disk, source.folder()) {
        "it is empty: the store that it is a copy of had no event, so that there is no state in it to go back to"
    } else {
        return Error::io(source.log(), io::Error::from_raw_os_error(NO_SUCH_FILE));
    };
    refused(
        source.folder(),
        reason,
        "Leave it where it is: repair() looks there for what it can prove. restore() takes a backup, or another folder of \
         quarantine/ that has a log.",
    )
}

/// A chain does not tell that it went on. The hint beside a copy does: it says where the copied log ended.
fn check_end(disk: &dyn Disk, source: &Layout) -> Result<()> {
    let path = source.log();
    let hint = read_hint(disk, source).at(path)?;
    let Ok(log) = disk.open(path, Access::Read) else {
        return Ok(());
    };
    let length = log.length().at(path)?;
    match hint_for(hint, &*log, length).at(path)? {
        Hint::Contradicted(whole) if whole.offset > length => {
            let reason = format!(
                "the copy was cut off: it had {} bytes and seq {}",
                whole.offset, whole.seq
            );
            Err(Error::Corrupted(Box::new(Damage {
                offset: length,
                ..finding(LOG, DamageKind::Unreadable, reason)
            })))
        }
        _ => Ok(()),
    }
}

/// Copies the rows of a copy. Present rows with the same file name move away first, because both logs need theirs.
fn fetch_rows(turns: &impl Turns, site: &Site, source: &Layout, now: &dyn Fn() -> i64) -> Result<()> {
    let (disk, from, to) = (&*site.disk, source.vectors(), site.layout.vectors());
    let there = match is_folder(disk, &from) {
        true => disk.list(&from).at(&from)?,
        false => Vec::new(),
    };
    let is_cut = turns.turn(|store| {
        store.refresh()?;
        Ok(store.log.check_end_is_known().is_err())
    })?;
    if is_cut && !there.is_empty() {
        // That rows move out of the way is written down, and nothing is written behind an end that is lost.
        repair_in_turn(turns, now)?;
    }
    let mut names = Vec::new();
    let present = turns.turn(|store| {
        store.refresh()?;
        Ok(store.vectors.named_rows(&store.state))
    })?;
    for name in there.into_iter().filter(|name| is_rows_file(name)) {
        let Ok(status) = disk.status(&from.join(&name)) else {
            // Something else than a file: these rows are missing there, and will be here.
            continue;
        };
        let is_named = present.iter().any(|named| *named == (name.clone(), status.length));
        if !is_named || !begins_with(disk, &to.join(&name), &from.join(&name))? {
            names.push(name);
        }
    }
    make_way(turns, now, &names)?;
    copy_names(disk, &from, &to, site.layout.folder(), names.into_iter())
}

/// Puts a tail back where it was cut; gives the replaced state, and the folder that keeps the replaced log.
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
        let restored = Restored {
            log: draft,
            head,
            missed: None,
            snapshot: None,
        };
        let (before, _, kept) = restored.swap(store, now)?;
        accept_head(store)?;
        Ok((before, kept))
    })
}

/// Brings back a tail of `quarantine/`, or a copy as [`restore`] does; says what was repaired on the way.
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
        None if is_file => Err(refused(
            source,
            "it is a single file, and no tail in quarantine/ of this store",
            "restore() takes a folder with a log, which backup(), repair() or restore() made; a tail is taken back from \
             quarantine/ of the store that it was cut from.",
        )),
        None => restore(turns, &source_of(&*disk, source), wanted, now, progress).map(|()| None),
    }
}

/// Puts a tail of `quarantine/` back and repairs what is damaged in it; the replaced log is kept.
///
/// # Errors
/// `Corrupted` if it was not cut from the present log, or holds nothing whole; as [`repair`](crate::store::repair).
pub fn restore_tail(turns: &impl Turns, name: &str, now: &dyn Fn() -> i64, progress: Progress<'_>) -> Result<Repaired> {
    let _care = take_care(turns, now())?;
    let (before, kept) = turns.turn(|store| put_tail_back(store, name, now()))?;
    let treated = turns.turn(|store| repair_now(store, false, false, now(), progress))?;
    let records = turns.turn(|store| Ok(store.state.len() as u64))?;
    let nothing = Repaired {
        records,
        history_kept: true,
        ..Repaired::default()
    };
    let (repaired, replaced) = treated.unwrap_or_else(|| (nothing, BTreeSet::new()));
    let changed = turns.turn(|store| {
        put_tail_away(&store.site, name, &kept)?;
        Ok(differences(&before, &store.state))
    })?;
    write_snapshot(turns)?;
    clear_out(turns, &replaced, now())?;
    Ok(Repaired {
        changed,
        kept: Some(kept),
        ..repaired
    })
}

/// Moves a tail that was put back to the folder that keeps the replaced log, so that it is not reported again.
fn put_tail_away(site: &Site, name: &str, kept: &str) -> Result<()> {
    let (quarantine, folder) = (site.layout.quarantine(), site.layout.inside(kept));
    let path = quarantine.join(name);
    site.disk.rename(&path, &folder.join(name)).at(&path)?;
    site.disk.sync_dir(&folder).at(&folder)?;
    site.disk.sync_dir(&quarantine).at(&quarantine)
}
