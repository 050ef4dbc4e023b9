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

mod write;

mod follow;

mod history;

mod shared;

mod search;

mod turns;

mod upkeep;

mod recovery;

mod copies;

mod erasure;

mod restoring;

mod door;

mod worker;

mod engine;

use std::sync::{Arc, RwLock};

use crate::blocks::BlockColumns;
use crate::condition::FieldIndexes;
use crate::disk::{Disk, Manner};
use crate::error::{Error, Result};
use crate::index::Indexes;
use crate::layout::Layout;
use crate::log::{Log, Site};
use crate::options::Options;
use crate::state::State;

pub use crate::log::Progress;
pub use crate::remembered::HeadStanding;
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
pub use search::live_text::seal_text;
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
pub use write::commit::Group;
pub use write::ingest::{Ingested, Intake, RowRefusal, RowSource};
pub use write::optimistic::{AtomicBatch, Bookmark, WrittenBatch};
pub use write::spell::Committed;

use archives::archive_index::ArchiveCache;
use archives::returned::returned_at;
use files::snapshots::Snapshots;
use follow::lost::missed;
use history::lines::History;
use live_log::LiveLog;
use load::examine::nothing;
use recovery::returning::erasures_of;
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
    /// The text index, once it was asked.
    text: Arc<search::live_text::LiveTextIndex>,
    /// What faces look records up by; each follows when it is asked.
    indexes: RwLock<Indexes>,
    /// What it looks all records up by; likewise.
    field_indexes: RwLock<FieldIndexes>,
    /// What recalls of blocks are made from; it follows when it is asked for.
    blocks: Arc<RwLock<BlockColumns>>,
    vectors: vectors::Vectors,
    /// The moment that was told last: what has expired by then is left out.
    clock: i64,
    /// A whole event that lies beyond the end of a damaged log is not moved aside now.
    spares_tail: bool,
    /// What the last copy in `backup/` was called that was made here: an erasure may have taken it away, and whoever kept the
    /// name must not find another in its place.
    last_copy: Option<String>,
}

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
        let vectors = vectors::Vectors::new(Arc::clone(&site), options.threads);
        let mut store = Self {
            site,
            options,
            log,
            state: State::default(),
            pending: Pending::default(),
            closed: false,
            snapshots,
            archives: ArchiveCache::default(),
            text: Arc::default(),
            indexes: RwLock::default(),
            field_indexes: RwLock::default(),
            blocks: Arc::default(),
            vectors,
            clock: i64::MIN,
            spares_tail: false,
            last_copy: None,
        };
        store.reload(progress)?;
        if store.is_erasing() {
            store.finish_what_others_erased();
        }
        store.look_for_returned();
        store.tell_known_head();
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
            store.finish_erasing()
        });
        if let Err(fault) = finished {
            let note = format!("an erasure is unfinished, and could not be ended here: {fault}");
            self.log.report.notes.push(note);
        }
    }

    /// Never silent: what was erased and is back is told to whoever opens the store.
    fn look_for_returned(&mut self) {
        if !erasures_of(&self.state).is_empty()
            && let Some(log) = self.log.open()
        {
            let found = returned_at(&*self.site.disk, &self.site.layout, &log.origin);
            self.log.report.returned = found;
        }
    }

    /// The last seq; 0 when nothing was written.
    pub fn last_seq(&self) -> u64 {
        self.log.open().map_or(0, |log| log.mark().last_seq)
    }

    /// The hash of the last event, or nothing.
    pub fn head(&self) -> String {
        let head = self.log.open().and_then(|log| log.mark().head);
        head.map(|head| head.text().to_owned()).unwrap_or_default()
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
        self.tell_known_head();
        self.write_wanted_snapshot();
        self.closed = true;
        self.log.let_go();
        self.log.forget();
        self.state = State::default();
        self.text = Arc::default();
        self.vectors.forget();
        outcome
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
            self.log.report.notes.push(note);
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
