//! What is written beside the log, for those who read no log?

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::damage::DamageKind;
use crate::disk::{Access, Disk, DiskFile, Identity};
use crate::error::{At, Error, Result};
use crate::event::stamp;
use crate::layout::{
    CODES_SUFFIX, NEW_SNAPSHOT, SNAPSHOT, base_name, is_file_of_space, is_history_index, text_index_seq,
};
use crate::log::OpenLog;
use crate::log::files::{copy_file, is_folder, is_ours as is_file};
use crate::origin::Origin;
use crate::snapshot::{self, Header};
use crate::state::Frozen;
use crate::verify::{BaseState, finding};

use super::Store;

/// The first snapshot is due at so many events.
pub(super) const FIRST_SNAPSHOT_EVENTS: u64 = 50;
/// Each further one at so many times the events: its cost stays a constant share of writing.
const SNAPSHOT_GROWTH: u64 = 10;

/// When the next snapshot is due in a log of so many events.
pub(super) fn next_snapshot(events: u64) -> u64 {
    let mut due = FIRST_SNAPSHOT_EVENTS;
    while due <= events {
        due *= SNAPSHOT_GROWTH;
    }
    due
}

/// A snapshot that is being written while others go on.
pub struct Snapshotting {
    disk: Arc<dyn Disk>,
    draft: PathBuf,
    header: Header,
    state: Frozen,
    identity: Identity,
    /// The one that will be replaced. The system takes a file apart when its last handle is closed: that is this one, when
    /// nobody waits for it.
    _replaced: Option<Arc<dyn DiskFile>>,
}

impl Snapshotting {
    /// Writes the file under a temporary name.
    ///
    /// # Errors
    /// What the disk says.
    pub fn run(&self) -> io::Result<()> {
        snapshot::write(
            &*self.disk,
            &self.draft,
            &self.header,
            self.state.records(),
            &mut |_, _| {},
        )
        .map(|_| ())
    }

    /// The same, and waits until the disk has it.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn run_durably(&self) -> io::Result<()> {
        snapshot::write_durably(&*self.disk, &self.draft, &self.header, self.state.records())
    }

    pub(super) fn draft(&self) -> &Path {
        &self.draft
    }
}

impl Store {
    /// Removes every index: they are derived, and made again from the log by whoever needs one. What was read from them is
    /// forgotten.
    ///
    /// # Errors
    /// `Io`.
    pub fn drop_indexes(&mut self) -> Result<()> {
        let is_ours = |name: &str| {
            is_history_index(name) || text_index_seq(name).is_some() || is_file_of_space(name, CODES_SUFFIX)
        };
        let layout = &self.layout;
        for folder in [layout.indexes(), layout.text_indexes(), layout.companions()] {
            if !is_folder(&*self.disk, &folder) {
                continue;
            }
            for name in self.disk.list(&folder).at(&folder)?.iter().filter(|name| is_ours(name)) {
                let path = folder.join(name);
                if is_file(&*self.disk, &path) {
                    self.disk.remove(&path).at(&path)?;
                }
            }
        }
        self.text = Arc::default();
        self.vectors = super::vectors::Vectors::default();
        self.shelf = super::shelf::Shelf::default();
        Ok(())
    }

    /// Before the first write to a log that another tool compacted, its snapshot becomes a base of ours.
    pub(super) fn adopt(&mut self) -> Result<Option<String>> {
        if self.log.report.base != BaseState::Unanchored {
            return Ok(None);
        }
        let path = self.layout.snapshot();
        let file = self.disk.open(&path, Access::Read).at(&path)?;
        let contents = snapshot::read(&*file, &mut snapshot::Nobody).at(&path)?;
        let header = contents.header.map_err(|reason| {
            // It was read when the store was opened, so somebody has changed it since.
            let damage = finding(SNAPSHOT, DamageKind::SnapshotRefused, reason);
            Error::Corrupted(Box::new(damage))
        })?;
        let sha256 = contents.sha256;
        let bases = self.layout.bases();
        self.disk.create_dir(&bases).at(&bases)?;
        self.disk.sync_dir(self.layout.folder()).at(self.layout.folder())?;
        copy_file(&*self.disk, &path, &self.layout.inside(&base_name(sha256.text())), None)?;
        self.disk.sync_dir(&bases).at(&bases)?;
        let mut record = format!("{{\"base_sha256\":\"{}\",\"last_hash\":", sha256.text()).into_bytes();
        crate::json::write_string(&header.last_hash, &mut record);
        record.extend_from_slice(format!(",\"seq\":{}}}", header.seq).as_bytes());
        Ok(Some(String::from_utf8_lossy(&record).into_owned()))
    }

