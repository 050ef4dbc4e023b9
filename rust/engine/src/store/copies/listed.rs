//! Lists the copies that a store has or knows of, and forgets those that are gone for good.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolog::disk::Disk;
use chronolog::error::{At, Error, Result};
use chronolog::event::stamp;
use chronolog::hint::read_hint;
use chronolog::layout::is_backup_folder;
use chronolog::log::files::is_folder;

use crate::store::files::known_copies::{KnownCopies, look_into, weight_of};
use crate::store::turns::{Turns, take_care};

/// A copy of a store.
#[derive(Clone, Debug)]
pub struct CopySeen {
    /// Its folder.
    pub path: PathBuf,
    /// When it was made, or brought back, in microseconds since 1970.
    pub at: i64,
    /// Its last event; 0 if nobody knows.
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

/// The moment in the name of a copy; 0 if there is none.
fn moment_in(name: &str) -> i64 {
    let part = |from: usize, to: usize| name.get(from..to).unwrap_or_default();
    let (date, clock) = (part(0, 8), part(9, 15));
    let spelled = format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(9, 11),
        part(11, 13),
        part(13, 15)
    );
    let is_whole = date.len() == 8 && clock.len() == 6;
    stamp::read(spelled.as_bytes()).filter(|_| is_whole).unwrap_or(0)
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
    if is_folder(disk, &backups) {
        for name in disk.list(&backups).at(&backups)? {
            let path = backups.join(&name);
            if !is_backup_folder(&name) || !is_folder(disk, &path) {
                continue;
            }
            let ends = look_into(disk, &path, |inside| read_hint(disk, inside)).ok().flatten();
            seen.push(CopySeen {
                at: moment_in(&name),
                seq: ends.map_or(0, |ends| ends.seq),
                head: ends.map_or_else(String::new, |ends| ends.head.text().to_owned()),
                bytes: weight_of(disk, &path)?,
                is_verified: false,
                is_there: true,
                is_inside: true,
                path,
            });
        }
    }
    for known in KnownCopies::read(&site)?.0 {
        let path = known.folder();
        let is_there = is_copy(disk, &path);
        seen.push(CopySeen {
            at: known.at,
            seq: known.seq,
            head: known.head.clone(),
            bytes: look_into(disk, &path, |inside| match is_there {
                true => weight_of(disk, inside.folder()),
                false => Ok(0),
            })?,
            is_verified: known.is_verified && known.is_in_its_place(disk),
            is_there,
            is_inside: false,
            path,
        });
    }
    seen.sort_by(|a, b| (a.at, &a.path).cmp(&(b.at, &b.path)));
    Ok(seen)
}

/// Whether a folder can be looked into, and no link leads to it.
pub(in crate::store) fn is_copy(disk: &dyn Disk, path: &Path) -> bool {
    look_into(disk, path, |inside| is_folder(disk, inside.folder()))
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
    for copy in known.0.iter().filter(|copy| paths.contains(&copy.folder())) {
        if let Some(there) = [copy.folder(), copy.draft()].iter().find(|path| site.disk.exists(path)) {
            return Err(Error::must(
                "paths",
                "be gone, for an erasure must tell of what is there",
                there.display(),
            ));
        }
    }
    known.0.retain(|copy| !paths.contains(&copy.folder()));
    let gone = before - known.0.len();
    if gone > 0 {
        known.write(&site)?;
    }
    Ok(gone as u64)
}
