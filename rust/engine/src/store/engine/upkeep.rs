//! The methods of the engine that check, compact, copy, bring back and repair a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Engine, REPORTING};
use crate::store::follow::missed;
use crate::store::load::tails::kept_beside;
use crate::store::recovery::judge::{pending_tail, verify_at};
use crate::store::verifying::distrust;
use crate::store::write::ingest::ingest;
use crate::store::{
    self, Alone, CopyMade, CopyOrder, CopySeen, Erase, Erased, HeadStanding, Ingested, Intake, Prune, Pruned,
    Quarantined, Repaired, Restoring, RowSource, Store,
};
use chronolog::disk::{Disk, RealDisk};
use chronolog::error::{At, Error, Result};
use chronolog::hint::is_hint_damaged;
use chronolog::host::{Host, Machine};
use chronolog::layout::Layout;
use chronolog::log::{Progress, note_known_head, standing_of};
use chronolog::verify::Report;

/// How often rows that are being moved are looked for: a look takes far less than a compaction.
const MOST_LOOKS: usize = 100;

/// What a look at all files found.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Whether they are what was written.
    pub report: Report,
    /// Whether they still hold the head that was noted last.
    pub standing: HeadStanding,
    /// Why a head could not be noted, if it could not.
    pub fault: Option<String>,
}

impl Verified {
    /// Checks the files of a store's folder on this machine, without opening it, and notes the head if they are whole.
    pub fn of_folder(folder: PathBuf, head_file: Option<&Path>, progress: Progress<'_>) -> Result<Self> {
        let (disk, layout, host) = (RealDisk::default(), Layout::of_folder(folder), Machine::default());
        Self::of_files(&disk, &layout, head_file, &host, Machine::threads(), progress)
    }

    /// The same on any disk.
    pub fn of_files(
        disk: &dyn Disk,
        layout: &Layout,
        head_file: Option<&Path>,
        host: &dyn Host,
        threads: usize,
        progress: Progress<'_>,
    ) -> Result<Self> {
        let mut found = Self::look(disk, layout, head_file, host, threads, progress)?;
        found.fault = match head_file {
            None => Some("no head is remembered: there is no place for it, such as a home folder".to_owned()),
            Some(note) if found.report.valid() => {
                note_known_head(disk, layout, note, found.report.head.zip(found.report.trail))
                    .err()
                    .map(|fault| format!("the head could not be remembered: {fault}"))
            }
            Some(_) => None,
        };
        Ok(found)
    }

    fn look(
        disk: &dyn Disk,
        layout: &Layout,
        head_file: Option<&Path>,
        host: &dyn Host,
        threads: usize,
        progress: Progress<'_>,
    ) -> Result<Self> {
        Ok(Self {
            report: verify_at(disk, layout, threads, host.now(), false, progress)?,
            standing: match head_file {
                Some(note) => standing_of(disk, layout, note)?,
                None => HeadStanding::Unseen,
            },
            fault: None,
        })
    }
}

/// Findings and verification.
impl Engine {
    /// What opening found, a tail that was left behind since, and spaces that lack rows.
    pub fn findings(&self) -> Result<(Verified, Vec<String>)> {
        let (mut report, standing) =
            self.read(|store| Ok((store.log.report.clone(), store.log.head.standing.clone())))?;
        if report.tail.is_some() {
            report.tail = self.change(|store, _| pending_tail(store))?;
        }
        if report.is_hint_damaged {
            // The next sync writes it anew.
            let look =
                |store: &Store| is_hint_damaged(&*store.site.disk, &store.site.layout).at(&store.site.layout.synced());
            report.is_hint_damaged = self.read(look)?;
        }
        let found = Verified {
            report,
            standing,
            fault: None,
        };
        Ok((found, self.short_rows()?))
    }

    /// Files of rows that are too short for the log. A file counts only if the log is the same after the look.
    fn short_rows(&self) -> Result<Vec<String>> {
        let look = || self.read(|store| Ok((store.vectors.short_rows(&store.state), store.head())));
        let mut found = look()?;
        for _ in 0..MOST_LOOKS {
            if found.0.is_empty() {
                break;
            }
            let before = std::mem::replace(&mut found, look()?);
            if before.1 == found.1 {
                break;
            }
        }
        Ok(found.0)
    }

