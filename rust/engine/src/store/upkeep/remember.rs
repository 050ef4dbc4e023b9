//! Which head of the log counts as the right one?

use std::path::Path;

use crate::disk::Disk;
use crate::error::Result;
use crate::layout::Layout;
use crate::log;
use crate::remembered::Standing;

use crate::store::Store;
use crate::store::load::tails::keep_hint;

impl Store {
    /// How the log stood to the remembered head when it was read.
    pub fn standing(&self) -> &Standing {
        self.log.head.standing()
    }

    /// Why the head could not be noted when it was tried last.
    pub fn head_fault(&self) -> Option<&str> {
        self.log.head.fault()
    }

    /// Where the head is noted.
    pub fn head_file(&self) -> Option<&Path> {
        self.options.head_file.as_deref()
    }

    /// How the files of a store stand to a remembered head. A loss is believed only of a note and a log that nobody replaced
    /// during the look.
    ///
    /// # Errors
    /// `Io`.
    pub fn standing_of(disk: &dyn Disk, layout: &Layout, note: &Path) -> Result<Standing> {
        log::standing_of(disk, layout, note)
    }

    /// Notes how far the log is known to be on disk, whoever brought it there.
    pub fn tell_known_head(&mut self) {
        self.log.tell_known_head();
    }

    /// The same for someone who only looked at the files, without opening them.
    ///
    /// # Errors
    /// `Io` if the note cannot be written.
    pub fn note_known_head(disk: &dyn Disk, layout: &Layout, note: &Path) -> Result<()> {
        log::note_known_head(disk, layout, note)
    }

    /// Takes the log as it is now for the right one.
    ///
    /// # Errors
    /// `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn accept_head(&mut self, now: i64) -> Result<()> {
        if self.log.open().is_none() && !self.log.head.is_there() {
            // Nothing is there and nothing is missed.
            return Ok(());
        }
        self.with_lock(now, |store| {
            if !store.log.head.is_kept() {
                return Ok(());
            }
            if store.log.report.cut.take().is_some()
                && let Some(log) = store.log.open()
            {
                keep_hint(&store.site, log, now)?;
            }
            store.sync_log()?;
            let reached = store.log.reached();
            store.log.head.accept(reached)
        })
    }

    /// Under the lock, after another log took the place of the one that was there, as announced. What was missed before is
    /// missed still, unless this log has it: only [`Store::accept_head`] says that all is well.
    pub(in crate::store) fn accept_present_head(&mut self) -> Result<()> {
        self.sync_log()?;
        self.log.tell_head();
        self.log.head.find_standing()
    }
}
