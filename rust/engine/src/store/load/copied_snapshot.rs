//! Finds a copy of the snapshot that another tool's compaction left.
//!
//! Such a log names no digest: its snapshot is taken at its word. A copy of the store that begins with the same event started
//! from the same state, so the snapshot in there is as good as the one that lay beside the log. Copies that contradict each other
//! prove nothing.

use std::io;
use std::sync::Arc;

use chronolog::digest::Hex;
use chronolog::disk::{Access, DiskFile, Naming};
use chronolog::event::line::{Event, Trust};
use chronolog::hint::{Hint, first_line};
use chronolog::layout::{Layout, SNAPSHOT};
use chronolog::log::files::open_inside;
use chronolog::origin::foreign_traces;
use chronomemory_state::snapshot;

use super::loader::Loader;
use super::rebuild::BasePlace;
use super::which_base;
use crate::store::files::proofs::{other_folders, shown};

/// A snapshot that lies in a copy of the store.
pub(super) struct CopiedSnapshot {
    /// Where it lies, from the store's folder on.
    pub name: String,
    /// Its bytes.
    pub file: Arc<dyn DiskFile>,
    /// The last event that it accounts for.
    pub seq: u64,
    /// No other copy has another state of that event.
    pub is_agreed: bool,
    sha256: Hex,
    last_hash: String,
}

/// The newest snapshot that such a log may have started from, in a copy that begins with the same event.
///
/// # Errors
/// What the disk says of the log; what cannot be read of a copy is passed over.
pub(super) fn copied_snapshot(
    place: BasePlace<'_>,
    log: &dyn DiskFile,
    length: u64,
    hint: Hint,
) -> io::Result<Option<CopiedSnapshot>> {
    let Some(first) = first_line(log, length)? else {
        return Ok(None);
    };
    let Ok(event) = Event::read(&first, Trust::Nothing) else {
        return Ok(None);
    };
    let mut best: Option<CopiedSnapshot> = None;
    for other in other_folders(place.disk, place.layout) {
        let Some(mut copy) = in_folder(place, &other, &first) else {
            continue;
        };
        let is_before = copy.seq < event.spans.seq;
        // All that it does not account for has to be in the log.
        let fits = match is_before {
            true => copy.seq + 1 == event.spans.seq,
            false => {
                let hashes = foreign_traces(log, length, copy.seq, hint)?.hashes;
                hashes.iter().any(|hash| hash == copy.last_hash.as_bytes())
            }
        };
        if !fits {
            continue;
        }
        match &mut best {
            Some(best) if best.seq == copy.seq => best.is_agreed &= best.sha256 == copy.sha256,
            Some(best) if best.seq > copy.seq => {}
            _ => {
                copy.is_agreed = true;
                best = Some(copy);
            }
        }
    }
    Ok(best)
}

fn in_folder(place: BasePlace<'_>, other: &Layout, first: &[u8]) -> Option<CopiedSnapshot> {
    let log = place.disk.open(other.log(), Access::Read).ok()?;
    let begins_alike = first_line(&*log, log.length().ok()?).ok()?.as_deref() == Some(first);
    let file = open_inside(place.disk, other, SNAPSHOT).ok().flatten()?;
    let read = begins_alike
        .then(|| snapshot::read(&*file, &mut snapshot::NoTaker))?
        .ok()?;
    let header = read.header.ok()?;
    Some(CopiedSnapshot {
        name: shown(place.layout, &other.snapshot()),
        file,
        seq: header.seq,
        is_agreed: false,
        sha256: read.sha256,
        last_hash: header.last_hash,
    })
}

/// The same where a line of ours adopted it and is lost: what was adopted lies in `base/`, and is loaded; gives its name. The
/// snapshot beside the log is ours by now, and somebody may have changed it.
///
/// # Errors
/// What the disk says.
pub(super) fn lost_adoption(
    place: BasePlace<'_>,
    log: &dyn DiskFile,
    length: u64,
    first_seq: Option<u64>,
    loader: &mut Loader,
) -> io::Result<Option<String>> {
    let adopted = which_base::adopted(place.disk, place.layout, log, length, first_seq)?;
    let Some((name, header, file)) = adopted else {
        return Ok(None);
    };
    loader.take_base(&*file).naming(&place.layout.inside(&name))?;
    loader.settled_until = Some(header.seq);
    Ok(Some(name))
}
