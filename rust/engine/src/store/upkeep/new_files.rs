//! Writes the base and the archive that stand before a log is retired.
//!
//! The state that it tells as a base, and its events as an archive. Both are drafts that nobody knows of while others go on:
//! what is appended meanwhile comes behind, and at the end they are given their names.

use std::sync::Arc;

use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::error::{At, Result};
use chronolog::layout::{NEW_ARCHIVE, NEW_BASE, archive_name};
use chronolog::log::Site;
use chronolog::log::files::Scratch;
use chronomemory_state::snapshot::{BaseWriter, Header};
use chronomemory_state::state::Frozen;

use super::beside::both;
use crate::store::Progress;
use crate::store::archives::packing::Packing;

/// The name of an archive and its digest, as a sentinel writes them.
pub(in crate::store) type ArchiveTold = (String, String);

/// A base and an archive that are being written.
pub(in crate::store) struct NewFiles {
    /// What is to be written next.
    records: Option<Frozen>,
    base: BaseWriter,
    base_scratch: Scratch,
    archive: Option<(Packing, Scratch)>,
}

impl NewFiles {
    /// Nothing of a state so far, and nothing of a log if its events are kept.
    ///
    /// # Errors
    /// `Io`.
    pub fn start(site: &Site, records: Frozen, log: Option<Arc<dyn DiskFile>>, threads: usize) -> Result<Self> {
        let (bases, archives) = (site.layout.bases(), site.layout.archives());
        site.make_folder(&bases, site.layout.folder())?;
        let base_scratch = Scratch::at(&site.disk, bases.join(NEW_BASE));
        let base = BaseWriter::create(&*site.disk, base_scratch.path()).at(base_scratch.path())?;
        let archive = match log {
            Some(log) => {
                site.make_folder(&archives, site.layout.folder())?;
                let scratch = Scratch::at(&site.disk, archives.join(NEW_ARCHIVE));
                let packing = Packing::start(&*site.disk, log, scratch.path(), threads).at(scratch.path())?;
                Some((packing, scratch))
            }
            None => None,
        };
        Ok(Self {
            records: Some(records),
            base,
            base_scratch,
            archive,
        })
    }

    /// These were changed since, and are to be written next.
    pub fn take(&mut self, records: Frozen) {
        self.records = Some(records);
    }

    /// The log reads like this now, and as before as far as it is packed.
    pub fn read_from(&mut self, log: Arc<dyn DiskFile>) {
        if let Some((packing, _)) = &mut self.archive {
            packing.read_from(log);
        }
    }

    /// Writes the records down and packs the log up to a place, at the same time if that is worth a thread.
    ///
    /// # Errors
    /// `Io`.
    pub fn run(&mut self, until: u64, is_worth_a_thread: bool, progress: Progress<'_>) -> Result<()> {
        let Self {
            records,
            base,
            base_scratch,
            archive,
        } = self;
        let path = base_scratch.path();
        let mut write = |progress: Progress<'_>| {
            if let Some(records) = records.take() {
                base.add(records.rows(), progress).at(path)?;
            }
            base.sync().at(path)
        };
        let mut pack = |progress: Progress<'_>| match archive {
            Some((packing, scratch)) => packing.go_on(until, progress).at(scratch.path()),
            None => Ok(()),
        };
        if is_worth_a_thread {
            return both(|| pack(progress), || write(&mut |_, _| {})).map(|_| ());
        }
        write(progress)?;
        pack(progress)
    }

    /// Writes what is left up to the end of the log, and gives both files their names: the archive that of a log with these
    /// seqs, and what its file is called besides. Gives the digest of the base, and the archive as a sentinel tells of it.
    ///
    /// # Errors
    /// `Io`.
    pub fn finish(
        mut self,
        site: &Site,
        (header, salt): (&Header, Option<&str>),
        end: u64,
        (first, suffix): (u64, &str),
    ) -> Result<(Hex, Option<ArchiveTold>)> {
        let path = self.base_scratch.path();
        if let Some(records) = self.records.take() {
            self.base.add(records.rows(), &mut |_, _| {}).at(path)?;
        }
        let base = self.base.finish(header, salt).at(path)?.sha256;
        self.base_scratch.name(&site.layout.base(base.text()))?;
        let archive = match self.archive {
            Some((packing, scratch)) => {
                let digest = packing.finish(end).at(scratch.path())?;
                let name = archive_name(first, header.seq, digest.text());
                scratch.name(&site.layout.inside(&format!("{name}{suffix}")))?;
                Some((name, digest.text().to_owned()))
            }
            None => None,
        };
        Ok((base, archive))
    }
}
