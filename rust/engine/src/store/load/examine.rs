//! Reads log, base and archives into a state and a report, and looks twice where others may be writing.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::base::{Base, BasePlace, Proof};
use super::found::{Traces, missed_end};
use super::loader::Loader;
use super::replaced::Unfit;
use super::tails::whole_events;
use crate::options::Checking;
use crate::store::archives::check::follow_archives;
use crate::store::files::held::{HeldFiles, Need};
use chronolog::damage::{Damage, DamageKind};
use chronolog::disk::{Access, Bytes, Disk, DiskFile, FolderMode, open_if_there, read_upto};
use chronolog::event::line::FIELDS;
use chronolog::hint::{Hint, SYNCED_BYTES, begins_as_hint, first_line, hint_for, is_hint_damaged, read_hint};
use chronolog::json::{self, Value};
use chronolog::layout::{FOLDER, LOG, Layout, is_aside_folder, is_backup_folder};
use chronolog::log::files::is_folder;
use chronolog::origin::{Origin, WayBack, beginning_of};
use chronolog::verify::{BaseState, Report, Sink, Walk, finding};
use chronolog::wal::reader::Reading;

/// What was found and how far it was read.
pub struct Examined {
    /// The walk, ready to go on from the committed end.
    pub walk: Walk,
    pub report: Report,
    pub origin: Origin,
    /// How far the log was synced, if the hint speaks of this log.
    pub synced: Option<u64>,
    pub proof: Proof,
    pub unknown: Option<String>,
}

#[derive(Clone, Copy)]
pub struct Look<'a> {
    pub threads: usize,
    /// Which hashes are computed again.
    pub checking: Checking,
    /// Whether the archives are read too.
    pub archives: bool,
    /// Whether this is a retired log.
    pub is_past: bool,
    /// The way back to a retired log.
    pub way: Option<&'a WayBack>,
    /// Whether segments are used.
    pub sealed: bool,
    /// Only damage matters: scopes and the trail are passed over.
    pub only_damage: bool,
}

impl Look<'_> {
    /// A look at the live log and what it starts from, not at its archives.
    pub fn at_log(threads: usize, checking: Checking) -> Self {
        Self {
            threads,
            checking,
            archives: false,
            is_past: false,
            way: None,
            sealed: false,
            only_damage: false,
        }
    }
}

