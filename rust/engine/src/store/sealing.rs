//! Seals the state of a store into segments, while others go on using it.

use std::io;
use std::sync::Arc;

use super::Store;
use super::files::segments::{FamilyFiles, SegmentFolder};
use super::history::lines::is_whole;
use super::shared::Shared;
use crate::options::Checking;
use chronolog::disk::{DiskFile, Identity};
use chronolog::error::{At, Result};
use chronolog::hint::first_line;
use chronolog::log::{OpenLog, Site};
use chronolog::memory::Refused;
use chronolog::origin::Origin;
use chronolog::verify::{NoSink, Report, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_state::segment::{Head, Sealed, Sources, seed_of};
use chronomemory_state::state::{BaseRows, BaseSegment, State, StateId, Unsealed};

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

/// A log of which segments are written.
struct SealedLog {
    site: Arc<Site>,
    file: Arc<dyn DiskFile>,
    identity: Identity,
    origin: Origin,
}

impl SealedLog {
    fn of(site: &Arc<Site>, log: &OpenLog) -> Self {
        Self {
            site: Arc::clone(site),
            file: Arc::clone(&log.file),
            identity: log.identity,
            origin: log.origin.clone(),
        }
    }

    fn folder(&self) -> SegmentFolder<'_> {
        SegmentFolder {
            disk: &*self.site.disk,
            layout: &self.site.layout,
            log: Arc::clone(&self.file),
            origin: &self.origin,
        }
    }
}

/// What was copied out of a store to be sealed.
pub(in crate::store) struct SealWork {
    unsealed: Unsealed,
    before: Option<Arc<Sealed>>,
    log: SealedLog,
    state_id: StateId,
}

impl SealWork {
    /// Writes the segment, without the store.
    fn run(self) -> io::Result<Option<SealedWork>> {
        let head = self.unsealed.head().clone();
        let unsealed = self.unsealed;
        let write = |file, sources: &Sources| unsealed.write(file, sources.log(), sources.base().map(|base| &**base));
        let folder = self.log.folder();
        let sealed = folder.seal(&head, self.before.as_ref(), self.log.identity, false, write)?;
        Ok(sealed.map(|sealed| SealedWork {
            sealed,
            state_id: self.state_id,
            identity: self.log.identity,
        }))
    }
}

/// The segment of a log that has just replaced another and holds nothing but its sentinel.
pub(in crate::store) struct BaseSealWork {
    segment: BaseSegment,
    log: SealedLog,
}

impl BaseSealWork {
    /// Writes the segment and removes those of other logs; false if that could not be done. The care lock is held.
    pub fn run(&self) -> bool {
        let write = |file, _: &Sources| self.segment.write(file);
        let folder = self.log.folder();
        let sealed = folder.seal(self.segment.head(), None, self.log.identity, true, write);
        sealed.is_ok_and(|sealed| sealed.is_some())
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
        let all = self.state.timeline().len().max(self.state.slots.len());
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
        let sealed_log = SealedLog::of(&self.site, log);
        // Another process may have sealed the same events.
        let known = self.state.slots.sealed().map_or(0, |sealed| sealed.events());
        let on_disk = sealed_log
            .folder()
            .open(log.walk.end, None)
            .map(|resumed| resumed.sealed);
        if let Some(on_disk) = on_disk.filter(|on_disk| on_disk.events() > known) {
            let rest = self.state.timeline().len().saturating_sub(on_disk.events() as usize);
            // A store that was opened with `Full` does not trust what it did not write.
            if self.options.checking != Checking::Full {
                self.state.adopt(on_disk);
                self.keep_families();
            }
            if rest <= least {
                return Ok(None);
            }
        }
        Ok(Some(SealWork {
            before: self.state.slots.sealed().cloned(),
            log: sealed_log,
            state_id: self.state.changes().state_id().clone(),
            unsealed: self.state.unsealed(head)?,
        }))
    }

    /// Collects the rows of the next base for its segment; `None` if the store should have no segments.
    pub(in crate::store) fn base_rows(&self) -> Option<BaseRows> {
        let is_worth_it = self.state.len() >= self.options.seal.fewest;
        let can_be = is_clean(&self.log.report) && self.state.is_settled();
        let head = self.log.open()?.mark().head?;
        (is_worth_it && can_be).then(|| BaseRows::new(seed_of(&head.raw())))
    }

    /// Under the lock, when the log was replaced: what is written for its base and sentinel; `None` if segments cannot hold them.
    pub(in crate::store) fn start_sealing_base(&self, rows: BaseRows) -> Option<BaseSealWork> {
        let log = self.log.open()?;
        let end = first_line(&*log.file, log.walk.end).ok()??.len() as u64 + 1;
        let mut walk = Walk::new(None).with_trail();
        walk.go(&*log.file, end, Reading::new(1), &mut NoSink).ok()?;
        let head = Head {
            origin: log.origin_hash()?,
            head: walk.mark().head?.raw(),
            next_seq: walk.mark().last_seq + 1,
            position: walk.position(&*log.file, |index| (index == 0).then_some(0))?,
            ..Head::default()
        };
        Some(BaseSealWork {
            segment: rows.end(head)?,
            log: SealedLog::of(&self.site, log),
        })
    }

    /// Takes what was sealed, unless another state took the place of the one it was copied from.
    fn end_sealing(&mut self, work: SealedWork) {
        let is_same_log = self.log.open().is_some_and(|log| log.identity == work.identity);
        if is_same_log && self.state.changes().state_id() == &work.state_id {
            self.state.adopt(work.sealed);
            self.keep_families();
        }
    }

    /// Lets what is computed from segments be kept beside them. A store that was opened with `Full` does not read what others kept.
    pub(in crate::store) fn keep_families(&self) {
        if let (Some(sealed), Some(log)) = (self.state.slots.sealed(), self.log.open())
            && self.options.checking != Checking::Full
        {
            sealed.sources().keep_families(Arc::new(FamilyFiles {
                site: Arc::clone(&self.site),
                log: log.identity,
            }));
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
    let path = work.log.site.layout.segments();
    if let Some(sealed) = work.run().at(&path)? {
        shared.write_guard().end_sealing(sealed);
    }
    Ok(())
}
