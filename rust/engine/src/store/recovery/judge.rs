//! Verifies a whole store while others append, compact, move rows and restore.
//!
//! Each look is at files that belong together ([`HeldFiles`]). A writer may still cut a write or drop a space during it, so
//! damage is believed if nothing was written meanwhile, or if the next look finds the same.

use std::sync::Arc;
use std::time::Duration;

use super::returning::notes_of;
use crate::options::Checking;
use crate::store::archives::way::tell_pruned;
use crate::store::files::held::{HeldFiles, Need};
use crate::store::files::segments::{SegmentFolder, altered_segments, has_segments};
use crate::store::history::lines::is_whole;
use crate::store::load::examine::{Look, examine, look_for_lost, nothing};
use crate::store::load::load_sealing::LoadSealer;
use crate::store::load::loader::Loader;
use crate::store::load::tails;
use crate::store::search::live_text::{TextLog, altered_texts, text_names};
use crate::store::vectors::records::index::Spaces;
use crate::store::vectors::{altered_codes, check_rows};
use crate::store::{Progress, SealTerms, Store};
use chronolog::damage::Tail;
use chronolog::disk::{Disk, DiskFile, FolderMode};
use chronolog::error::{At, Result};
use chronolog::event::{Known, stamp};
use chronolog::hint::origin_hash;
use chronolog::layout::Layout;
use chronolog::origin::ALONE;
use chronolog::verify::{Report, Sink, Walk};

/// How often files that others keep changing are looked at.
const MOST_LOOKS: usize = 8;
/// Clocks of processors and of machines that share a store differ by so much without anyone minding.
const CLOCKS_DIFFER_MICROS: i64 = 2_000_000;
/// How long a tail is watched where the lock cannot be asked for.
const WATCH: Duration = Duration::from_millis(10);

/// Whether others who write, compact or restore meanwhile may have caused what a look found.
fn is_doubtful(report: &Report) -> bool {
    let is_gone = |note: &String| note.starts_with("history unavailable") && note.ends_with("is not there");
    !report.damage.is_empty() || !report.altered.is_empty() || report.notes.iter().any(is_gone)
}

/// Checks all files again, trusting nothing that is in memory.
pub(in crate::store) fn verify(
    disk: &dyn Disk,
    layout: &Layout,
    threads: usize,
    progress: Progress<'_>,
) -> Result<Report> {
    verify_at(disk, layout, threads, i64::MAX, false, progress)
}

/// The same with a note about events that carry a time later than `now`; what is derived is not checked if only damage matters.
pub(in crate::store) fn verify_at(
    disk: &dyn Disk,
    layout: &Layout,
    threads: usize,
    now: i64,
    only_damage: bool,
    progress: Progress<'_>,
) -> Result<Report> {
    disk.guard(layout.folder(), FolderMode::default());
    let mut before: Option<Report> = None;
    for look in 1.. {
        let Some(held) = HeldFiles::gather(disk, layout, Need::Everything).at(layout.log())? else {
            let lost = look_for_lost(disk, layout, threads, &mut Loader::default()).at(layout.log())?;
            return Ok(lost.unwrap_or_else(nothing));
        };
        let mut report = judge(&held, layout, threads, now, only_damage, progress)?;
        let is_same = |before: &Report| {
            before.damage == report.damage && before.altered == report.altered && before.notes == report.notes
        };
        let is_sure = !is_doubtful(&report) || held.is_untouched(layout) || before.as_ref().is_some_and(is_same);
        if is_sure || look == MOST_LOOKS {
            // An unfinished write that has gone on since, or is under way, is no interrupted one.
            if report.tail.is_some() && (is_locked(disk, layout) == Some(true) || !held.is_untouched(layout)) {
                report.tail = None;
            }
            return Ok(report);
        }
        before = Some(report);
    }
    Ok(nothing())
}

/// Bytes behind the committed end that stay the same while no process writes: an interrupted write.
pub(in crate::store) fn pending_tail(store: &mut Store) -> Result<Option<Tail>> {
    store.refresh()?;
    let tail = store.log.report.tail.clone();
    if tail.is_none() || store.log.lock.held {
        return Ok(None);
    }
    match is_locked(&*store.site.disk, &store.site.layout) {
        Some(true) => return Ok(None),
        Some(false) => {}
        None => std::thread::sleep(WATCH),
    }
    store.refresh()?;
    let is_same = store.log.report.tail == tail;
    Ok(tail.filter(|_| is_same))
}

