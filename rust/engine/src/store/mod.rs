//! One open store, for one caller at a time.
//!
//! A [`Store`] opens without a lock and reads what is committed. A commit takes the lock, catches up with what others wrote,
//! appends, syncs as its mode asks and then releases the lock. Time is passed in with each call.
//!
//! `files`, `vectors`, `archives` and `load` know no store: they work on a [`Site`], a log or a state.

mod archives;
mod copies;
mod embeddings;
mod engine;
mod erasure;
mod files;
mod follow;
mod history;
mod load;
mod recovery;
mod restoring;
mod sealing;
mod search;
mod shared;
mod turns;
mod upkeep;
mod vectors;
mod verifying;
mod worker;
mod write;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use crate::options::{Durability, Options};
use chronolog::disk::Disk;
use chronolog::error::{Error, Result};
use chronolog::layout::Layout;
use chronolog::log::{Barrier, Log, Site};
use chronolog::scope::Viewer;
use chronolog::verify::Report;
use chronomemory_search::blocks::{BlockColumns, is_one_of};
use chronomemory_state::condition::Condition;
use chronomemory_state::index::IndexLookup;
use chronomemory_state::network::{Net, Steps};
use chronomemory_state::state::{Dated, Frozen, Listing, Query, State};

pub use chronolog::log::Progress;
pub use chronolog::remembered::HeadStanding;
pub use copies::outside::{CopyMade, CopyOrder, CopySeen, copy_out, forget, list};
pub use embeddings::Embeddings;
pub use engine::{BatchWriter, Engine, Unchanged, Verified};
pub use erasure::erase::{Erase, Erased, erase, holds_any};
pub use files::snapshots::Snapshotting;
pub use history::lines::{History, View};
pub use load::examine::{layout_of, source_of};
pub use load::loader::Moment;
pub use load::tails::{Quarantined, WHY_NOT_RESTORABLE};
pub use recovery::repair::{Repaired, repair};
pub use restoring::restore::{Restoring, bring_back, restore, restore_tail};
pub use sealing::{SealTerms, seal_state};
pub use search::ask::search;
pub use search::follow_text::seal_text;
pub use search::page::Page;
pub use search::rank::{RecordSearch, SearchHit};
pub use search::recall::{nearest_blocks, recall};
pub use shared::{DueWork, Shared};
pub use verifying::{VerifiedChain, verify_opened};

pub use turns::{Alone, Turns};
pub use upkeep::backup::{BackingUp, backup};
pub use upkeep::compact::compact;
pub use upkeep::history_files::{Prune, Pruned, prune};
pub use vectors::{Attachment, Ids, Matrix, Neighbour, SpaceReport, VectorQuestion, VectorSearch};
pub use write::claims::Setting;
pub use write::commit::{AtomicBatch, Bookmark, Committed, EncodedAhead, Group, Syncing, WrittenBatch};
pub use write::ingest::{Ingested, Intake, RowRefusal, RowSource, ingest};

use archives::archive_index::ArchiveCache;
use files::snapshots::Snapshots;
use follow::ExpiryClock;
use history::lines::LiveLog;
use recovery::judge::verify;
use search::page::{Views, find, page, slots, walk};
use search::recall::columns_now;
use search::select::StateView;
use write::commit::Pending;

/// An open store.
pub struct Store {
    site: Arc<Site>,
    options: Options,
    log: Log,
    state: State,
    /// The last batch, until the state is read.
    pending: Pending,
    closed: bool,
    /// When the next snapshot is due.
    snapshots: Snapshots,
    archives: ArchiveCache,
    views: Views,
    vectors: vectors::Vectors,
    clock: ExpiryClock,
    /// The name of the last backup. An erasure may have removed it, and the name is not used again.
    last_copy: Option<String>,
    /// How far the chain was verified.
    verified: VerifiedChain,
    /// What was not verified is damaged.
    is_distrusted: AtomicBool,
    /// How often damage was found that was not known before.
    new_damage: Arc<AtomicU64>,
    /// Sealing was tried and is not tried again with fewer events in memory.
    seal_from: usize,
}

impl Store {
    /// The last seq; 0 when nothing was written.
    pub fn last_seq(&self) -> u64 {
        self.live().last_seq()
    }

    /// The hash of the last event, or nothing.
    pub fn head(&self) -> String {
        self.live().head()
    }