/// Looks at a log and at all that it names.
pub fn examine(
    disk: &dyn Disk,
    layout: &Layout,
    log: &dyn DiskFile,
    look: Look<'_>,
    loader: &mut Loader<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Examined> {
    let length = log.length()?;
    let known = read_hint(disk, layout)?;
    let hint = hint_for(known, log, length)?;
    let synced = hint.synced();
    let mut beginning = beginning_of(log, length)?;
    if let Some(way) = look.way {
        way.resolve_origin(&mut beginning.origin);
    }
    let mut base = Base::default();
    let place = BasePlace {
        disk,
        layout,
        threads: look.threads,
        log,
        length,
        hint,
        way: look.way,
    };
    // Scopes are reported by a look at everything, unless only damage matters.
    let watches = look.archives && !look.only_damage;
    if watches {
        loader.watch_scopes();
    }
    let resumed = loader.resumed.take();
    if let (Some(sealer), Origin::Ours(sentinel)) = (&mut loader.sealer, &beginning.origin) {
        let base = sentinel.base_sha256.map(|sha256| layout.base(sha256.text()));
        sealer.base = base.and_then(|path| disk.open(&path, Access::Read).ok());
    }
    match (&resumed, &beginning.origin) {
        (Some(_), Origin::Ours(sentinel)) => base.resume(sentinel),
        (Some(_), _) => {}
        (None, _) => base.load(place, &beginning, loader)?,
    }
    if watches && base.report.base != BaseState::Anchored {
        loader.watch_scopes(); // only what the log names by its digest tells anything
    }
    if !base.report.damage.is_empty() {
        loader.note_loss();
    }
    // Records that an archive added up to lie in another log.
    if loader.state.as_ref().is_some_and(|state| state.is_outlived) {
        loader.sealer = None;
    }
    let has_trail = !look.is_past && !look.only_damage;
    let mut walk = resumed.unwrap_or_else(|| Walk::new(synced)).promised(hint.promised());
    walk.follower.has_trail = has_trail;
    let reading = Reading {
        trusted_until: if look.checking == Checking::Quick {
            synced.unwrap_or(0)
        } else {
            0
        },
        threads: look.threads,
    };
    let mut tail = walk.go_with_progress(log, length, reading, loader, progress)?;
    if let (Some(mut sealer), Some(state)) = (loader.sealer.take(), &mut loader.state) {
        // Without it the state is as good.
        let _ = sealer.finish(state, &walk);
    }
    if let Some(tail) = tail.as_mut().filter(|_| walk.follower.tail.is_some()) {
        let whole = whole_events(log, tail.offset..length, walk.mark().head, 0)?;
        tail.events = whole.map_or(0, |whole| whole.events);
    }
    if look.archives {
        let erasures = Some(walk.told_erasures().cloned().collect());
        follow_archives(disk, layout, &beginning, erasures, look.threads, &mut base.report)?;
    }
    let unfit = Unfit {
        disk,
        layout,
        log,
        length,
        beginning: &beginning,
    };
    // The hint knows of the log that is missing, and must not be written over.
    let replaced = match look.is_past {
        true => None,
        false => unfit.was_replaced(known, hint)?,
    };
    let reached = walk.mark().highest_seq.max(walk.follower.claimed);
    let cut = match (missed_end(known, &beginning, reached), hint) {
        _ if replaced.is_some() => None,
        (Some(lost), Hint::None) => Some(format!(
            "the log ends before the last known sync: it had seq {} then",
            lost.seq
        )),
        (_, Hint::Contradicted(lost)) if lost.offset > length => Some(format!(
            "the log ends before the last known sync: it had {} bytes and seq {} then",
            lost.offset, lost.seq
        )),
        // Nothing is wrong with the lines, but they are not those that were synced.
        (_, Hint::Contradicted(lost)) if walk.follower.damage.is_empty() && tail.is_none() => {
            Some(format!("the log does not hold event {} as it was synced", lost.seq))
        }
        _ => None,
    };
    let missing = replaced
        .iter()
        .map(|reason| finding(LOG, DamageKind::LogMissing, reason.as_str()));
    base.report.damage.extend(missing);
    base.report.notes.extend(cut.clone());
    Ok(Examined {
        proof: base.proof,
        unknown: base.unknown.clone(),
        report: Report {
            cut: replaced.or(cut),
            is_hint_damaged: known.is_none() && is_hint_damaged(disk, layout)?,
            scopes: loader.scope_findings(),
            ..base.report(&walk, tail, length)
        },
        synced,
        walk,
        origin: beginning.origin,
    })
}

/// An open log with all that was found and taken in.
pub struct ExaminedLog<'a> {
    pub file: Arc<dyn DiskFile>,
    pub found: Examined,
    pub taker: Loader<'a>,
    /// Some of it was taken from segments, and not read.
    pub is_resumed: bool,
}

const MOST_LOOKS: usize = 4;

/// Opens the log and looks at all files; damage is believed only if a second look finds the same, for others may have
/// swapped a file between two reads. `None` if there is no log.
pub fn look_twice<'a>(
    disk: &dyn Disk,
    layout: &Layout,
    mut look: Look<'_>,
    loader: impl Fn(&Arc<dyn DiskFile>) -> Loader<'a>,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Option<ExaminedLog<'a>>> {
    let mut believed: Option<Vec<Damage>> = None;
    let mut looks = 0;
    loop {
        // The base that a log starts from is there as long as the log is: they are opened together.
        let Some(held) = HeldFiles::gather(disk, layout, Need::State)? else {
            return Ok(None);
        };
        let mut taker = loader(&held.log);
        if look.sealed {
            taker.resume(&held, layout)?;
        }
        let is_resumed = taker.resumed.is_some();
        let found = examine(&held.disk, layout, &*held.log, look, &mut taker, progress)?;
        let is_odd = !found.report.damage.is_empty() || found.report.cut.is_some();
        if std::mem::take(&mut look.sealed)
            && (is_odd || taker.state.as_ref().is_some_and(|state| state.slots.has_failed()))
        {
            continue;
        }
        let damage = &found.report.damage;
        looks += 1;
        if damage.is_empty() || believed.as_ref() == Some(damage) || looks == MOST_LOOKS {
            let file = held.log;
            return Ok(Some(ExaminedLog {
                file,
                found,
                taker,
                is_resumed,
            }));
        }
        believed = Some(damage.clone());
    }
}

