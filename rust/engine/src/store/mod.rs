//! The store, which ties the rooms together for one caller at a time.
//!
//! A [`Store`] ties the rooms together. It opens without a lock and reads what is committed; a commit takes the lock,
//! catches up with what others wrote, appends, syncs as its mode asks and only then lets go. Time comes in with each call.
//!
//! A room uses only rooms above it in this list, and so does a file in its room. The first of them, up to `load`, know no
//! store: they work on the site of the files, a log or a state that is handed to them.

mod files;

mod live_log;

mod vectors;

mod archives;

mod load;

mod spell_ahead;

mod sync;

mod follow;

mod write;

mod history;

mod shared;

mod search;

mod turns;

mod upkeep;

mod recovery;

mod open;

mod copies;

mod erasure;

mod restoring;

mod door;

mod worker;

mod engine;

use std::sync::Arc;

use crate::options::Options;
use chronolog::error::{Error, Result};
use chronolog::log::{Log, Site};
use chronomemory_state::state::State;

pub use chronolog::log::Progress;
pub use chronolog::remembered::HeadStanding;
pub use copies::listed::{CopySeen, forget, list};
pub use copies::outside::{CopyMade, CopyOrder, copy_out};
pub use engine::{BatchWriter, Engine, Unchanged, Verified};
pub use erasure::check::holds_any;
pub use erasure::erase::erase;
pub use erasure::order::{Erase, Erased};
pub use files::snapshots::Snapshotting;
pub use history::as_of::View;
pub use load::home::{layout_of, source_of};
pub use load::loader::Moment;
pub use load::tails::{Quarantined, WHY_NOT_RESTORABLE};
pub use recovery::repair::{Repaired, repair};
pub use restoring::restore::{Restoring, restore};
pub use restoring::take_back::{bring_back, restore_tail};
pub use search::ask::search;
pub use search::follow_text::seal_text;
pub use search::page::Page;
pub use search::rank::{RecordSearch, SearchHit};
pub use search::recall::recall;
pub use shared::{DueWork, Shared};
pub use spell_ahead::SpelledAhead;
pub use sync::Syncing;
pub use turns::Turns;
pub use upkeep::backup::{BackingUp, backup};
pub use upkeep::compact::{Compacting, compact};
pub use upkeep::pruning::{Prune, Pruned, prune};
pub use vectors::{Attachment, Ids, Matrix, Neighbour, SpaceReport, VectorQuestion, VectorSearch};
pub use write::bookmark::Bookmark;
pub use write::commit::Group;
pub use write::ingest::{Ingested, Intake, RowRefusal, RowSource, ingest};
pub use write::optimistic::{AtomicBatch, WrittenBatch};
pub use write::spell::Committed;

use archives::archive_index::ArchiveCache;
use files::snapshots::Snapshots;
use follow::clock::ToldTime;
use history::lines::History;
use live_log::LiveLog;
use search::views::Views;
use write::pending::Pending;

/// An open store.
pub struct Store {
    /// Where its files are.
    site: Arc<Site>,
    options: Options,
    log: Log,
    state: State,
    /// What the state has not seen yet; nobody looks at it before.
    pending: Pending,
    closed: bool,
    /// When the next snapshot is due.
    snapshots: Snapshots,
    /// The archives that were asked so far.
    archives: ArchiveCache,
    /// What it is asked by.
    views: Views,
    vectors: vectors::Vectors,
    clock: ToldTime,
    /// What the last copy in `backup/` was called that was made here: an erasure may have taken it away, and whoever kept the
    /// name must not find another in its place.
    last_copy: Option<String>,
}

impl Store {
    /// The last seq; 0 when nothing was written.
    pub fn last_seq(&self) -> u64 {
        self.log.open().map_or(0, |log| log.mark().last_seq)
    }

    /// The hash of the last event, or nothing.
    pub fn head(&self) -> String {
        let head = self.log.open().and_then(|log| log.mark().head);
        head.map(|head| head.text().to_owned()).unwrap_or_default()
    }

    /// The latest moment that an event of the log carries, in microseconds since 1970.
    pub fn latest(&self) -> i64 {
        self.log.latest()
    }

    /// What was said before.
    fn past(&self) -> History<'_> {
        History {
            site: &self.site,
            log: &self.log,
            state: &self.state,
            archives: &self.archives,
            threads: self.options.threads,
        }
    }

    /// `snapshot.json` is derived: if it cannot be written, the log is none the worse.
    fn write_wanted_snapshot(&mut self) {
        if !self.snapshots.take_wanted() {
            return;
        }
        self.settle();
        if self.snapshots.write(&self.log, &mut self.state).is_err() {
            let note = "snapshot.json could not be written".to_owned();
            self.log.note(note);
        }
    }

    /// Whether the state has seen everything that this store wrote.
    fn is_settled(&self) -> bool {
        self.pending.is_settled()
    }

    /// Shows the state what it has not seen; nobody may look at it before.
    fn settle(&mut self) {
        self.pending.settle(&mut self.state);
    }

    /// The live log beside its state.
    fn live(&self) -> LiveLog<'_> {
        LiveLog {
            site: &self.site,
            open: self.log.open(),
            state: &self.state,
        }
    }

    /// The log, and what must be on disk before it.
    fn log_and_rows(&mut self) -> (&mut Log, vectors::RowBarrier<'_>) {
        (&mut self.log, self.vectors.barrier(&self.state))
    }

    fn check_open(&self) -> Result<()> {
        if self.closed { Err(Error::Closed) } else { Ok(()) }
    }
}
