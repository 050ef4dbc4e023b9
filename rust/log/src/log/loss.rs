//! Tells whether a log that was read before is still there.

use crate::damage::{Damage, DamageKind};
use crate::disk::Access;
use crate::error::{At, Error, Result};
use crate::hint::{Hint, first_line, hint_for, read_hint};
use crate::layout::LOG;
use crate::remembered::{self, HeadStanding};
use crate::verify::finding;
use crate::wal::synced::{Synced, names_hash};

use super::open::OpenLog;
use super::site::Site;

/// Whether what is at the path of a log does not follow from what is known of it.
pub(super) fn is_missed(site: &Site, known: &Synced) -> Result<bool> {
    let standing = remembered::standing_to(&*site.disk, &site.layout, &(*known).into()).at(site.log())?;
    Ok(matches!(standing, HeadStanding::Lost(_)))
}

/// Whoever has read a log in a folder that is gone does not begin another: it was moved away or removed.
pub(super) fn check_kept(site: &Site, open: Option<&OpenLog>) -> Result<()> {
    match open.and_then(OpenLog::reached) {
        Some(known) if is_missed(site, &known)? => Err(gone(site, &known)),
        _ => Ok(()),
    }
}

/// A writer that fails takes back what it wrote, and others may have read it already: no loss, for nobody was told that
/// it is kept. What was written up to `own_end`, and what was synced, is.
pub(super) fn was_never_promised(site: &Site, open: &OpenLog, own_end: u64) -> Result<bool> {
    let path = site.log();
    let Ok(now) = site.disk.status(path) else {
        return Ok(false);
    };
    let Some(first) = open.mark().first else {
        return Ok(false);
    };
    let synced = read_hint(&*site.disk, &site.layout).at(&site.layout.synced())?;
    let of_this_log = synced.filter(|synced| synced.first == first);
    let hint = hint_for(of_this_log, &*open.file, now.length).at(path)?;
    let is_kept = match of_this_log {
        Some(_) => matches!(hint, Hint::Synced(_)),
        None => first_line(&*open.file, now.length)
            .at(path)?
            .is_some_and(|line| names_hash(&line, &first)),
    };
    let is_cut = now.length < open.mark().end;
    Ok(is_cut && is_kept && now.identity == open.identity && now.length >= own_end)
}

/// That a log is gone which was known up to some event.
pub(super) fn gone(site: &Site, known: &Synced) -> Error {
    let how = match site.disk.open(site.log(), Access::Read) {
        Err(_) => "it is not there any more",
        Ok(file) if file.length().is_ok_and(|length| length == 0) => "it was emptied",
        Ok(_) => "it was cut, or another was put in its place",
    };
    let reason = format!("{how}: this store knows it up to event {}", known.seq);
    Error::Corrupted(Box::new(Damage {
        seq: Some(known.seq),
        ..finding(LOG, DamageKind::LogMissing, reason)
    }))
}
