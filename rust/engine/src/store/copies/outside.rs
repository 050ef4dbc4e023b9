//! Makes verified copies outside the store, and lists the copies that a store has or knows of.
//!
//! A copy is written under a draft name and verified before it gets its name. The store notes its place first, so that an
//! erasure can report it. Copies of other stores in the same folder are never touched.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::store::Progress;
use crate::store::files::erasing::remove_draft;
use crate::store::files::known_copies::{Guarded, KnownCopies, KnownCopy, look_into, own_place, weight_of};
use crate::store::recovery::judge::verify;
use crate::store::turns::{Turns, sync, take_care};
use crate::store::upkeep::backup::{BackingUp, next_name};
use chronolog::disk::UnexpectedEntry;
use chronolog::error::{At, Error, Result};
use chronolog::event::stamp;
use chronolog::hint::{Synced, read_hint};
use chronolog::layout::{FOLDER, Layout, is_backup_folder};
use chronolog::log::files::{is_folder, ours_in, with_suffix};
use chronolog::log::{Log, Site};
use chronolog::verify::Report;

const MOST_TRIES: usize = 64;

/// What copy is wanted.
#[derive(Clone, Debug)]
pub struct CopyOrder {
    /// The folder in which it gets a folder of its own.
    pub to: PathBuf,
    /// How many copies of this store stay there, the new one among them; all if none is given.
    pub keep: Option<u64>,
}

/// A copy that was made.
#[derive(Clone, Debug)]
pub struct CopyMade {
    /// Its folder.
    pub path: PathBuf,
    /// Its last event.
    pub seq: u64,
    /// The hash of that.
    pub head: String,
    /// How many bytes its files have.
    pub bytes: u64,
    /// Older copies that went.
    pub removed: Vec<String>,
}

/// Copies a store that others go on using into a folder outside of it, and verifies the copy.
///
/// # Errors
/// `Argument` or `Refused` if nothing can be copied there or the copy does not verify; `Io`, `Locked`, `Closed`, `Poisoned`.
pub fn copy_out(
    turns: &impl Turns,
    order: &CopyOrder,
    now: &dyn Fn() -> i64,
    progress: Progress<'_>,
) -> Result<CopyMade> {
    if order.keep == Some(0) {
        return Err(Error::argument(
            "keep",
            "must be at least 1: the copy that is made stays",
        ));
    }
    let _care = take_care(turns, now())?;
    sync(turns)?;
    let (site, threads) = turns.turn(|store| Ok((Arc::clone(&store.site), store.options.threads)))?;
    let around = place_for(&site, &order.to)?;
    let mut known = KnownCopies::read(&site)?;
    clear_drafts(&site, &known, &around)?;
    make_place(&site, &around)?;
    let made = now();
    let target = claim(&site, &known, &around, made)?;
    let draft = Guarded::at(&*site.disk, with_suffix(&target, ".tmp"));
    let started = turns.turn(|store| {
        store.with_lock(now(), |store| {
            store.on_log(Log::sync)?;
            let rows = store.vectors.named_rows(&store.state);
            let copy = BackingUp::start(&store.site, &store.log, rows, target.clone());
            let ends = copy.reached.ok_or_else(|| not_copied(store.log.open().is_some()))?;
            Ok((copy, ends))
        })
    });
    let (copy, ends) = started.inspect_err(|_| {
        // Nothing is in it yet.
        let _ = site.disk.remove_dir(&draft.folder);
    })?;
    let mut noted = KnownCopy {
        path: target.to_string_lossy().into_owned(),
        at: made,
        seq: ends.seq,
        head: ends.head.text().to_owned(),
        made_by: own_place(&site),
        is_verified: false,
    };
    known.note(noted.clone());
    known.write(&site)?;
    let written = write_verified(&site, copy, &ends, threads, progress);
    let is_nothing_left = !site.disk.exists(&draft.folder) && !site.disk.exists(&target);
    drop(draft);
    let bytes = written.inspect_err(|_| {
        if is_nothing_left {
            known.0.retain(|copy| copy.path != noted.path);
            // A note of a copy that is not there does no harm; the error says why there is none.
            let _ = known.write(&site);
        }
    })?;
    noted.is_verified = true;
    known.note(noted);
    known.write(&site)?;
    let removed = match order.keep {
        Some(keep) => thin_out(&site, &mut known, &around, keep)?,
        None => Vec::new(),
    };
    Ok(CopyMade {
        path: target,
        seq: ends.seq,
        head: ends.head.text().to_owned(),
        bytes,
        removed,
    })
}

/// Writes a copy, reads it again, and gives it its name if it is right; gives how many bytes it has.
fn write_verified(site: &Site, copy: BackingUp, ends: &Synced, threads: usize, progress: Progress<'_>) -> Result<u64> {
    copy.write(progress)?;
    let inside = Layout::of_folder(copy.draft.clone());
    check(&verify(&*site.disk, &inside, threads, progress)?, ends, &copy.target)?;
    let bytes = weight_of(&*site.disk, &copy.draft);
    if site.disk.exists(&copy.target) {
        return Err(Error::io(&copy.target, std::io::ErrorKind::AlreadyExists.into()));
    }
    copy.name()?;
    Ok(bytes)
}

