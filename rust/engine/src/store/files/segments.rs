//! Finds, opens and writes the segments of a store's state in `index/state/`.

use std::cmp::Reverse;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::Hex;
use chronolog::disk::{Access, Disk, DiskFile, Identity, Mapping};
use chronolog::event::line::{Event, Trust};
use chronolog::hint::{line_before, origin_hash};
use chronolog::layout::{Layout, index_name, is_segment_draft, segment_range};
use chronolog::log::Site;
use chronolog::log::files::{is_ours, remove_ours};
use chronolog::origin::Origin;
use chronolog::verify::{Walk, finding};
use chronolog::wal::reader::Reading;
use chronomemory_state::index::{is_altered, lists_of, origin_in, write_key_file};
use chronomemory_state::segment::{self, KeyFolder, Sealed, Segment, Sources};
use chronomemory_state::state::{State, unlike};

use crate::store::load::loader::Loader;

/// The extension of key files.
const KEYS: &str = "keys";
/// So many neighbours of one size become one.
const MERGED_AT_ONCE: usize = 8;
/// Segments of up to so many events and rows are of the smallest size; each further size is eight times as large.
const SMALLEST_EVENTS: u32 = 65_536;

/// A log and its segments.
#[derive(Clone)]
pub(in crate::store) struct SegmentFolder<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The store's paths.
    pub layout: &'a Layout,
    /// The log.
    pub log: Arc<dyn DiskFile>,
    /// What the log starts from.
    pub origin: &'a Origin,
}

/// Segments, and the walk that continues behind them.
pub(in crate::store) struct Resumed {
    /// The segments.
    pub sealed: Arc<Sealed>,
    /// The walk over the log, behind the last sealed event.
    pub walk: Walk,
}

