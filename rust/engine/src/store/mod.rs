//! What may a caller ask?
//!
//! A [`Store`] ties the rooms together. It opens without a lock and reads what is committed; a commit takes the lock,
//! catches up with what others wrote, appends, syncs as its mode asks and only then lets go. Time comes in with each call.

mod files;
mod live_log;

mod vectors;

mod archives;

mod load;

mod ahead;
mod sync;

mod write;

mod follow;

mod history;

mod shared;

mod search;

mod care;

mod upkeep;

mod recovery;

use std::path::Path;
use std::sync::{Arc, RwLock};

use crate::blocks::Columns;
use crate::damage::Damage;
use crate::disk::{Disk, Manner};
use crate::error::{Error, Result};
use crate::index::Indexes;
use crate::layout::Layout;
use crate::log;
use crate::log::{Log, Site};
use crate::options::{Durability, Options};
use crate::state::{Query, State, Tally};
use crate::verify::Report;

pub use crate::log::Progress;
pub use crate::remembered::Standing;
pub use ahead::Ahead;
pub use care::Turns;
pub use files::snapshots::Snapshotting;
pub use history::as_of::View;
pub use load::home::{layout_of, source_of};
pub use load::loader::Moment;
pub use load::tails::{Kept, WHY_NOT_RESTORABLE};
pub use recovery::repair::{Repaired, repair};
pub use recovery::restore::restore;
pub use recovery::take_back::{bring_back, restore_tail};
pub use search::ask::search;
pub use search::live_text::seal_text;
pub use search::rank::{Hit, Search};
pub use search::recall::recall;
pub use shared::{Needs, Shared};
pub use sync::Syncing;
pub use upkeep::backup::{BackingUp, backup};
pub use upkeep::compact::{Compacting, compact};
pub use vectors::{Attachment, Ids, Matrix, Neighbour, Question, SpaceReport, VectorSearch};
pub use write::commit::{Committed, Group};
pub use write::ingest::Ingested;
pub use write::optimistic::{Bookmark, Change};

use archives::archive_index::ArchiveCache;
use files::snapshots::Snapshots;
use follow::lost::missed;
use history::lines::History;
use live_log::LiveLog;
use load::examine::nothing;
use load::tails::kept_beside;
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
        let site = Arc::new(Site { disk, layout });
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
            blocks: Arc::default(),
            vectors,
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
        &self.site.layout
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

    /// What lies in `quarantine/` and is not a store of its own: tails with whole events, hints that the log contradicted.
    ///
    /// # Errors
    /// `Io`.
    pub fn kept(&self) -> Result<Vec<Kept>> {
        kept_beside(&self.site, &self.log)
    }

    /// What is wrong if the log at its path does not hold what this store knows of it, other than by a deed of ours. Whoever
    /// keeps the lock does not look around between two reads.
    ///
    /// # Errors
    /// `Io`.
    pub fn missed(&self) -> Result<Option<Error>> {
        missed(&self.site, &self.log)
    }

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

    /// What is wrong with the files of rows at first sight, one sentence each.
    pub fn short_rows(&self) -> Vec<String> {
        self.vectors.short_rows(&self.state)
    }

    /// All spaces, by name.
    pub fn spaces(&self) -> Vec<SpaceReport> {
        self.vectors.spaces(&self.state)
    }

    /// The embedding of a record as bytes, little-endian; `None` if it has none.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupted` if the row is not the one that the log names; `Io`.
    pub fn embedding(&self, space: Option<&str>, id: &str) -> Result<Option<Vec<u8>>> {
        self.vectors.embedding(&self.state, space, id)
    }

    /// Hears what was found damaged: such rows are passed over from now on.
    pub fn note_damage(&self, found: &[Damage]) {
        self.vectors.note_damage(&self.state, found);
    }

    /// Where the rows of a space lie, and whose they are.
    ///
    /// # Errors
    /// `NoSpace`.
    pub fn matrix(&self, space: Option<&str>) -> Result<Matrix> {
        self.vectors.matrix(&self.state, space)
    }

    /// The records nearest to each of these vectors, which lie end to end.
    ///
    /// # Errors
    /// As [`Shared::nearest`].
    pub fn nearest(&self, question: &Question<'_>, queries: &[f32], dim: usize) -> Result<Vec<Vec<Neighbour>>> {
        let search = self.vectors.start_search(self.live(), question)?;
        let found = search.run(queries, dim)?;
        Ok(self
            .vectors
            .end_search(&self.state, &search, &found)
            .unwrap_or_default())
    }

    /// The lines that speak of a record, oldest first: those of the archives that were kept, then those of the live log. The
    /// live log has an index in memory, each archive one beside it.
    ///
    /// # Errors
    /// `HistoryUnavailable` if an archive that was kept is not there, `Corrupted` if one is damaged, `Io`.
    pub fn history(&self, id: &str) -> Result<Vec<Vec<u8>>> {
        self.past().of_record(id)
    }

    /// Every line of the live log whose seq is at least `from_seq`.
    ///
    /// # Errors
    /// `Io`.
    pub fn replay(&self, from_seq: u64) -> Result<Vec<Vec<u8>>> {
        self.past().replay(from_seq)
    }

    /// The ids of the records that were upserted or patched at `seq` or later, each once, in order of their first change;
    /// those of the faces only if asked for.
    ///
    /// # Errors
    /// `HistoryUnavailable` if some of it was compacted away and not kept, `Corrupted` if an archive is damaged, `Io`.
    pub fn changed_since(&self, seq: u64, faces: bool) -> Result<Vec<String>> {
        self.past().changed_since(seq, faces)
    }

    /// The store as it was at a moment, in the live log or in an archive.
    ///
    /// # Errors
    /// `HistoryUnavailable` if no kept segment reaches back so far, `Corrupted` if the one that does is damaged, `Io`.
    pub fn as_of(&self, moment: Moment) -> Result<View> {
        self.past().as_of(moment)
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

    /// Whether a snapshot is due that whoever looks after the store should write.
    pub fn wants_snapshot(&self) -> bool {
        self.snapshots.is_wanted()
    }

    /// A snapshot that is due, to be written while others go on; `None` if none is.
    pub fn start_snapshot(&mut self) -> Option<Snapshotting> {
        self.snapshots.start(&self.log, &mut self.state)
    }

    /// Gives a snapshot its name, unless the log was replaced meanwhile and has a newer one.
    ///
    /// # Errors
    /// `Io`, `Locked`.
    pub fn end_snapshot(&mut self, snapshot: &Snapshotting) -> Result<()> {
        self.snapshots.end(&mut self.log, snapshot)
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

    fn events(&self) -> u64 {
        self.log.open().map_or(0, |log| log.mark().events)
    }
}
