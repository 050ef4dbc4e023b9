//! Seals a state while it is loaded, into files without names, so that not all of its records are in memory at once.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::store::files::segments::merge_last;
use chronolog::disk::{Disk, DiskFile};
use chronolog::hint::origin_hash;
use chronolog::layout::Layout;
use chronolog::verify::Walk;
use chronomemory_state::segment::{Head, Sealed, Segment, Sources, merge};
use chronomemory_state::state::State;

/// The state is sealed when the lines of so many bytes were read, however few their events are.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Seals what is loaded from a log.
pub(in crate::store) struct LoadSealer<'a> {
    disk: &'a dyn Disk,
    folder: PathBuf,
    /// So many events or records are sealed at once.
    events: usize,
    log: Arc<dyn DiskFile>,
    /// The file that the log starts from, if locators may lead to it.
    pub base: Option<Arc<dyn DiskFile>>,
    /// The records of the base up to here are sealed.
    base_offset: u64,
    /// The bytes of the lines since the last seal.
    bytes: usize,
}

impl<'a> LoadSealer<'a> {
    /// Seals what this log makes of a state, so many events or records at once.
    pub fn new(disk: &'a dyn Disk, layout: &Layout, events: usize, log: &Arc<dyn DiskFile>) -> Self {
        Self {
            disk,
            folder: layout.folder().to_owned(),
            events,
            log: Arc::clone(log),
            base: None,
            base_offset: 0,
            bytes: 0,
        }
    }

    /// Notes bytes that are about to be read.
    pub fn expect(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Nothing of the base is sealed: what was read of it does not count.
    pub fn start_over(&mut self) {
        (self.base_offset, self.bytes) = (0, 0);
    }

    /// Seals the state if enough of it is in memory, and the records of an erasure are not half read. Events of an open batch are not in the
    /// state yet.
    ///
    /// # Errors
    /// What the disk says; the state is as it was.
    pub fn seal_if_due(&mut self, state: &mut State, walk: &Walk) -> io::Result<()> {
        let is_due = state.unsealed_len() >= self.events || self.bytes >= MOST_BYTES;
        match is_due && !state.awaits_events() {
            true => self.seal(state, walk),
            false => Ok(()),
        }
    }

    /// Behind the last event: seals the rest if other processes could not go on behind the last segment, but could behind this event.
    ///
    /// # Errors
    /// What the disk says; the state is as it was.
    pub fn finish(&mut self, state: &mut State, walk: &Walk) -> io::Result<()> {
        let last = state.slots.sealed().and_then(|sealed| sealed.head());
        let is_end = last.is_some_and(|last| last.position.is_empty());
        match is_end && !state.awaits_events() && self.position(state, walk).is_some() {
            true => self.seal(state, walk),
            false => Ok(()),
        }
    }

    fn position(&self, state: &State, walk: &Walk) -> Option<Vec<u8>> {
        walk.position(&*self.log, |index| {
            state.timeline().offset(usize::try_from(index).ok()?)
        })
    }

    fn seal(&mut self, state: &mut State, walk: &Walk) -> io::Result<()> {
        self.bytes = 0;
        let before = state.slots.sealed().cloned();
        let head = Head {
            origin: origin_hash(&*self.log, self.log.length()?).unwrap_or_default(),
            head: walk.mark().head.map(|head| head.raw()).unwrap_or_default(),
            // Without one, no other process can go on from here: a batch is open, or there is something that segments cannot hold.
            position: self.position(state, walk).unwrap_or_default(),
            ..Head::default()
        };
        let unsealed = state.unsealed(head)?;
        let failed = before
            .as_ref()
            .map_or_else(Arc::default, |before| Arc::clone(before.mark()));
        let sources = before.as_ref().map(|before| before.sources().clone());
        let sources = sources.unwrap_or_else(|| Sources::new(Arc::clone(&self.log), self.base.clone()));
        let mut base_offset = self.base_offset;
        let base = self.base.as_deref().zip(Some(&mut base_offset));
        let write = |file| unsealed.write(file, &*self.log, base);
        let mut segments = before.map_or_else(Vec::new, |before| before.segments().to_vec());
        segments.push(Arc::new(self.unnamed(&failed, write)?));
        let sealed = merge_last(Sealed::of(segments, sources, Arc::clone(&failed)), |sealed, parts| {
            self.unnamed(&failed, |file| merge(file, sealed, parts)).map(Some)
        })?;
        self.base_offset = base_offset;
        state.adopt(Arc::new(sealed));
        Ok(())
    }

    /// Writes a segment to a file without a name.
    fn unnamed(
        &self,
        failed: &Arc<AtomicBool>,
        write: impl FnOnce(Arc<dyn DiskFile>) -> io::Result<()>,
    ) -> io::Result<Segment> {
        let file = self.disk.create_unnamed(&self.folder)?;
        write(Arc::clone(&file))?;
        let mut segment = Segment::open(file.map(u64::MAX)?, failed).ok_or(io::ErrorKind::InvalidData)?;
        segment.is_named = false;
        Ok(segment)
    }
}
