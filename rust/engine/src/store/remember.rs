//! When is the head of the log noted outside the project?

use std::path::Path;
use std::time::Duration;

use crate::disk::Disk;
use crate::error::{At, Result};
use crate::hint::{Hint, hint_for, read_hint};
use crate::layout::Layout;
use crate::remembered::{self, Note, Standing};
use crate::wal::synced::Synced;

use super::Store;

/// A writer notes its head no more often than this, in microseconds.
const PAUSE_MICROS: i64 = 1_000_000;

impl Store {
    /// How the log stood to the remembered head when it was read.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Where the head is noted.
    pub fn head_file(&self) -> Option<&Path> {
        self.options.head_file.as_deref()
    }

    /// How the files of a store stand to a remembered head.
    ///
    /// # Errors
    /// `Io`.
    pub fn standing_of(disk: &dyn Disk, layout: &Layout, note: &Path) -> Result<Standing> {
        let look = || match remembered::read(disk, note) {
            Ok(says) => remembered::standing(disk, layout, says).at(layout.log()),
            Err(fault) => Ok(Standing::Unreadable(format!(
                "{} cannot be read: {fault}",
                note.display()
            ))),
        };
        // Someone may restore just now: the note changes before the log does, and a second look sees both.
        match look()? {
            Standing::Lost(_) | Standing::Unknown(_) => look(),
            verdict => Ok(verdict),
        }
    }

    /// Looks again how the log stands to the remembered head.
    pub(super) fn find_standing(&mut self) -> Result<()> {
        if let Some(note) = &self.options.head_file {
            self.standing = Self::standing_of(&*self.disk, &self.layout, note)?;
        }
        Ok(())
    }

    /// Notes a head that is on disk, at most once a second.
    pub(super) fn tell_head(&mut self, reached: &Synced) {
        let latest = self.latest();
        if latest.saturating_sub(self.head_told) >= PAUSE_MICROS {
            self.head_told = latest;
            self.tell_head_now(reached);
        }
    }

    /// INVARIANT: a note is only replaced by a head that follows from it.
    pub(super) fn tell_head_now(&mut self, reached: &Synced) {
        let Some(note) = &self.options.head_file else { return };
        if !matches!(self.standing, Standing::Unseen | Standing::Kept) {
            return;
        }
        let known = remembered::read(&*self.disk, note);
        let is_known = |seen: &Synced| seen.first == reached.first && seen.offset >= reached.offset;
        if matches!(&known, Ok(Some(says)) if says.next.is_none() && is_known(&says.seen)) {
            return;
        }
        match remembered::write(&*self.disk, note, self.layout.folder(), &Note::of(*reached)) {
            Ok(()) => self.standing = Standing::Kept,
            // The log is none the worse; whoever asks is told that nobody can tell.
            Err(fault) => self
                .report
                .notes
                .push(format!("the head could not be remembered: {fault}")),
        }
    }

    /// Takes the log as it is now for the right one.
    ///
    /// # Errors
    /// `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn accept_head(&mut self, now: i64) -> Result<()> {
        let is_noted = self
            .options
            .head_file
            .as_ref()
            .is_some_and(|note| self.disk.exists(note));
        if self.log.is_none() && !is_noted {
            // Nothing is there and nothing is missed.
            return Ok(());
        }
        self.with_lock(now, Self::accept_present_head)
    }

    /// Under the lock: the same.
    pub(super) fn accept_present_head(&mut self) -> Result<()> {
        let Some(note) = self.options.head_file.clone() else {
            return Ok(());
        };
        self.sync_log()?;
        match self.reached() {
            Some(reached) => {
                remembered::write(&*self.disk, &note, self.layout.folder(), &Note::of(reached)).at(&note)?;
            }
            None if self.disk.exists(&note) => self.disk.remove(&note).at(&note)?,
            None => {}
        }
        self.find_standing()
    }

    /// Under the lock: another log is about to take the place of this one, and that is meant.
    pub(super) fn announce_head(&mut self, next: Option<Synced>) -> Result<()> {
        let (Some(note), Some(next)) = (&self.options.head_file, next) else {
            return Ok(());
        };
        let says = match remembered::read(&*self.disk, note) {
            Ok(Some(says)) => Note {
                next: Some(next),
                ..says
            },
            _ => return Ok(()),
        };
        remembered::write(&*self.disk, note, self.layout.folder(), &says).at(note)
    }

    /// Notes how far the log is known to be on disk, whoever brought it there; if someone else has the lock, it is theirs
    /// to do.
    pub fn tell_known_head(&mut self) {
        if self.options.head_file.is_none() || !self.disk.exists(self.layout.lock()) {
            return;
        }
        // Without the lock the note could bring back a head that a restore has just left behind.
        let _ = self.with_lock_for_a_moment(Duration::ZERO, |store| {
            let Some(log) = &store.log else { return Ok(()) };
            let known = read_hint(&*store.disk, &store.layout).ok().flatten();
            let length = log.file.length().unwrap_or(0);
            let fits = matches!(hint_for(known, &*log.file, length), Ok(Hint::Synced(_)));
            if let Some(reached) = known.filter(|_| fits && store.is_at_its_path(&*log.file)) {
                store.tell_head_now(&reached);
            }
            Ok(())
        });
    }
}
