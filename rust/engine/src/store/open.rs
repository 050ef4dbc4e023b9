//! Opens a store, and lets it go.

use std::sync::Arc;

use crate::options::Options;
use chronolog::disk::{Disk, Manner};
use chronolog::error::Result;
use chronolog::layout::Layout;
use chronolog::log::{Log, Site};
use chronomemory_state::state::State;

use super::archives::archive_index::ArchiveCache;
use super::archives::returned::returned_at;
use super::files::snapshots::Snapshots;
use super::follow::clock::ToldTime;
use super::follow::lost::missed;
use super::follow::unfinished::{finish_erasing, is_erasing};
use super::load::examine::nothing;
use super::recovery::returning::erasures_of;
use super::search::views::Views;
use super::vectors::Vectors;
use super::write::pending::Pending;
use super::{Progress, Store};

impl Store {
    /// Opens a store; nothing is created before the first write.
    ///
    /// # Errors
    /// `Io`; `Corrupted` if `strict` and anything is damaged.
    pub fn open(disk: Arc<dyn Disk>, layout: Layout, options: Options, progress: Progress<'_>) -> Result<Self> {
        disk.guard(
            layout.folder(),
            Manner {
                read_only: layout.is_backup(),
                shared: options.shared,
            },
        );
        let site = Arc::new(Site::new(disk, layout));
        let log = Log::new(Arc::clone(&site), options.terms(), nothing())?;
        let snapshots = Snapshots::new(Arc::clone(&site));
        let vectors = Vectors::new(Arc::clone(&site), options.threads);
        let mut store = Self {
            site,
            options,
            log,
            state: State::default(),
            pending: Pending::default(),
            closed: false,
            snapshots,
            archives: ArchiveCache::default(),
            views: Views::default(),
            vectors,
            clock: ToldTime::default(),
            last_copy: None,
        };
        store.reload(progress)?;
        if is_erasing(&store.site) {
            store.finish_what_others_erased();
        }
        store.look_for_returned();
        store.log.tell_known_head();
        if store.options.exclusive {
            store.log.hold_lock()?;
        }
        Ok(store)
    }

    /// Ends the erasure of somebody who could not; who may only read leaves it to others, and is told.
    fn finish_what_others_erased(&mut self) {
        let finished = self.with_lock_for_a_moment(|store| {
            if store.is_behind()? {
                store.catch_up()?;
            }
            finish_erasing(&store.site, &store.log, &store.state, &store.vectors)?;
            store.make_ready()?;
            store.log.tell_head();
            Ok(())
        });
        if let Err(fault) = finished {
            let note = format!("an erasure is unfinished, and could not be ended here: {fault}");
            self.log.note(note);
        }
    }

    /// Never silent: what was erased and is back is told to whoever opens the store.
    fn look_for_returned(&mut self) {
        if !erasures_of(&self.state).is_empty()
            && let Some(log) = self.log.open()
        {
            let found = returned_at(&*self.site.disk, &self.site.layout, &log.origin);
            self.log.note_returned(found);
        }
    }

    /// Makes what was written durable and lets go of everything. Closing twice is fine.
    ///
    /// # Errors
    /// `Io`, `Poisoned` if the last sync fails.
    pub fn close(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let missed = if self.log.is_locked() {
            missed(&self.site, &self.log)
        } else {
            Ok(None)
        };
        let outcome = self.sync().and(self.log.end_lease_at_last()).and(match missed {
            Ok(None) => Ok(()),
            Ok(Some(fault)) | Err(fault) => Err(fault),
        });
        self.log.tell_known_head();
        self.write_wanted_snapshot();
        self.closed = true;
        self.log.let_go();
        self.log.forget();
        self.state = State::default();
        self.views.text = Arc::default();
        self.vectors.forget();
        outcome
    }
}