/// Up to which seq another tool's base accounts for the events of a log.
pub fn settled_seq(disk: &dyn Disk, layout: &Layout, log: &dyn DiskFile, length: u64) -> io::Result<u64> {
    let mut loader = Loader::default();
    let place = BasePlace {
        disk,
        layout,
        threads: 1,
        log,
        length,
        hint: Hint::None,
        way: None,
    };
    Base::default().foreign(place, beginning_of(log, length)?.seq, &mut loader)?;
    Ok(loader.settled_until.unwrap_or(0))
}

/// Looks at a folder without a log; `None` if nothing shows that there was one, or if one has come meanwhile.
pub fn look_for_lost(
    disk: &dyn Disk,
    layout: &Layout,
    threads: usize,
    loader: &mut Loader<'_>,
) -> io::Result<Option<Report>> {
    let report = look_beside(disk, layout, threads, loader)?;
    // A log gets its name before any file beside it: one that came meanwhile explains the traces.
    let is_lost = report.is_some() && open_if_there(disk, layout.log())?.is_none();
    Ok(report.filter(|_| is_lost))
}

/// Looks at what lies beside a log that was replaced, as if the log were not there; `None` if that is nothing.
pub fn look_beside(
    disk: &dyn Disk,
    layout: &Layout,
    threads: usize,
    loader: &mut Loader<'_>,
) -> io::Result<Option<Report>> {
    let Some(traces) = Traces::look(disk, layout)? else {
        return Ok(None);
    };
    let place = BasePlace {
        disk,
        layout,
        threads,
        log: &Bytes(Vec::new()),
        length: 0,
        hint: Hint::None,
        way: None,
    };
    let mut base = Base::default();
    base.lost_log(place, &traces, loader)?;
    Ok(Some(base.report(&Walk::new(None), None, 0)))
}

pub fn nothing() -> Report {
    Base::default().report(&Walk::new(None), None, 0)
}

/// The store of a folder that is given as a project.
pub fn layout_of(disk: &dyn Disk, root: &Path) -> Layout {
    let project = Layout::of_project(root);
    if disk.exists(project.folder()) {
        return project;
    }
    let here = Layout::of_folder(root.to_owned());
    let has_files = disk.status(here.log()).is_ok() || disk.status(&here.synced()).is_ok();
    if root.file_name().is_some_and(|name| name == FOLDER) {
        // The folder of a project's store, named itself; it may have lost its log, and the hint with it.
        let is_store = has_files || matches!(Traces::look(disk, &here), Ok(Some(_)));
        return if is_store { here } else { project };
    }
    // A copy that lost its log is still one, as long as its hint is there.
    if !has_files {
        return project;
    }
    let copy = Layout::of_backup(disk.real_path(root));
    if is_store(disk, &copy) { copy } else { project }
}

/// The store that is given to be restored: it is only read, and verified, so that any log will do.
pub fn source_of(disk: &dyn Disk, root: &Path) -> Layout {
    let project = Layout::of_project(root);
    let copy = Layout::of_backup(disk.real_path(root));
    // A folder of `quarantine/` may hold single files and no log, a backup of an empty store nothing: the error is about that folder.
    let is_aside = || {
        let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (is_aside_folder(&name) || is_backup_folder(&name)) && is_folder(disk, root)
    };
    if !disk.exists(project.folder()) && (disk.status(copy.log()).is_ok() || is_aside()) {
        return copy;
    }
    project
}

/// Whether the files in a folder show that they are a store's: by the hint about the last sync, which nobody else has, or by
/// an event in a folder that is named as backups are.
fn is_store(disk: &dyn Disk, layout: &Layout) -> bool {
    disk.guard(layout.folder(), FolderMode::default());
    // A damaged hint is one of a damaged store.
    let mut hint = Vec::new();
    let read = disk
        .open(&layout.synced(), Access::Read)
        .and_then(|file| read_upto(&*file, &mut hint, 0, SYNCED_BYTES));
    if read.is_ok() && begins_as_hint(&hint) {
        return true;
    }
    let name = layout.folder().file_name().unwrap_or_default();
    is_backup_folder(&name.to_string_lossy()) && begins_with_event(disk, layout)
}

fn begins_with_event(disk: &dyn Disk, layout: &Layout) -> bool {
    let line = disk.open(layout.log(), Access::Read).and_then(|log| {
        let length = log.length()?;
        first_line(&*log, length)
    });
    let Ok(Some(line)) = line else {
        return false;
    };
    match json::parse(&line) {
        Ok(event @ Value::Object(_)) => FIELDS.iter().all(|field| event.get(field).is_some()),
        _ => false,
    }
}