fn not_copied(is_damaged: bool) -> Error {
    let why = match is_damaged {
        true => "the end of the log cannot be read, so that no copy of it can be verified: repair() first",
        false => "there is nothing to copy yet",
    };
    Error::argument("backup", why)
}

fn check(report: &Report, ends: &Synced, target: &Path) -> Result<()> {
    let wrong = report
        .damage
        .first()
        .map(ToString::to_string)
        .or_else(|| report.cut.clone());
    let reason = match (wrong, report.returned.first()) {
        (Some(wrong), _) => format!("the copy does not verify: {wrong}"),
        _ if report.tail.is_some() => "the copy ends in the middle of a write".to_owned(),
        (None, Some(returned)) => format!("the copy holds what was erased: {returned}"),
        _ if report.last_seq != ends.seq || report.head != Some(ends.head) => {
            "the copy does not end with the last event of the store".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Error::Refused {
        path: target.display().to_string(),
        reason,
        instead: "No copy was left there. verify() says whether the store itself is damaged, repair() makes it whole; if it is \
                  whole, the place of the copy does not keep what is written to it."
            .to_owned(),
    })
}

/// The folder that copies go to, without links on the way to it; it need not be there.
fn place_for(site: &Site, to: &Path) -> Result<PathBuf> {
    let is_plain = to.is_absolute() && !to.components().any(|part| part == Component::ParentDir);
    if !is_plain || to.to_str().is_none() {
        return Err(Error::argument(
            "to",
            format!("must be the whole path of a folder in UTF-8, without .., got {to:?}"),
        ));
    }
    let disk = &*site.disk;
    match disk.status(to) {
        Ok(_) => return Err(Error::io(to, std::io::ErrorKind::NotADirectory.into())),
        Err(fault) if UnexpectedEntry::in_error(&fault).is_some_and(UnexpectedEntry::is_link) => {
            return Err(Error::io(to, fault));
        }
        Err(_) => {}
    }
    let there = to.ancestors().find(|path| disk.exists(path)).unwrap_or(Path::new("/"));
    let rest = to.strip_prefix(there).unwrap_or(Path::new(""));
    let real: PathBuf = disk.real_path(there).join(rest).components().collect();
    let store = disk.real_path(site.layout.folder());
    if real.starts_with(&store) || real.iter().any(|part| part == FOLDER) {
        return Err(Error::must(
            "to",
            "be a folder outside of any store, best on another disk (backup() without to= keeps a copy inside)",
            to.display(),
        ));
    }
    Ok(real)
}

/// Makes the folder that copies go to, durably and private.
fn make_place(site: &Site, around: &Path) -> Result<()> {
    let missing: Vec<&Path> = around.ancestors().take_while(|path| !site.disk.exists(path)).collect();
    if !missing.is_empty() {
        site.disk.create_dir(around).at(around)?;
    }
    let parents = missing.iter().rev().filter_map(|path| path.parent());
    parents
        .into_iter()
        .try_for_each(|parent| site.disk.sync_dir(parent).at(parent))
}

/// A free name, with the folder in which the copy is made: creating that folder reserves the name.
fn claim(site: &Site, known: &KnownCopies, around: &Path, now: i64) -> Result<PathBuf> {
    for _ in 0..MOST_TRIES {
        let known = known.0.iter().map(KnownCopy::folder);
        let known = known.filter(|folder| folder.parent() == Some(around));
        let known = known.filter_map(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()));
        let there = site.disk.list(around).at(around)?.into_iter();
        let there = there.map(|name| name.strip_suffix(".tmp").unwrap_or(&name).to_owned());
        let copies = there.chain(known).filter(|name| is_backup_folder(name));
        let target = around.join(next_name(copies, now));
        let draft = with_suffix(&target, ".tmp");
        match site.disk.create_new_dir(&draft) {
            Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(fault) => return Err(Error::io(&draft, fault)),
            // Another may have been done between the look and the claim.
            Ok(()) if site.disk.exists(&target) => site.disk.remove_dir(&draft).at(&draft)?,
            Ok(()) => {
                site.disk.sync_dir(around).at(around)?;
                return Ok(target);
            }
        }
    }
    Err(Error::busy(format!(
        "too many copy to {} at the same moment",
        around.display()
    )))
}

/// Removes what is left of copies of this store that were not finished, or were going.
fn clear_drafts(site: &Site, known: &KnownCopies, around: &Path) -> Result<()> {
    for copy in known.0.iter().filter(|copy| is_of(site, copy, around)) {
        let draft = copy.draft();
        let _guarded = Guarded::at(&*site.disk, draft.clone());
        remove_draft(&*site.disk, &draft)?;
    }
    Ok(())
}

fn is_of(site: &Site, copy: &KnownCopy, around: &Path) -> bool {
    let folder = copy.folder();
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    copy.is_made_by(site) && folder.parent() == Some(around) && is_backup_folder(&name)
}

