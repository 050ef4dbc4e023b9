//! The errors and findings for an archive that is altered or not there.

use std::path::Path;

use chronolog::archive::damage_in;
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::error::{At, Error, Result};
use chronolog::origin::Sentinel;
use chronolog::verify::finding;

/// What an archive holds may be wrong: that is damage, and no failure of the disk.
pub(in crate::store) trait OrDamage<T> {
    /// Turns an `io::Result` about an archive into ours.
    fn or_damage(self, name: &str) -> Result<T>;
}

impl<T> OrDamage<T> for std::io::Result<T> {
    fn or_damage(self, name: &str) -> Result<T> {
        self.map_err(|fault| match damage_in(&fault) {
            Some(reason) => archive_altered(name, reason),
            None => Error::io(Path::new(name), fault),
        })
    }
}

/// That an archive is not what it was.
pub(in crate::store) fn archive_altered(name: &str, reason: String) -> Error {
    Error::Corrupted(Box::new(finding(name, DamageKind::ArchiveAltered, reason)))
}

/// What was found in the log that an archive holds.
pub(in crate::store) fn damaged(name: &str, found: &Damage) -> Error {
    Error::Corrupted(Box::new(Damage {
        path: name.to_owned(),
        ..found.clone()
    }))
}

/// An archive is believed only if it is the one that the log names.
pub(in crate::store) fn check_digest(packed: &dyn DiskFile, name: &str, digest: &str) -> Result<Hex> {
    let found = chronolog::archive::file_digest(packed).at(Path::new(name))?;
    if found.text() == digest {
        Ok(found)
    } else {
        Err(archive_altered(name, format!("its SHA-256 is {}", found.text())))
    }
}

/// Why the events before a sentinel cannot be told.
pub(in crate::store) fn not_kept(sentinel: &Sentinel) -> Error {
    Error::HistoryUnavailable {
        first_seq: sentinel.last_seq + 1,
        reason: why_not_kept(sentinel),
    }
}

pub(in crate::store) fn why_not_kept(sentinel: &Sentinel) -> String {
    match sentinel.safe_archive() {
        Some((name, _)) => format!("{name} is not there"),
        None => "the log was compacted there and its history not kept".to_owned(),
    }
}
