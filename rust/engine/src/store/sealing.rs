//! Seals the state of a store into segments, while others go on using it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Store;
use super::files::held::{HeldFiles, Need};
use super::files::segments::SegmentFolder;
use super::history::lines::is_whole;
use super::load::examine::{Look, examine};
use super::load::loader::Loader;
use super::shared::Shared;
use crate::options::Checking;
use chronolog::disk::{DiskFile, Identity};
use chronolog::error::{At, Result};
use chronolog::log::{OpenLog, Site};
use chronolog::memory::Refused;
use chronolog::origin::Origin;
use chronolog::verify::Report;
use chronomemory_state::segment::{Head, Sealed};
use chronomemory_state::state::{State, StateId, Unsealed};

/// When what is in memory is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealTerms {
    /// While the store is open: from so many events or records on.
    pub events: usize,
    /// When it is closed.
    pub events_at_close: usize,
    /// A log of fewer events and records is not worth a file.
    pub fewest: usize,
}

impl SealTerms {
    /// Nothing is sealed.
    pub const NEVER: Self = Self {
        events: usize::MAX,
        events_at_close: usize::MAX,
        fewest: usize::MAX,
    };
}

impl Default for SealTerms {
    fn default() -> Self {
        Self {
            events: 65_536,
            events_at_close: 1_024,
            fewest: 4_096,
        }
    }
}

/// What was copied out of a store to be sealed.
pub(in crate::store) struct SealWork {
    unsealed: Unsealed,
    before: Option<Arc<Sealed>>,
    site: Arc<Site>,
    log: Arc<dyn DiskFile>,
    identity: Identity,
    origin: Origin,
    state_id: StateId,
}

impl SealWork {
    /// Writes the segment, without the store.
    fn run(self) -> io::Result<Option<SealedWork>> {
        let folder = SegmentFolder {
            disk: &*self.site.disk,
            layout: &self.site.layout,
            log: self.log,
            origin: &self.origin,
        };
        let sealed = folder.seal(self.unsealed, self.before.as_ref(), self.identity, false)?;
        Ok(sealed.map(|sealed| SealedWork {
            sealed,
            state_id: self.state_id,
            identity: self.identity,
        }))
    }
}

/// A segment that was written, with those before it.
struct SealedWork {
    sealed: Arc<Sealed>,
    state_id: StateId,
    identity: Identity,
}

impl Store {
    /// Whether so much is in memory that it should be sealed.
    pub(in crate::store) fn wants_segment(&self) -> bool {
        self.state.unsealed_len() >= self.options.seal.events.max(self.seal_from)
    }

    /// Copies what is in memory, to be sealed, if it is at least so many events or records.
    fn start_sealing(&mut self, least: usize) -> std::result::Result<Option<SealWork>, Refused> {
        let all = self.state.timeline().len().max(self.state.slot_count());
        let is_worth_it = self.state.unsealed_len() >= least.max(1) && all >= self.options.seal.fewest;
        if self.closed || !is_worth_it || !is_clean(&self.log.report) || !self.state.can_be_sealed() {
            return Ok(None);
        }
        let Some(log) = self.log.open() else {
            return Ok(None);
        };
        let Some(head) = head_of(log, &self.state) else {
            return Ok(None);
        };
        let folder = SegmentFolder {
            disk: &*self.site.disk,
            layout: &self.site.layout,
            log: Arc::clone(&log.file),
            origin: &log.origin,
        };
        // Another process may have sealed the same events.
        let known = self.state.sealed().map_or(0, |sealed| sealed.events());
        let on_disk = folder.open(log.walk.end, None).map(|resumed| resumed.sealed);
        if let Some(on_disk) = on_disk.filter(|on_disk| on_disk.events() > known) {
            let rest = self.state.timeline().len().saturating_sub(on_disk.events() as usize);
            // A store that was opened with `Full` does not trust what it did not write.
            if self.options.checking != Checking::Full {
                self.state.adopt(on_disk);
            }
            if rest <= least {
                return Ok(None);
            }
        }
        Ok(Some(SealWork {
            before: self.state.sealed().cloned(),
            site: Arc::clone(&self.site),
            log: Arc::clone(&log.file),
            identity: log.identity,
            origin: log.origin.clone(),
            state_id: self.state.changes().state_id().same(),
            unsealed: self.state.unsealed(head)?,
        }))
    }

