//! Rebuilds a base that is gone or altered from the history before it.
//!
//! The first line of a log names the archive of the log before it, by its digest. That archive's events, on top of what it
//! started from itself, are the base again, exactly: and proved, for every step of the way is named by a hash.

use std::io;
use std::sync::Arc;

use chronolog::archive::{Archive, damage_in};
use chronolog::digest::Hex;
use chronolog::disk::{Disk, DiskFile};
use chronolog::hint::Hint;
use chronolog::layout::Layout;
use chronolog::origin::{Origin, Sentinel, WayBack, foreign_traces, origin_of};
use chronolog::verify::Walk;
use chronolog::wal::reader::Reading;

use super::loader::Loader;
use crate::store::files::proofs::{own_base, proved_archive, proved_base};

/// Where the files are, and how they are read.
#[derive(Clone, Copy)]
pub(in crate::store) struct BasePlace<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The store's paths.
    pub layout: &'a Layout,
    /// How many threads read.
    pub threads: usize,
    /// How one came back to the log, if it is one of the past.
    pub way: Option<&'a WayBack>,
}

/// One retired log, and how it must end.
struct RebuildSegment {
    archive: Archive,
    head: String,
    /// The base that it starts from accounts for its events up to here.
    settled_until: Option<u64>,
}

/// Loads what the log of this sentinel starts from, without its base; says from which archive, or `None` if what is kept
/// does not reach back far enough.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn rebuild(
    place: BasePlace<'_>,
    sentinel: &Sentinel,
    loader: &mut Loader,
) -> io::Result<Option<String>> {
    match try_rebuild(place, sentinel, loader) {
        Ok(Some(name)) => Ok(Some(name)),
        // A retired log that says something else than its digest promised cannot be; one that cannot be unpacked can.
        Ok(None) => {
            loader.start_over();
            Ok(None)
        }
        Err(fault) if damage_in(&fault).is_some() => {
            loader.start_over();
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

fn try_rebuild(place: BasePlace<'_>, sentinel: &Sentinel, loader: &mut Loader) -> io::Result<Option<String>> {
    let threads = place.threads;
    let Some((name, _)) = sentinel.safe_archive() else {
        return Ok(None);
    };
    let name = name.to_owned();
    // Copies elsewhere are looked for only if what lies at its own place does not reach back far enough: it takes long.
    let found = match segments_before(place, sentinel.clone(), own_base)? {
        Some(found) => Some(found),
        None => segments_before(place, sentinel.clone(), proved_base)?,
    };
    let Some((segments, base)) = found else {
        return Ok(None);
    };
    loader.start_over();
    if let Some(file) = base
        && loader.take_base(&*file)?.header.is_err()
    {
        return Ok(None);
    }
    let reading = Reading {
        trusted_until: 0,
        threads,
    };
    for segment in segments.iter().rev() {
        loader.settled_until = segment.settled_until;
        let log = &*segment.archive.log;
        let mut walk = Walk::new(None);
        walk.go(log, log.length()?, reading, loader, &mut |_, _| {})?;
        let is_whole =
            walk.follower.damage.is_empty() && walk.mark().head.is_some_and(|head| head.text() == segment.head);
        if !is_whole {
            return Ok(None);
        }
        loader.leave_segment();
    }
    Ok(Some(name))
}

/// How a base is looked for: only at its own place, or elsewhere too.
type FindBase = fn(&dyn Disk, &Layout, &Hex) -> Option<Arc<dyn DiskFile>>;

/// Retired logs, newest first, and the base that the last of them starts from, if it needs one.
type Beginnings = (Vec<RebuildSegment>, Option<Arc<dyn DiskFile>>);

/// The retired logs back to one whose own base is there, and that base; `None` if there is none.
fn segments_before(
    BasePlace { disk, layout, way, .. }: BasePlace<'_>,
    mut sentinel: Sentinel,
    find: FindBase,
) -> io::Result<Option<Beginnings>> {
    let mut segments: Vec<RebuildSegment> = Vec::new();
    let mut way = way.cloned().unwrap_or_default();
    loop {
        let found = sentinel
            .safe_archive()
            .and_then(|(name, digest)| proved_archive(disk, layout, name, digest));
        let Some(archive) = found else {
            return Ok(None);
        };
        let length = archive.log.length()?;
        let origin = origin_of(&*archive.log, length)?;
        let mut segment = RebuildSegment {
            head: sentinel.previous_head.clone(),
            archive,
            settled_until: None,
        };
        match origin {
            Origin::Nothing => {
                segments.push(segment);
                return Ok(Some((segments, None)));
            }
            Origin::Foreign => {
                let adoption = foreign_traces(&*segment.archive.log, length, u64::MAX, Hint::None)?.adoption;
                let Some(adoption) = adoption else {
                    return Ok(None);
                };
                way.pass(&sentinel);
                segment.settled_until = Some(adoption.seq);
                segments.push(segment);
                let base = way.base(adoption.base_sha256);
                let base = base.and_then(|sha256| find(disk, layout, &sha256));
                return Ok(base.map(|base| (segments, Some(base))));
            }
            Origin::Ours(earlier) => {
                // A segment begins where the one before it ends: whatever leads elsewhere leads nowhere.
                if earlier.last_seq >= sentinel.last_seq {
                    return Ok(None);
                }
                let earlier = way.back(&sentinel, earlier);
                segments.push(segment);
                let base = earlier.base_sha256.and_then(|sha256| find(disk, layout, &sha256));
                if base.is_some() {
                    return Ok(Some((segments, base)));
                }
                sentinel = earlier;
            }
        }
    }
}