    /// `snapshot.json` is derived: if it cannot be written, the log is none the worse.
    pub(super) fn write_snapshot_if_due(&mut self) {
        if self.events() < self.snapshot_due || self.stands_on_a_lost_snapshot() {
            return;
        }
        self.snapshot_due = next_snapshot(self.events());
        self.snapshot_wanted = true;
        if !self.options.attended {
            self.write_wanted_snapshot();
        }
    }

    /// Writes a snapshot that is due and that nobody else has written.
    pub(super) fn write_wanted_snapshot(&mut self) {
        if std::mem::take(&mut self.snapshot_wanted) && self.write_snapshot().is_err() {
            self.log
                .report
                .notes
                .push("snapshot.json could not be written".to_owned());
        }
    }

    /// Whether a snapshot is due that whoever looks after the store should write.
    pub fn wants_snapshot(&self) -> bool {
        self.snapshot_wanted
    }

    /// Another tool's snapshot is the base of this log, or may be, and cannot be used: it must not be replaced by less.
    fn stands_on_a_lost_snapshot(&self) -> bool {
        let is_ours = |log: &OpenLog| matches!(log.origin, Origin::Ours(_));
        let is_foreign = self.log.open().is_some_and(|log| !is_ours(log));
        is_foreign && matches!(self.log.report.base, BaseState::Missing | BaseState::Damaged)
    }

    /// A snapshot that is due, to be written while others go on; `None` if none is.
    pub fn start_snapshot(&mut self) -> Option<Snapshotting> {
        if !std::mem::take(&mut self.snapshot_wanted) {
            return None;
        }
        let draft = self.layout.snapshot_draft_at(self.last_seq());
        self.snapshot_into(draft)
    }

    /// A snapshot where the log alone no longer tells the state: other tools have nothing else to read. Its draft lies where
    /// only those look who look after the store.
    pub(super) fn start_durable_snapshot(&mut self) -> Result<Option<Snapshotting>> {
        let bases = self.layout.bases();
        self.make_folder(&bases, self.layout.folder())?;
        self.snapshot_wanted = false;
        Ok(self.snapshot_into(bases.join(NEW_SNAPSHOT)))
    }

    fn snapshot_into(&mut self, draft: PathBuf) -> Option<Snapshotting> {
        let identity = self.log.open()?.identity;
        Some(Snapshotting {
            disk: Arc::clone(&self.disk),
            draft,
            header: self.header(),
            // A snapshot can wait until there is memory for it.
            state: self.state.freeze().ok()?,
            identity,
            _replaced: self.disk.open(&self.layout.snapshot(), Access::Read).ok(),
        })
    }

    /// Gives a snapshot its name, unless the log was replaced meanwhile and has a newer one.
    ///
    /// # Errors
    /// `Io`, `Locked`.
    pub fn end_snapshot(&mut self, snapshot: &Snapshotting) -> Result<()> {
        let path = self.layout.snapshot();
        let (disk, layout) = (&self.disk, &self.layout);
        self.log.with_lock_for_a_moment(|_| {
            let here = disk.status(layout.log());
            let is_current = here.is_ok_and(|now| now.identity == snapshot.identity);
            if is_current {
                disk.rename(&snapshot.draft, &path).at(&path)
            } else {
                disk.remove(&snapshot.draft).at(&snapshot.draft)
            }
        })
    }

    /// Writes the state down for people and other tools. It is not synced: whoever finds it torn after a power failure
    /// reads the log instead.
    fn write_snapshot(&mut self) -> Result<()> {
        self.settle();
        let (path, draft) = (self.layout.snapshot(), self.layout.snapshot_draft());
        let header = self.header();
        let frozen = self.state.freeze()?;
        snapshot::write(&*self.disk, &draft, &header, frozen.records(), &mut |_, _| {}).at(&draft)?;
        self.disk.rename(&draft, &path).at(&path)
    }

    /// What stands before the records of the state as it is now.
    pub(super) fn header(&self) -> Header {
        Header {
            seq: self.last_seq(),
            last_hash: self.head(),
            ts: stamp::spell(self.latest().max(0)),
        }
    }
}