    /// The earlier events: those of the live log, and those of its archives.
    pub fn past(&self) -> History<'_> {
        History {
            site: &self.site,
            log: &self.log,
            state: &self.state,
            archives: &self.archives,
            threads: self.options.threads,
            seal_events: self.options.seal.events,
        }
    }

    /// Writes `snapshot.json` if it is wanted. It is derived: a failure is only noted.
    fn write_wanted_snapshot(&mut self) {
        self.settle();
        let is_wanted = self.snapshots.take_wanted(&self.state);
        if is_wanted && self.snapshots.write(&self.log, &mut self.state).is_err() {
            let note = "snapshot.json could not be written".to_owned();
            self.log.report.notes.push(note);
        }
    }

    /// Applies the last batch to the state, before the state is read.
    fn settle(&mut self) {
        self.pending.settle(&mut self.state);
    }

    fn live(&self) -> LiveLog<'_> {
        LiveLog::of(&self.site, &self.log, &self.state)
    }

    /// Calls a method of the log that may sync it: rows of embeddings must be on disk before the log that names them.
    fn on_log<T>(&mut self, act: impl FnOnce(&mut Log, &mut dyn Barrier) -> Result<T>) -> Result<T> {
        act(&mut self.log, &mut self.vectors.barrier(&self.state))
    }

    /// Whether a check failed since the log was read: it is read again before anything is answered.
    fn has_failed(&self) -> bool {
        self.state.slots.has_failed() || self.is_distrusted.load(Ordering::Relaxed)
    }

    fn check_open(&self) -> Result<()> {
        if self.closed { Err(Error::Closed) } else { Ok(()) }
    }
}

/// What a caller may ask.
impl Store {
    /// The records as they are known now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The log, and what opening found in it.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// When this store's writes are synced.
    pub fn durability(&self) -> Durability {
        self.options.durability
    }

    /// Leaves nothing to the worker while it is busy.
    pub fn leave_alone(&mut self, unattended: bool) {
        self.log.leave_alone(unattended);
    }

    /// Gives back a lock that was not used for a moment; whether it is still kept.
    pub fn end_lease(&mut self, now: i64) -> bool {
        self.log.end_lease(now)
    }

    /// The embeddings of the records as they are known now.
    pub fn embeddings(&self) -> Embeddings<'_> {
        Embeddings {
            live: self.live(),
            vectors: &self.vectors,
            depth: self.options.recursion_depth,
        }
    }

    /// The canonical records that a declared index leads to, in its order. It is as fresh as the state.
    ///
    /// # Errors
    /// `Argument` if no face declares the index or the key has another length; `OutOfMemory`.
    pub fn find(&self, index: &str, lookup: &IndexLookup<'_>) -> Result<Vec<Dated<'_>>> {
        find(&self.views.indexes, &self.state, index, lookup)
    }

    /// Asks a declared network, as a viewer sees it. It is as fresh as the state.
    ///
    /// # Errors
    /// `Argument` if no face declares the network; `OutOfMemory`, and those of `ask`.
    pub fn walk<T>(
        &self,
        network: &str,
        viewer: &Viewer,
        steps: &Steps,
        ask: impl FnOnce(&Net<'_>) -> Result<T>,
    ) -> Result<T> {
        walk(&self.views.indexes, &self.state, network, viewer, steps, ask)
    }

    /// A page of a listing: those of its records for which a condition holds.
    pub fn page(&self, listing: &Listing, condition: Option<&Condition>) -> Result<Page<'_>> {
        page(StateView::of(self), &self.views.field_indexes, listing, condition)
    }

    /// The records of a listing as they are now, to be read while others go on.
    pub fn freeze(&mut self, listing: &Listing, condition: Option<&Condition>) -> Result<Frozen> {
        let (slots, ..) = slots(StateView::of(self), &self.views.field_indexes, listing, condition)?;
        Ok(self.state.freeze_those(slots.into_iter())?)
    }

    /// The visible records of a kind of the blocks face, in insertion order, without plain records of that kind.
    pub fn blocks_of<'a>(
        &'a self,
        viewer: &Arc<Viewer>,
        kind: &'a str,
        status: Option<&str>,
    ) -> impl Iterator<Item = Dated<'a>> + use<'a> {
        let query = Query {
            kinds: Some(vec![kind.to_owned()]),
            status: status.map(str::to_owned),
            viewer: Arc::clone(viewer),
            ..Query::default()
        };
        let found = query.slots(&self.state, None).map(|slot| self.state.dated_in(slot));
        found.filter(|one| is_one_of(kind, &one.record))
    }

    /// What recalls of blocks are made from, as of now. It can be read without the store.
    ///
    /// # Errors
    /// `Io`, where rows cannot be read; `OutOfMemory`.
    pub fn blocks(&self) -> Result<Arc<RwLock<BlockColumns>>> {
        columns_now(self)
    }

    /// Checks all files again, believing nothing that is in memory.
    pub fn verify(disk: &dyn Disk, layout: &Layout, threads: usize, progress: Progress<'_>) -> Result<Report> {
        verify(disk, layout, threads, progress)
    }
}
