//! Seals the state of a store into segments, while others go on using it.

use std::io;
use std::sync::Arc;

use super::Store;
use super::files::segments::{KeyFiles, SegmentFolder};
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
use chronomemory_state::segment::{self, Head, Sealed, Sources, seed_of};
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

/// A segment that is being written while others use the store, and the state that it is of.
struct SealWork {
    before: Option<Arc<Sealed>>,
    log: SealedLog,
    state_id: StateId,
    content: Content,
}

/// What a segment is made of.
enum Content {
    /// A copy of what was in memory.
    Memory(Box<Unsealed>),
    /// Segments without names, from one number on: loading made them.
    Unnamed(Arc<Sealed>, usize),
}

impl SealWork {
    /// Writes the segment, without the store.
    fn run(self) -> io::Result<Option<Arc<Sealed>>> {
        let (folder, before, log) = (self.log.folder(), self.before.as_ref(), self.log.identity);
        match self.content {
            Content::Memory(unsealed) => {
                let head = unsealed.head().clone();
                let write = |file, sources: &Sources| {
                    let base = sources.base().map(|base| &**base);
                    unsealed.write(file, sources.log(), base.zip(Some(&mut 0)))
                };
                folder.seal(&head, before, log, false, write)
            }
            Content::Unnamed(sealed, from) => {
                let which = from..sealed.segments().len();
                let head = sealed.merged_head(which.clone());
                let write = |file, _: &Sources| segment::merge(file, &sealed, which);
                folder.seal(&head.unwrap_or_default(), before, log, false, write)
            }
        }
    }
}

/// The segment of a log that has just replaced another and holds only its sentinel.
pub(in crate::store) struct BaseSealWork {
    segment: BaseSegment,
    log: SealedLog,
}

impl BaseSealWork {
    /// Writes the segment and removes those of other logs; false if that could not be done. The care lock is held.
    pub fn run(&self) -> bool {
        let write = |file, _: &Sources| segment::write(file, &self.segment.draft, &self.segment.rows);
        let folder = self.log.folder();
        let sealed = folder.seal(&self.segment.draft.head, None, self.log.identity, true, write);
        sealed.is_ok_and(|sealed| sealed.is_some())
    }
}

/// Whether so much is in memory that it should be sealed.
pub(in crate::store) fn wants_segment(store: &Store) -> bool {
    let is_unnamed = store.seal_from == 0 && unnamed(&store.state).is_some();
    is_unnamed || store.state.unsealed_len() >= store.options.seal.events.max(store.seal_from)
}

/// The segments of a state, if some have no names, and how many have.
fn unnamed(state: &State) -> Option<(&Arc<Sealed>, usize)> {
    let sealed = state.slots.sealed()?;
    let named = sealed.named_len();
    (named < sealed.segments().len()).then_some((sealed, named))
}

