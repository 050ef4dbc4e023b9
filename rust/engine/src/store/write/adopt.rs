//! The snapshot of a log that another tool compacted becomes a base of ours.

use chronolog::damage::DamageKind;
use chronolog::disk::Access;
use chronolog::error::{At, Error, Result};
use chronolog::layout::{SNAPSHOT, base_name};
use chronolog::log::Site;
use chronolog::log::files::copy_file;
use chronolog::verify::{BaseState, finding};
use chronomemory_state::snapshot;

/// Before the first write to a log that another tool compacted, its snapshot becomes a base of ours; gives the record that
/// says so.
///
/// # Errors
/// `Corrupted` if somebody has changed it since; `Io`.
pub(in crate::store) fn adopt(site: &Site, base: BaseState) -> Result<Option<String>> {
    if base != BaseState::Unanchored {
        return Ok(None);
    }
    let path = site.layout.snapshot();
    let file = site.disk.open(&path, Access::Read).at(&path)?;
    let contents = snapshot::read(&*file, &mut snapshot::NoTaker).at(&path)?;
    let header = contents.header.map_err(|reason| {
        // It was read when the store was opened, so somebody has changed it since.
        let damage = finding(SNAPSHOT, DamageKind::SnapshotRefused, reason);
        Error::Corrupted(Box::new(damage))
    })?;
    let sha256 = contents.sha256;
    let bases = site.layout.bases();
    site.disk.create_dir(&bases).at(&bases)?;
    site.disk.sync_dir(site.layout.folder()).at(site.layout.folder())?;
    copy_file(&*site.disk, &path, &site.layout.inside(&base_name(sha256.text())), None)?;
    site.disk.sync_dir(&bases).at(&bases)?;
    let mut record = format!("{{\"base_sha256\":\"{}\",\"last_hash\":", sha256.text()).into_bytes();
    chronolog::json::write_string(&header.last_hash, &mut record);
    record.extend_from_slice(format!(",\"seq\":{}}}", header.seq).as_bytes());
    Ok(Some(String::from_utf8_lossy(&record).into_owned()))
}
