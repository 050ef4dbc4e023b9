//! Decides when `snapshot.json` is due, and writes it for those who read no log.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::segments::remove_segments;
use chronolog::disk::{Access, Disk, DiskFile, Identity};
use chronolog::error::{At, Result};
use chronolog::event::stamp;
use chronolog::layout::{NEW_SNAPSHOT, codes_of, is_codes_draft, is_history_index, is_old_codes, text_index_seq};
use chronolog::log::files::{remove_if_there, remove_ours};
use chronolog::log::{Log, Site};
use chronolog::origin::Origin;
use chronolog::verify::BaseState;
use chronomemory_state::snapshot::{self, Header};
use chronomemory_state::state::{Frozen, State};

/// The first snapshot is due at so many events.
const FIRST_SNAPSHOT_EVENTS: u64 = 50;
/// Each further one at so many times the events: its cost stays a constant share of writing.
const SNAPSHOT_GROWTH: u64 = 10;
/// Of more records only a compaction writes one.
const MOST_RECORDS: usize = 10_000;

fn next_snapshot(events: u64) -> u64 {
    let mut due = FIRST_SNAPSHOT_EVENTS;
    while due <= events {
        due *= SNAPSHOT_GROWTH;
    }
    due
}

/// A snapshot that is being written while others go on.
pub struct Snapshotting {
    disk: Arc<dyn Disk>,
    pub(in crate::store) draft: PathBuf,
    header: Header,
    state: Frozen,
    identity: Identity,
    /// The file that will be replaced: its last handle is closed here, outside of the lock.
    _replaced: Option<Arc<dyn DiskFile>>,
}

impl Snapshotting {
    /// Writes the file under a temporary name.
    pub fn run(&self) -> io::Result<()> {
        self.write(false)
    }

    /// The same, and waits until the disk has it if it is to be durable.
    pub(in crate::store) fn write(&self, is_durable: bool) -> io::Result<()> {
        let (disk, records) = (&*self.disk, self.state.records());
        snapshot::write(disk, &self.draft, &self.header, records, is_durable)?;
        self.state.check().map_err(io::Error::other)
    }
}

/// When snapshots are written, and where.
pub(in crate::store) struct Snapshots {
    site: Arc<Site>,
    /// How many events the log has when the next one is due.
    due: u64,
    /// One is due that was not begun.
    pub wanted: bool,
}

impl Snapshots {
    pub fn new(site: Arc<Site>) -> Self {
        Self {
            site,
            due: FIRST_SNAPSHOT_EVENTS,
            wanted: false,
        }
    }

    /// The log was read anew, or began anew, and has so many events, or its state so many records.
    pub fn read_anew(&mut self, events: u64) {
        self.due = next_snapshot(events);
    }

    /// Whether one is due now; then it is wanted, until it is begun.
    pub fn is_due(&mut self, log: &Log) -> bool {
        let events = log.open().map_or(0, |log| log.mark().events);
        if events < self.due || stands_on_a_lost_snapshot(log) {
            return false;
        }
        self.due = next_snapshot(events);
        self.wanted = true;
        true
    }

    /// Whether one is due and the state is small enough; the caller then writes it.
    pub fn take_wanted(&mut self, state: &State) -> bool {
        std::mem::take(&mut self.wanted) && state.len() <= MOST_RECORDS
    }

    /// One that is due, to be written while others go on; `None` if none is.
    pub fn start(&mut self, log: &Log, state: &mut State) -> Option<Snapshotting> {
        if !self.take_wanted(state) {
            return None;
        }
        let header = header_of(log);
        let draft = self.site.layout.snapshot_draft_at(header.seq);
        self.begin(draft, header, log, state)
    }

    /// Begins one that is written durably, where other tools can no longer read the state from the log alone.
    pub fn start_durable(&mut self, log: &Log, state: &mut State) -> Result<Option<Snapshotting>> {
        let bases = self.site.layout.bases();
        self.site.make_folder(&bases, self.site.layout.folder())?;
        self.wanted = false;
        Ok(self.begin(bases.join(NEW_SNAPSHOT), header_of(log), log, state))
    }

    fn begin(&self, draft: PathBuf, header: Header, log: &Log, state: &mut State) -> Option<Snapshotting> {
        let identity = log.open()?.identity;
        Some(Snapshotting {
            disk: Arc::clone(&self.site.disk),
            draft,
            header,
            // A snapshot can wait until there is memory for it.
            state: state.freeze().ok()?,
            identity,
            _replaced: self.site.disk.open(&self.site.layout.snapshot(), Access::Read).ok(),
        })
    }

    /// Gives a snapshot its name, unless the log was replaced meanwhile and has a newer one.
    pub fn end(&self, log: &mut Log, snapshot: &Snapshotting) -> Result<()> {
        let path = self.site.layout.snapshot();
        let (disk, layout) = (&self.site.disk, &self.site.layout);
        log.with_lock_for_a_moment(|_| {
            let here = disk.status(layout.log());
            let is_current = here.is_ok_and(|now| now.identity == snapshot.identity);
            match is_current {
                true => disk.rename(&snapshot.draft, &path).at(&path),
                // An erasure may have removed it.
                false => remove_if_there(&**disk, &snapshot.draft),
            }
        })
    }

    /// Writes a state for people and other tools, without a sync: a torn file is ignored.
    pub fn write(&self, log: &Log, state: &mut State) -> Result<()> {
        let (path, draft) = (self.site.layout.snapshot(), self.site.layout.snapshot_draft());
        let frozen = state.freeze()?;
        let disk = &*self.site.disk;
        snapshot::write(disk, &draft, &header_of(log), frozen.records(), false).at(&draft)?;
        frozen.check()?;
        disk.rename(&draft, &path).at(&path)
    }
}

/// Another tool's snapshot is the base of this log, or may be, and cannot be used: it must not be replaced by less.
fn stands_on_a_lost_snapshot(log: &Log) -> bool {
    let is_foreign = log.open().is_some_and(|log| !matches!(log.origin, Origin::Ours(_)));
    is_foreign && matches!(log.report.base, BaseState::Missing | BaseState::Damaged)
}

/// What stands before the records of the state that a log tells now.
pub(in crate::store) fn header_of(log: &Log) -> Header {
    let mark = log.open().map(|log| *log.mark()).unwrap_or_default();
    Header {
        seq: mark.last_seq,
        last_hash: mark.head.map(|head| head.text().to_owned()).unwrap_or_default(),
        ts: stamp::spell(log.latest().max(0)),
    }
}

/// Removes every index, except the segments of the log with this origin.
pub(in crate::store) fn remove_indexes(site: &Site, kept: Option<[u8; 32]>) -> Result<()> {
    let layout = &site.layout;
    let is_ours = |name: &str| is_history_index(name) || text_index_seq(name).is_some();
    for folder in [layout.indexes(), layout.text_indexes()] {
        remove_ours(&*site.disk, &folder, is_ours)?;
    }
    // Drafts first: one may get its name while others are removed.
    for is_codes in [is_codes_draft, |name: &str| codes_of(name).is_some(), is_old_codes] {
        remove_ours(&*site.disk, &layout.codes_folder(), is_codes)?;
    }
    remove_segments(&*site.disk, layout, kept)
}