/// Removes the oldest copies of this store in a folder. What is not what was made there stays; so does what is not ours in a copy.
fn thin_out(site: &Site, known: &mut KnownCopies, around: &Path, keep: u64) -> Result<Vec<String>> {
    let disk = &*site.disk;
    let ours = known
        .0
        .iter()
        .filter(|copy| is_of(site, copy, around) && copy.is_in_its_place(disk));
    let mut copies: Vec<KnownCopy> = ours.cloned().collect();
    // Known in the order in which they were made, whatever the clock said.
    let surplus = copies.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
    let mut removed = Vec::new();
    for copy in copies.drain(..surplus) {
        let (folder, draft) = (copy.folder(), copy.draft());
        let _guards = (
            Guarded::at(&*site.disk, folder.clone()),
            Guarded::at(&*site.disk, draft.clone()),
        );
        if disk.exists(&draft) {
            continue;
        }
        disk.rename(&folder, &draft).at(&folder)?;
        disk.sync_dir(around).at(around)?;
        remove_draft(disk, &draft)?;
        if !disk.exists(&draft) {
            known.0.retain(|other| other.path != copy.path);
        }
        removed.push(copy.path);
    }
    if !removed.is_empty() {
        known.write(site)?;
    }
    Ok(removed)
}

/// A copy of a store.
#[derive(Clone, Debug)]
pub struct CopySeen {
    /// Its folder.
    pub path: PathBuf,
    /// When it was made, or brought back, in microseconds since 1970.
    pub at: i64,
    /// Its last event; 0 if unknown.
    pub seq: u64,
    /// The hash of that.
    pub head: String,
    /// How many bytes its files have.
    pub bytes: u64,
    /// Whether all of it was read again and was right when it was made, and it ends now as it did then.
    pub is_verified: bool,
    /// Whether it is there now.
    pub is_there: bool,
    /// Whether it lies in the store's own folder.
    pub is_inside: bool,
}

/// The moment in the name of a backup; 0 if there is none.
fn moment_in(name: &str) -> i64 {
    let part = |from: usize, to: usize| name.get(from..to);
    let spelled = || {
        let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
        let (hour, minute, second) = (part(9, 11)?, part(11, 13)?, part(13, 15)?);
        Some(format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
    };
    spelled().and_then(|moment| stamp::read(moment.as_bytes())).unwrap_or(0)
}

/// The copies in the store's folder, and those that it knows of outside; each by the moment it was made.
///
/// # Errors
/// `Refused` if the note about those outside cannot be read; `Io`, `Closed`.
pub fn list(turns: &impl Turns) -> Result<Vec<CopySeen>> {
    let site = turns.turn(|store| {
        store.check_open()?;
        Ok(Arc::clone(&store.site))
    })?;
    let (disk, backups) = (&*site.disk, site.layout.backups());
    let mut seen = Vec::new();
    for name in ours_in(disk, &backups, is_backup_folder)? {
        let path = backups.join(&name);
        if is_folder(disk, &path) {
            let ends = look_into(disk, &path, |inside| read_hint(disk, inside)).ok().flatten();
            seen.push(CopySeen {
                at: moment_in(&name),
                seq: ends.map_or(0, |ends| ends.seq),
                head: ends.map_or_else(String::new, |ends| ends.head.text().to_owned()),
                bytes: weight_of(disk, &path),
                is_verified: false,
                is_there: true,
                is_inside: true,
                path,
            });
        }
    }
    for known in KnownCopies::read(&site)?.0 {
        let path = known.folder();
        let is_there = look_into(disk, &path, |inside| is_folder(disk, inside.folder()));
        seen.push(CopySeen {
            at: known.at,
            seq: known.seq,
            head: known.head.clone(),
            bytes: match is_there {
                true => look_into(disk, &path, |inside| weight_of(disk, inside.folder())),
                false => 0,
            },
            is_verified: known.is_verified && known.is_in_its_place(disk),
            is_there,
            is_inside: false,
            path,
        });
    }
    seen.sort_by(|a, b| (a.at, &a.path).cmp(&(b.at, &b.path)));
    Ok(seen)
}

/// Forgets copies outside that are gone for good; says how many were known.
///
/// # Errors
/// `Argument` if one of them is still there; `Io`, `Locked`, `Closed`.
pub fn forget(turns: &impl Turns, paths: &[PathBuf], now: &dyn Fn() -> i64) -> Result<u64> {
    let _care = take_care(turns, now())?;
    let site = turns.turn(|store| Ok(Arc::clone(&store.site)))?;
    let mut known = KnownCopies::read(&site)?;
    let before = known.0.len();
    let named = known.0.iter().filter(|copy| paths.contains(&copy.folder()));
    let mut there = named.flat_map(|copy| [copy.folder(), copy.draft()]);
    if let Some(there) = there.find(|path| site.disk.exists(path)) {
        let must = "be gone, for an erasure must tell of what is there";
        return Err(Error::must("paths", must, there.display()));
    }
    known.0.retain(|copy| !paths.contains(&copy.folder()));
    let gone = before - known.0.len();
    if gone > 0 {
        known.write(&site)?;
    }
    Ok(gone as u64)
}