    /// Checks all files again, believing nothing that is in memory. Others go on meanwhile.
    pub fn verify(&self, progress: Progress<'_>) -> Result<Verified> {
        // What this store wrote is synced first, so that a fault in it is damage and not an unsynced tail.
        let (site, head_file, fault, missed) = self.change(|store, _| {
            let missed = missed(&store.site, &store.log)?;
            store.sync()?;
            store.log.tell_known_head();
            let fault = store.log.head.fault.clone();
            Ok((Arc::clone(&store.site), store.options.head_file.clone(), fault, missed))
        })?;
        let (note, host) = (head_file.as_deref(), &*self.host);
        let mut found = Verified::look(&*site.disk, &site.layout, note, host, self.threads, progress)?;
        let is_altered = !found.report.damage.is_empty() || !found.report.altered.is_empty();
        if let Some(Error::Corrupted(damage)) = missed {
            found.report.damage.push(*damage);
        }
        self.read(|store| {
            store.vectors.note_damage(&store.state, &found.report.damage);
            if is_altered {
                distrust(store);
            }
            Ok(())
        })?;
        Ok(Verified { fault, ..found })
    }
}

/// Long work that asks for the store only in turns: others go on meanwhile, and its callback may use the store.
impl Engine {
    /// Verifies the live log and its base, unless that was done since the store was opened. Damage is found as when opening.
    pub fn verify_opened(&self) -> Result<()> {
        store::verify_opened(self, self.host.now())
    }

    /// Compacts the log; gives how many events it has then.
    pub fn compact(&self, keep_history: bool, progress: Progress<'_>) -> Result<u64> {
        store::compact(self, keep_history, &|| self.host.now(), progress)
    }

    /// Erases records from the store and from all of its past.
    pub fn erase(&self, order: &Erase, progress: Progress<'_>) -> Result<Erased> {
        store::erase(self, order, &|| self.host.now(), progress)
    }

    /// Removes the oldest archives and backups, as far as ordered.
    pub fn prune(&self, order: &Prune) -> Result<Pruned> {
        store::prune(self, order, &|| self.host.now())
    }

    /// Makes a copy of the store; gives its folder.
    pub fn backup(&self, progress: Progress<'_>) -> Result<PathBuf> {
        store::backup(self, &|| self.host.now(), progress)
    }

    /// Makes a verified copy of the store outside of it.
    pub fn copy_out(&self, order: &CopyOrder, progress: Progress<'_>) -> Result<CopyMade> {
        store::copy_out(self, order, &|| self.host.now(), progress)
    }

    /// The copies of the store: in its folder, and those that it knows of outside.
    ///
    /// # Errors
    /// `Refused` if the note about those outside cannot be read.
    pub fn copies(&self) -> Result<Vec<CopySeen>> {
        store::list(self)
    }

    /// Forgets copies outside that are gone; gives how many were known.
    ///
    /// # Errors
    /// `Argument` if one is still there; `Locked`.
    pub fn forget_copies(&self, paths: &[PathBuf]) -> Result<u64> {
        store::forget(self, paths, &|| self.host.now())
    }

    /// Restores a copy, or a tail that was cut away; gives what was repaired on the way.
    ///
    /// # Errors
    /// `Refused` if it is neither or lacks erasures, `Corrupted` if it is damaged, unless that is wanted; `Locked`.
    pub fn restore(&self, source: &Path, wanted: Restoring, progress: Progress<'_>) -> Result<Option<Repaired>> {
        store::bring_back(self, source, wanted, &|| self.host.now(), progress)
    }
}

/// Long work that keeps the store: its callback cannot use it.
impl Engine {
    /// Repairs a damaged store; gives what was done, and what is in `quarantine/` beside whole stores.
    pub fn repair(&self, unproven: bool, progress: Progress<'_>) -> Result<(Option<Repaired>, Vec<Quarantined>)> {
        self.keeping(|store, now| {
            Ok((
                store::repair(&Alone::with(store), unproven, &|| now, progress)?,
                kept_beside(&store.site, &store.log)?,
            ))
        })
    }

    /// Loads records, one JSON object a line, until `go_on` returns false.
    pub fn ingest(
        &self,
        source: RowSource<'_>,
        intake: Intake<'_>,
        go_on: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Ingested> {
        self.keeping(|store, _| ingest(store, source, intake, &|| self.host.now(), go_on))
    }

    fn keeping<T>(&self, act: impl FnOnce(&mut Store, i64) -> Result<T>) -> Result<T> {
        self.change(|store, now| {
            let before = REPORTING.replace(self.address());
            let outcome = act(store, now);
            REPORTING.set(before);
            outcome
        })
    }
}
