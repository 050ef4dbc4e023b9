//! What may a caller ask?
//!
//! A [`Store`] ties the rooms together. It opens without a lock and reads what is committed; a commit takes the lock,
//! catches up with what others wrote, appends, syncs as its mode asks and only then lets go. Time comes in with each call.

mod ahead;
mod archive_faults;
mod archives;
mod as_of;
mod backup;
mod base;
mod batches;
mod care;
mod changed;
mod commit;
mod compact;
mod copies;
mod cure;
mod derived;
mod ended;
mod find;
mod follow;
mod found;
mod gaps;
mod going_on;
mod heal;
mod heaviest;
mod held;
mod history_files;
mod home;
mod ingest;
mod judge;
mod load;
mod loader;
mod losses;
mod lost;
mod lost_beginning;
mod mending;
mod moments;
mod on_hold;
mod overlay;
mod packing;
mod past;
mod pending;
mod prepare;
mod proofs;
mod rank;
mod rebuild;
mod recall;
mod remember;
mod repair;
mod restore;
mod retire;
mod route;
mod runs;
mod search;
mod seeming;
mod set_aside;
mod shared;
mod shelf;
mod swap;
mod sync;
mod tails;
mod take_back;
mod text_desk;
mod text_files;
mod twin;
mod unless;
mod unproven;
mod vectors;
mod which_base;
mod write;

use std::sync::{Arc, RwLock};

use crate::blocks::Columns;
use crate::disk::{Disk, Manner};
use crate::error::{Error, Result};
use crate::event::draft::Draft;
use crate::index::Indexes;
use crate::layout::Layout;
use crate::log::Log;
use crate::options::{Checking, Durability, Options};
use crate::state::{Query, State, Tally};
use crate::verify::Report;

pub use crate::log::Progress;
pub use crate::remembered::Standing;
pub use ahead::Ahead;
pub use as_of::View;
pub use backup::{BackingUp, backup};
pub use care::Turns;
pub use commit::{Committed, Group};
pub use compact::{Compacting, compact};
pub use derived::Snapshotting;
pub use home::{layout_of, source_of};
pub use ingest::Ingested;
pub use loader::Moment;
pub use rank::{Hit, Search};
pub use recall::recall;
pub use repair::{Repaired, repair};
pub use restore::restore;
pub use search::search;
pub use shared::{Needs, Shared};
pub use sync::Syncing;
pub use tails::{Kept, WHY_NOT_RESTORABLE};
pub use take_back::{bring_back, restore_tail};
pub use text_desk::seal_text;
pub use unless::{Bookmark, Change};
pub use vectors::{Attachment, Hunt, Ids, Matrix, Neighbour, Question, SpaceReport};

use load::nothing;

/// An open store.
pub struct Store {
    disk: Arc<dyn Disk>,
    layout: Layout,
    options: Options,
    log: Log,
    state: State,
    /// What the state has not seen yet; nobody looks at it before.
    pending: Option<pending::Pending>,
    /// What it saw last of that.
    seen: Vec<Arc<Draft>>,
    /// How much of what the log names beside it is on disk.
    rows_on_disk: vectors::RowsOnDisk,
    closed: bool,
    /// How many events the log has when the next snapshot is due.
    snapshot_due: u64,
    /// One is due that is too large to be written on the way.
    snapshot_wanted: bool,
    /// The archives that were asked so far.
    shelf: shelf::Shelf,
    /// The text index, once it was asked.
    text: Arc<text_desk::TextDesk>,
    /// What faces look records up by; each follows when it is asked.
    indexes: RwLock<Indexes>,
    /// What recalls of blocks are made from; it follows when it is asked for.
    blocks: Arc<RwLock<Columns>>,
    vectors: vectors::Vectors,
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
        let log = Log::new(Arc::clone(&disk), layout.clone(), options.terms(), nothing())?;
        let mut store = Self {
            disk,
            layout,
            options,
            log,
            state: State::default(),
            pending: None,
            seen: Vec::new(),
            rows_on_disk: vectors::RowsOnDisk::default(),
            closed: false,
            snapshot_due: derived::FIRST_SNAPSHOT_EVENTS,
            snapshot_wanted: false,
            shelf: shelf::Shelf::default(),
            text: Arc::default(),
            indexes: RwLock::default(),
            blocks: Arc::default(),
            vectors: vectors::Vectors::default(),
        };
        store.reload(progress)?;
        store.tell_known_head();
        if store.options.exclusive {
            store.log.hold_lock()?;
        }
        Ok(store)
    }

    /// What opening found.
    pub fn report(&self) -> &Report {
        &self.log.report
    }

    /// When this store's writes are synced.
    pub fn durability(&self) -> Durability {
        self.options.durability
    }

    /// The paths of the store.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The canonical record of an id.
    pub fn get(&self, id: &str) -> Option<&[u8]> {
        self.state.get(id)
    }

    /// The canonical records that a query asks for.
    ///
    /// # Errors
    /// `OutOfMemory` if there is no memory for so many.
    pub fn query(&self, query: &Query) -> Result<Vec<&[u8]>> {
        Ok(self.state.query(query)?)
    }

    /// How many records a query would find.
    pub fn count(&self, query: &Query) -> u64 {
        self.state.count(query)
    }

    /// How many records there are of each kind and status.
    pub fn tally(&self) -> Vec<Tally> {
        self.state.tally()
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
        let missed = if self.log.is_locked() { self.missed() } else { Ok(None) };
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
        self.vectors = vectors::Vectors::default();
        outcome
    }

    /// The latest moment that an event of the log carries, in microseconds since 1970.
    pub fn latest(&self) -> i64 {
        self.log.latest()
    }

    /// Says that whoever looks after the store is busy for a while, or back: nothing is left to them meanwhile.
    pub fn leave_alone(&mut self, unattended: bool) {
        self.log.leave_alone(unattended);
    }

    /// Whether the lock is kept between commits; whoever looks after the store must end that soon.
    pub fn is_leased(&self) -> bool {
        self.log.is_leased()
    }

    /// Gives back a lock that nobody needed for a moment; says whether it is still kept.
    pub fn end_lease(&mut self, now: i64) -> bool {
        self.log.end_lease(now)
    }

    fn check_open(&self) -> Result<()> {
        if self.closed { Err(Error::Closed) } else { Ok(()) }
    }

    fn events(&self) -> u64 {
        self.log.open().map_or(0, |log| log.mark().events)
    }
}