/// Whether a process holds the lock; `None` if this one may not ask.
fn is_locked(disk: &dyn Disk, layout: &Layout) -> Option<bool> {
    if !disk.exists(layout.lock()) {
        return Some(false);
    }
    let lock = disk.lock_file(layout.lock()).ok()?;
    let is_free = lock.acquire(Duration::ZERO).ok()?;
    if is_free {
        // Closing gives it back too.
        let _ = lock.release();
    }
    Some(!is_free)
}

fn judge(
    held: &HeldFiles<'_>,
    layout: &Layout,
    threads: usize,
    now: i64,
    only_damage: bool,
    progress: Progress<'_>,
) -> Result<Report> {
    let look = Look {
        archives: true,
        only_damage,
        ..Look::at_log(threads, Checking::Full)
    };
    // Text index and segments are compared with all records; otherwise only records about embeddings are kept in memory.
    let has_indexes = || !text_names(&held.disk, layout).is_empty() || has_segments(&held.disk, layout);
    let is_indexed = !only_damage && has_indexes();
    let mut taker = match is_indexed {
        true => Loader::loading(),
        false => Loader::checking_rows(),
    };
    let log: Arc<dyn DiskFile> = Arc::new(held.log_then());
    taker.sealer = is_indexed.then(|| LoadSealer::new(&held.disk, layout, SealTerms::default().events, &log));
    let found = examine(&held.disk, layout, &*log, look, &mut taker, progress).at(layout.log())?;
    let (mut report, walk, origin) = (found.report, found.walk, found.origin);
    if let Some(state) = &taker.state {
        report.notes.extend(notes_of(state, &report.notes));
        tell_pruned(state, &mut report.notes);
        let mut spaces = Spaces::default();
        spaces.follow(state, threads);
        let rows = check_rows(&held.disk, layout, state, &spaces, threads)?;
        report.damage.extend(rows.damage);
        report.notes.extend(rows.notes);
        if !only_damage {
            report
                .altered
                .extend(altered_codes(&held.disk, layout, &spaces, threads));
        }
        if is_indexed {
            let first = origin_hash(&*log, walk.end).filter(|_| is_whole(&report) && state.can_be_sealed());
            let text_log = TextLog {
                file: &*log,
                end: walk.end,
                origin: &origin,
                numbers: first.filter(|_| walk.mark().events == state.timeline().len() as u64),
                state,
            };
            let texts = altered_texts(&held.disk, layout, &text_log, threads);
            report.altered.extend(texts);
            let folder = SegmentFolder {
                disk: &held.disk,
                layout,
                log: Arc::clone(&held.log),
                origin: &origin,
            };
            let segments = altered_segments(&folder, walk.end, state).at(layout.log())?;
            report.altered.extend(segments);
        }
    }
    let kept = tails::notes(&held.disk, layout, &*log).at(layout.log())?;
    report.notes.extend(kept);
    report
        .notes
        .extend(from_the_future(&*log, &walk, now).at(layout.log())?);
    Ok(report)
}

/// A note about events that say they were written later than now.
fn from_the_future(log: &dyn DiskFile, walk: &Walk, now: i64) -> std::io::Result<Option<String>> {
    let limit = now.saturating_add(CLOCKS_DIFFER_MICROS);
    if walk.latest <= limit {
        return Ok(None);
    }
    let mut future = Future {
        limit,
        ..Future::default()
    };
    Walk::new(None).go(log, walk.end, ALONE, &mut future)?;
    Ok(future.first.map(|(seq, ts)| {
        format!(
            "{} events carry a time later than the clock of this machine, the first is seq {seq}, {}: stamps never go \
             back, so every later event carries it too until the clock has passed it; as_of(seq) tells them apart",
            future.count,
            stamp::spell(ts)
        )
    }))
}

#[derive(Default)]
struct Future {
    limit: i64,
    count: u64,
    first: Option<(u64, i64)>,
}

impl Sink for Future {
    fn count(&mut self, known: Known<'_>, ts: i64) {
        if ts > self.limit {
            self.count += 1;
            self.first.get_or_insert((known.seq, ts));
        }
    }
}