/// Takes segments without names to be written again, or copies what is in memory if it is at least so many events or records.
fn start_sealing(store: &mut Store, least: usize) -> std::result::Result<Option<SealWork>, Refused> {
    let all = store.state.timeline().len().max(store.state.slots.len());
    let is_enough = unnamed(&store.state).is_some() || store.state.unsealed_len() >= least.max(1);
    let is_worth_it = is_enough && all >= store.options.seal.fewest;
    if store.closed || !is_worth_it || !is_clean(&store.log.report) || !store.state.can_be_sealed() {
        return Ok(None);
    }
    let open = store
        .log
        .open()
        .and_then(|log| Some((log, head_of(log, &store.state)?)));
    let Some((log, head)) = open else {
        return Ok(None);
    };
    let sealed_log = SealedLog::of(&store.site, log);
    // Another process may have sealed the same events.
    let known = store.state.slots.sealed().map_or(0, |sealed| sealed.events());
    let is_more = |events| events > known || (events == known && unnamed(&store.state).is_some());
    let on_disk = sealed_log.folder().open(log.walk.end, None);
    if let Some(on_disk) = on_disk
        .map(|on_disk| on_disk.sealed)
        .filter(|on_disk| is_more(on_disk.events()))
    {
        let rest = store.state.timeline().len().saturating_sub(on_disk.events() as usize);
        // A store that was opened with `Full` does not trust what it did not write.
        if store.options.checking != Checking::Full {
            store.state.adopt(on_disk);
            keep_keys(store);
        }
        if rest <= least {
            return Ok(None);
        }
    }
    let (before, content) = match unnamed(&store.state) {
        Some((sealed, named)) => {
            if sealed.head().is_none_or(|last| last.position.is_empty()) {
                return Ok(None);
            }
            let before = sealed.part(0..named).map(Arc::new);
            (before, Content::Unnamed(Arc::clone(sealed), named))
        }
        None => {
            let unsealed = Box::new(store.state.unsealed(head)?);
            (store.state.slots.sealed().cloned(), Content::Memory(unsealed))
        }
    };
    Ok(Some(SealWork {
        before,
        log: sealed_log,
        state_id: store.state.changes().state_id().clone(),
        content,
    }))
}

/// Collects the rows of the next base for its segment; `None` if the store should have no segments.
pub(in crate::store) fn base_rows(store: &Store) -> Option<BaseRows> {
    let is_worth_it = store.state.len() >= store.options.seal.fewest;
    let can_be = is_clean(&store.log.report) && store.state.is_settled();
    let head = store.log.open()?.mark().head?;
    (is_worth_it && can_be).then(|| BaseRows::new(seed_of(&head.raw())))
}

/// Under the lock, when the log was replaced: the segment of its base and sentinel; `None` if segments cannot hold them.
pub(in crate::store) fn start_sealing_base(store: &Store, rows: BaseRows) -> Option<BaseSealWork> {
    let log = store.log.open()?;
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
        log: SealedLog::of(&store.site, log),
    })
}

/// Keeps what is computed from segments beside them, unless the store was opened with `Full`, which reads nothing of others.
pub(in crate::store) fn keep_keys(store: &Store) {
    if let (Some(sealed), Some(log)) = (store.state.slots.sealed(), store.log.open())
        && store.options.checking != Checking::Full
    {
        sealed.sources().keep_keys(Arc::new(KeyFiles {
            site: Arc::clone(&store.site),
            log: log.identity,
        }));
    }
}

/// Seals what is in memory before the store is closed. If it fails, the next opening takes longer.
pub(in crate::store) fn seal_at_close(store: &mut Store) {
    while let Ok(Some(work)) = start_sealing(store, store.options.seal.events_at_close) {
        let is_unnamed = matches!(work.content, Content::Unnamed(..));
        match work.run() {
            // What was written behind them comes next.
            Ok(Some(sealed)) if is_unnamed => store.state.adopt(sealed),
            _ => break,
        }
    }
}

/// Whether nothing was found that segments cannot hold.
fn is_clean(report: &Report) -> bool {
    is_whole(report) && report.tail.is_none()
}

/// The head of a segment of this log; `None` if the log has anything that segments cannot hold.
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
        let started = start_sealing(store, least)?;
        // Where it cannot be done it is not tried again at every commit.
        store.seal_from = match started {
            Some(_) => 0,
            None => store.state.unsealed_len() + least,
        };
        started
    };
    let Some(work) = started else {
        return Ok(());
    };
    let (log, state_id, path) = (
        work.log.identity,
        work.state_id.clone(),
        work.log.site.layout.segments(),
    );
    if let Some(sealed) = work.run().at(&path)? {
        let store = &mut *shared.write_guard();
        let is_same_log = store.log.open().is_some_and(|open| open.identity == log);
        // Another state may have taken the place of the one that was copied.
        if is_same_log && *store.state.changes().state_id() == state_id {
            store.state.adopt(sealed);
            keep_keys(store);
        }
    }
    Ok(())
}
