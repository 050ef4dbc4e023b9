//! Lists the retired logs of a history, the oldest that was kept first.

use chronolog::archive::Archive;
use chronolog::digest::Hex;
use chronolog::disk::Disk;
use chronolog::error::{At, Error, Result};
use chronolog::hint::Hint;
use chronolog::layout::Layout;
use chronolog::origin::{Origin, TrailTold, foreign_traces};

use super::way::{End, Hop, PastLogs};

/// A retired log that was kept.
pub(in crate::store) struct RetiredSegment {
    /// The file, from the store's folder on.
    pub name: String,
    /// What it holds.
    pub archive: Archive,
    /// Its digest.
    pub digest: Hex,
    /// Its first and its last seq, as the sentinel says that names it.
    pub span: (u64, u64),
    /// How many lines of it are redacted.
    pub redacted: u64,
    /// What it starts from.
    pub start: Start,
}

/// What a log starts from.
pub(in crate::store) struct Start {
    /// The base, as erasures made it.
    pub base: Option<Hex>,
    /// It accounts for the events up to here, if another tool compacted the log.
    pub settled_until: Option<u64>,
    /// The base counts as it is, whatever the history before it adds up to.
    pub is_word: bool,
}

fn start_of(hop: &Hop) -> Start {
    let is_word = hop.sentinel.as_ref().is_none_or(|sentinel| {
        let told = &sentinel.told;
        told.mended || (told.trail == TrailTold::Nothing && told.erasure.is_none())
    });
    Start {
        base: hop.base.1,
        settled_until: hop.adopted,
        is_word,
    }
}

/// The live log and what was kept of those before it, the oldest first; refuses a history with a hole.
///
/// # Errors
/// `Corrupted` for an archive that is another, `HistoryUnavailable` for one that is not there.
pub(in crate::store) fn segments(
    disk: &dyn Disk,
    layout: &Layout,
    origin: &Origin,
    live: (&dyn chronolog::disk::DiskFile, u64),
    pruned_until: u64,
) -> Result<(Vec<RetiredSegment>, Start)> {
    let way = PastLogs::find(disk, layout, Hop::live(origin, 0, None, None)).at(&layout.archives())?;
    match &way.end {
        End::Altered(damage) => return Err(Error::Corrupted(Box::new(damage.clone()))),
        End::Note(note) if way.hops.last().is_some_and(|hop| names_archive(hop, pruned_until)) => {
            return Err(Error::busy(format!(
                "nothing is erased from a history with a hole in it: {note}"
            )));
        }
        _ => {}
    }
    let mut hops = way.hops.into_iter();
    let mut start = hops.next().map(|hop| (start_of(&hop), hop.sentinel));
    if let Some((start, _)) = start.as_mut().filter(|_| *origin == Origin::Foreign) {
        let traces =
            foreign_traces(live.0, live.1, u64::MAX, Hint::None).map_err(|fault| Error::io(layout.log(), fault))?;
        start.base = traces.adoption.as_ref().map(|adoption| adoption.base_sha256);
        start.settled_until = traces.adoption.map(|adoption| adoption.seq);
    }
    let Some((live, mut sentinel)) = start else {
        return Err(Error::Closed);
    };
    let mut found = Vec::new();
    for hop in hops {
        let span = sentinel.as_ref().and_then(|sentinel| sentinel.told.span);
        let start = start_of(&hop);
        sentinel = hop.sentinel;
        let Some((archive, digest)) = hop.archive else {
            continue;
        };
        found.push(RetiredSegment {
            name: hop.name,
            archive,
            digest,
            span: span.unwrap_or_default(),
            redacted: hop.bound,
            start,
        });
    }
    found.reverse();
    Ok((found, live))
}

/// Whether a log names an archive that nobody removed on purpose.
fn names_archive(hop: &Hop, pruned_until: u64) -> bool {
    hop.sentinel
        .as_ref()
        .is_some_and(|sentinel| sentinel.archive.is_some() && sentinel.last_seq > pruned_until)
}
