//! Notices that the log went away under an open store, or was gone before.
//!
//! A log is only ever appended to, or replaced by one that names its head. So a store that is open and finds something else
//! knows that somebody took the log away, cut it, or put another in its place. It says so at every call, writes nothing, and
//! goes on by itself if the log comes back. Only our own deeds are followed: a restore and a repair keep the log that they
//! replace where it can be found.

use chronolog::error::{At, Error, Result};
use chronolog::hint::{Hint, hint_for};
use chronolog::log::{Log, Site};
use chronolog::remembered::{HeadStanding, standing_to};
use chronolog::wal::synced::Synced;

use crate::store::files::proofs::{other_logs, set_aside};
use crate::store::load::found::Traces;

/// What is wrong if the log at its path does not hold what is known of it, other than by a deed of ours. Whoever keeps the
/// lock does not look around between two reads.
///
/// # Errors
/// `Io`.
pub(in crate::store) fn missed(site: &Site, log: &Log) -> Result<Option<Error>> {
    let is_damaged = !log.report().damage.is_empty();
    let Some(known) = log.missed()?.filter(|_| !is_damaged) else {
        return Ok(None);
    };
    Ok((!is_our_deed(site, log, &known)?).then(|| log.gone(&known)))
}

/// Under the lock: whether the log is lost and left something behind that should be set aside. Copies that were made of it are
/// no such thing: they stay where they are.
///
/// # Errors
/// `Io`.
pub(in crate::store) fn has_remains(site: &Site, log: &Log) -> Result<bool> {
    let is_lost = log.check_is_there().is_err();
    let traces = Traces::look(&*site.disk, &site.layout).at(site.log())?;
    let has_events = log.open().is_some_and(|log| log.mark().events > 0);
    Ok(is_lost && (has_events || traces.is_some_and(|traces| traces.has_remains())))
}

/// Before the files are read anew: whether what is there follows from what is known of the log.
///
/// # Errors
/// `Corrupted` if it does not; `Io`.
pub(in crate::store) fn check_follows(site: &Site, log: &Log) -> Result<()> {
    match log.find_loss()? {
        Some(known) if !is_our_deed(site, log, &known)? => Err(log.gone(&known)),
        _ => Ok(()),
    }
}

/// Whether a deed of ours took away what is known here: the log lies aside, with all that it leads back to, or the note outside
/// tells of another one, which is here.
fn is_our_deed(site: &Site, log: &Log, known: &Synced) -> Result<bool> {
    Ok(is_kept_elsewhere(site, known)? || log.open().is_some_and(|open| log.head().tells_of_another(open)))
}

/// Whether a restore or a repair of ours put the log aside that is known here, or what became of it since.
fn is_kept_elsewhere(site: &Site, known: &Synced) -> Result<bool> {
    let quarantine = site.layout.quarantine();
    for copy in set_aside(&*site.disk, &site.layout) {
        if matches!(
            standing_to(&*site.disk, &copy, &(*known).into()),
            Ok(HeadStanding::Kept)
        ) {
            return Ok(true);
        }
    }
    for log in other_logs(&*site.disk, &site.layout).at(&quarantine)? {
        let length = log.length().at(&quarantine)?;
        if let Ok(Hint::Synced(_)) = hint_for(Some(*known), &*log, length) {
            return Ok(true);
        }
    }
    Ok(false)
}