    /// What was sealed is not used for answers any more: the next call reads the log.
    pub(in crate::store) fn distrust_segments(&self) {
        if let Some(sealed) = self.state.sealed() {
            sealed.mark().store(true, Ordering::Relaxed);
        }
    }

    /// Takes what was sealed, unless another state took the place of the one it was copied from.
    fn end_sealing(&mut self, work: SealedWork) {
        let is_same_log = self.log.open().is_some_and(|log| log.identity == work.identity);
        if is_same_log && self.state.changes().state_id().is(&work.state_id) {
            self.state.adopt(work.sealed);
        }
    }

    /// Seals what is in memory before the store is closed. Segments are derived: if it fails, the next opening takes longer.
    pub(in crate::store) fn seal_at_close(&mut self) {
        let started = self.start_sealing(self.options.seal.events_at_close);
        if let Ok(Some(work)) = started {
            let _ = work.run();
        }
    }
}

/// Whether nothing was found that segments cannot hold.
fn is_clean(report: &Report) -> bool {
    is_whole(report) && report.tail.is_none()
}

/// What a segment says about the log that it is of; `None` if the log has anything that segments cannot hold.
fn head_of(log: &OpenLog, state: &State) -> Option<Head> {
    let timeline = state.timeline();
    let offset_of = |index: u64| timeline.offset(usize::try_from(index).ok()?);
    let is_whole = log.mark().events == timeline.len() as u64 && !matches!(log.origin, Origin::Foreign);
    let position = is_whole.then(|| log.walk.position(&*log.file, offset_of))??;
    Some(Head {
        origin: log.origin_hash()?,
        head: log.mark().head?.raw(),
        position,
        ..Head::default()
    })
}

/// Seals what a store holds in memory, while others use it.
///
/// # Errors
/// `OutOfMemory`; `Io`. The store is as it was.
pub fn seal_state(shared: &Shared) -> Result<()> {
    let started = {
        let store = &mut *shared.write_guard();
        let least = store.options.seal.events;
        let started = store.start_sealing(least)?;
        // Where it cannot be done it is not tried again at every commit.
        store.seal_from = if started.is_some() {
            0
        } else {
            store.state.unsealed_len() + least
        };
        started
    };
    let Some(work) = started else { return Ok(()) };
    let path = work.site.layout.segments();
    if let Some(sealed) = work.run().at(&path)? {
        shared.write_guard().end_sealing(sealed);
    }
    Ok(())
}

/// Seals the state of a log that has just replaced another, from its files, and removes the segments of other logs. The care lock is held.
///
/// # Errors
/// `Io`; the next opening takes longer then.
pub(in crate::store) fn seal_files(site: &Site, threads: usize, terms: SealTerms) -> io::Result<()> {
    let (disk, layout) = (&*site.disk, &site.layout);
    let Some(held) = HeldFiles::gather(disk, layout, Need::State)? else {
        return Ok(());
    };
    let mut loader = Loader::loading();
    let look = Look::at_log(threads, Checking::Full);
    let found = examine(&held.disk, layout, &*held.log, look, &mut loader, &mut |_, _| {})?;
    let Some(mut state) = loader
        .state
        .filter(|state| state.len() >= terms.fewest && is_clean(&found.report))
    else {
        return Ok(());
    };
    let log = OpenLog::reading(Arc::clone(&held.log), found.walk, found.origin)?;
    let Some(head) = head_of(&log, &state).filter(|_| state.can_be_sealed()) else {
        return Ok(());
    };
    let unsealed = state.unsealed(head).map_err(|_| io::ErrorKind::OutOfMemory)?;
    drop(state);
    let folder = SegmentFolder {
        disk,
        layout,
        log: Arc::clone(&log.file),
        origin: &log.origin,
    };
    folder.seal(unsealed, None, log.identity, true).map(drop)
}