impl SegmentFolder<'_> {
    /// Opens the segments of the log up to a place; `None` if none fit. `synced` is how far the log is known to be on disk.
    pub fn open(&self, end: u64, synced: Option<u64>) -> Option<Resumed> {
        let sources = self.sources()?;
        let origin = origin_hash(&*self.log, self.log.length().ok()?)?;
        let failed: Arc<AtomicBool> = Arc::default();
        let mut segments = self.chain(&origin, &failed);
        // A segment that does not end where the log says so is of another log, or the log was changed.
        while let Some(last) = segments.last() {
            let walk = Walk::resume(&last.head().position, &*self.log, synced);
            match walk.filter(|walk| walk.end <= end && ends_with(&*self.log, walk, &last.head().head)) {
                Some(walk) => {
                    let sealed = Sealed::of(segments, sources, failed);
                    return Some(Resumed {
                        sealed: Arc::new(sealed),
                        walk,
                    });
                }
                None => _ = segments.pop(),
            }
        }
        None
    }

    /// The files that locators lead to; `None` if the log starts from something that segments do not hold.
    pub fn sources(&self) -> Option<Sources> {
        let base = match self.origin {
            Origin::Nothing => None,
            Origin::Ours(sentinel) => {
                let path = self.layout.base(sentinel.base_sha256?.text());
                Some(self.disk.open(&path, Access::Read).ok()?)
            }
            Origin::Foreign => return None,
        };
        Some(Sources::new(Arc::clone(&self.log), base))
    }

    /// The longest chain of segments from the first event on.
    fn chain(&self, origin: &[u8; 32], failed: &Arc<AtomicBool>) -> Vec<Arc<Segment>> {
        let folder = self.layout.segments();
        let mut names = self.disk.list(&folder).unwrap_or_default();
        names.retain(|name| name.ends_with(".rows") && segment_range(name).is_some());
        names.sort_by_key(|name| Reverse(segment_range(name)));
        let mut segments: Vec<Arc<Segment>> = Vec::new();
        loop {
            let last = segments.last().map(|last| last.head());
            let (at, slots) = last.map_or((0, 0), |last| (last.to, last.end_slot));
            let next = names
                .iter()
                .filter(|name| segment_range(name).is_some_and(|(from, _)| from == at))
                .find_map(|name| {
                    let segment = open_segment(self.disk, &folder.join(name), failed)?;
                    let head = segment.head();
                    let fits = head.origin == *origin
                        && last.is_none_or(|last| last.seed == head.seed)
                        && segment_range(name) == Some((head.from, head.to))
                        && head.from < head.to;
                    (fits && head.first_slot == slots).then_some(segment)
                });
            match next {
                Some(segment) => segments.push(Arc::new(segment)),
                None => return segments,
            }
        }
    }

    /// Writes a segment with this head, and opens it with those before it. `None` if another process seals just now, or the log was
    /// replaced. Segments of other logs are removed if `is_only_log`: the care lock is held then.
    pub fn seal(
        &self,
        head: &segment::Head,
        before: Option<&Arc<Sealed>>,
        log: Identity,
        is_only_log: bool,
        write: impl FnOnce(Arc<dyn DiskFile>, &Sources) -> io::Result<()>,
    ) -> io::Result<Option<Arc<Sealed>>> {
        let seal = || {
            let Some(sources) = before.map(|before| before.sources().clone()).or_else(|| self.sources()) else {
                return Ok(None);
            };
            let failed = before.map_or_else(Arc::default, |before| Arc::clone(before.mark()));
            let mut segments = before.map_or_else(Vec::new, |before| before.segments().to_vec());
            let path = path_of(self.layout, head);
            if !put(self.disk, self.layout, &path, log, |file| write(file, &sources))? {
                return Ok(None);
            }
            let Some(new) = open_segment(self.disk, &path, &failed) else {
                return Ok(None);
            };
            segments.push(Arc::new(new));
            let sealed = merge_last(Sealed::of(segments, sources, failed), |sealed, parts| {
                let head = sealed.merged_head(parts.clone());
                let path = path_of(self.layout, &head.unwrap_or_default());
                let write = |file| segment::merge(file, sealed, parts);
                let is_put = put(self.disk, self.layout, &path, log, write)?;
                Ok(is_put.then(|| open_segment(self.disk, &path, sealed.mark())).flatten())
            })?;
            if let Some(before) = before {
                self.keep_keys(before, &sealed, log);
            }
            self.remove_others(&sealed, is_only_log)?;
            Ok(Some(Arc::new(sealed)))
        };
        Ok(with_segment_lock(self.disk, self.layout, seal)?.flatten())
    }

    /// Makes the key file for the last segment if the largest one before it has one, so that no later call waits for it.
    fn keep_keys(&self, before: &Sealed, sealed: &Sealed, log: Identity) {
        let largest = (0..before.segments().len()).max_by_key(|&number| before.segments()[number].len());
        let number = sealed.segments().len() - 1;
        let path = path_of(self.layout, sealed.segments()[number].head());
        if let Some(names) = largest.and_then(|largest| lists_of(before, largest)) {
            let write = |file| write_key_file(sealed, number, &names, file);
            // Without it the next call that needs one makes it.
            let _ = put(self.disk, self.layout, &path.with_extension(KEYS), log, write);
        }
    }

    /// Removes files that hold nothing which these segments do not hold, and those of other logs too if `all`. INVARIANT: `all` is set only
    /// under the care lock, when no other log is about to get its name.
    fn remove_others(&self, sealed: &Sealed, all: bool) -> io::Result<()> {
        let folder = self.layout.segments();
        let used: Vec<PathBuf> = sealed
            .segments()
            .iter()
            .map(|part| path_of(self.layout, part.head()))
            .collect();
        let origin = sealed.head().map(|head| head.origin);
        for name in self.disk.list(&folder)? {
            let path = folder.join(&name);
            let Some((_, to)) = segment_range(&name).filter(|_| !used.contains(&path.with_extension("rows"))) else {
                continue;
            };
            let file = self.disk.open(&path, Access::Read).and_then(|file| file.map(u64::MAX));
            let is_spare = match file.ok().and_then(origin_in) {
                of_log @ Some(_) if of_log == origin => to <= sealed.events(),
                _ => all,
            };
            if is_spare && is_ours(self.disk, &path) {
                self.disk.remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Does something under the lock of those who write segments, which is tried and not waited for; `None` if another process has it.
fn with_segment_lock<T>(
    disk: &dyn Disk,
    layout: &Layout,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<Option<T>> {
    disk.create_dir(&layout.segments())?;
    let lock = disk.lock_file(&layout.segment_lock())?;
    if !lock.acquire(Duration::ZERO)? {
        return Ok(None);
    }
    let outcome = remove_drafts(disk, layout).and_then(|()| act());
    let _ = lock.release();
    outcome.map(Some)
}

/// Writes a file under a temporary name and gives it its own, if the log is still the one at its path; false if not.
fn put(
    disk: &dyn Disk,
    layout: &Layout,
    path: &Path,
    log: Identity,
    write: impl FnOnce(Arc<dyn DiskFile>) -> io::Result<()>,
) -> io::Result<bool> {
    let draft = path.with_extension("tmp");
    let written = disk.create(&draft).and_then(|file| {
        write(Arc::clone(&file))?;
        file.sync()
    });
    // INVARIANT: the log is checked when the draft is complete, and an erasure removes drafts first: no erased segment comes back.
    let is_current = disk.status(layout.log()).is_ok_and(|now| now.identity == log);
    if written.is_err() || !is_current {
        disk.remove(&draft)?;
        return written.map(|()| false);
    }
    disk.rename(&draft, path)?;
    Ok(true)
}

/// The key files of the segments of one log.
pub(in crate::store) struct KeyFiles {
    /// Where they are.
    pub site: Arc<Site>,
    /// The log.
    pub log: Identity,
}

impl KeyFolder for KeyFiles {
    fn open(&self, head: &segment::Head) -> Option<Mapping> {
        let path = path_of(&self.site.layout, head).with_extension(KEYS);
        self.site.disk.open(&path, Access::Read).ok()?.map(u64::MAX).ok()
    }

    fn write(&self, head: &segment::Head, write: &dyn Fn(Arc<dyn DiskFile>) -> io::Result<()>) -> io::Result<bool> {
        let (disk, layout) = (&*self.site.disk, &self.site.layout);
        let path = path_of(layout, head).with_extension(KEYS);
        let kept = with_segment_lock(disk, layout, || put(disk, layout, &path, self.log, write))?;
        Ok(kept == Some(true))
    }
}

fn path_of(layout: &Layout, head: &segment::Head) -> PathBuf {
    layout.segment(head.from, head.to, Hex::spell(&head.head).text())
}

/// Compares the segments that would be used with the state that the log gives.
pub(in crate::store) fn altered_segments(
    folder: &SegmentFolder<'_>,
    end: u64,
    state: &State,
) -> io::Result<Option<Damage>> {
    let Some(resumed) = folder.open(end, None) else {
        return Ok(None);
    };
    let rows = resumed.sealed;
    let path = |number: usize| path_of(folder.layout, rows.segments()[number].head());
    let found = |path: &Path, reason: String| Ok(Some(finding(&index_name(path), DamageKind::IndexAltered, reason)));
    let mut loader = Loader::going_on(State::of_segments(Arc::clone(&rows)));
    let mut walk = resumed.walk;
    walk.go(&*folder.log, end, Reading::new(1), &mut loader)?;
    let sealed = loader.state.unwrap_or_default();
    // One that fails a check is not used: the state is read from the log then.
    if let Some(reason) = unlike(state, &sealed).filter(|_| !sealed.slots.has_failed() && !state.slots.has_failed()) {
        return found(&path(0), reason);
    }
    for number in 0..rows.segments().len() {
        let path = path(number).with_extension(KEYS);
        let Ok(file) = folder.disk.open(&path, Access::Read) else {
            continue;
        };
        if is_altered(&rows, number, &*file).unwrap_or(false) {
            return found(&path, "it is not what the rows of its segment give".to_owned());
        }
    }
    Ok(None)
}

fn open_segment(disk: &dyn Disk, path: &Path, failed: &Arc<AtomicBool>) -> Option<Segment> {
    let file = disk.open(path, Access::Read).ok()?;
    Segment::open(file.map(u64::MAX).ok()?, failed)
}

/// Makes one of the last segments as long as there are so many of a size. `merge` writes one in place of those with some numbers.
pub(in crate::store) fn merge_last(
    mut sealed: Sealed,
    merge: impl Fn(&Sealed, Range<usize>) -> io::Result<Option<Segment>>,
) -> io::Result<Sealed> {
    while let Some(first) = mergeable(sealed.segments()) {
        let Some(merged) = merge(&sealed, first..sealed.segments().len())? else {
            break;
        };
        let mut segments = sealed.segments()[..first].to_vec();
        segments.push(Arc::new(merged));
        sealed = Sealed::of(segments, sealed.sources().clone(), Arc::clone(sealed.mark()));
    }
    Ok(sealed)
}

/// The first of the last segments that are to become one.
fn mergeable(segments: &[Arc<Segment>]) -> Option<usize> {
    let size_of = |segment: &Segment| {
        let (mut size, mut events) = (
            0,
            Ord::max(segment.head().to - segment.head().from, segment.len() as u32) / SMALLEST_EVENTS,
        );
        while events > 0 {
            (size, events) = (size + 1, events / MERGED_AT_ONCE as u32);
        }
        size
    };
    let last = segments.last()?;
    let size = size_of(last);
    let count = segments
        .iter()
        .rev()
        .take_while(|segment| size_of(segment) <= size && segment.is_named == last.is_named)
        .count();
    (count >= MERGED_AT_ONCE).then(|| segments.len() - count)
}

/// Whether the line before the end of a walk is an event with this hash, and is whole.
fn ends_with(log: &dyn DiskFile, walk: &Walk, head: &[u8; 32]) -> bool {
    let Ok(Some(line)) = line_before(log, walk.end) else {
        return false;
    };
    let line = line.strip_suffix(b"\r").unwrap_or(&line);
    Event::read(line, Trust::Nothing).is_ok_and(|event| event.hash_and_raw(line).1 == *head)
}

/// Whether there are segments.
pub(in crate::store) fn has_segments(disk: &dyn Disk, layout: &Layout) -> bool {
    let names = disk.list(&layout.segments()).unwrap_or_default();
    names.iter().any(|name| segment_range(name).is_some())
}

/// Removes segments that were not finished. The segment lock or the writer lock is held.
pub(in crate::store) fn remove_drafts(disk: &dyn Disk, layout: &Layout) -> io::Result<()> {
    let folder = layout.segments();
    for name in disk.list(&folder)? {
        let path = folder.join(&name);
        if is_segment_draft(&name) && is_ours(disk, &path) {
            disk.remove(&path)?;
        }
    }
    Ok(())
}

/// Removes all segments, except those of the log with this origin.
pub(in crate::store) fn remove_segments(
    disk: &dyn Disk,
    layout: &Layout,
    kept: Option<[u8; 32]>,
) -> chronolog::error::Result<()> {
    let folder = layout.segments();
    let is_kept = |name: &str| {
        let segment = kept.and_then(|_| open_segment(disk, &folder.join(name), &Arc::default()));
        segment.is_some_and(|segment| Some(segment.head().origin) == kept)
    };
    remove_ours(disk, &folder, is_segment_draft)?;
    remove_ours(disk, &folder, |name| segment_range(name).is_some() && !is_kept(name))
}
