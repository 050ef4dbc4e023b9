//! The questions that a caller may ask of a store, each answered by the part of it that knows.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use crate::options::Durability;
use chronolog::disk::Disk;
use chronolog::error::Result;
use chronolog::layout::Layout;
use chronolog::log;
use chronolog::remembered::HeadStanding;
use chronolog::scope::Viewer;
use chronolog::verify::Report;
use chronomemory_search::blocks::{BlockColumns, is_one_of};
use chronomemory_state::condition::Condition;
use chronomemory_state::index::IndexLookup;
use chronomemory_state::network::{Net, Steps};
use chronomemory_state::state::{Dated, Directory, Edition, Frozen, Listing, Query, Tally, spelled};

use super::copies::outside::{CopyMade, CopyOrder, copy_out};
use super::erasure::erase::erase;
use super::erasure::order::{Erase, Erased};
use super::history::as_of::View;
use super::load::loader::Moment;
use super::recovery::judge::verify_at;
use super::recovery::repair::{Repaired, repair};
use super::restoring::restore::{Restoring, restore};
use super::search::find::find;
use super::search::network::walk;
use super::search::page::{Page, page, slots};
use super::search::recall::columns_now;
use super::search::select::{Scene, Verdicts, prepare};
use super::turns::Alone;
use super::upkeep::backup::backup;
use super::upkeep::compact::compact;
use super::upkeep::pruning::{Prune, Pruned, prune};
use super::vectors::{Matrix, Neighbour, SpaceReport, VectorQuestion};
use super::{Progress, Store};

impl Store {
    /// What opening found.
    pub fn report(&self) -> &Report {
        self.log.report()
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

    /// The same with its moments.
    pub fn dated(&self, viewer: &Viewer, id: &str) -> Option<Dated<'_>> {
        self.state.dated(viewer, id)
    }

    /// How many of the records that somebody sees are in doubt, and the ids of those that damaged lines name.
    pub fn in_doubt(&self, viewer: &Viewer) -> (u64, Vec<String>) {
        self.state.in_doubt(viewer)
    }

    /// The records that a query asks for, with their moments.
    ///
    /// # Errors
    /// As [`Store::query`].
    pub fn query_dated(&self, query: &Query) -> Result<Vec<Dated<'_>>> {
        Ok(self.state.query_dated(query)?)
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

    /// The canonical record of an id, if somebody sees it.
    pub fn get_seen(&self, viewer: &Viewer, id: &str) -> Option<&[u8]> {
        self.state.get_seen(viewer, id)
    }

    /// The number of the scope of a record, if there is one of this id that somebody may change.
    pub fn own_scope(&self, viewer: &Viewer, id: &str) -> Option<u32> {
        self.state.own_scope(viewer, &spelled(id))
    }

    /// Whether there is a record of somebody's own, a tombstone too.
    pub fn knows(&self, viewer: &Viewer) -> bool {
        self.state.scopes().knows(viewer)
    }

    /// Tells what somebody sees from what that one saw before.
    pub fn seen_version(&self, viewer: &Viewer) -> (u64, i64) {
        self.state.seen_version(viewer)
    }

    /// All scopes that records carry.
    pub fn scopes(&self) -> &Directory {
        self.state.scopes()
    }

    /// How many records of each kind and status somebody sees.
    pub fn tally(&self, viewer: &Viewer) -> Vec<Tally> {
        self.state.tally(viewer)
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

    /// How the files of a store stand to a remembered head. A loss is believed only of a note and a log that nobody replaced
    /// during the look.
    ///
    /// # Errors
    /// `Io`.
    pub fn standing_of(disk: &dyn Disk, layout: &Layout, note: &Path) -> Result<HeadStanding> {
        log::standing_of(disk, layout, note)
    }

    /// All spaces, by name.
    pub fn spaces(&self) -> Vec<SpaceReport> {
        self.vectors.spaces(&self.state)
    }

    /// How many rows of a space are embeddings of records that somebody sees, and how many of these are known to be damaged;
    /// `None` for one who sees all scopes.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub fn rows_seen(&self, viewer: &Arc<Viewer>, space: &str) -> Result<Option<(u64, u64)>> {
        self.vectors.rows_seen(self.live(), viewer, space)
    }

    /// The embedding of a record as bytes, little-endian; `None` if it has none.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupted` if the row is not the one that the log names; `Io`.
    pub fn embedding(&self, space: Option<&str>, id: &str) -> Result<Option<Vec<u8>>> {
        let everyone = Viewer::Everyone.with_expired();
        self.vectors.embedding(&self.state, &everyone, space, id)
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
    pub fn nearest(&self, question: &VectorQuestion<'_>, queries: &[f32], dim: usize) -> Result<Vec<Vec<Neighbour>>> {
        let mut search = self.vectors.start_search(self.live(), question)?;
        if let Some(condition) = question.condition {
            let (judge, among) = prepare(&self.state, &self.views.field_indexes, condition)?;
            let ask = |look: &mut dyn FnMut(Scene<'_>)| {
                look(Scene::of(self));
                Some(())
            };
            let verdicts = Verdicts::new(judge, among, &ask);
            search.keep(&|slot| verdicts.allow(slot));
            verdicts.check()?;
        }
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

    /// The canonical records that a declared index leads to, in its order. It is as fresh as the state.
    ///
    /// # Errors
    /// `Argument` if no face declares the index or the key has another length; `OutOfMemory`.
    pub fn find(&self, index: &str, lookup: &IndexLookup<'_>) -> Result<Vec<Dated<'_>>> {
        find(&self.views.indexes, &self.state, index, lookup)
    }

    /// Asks something of a declared network, as somebody sees it. It is as fresh as the state.
    ///
    /// # Errors
    /// `Argument` if no face declares the network; `OutOfMemory`, and what the question says.
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
    ///
    /// # Errors
    /// `OutOfMemory` if there is no memory for so many, `Io`.
    pub fn page(&self, listing: &Listing, condition: Option<&Condition>) -> Result<Page<'_>> {
        page(Scene::of(self), &self.views.field_indexes, listing, condition)
    }

    /// The records of a listing as they are now, to be read while others go on.
    ///
    /// # Errors
    /// As [`Store::page`].
    pub fn freeze(&mut self, listing: &Listing, condition: Option<&Condition>) -> Result<Frozen> {
        let (slots, ..) = slots(Scene::of(self), &self.views.field_indexes, listing, condition)?;
        Ok(self.state.freeze_those(slots.into_iter())?)
    }

    /// The canonical records of a kind of the blocks face that are seen, in insertion order: a plain record of that kind is none, and
    /// neither is one that the face would not have written.
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
        self.state
            .matches_dated(&query)
            .filter(|one| is_one_of(kind, one.record))
    }

    /// What recalls of blocks are made from, as of now. It can be read without the store.
    ///
    /// # Errors
    /// `Io`, where rows cannot be read; `OutOfMemory`.
    pub fn blocks(&self) -> Result<Arc<RwLock<BlockColumns>>> {
        columns_now(self)
    }

    /// Which edition of what somebody sees this is.
    pub fn edition(&self, viewer: &Viewer) -> Edition {
        self.state.edition(viewer)
    }

    /// Copies everything into a new folder under `backup/`; gives the folder.
    ///
    /// # Errors
    /// `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn backup(&mut self, now: i64, progress: Progress<'_>) -> Result<PathBuf> {
        backup(&Alone::with(self), &|| now, progress)
    }

    /// Retires the log; gives the number of events that it held.
    ///
    /// # Errors
    /// `Corrupted` if the log is damaged (it must be repaired first), `Refused` if whole events would be left without a way
    /// back, `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn compact(&mut self, keep_history: bool, now: i64, progress: Progress<'_>) -> Result<u64> {
        compact(&Alone::with(self), keep_history, &|| now, progress)
    }

    /// Makes a damaged store whole again. `None` if nothing is damaged. Where the state that the log starts from is altered
    /// and nothing proves what it was, `unproven` takes it as it is, marked.
    ///
    /// # Errors
    /// `Corrupted` if that would be needed and is not wanted; `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn repair(&mut self, unproven: bool, now: i64, progress: Progress<'_>) -> Result<Option<Repaired>> {
        repair(&Alone::with(self), unproven, &|| now, progress)
    }

    /// Brings a copy back: a backup, or what a repair or a restore set aside. What is replaced is set aside too. With
    /// `damaged` the copy may be damaged, and is brought back as it is.
    ///
    /// # Errors
    /// `Refused` if the copy lacks what was erased here since; `Corrupted` if it is damaged and may not be, apart from rows of embeddings: those are missing in the copy and
    /// stay so; `Io`, `Locked`, `Closed`, `Poisoned`; the present state stays then.
    pub fn restore(&mut self, source: &Layout, damaged: bool, now: i64, progress: Progress<'_>) -> Result<()> {
        let wanted = Restoring {
            damaged,
            ..Restoring::default()
        };
        restore(&Alone::with(self), source, wanted, &|| now, progress)
    }

    /// Copies everything into a folder of its own in a folder outside, and verifies the copy.
    ///
    /// # Errors
    /// As [`copy_out`].
    pub fn copy_out(&mut self, order: &CopyOrder, now: i64, progress: Progress<'_>) -> Result<CopyMade> {
        copy_out(&Alone::with(self), order, &|| now, progress)
    }

    /// Removes the oldest archives and backups, as far as asked; gives what went.
    ///
    /// # Errors
    /// As [`prune`].
    pub fn prune(&mut self, order: &Prune, now: i64) -> Result<Pruned> {
        prune(&Alone::with(self), order, &|| now)
    }

    /// Erases records from the store and from all of its past; gives what was done.
    ///
    /// # Errors
    /// As [`Engine::erase`](crate::Engine::erase).
    pub fn erase(&mut self, order: &Erase, now: i64, progress: Progress<'_>) -> Result<Erased> {
        erase(&Alone::with(self), order, &|| now, progress)
    }

    /// Checks all files again, believing nothing that is in memory.
    ///
    /// # Errors
    /// `Io`.
    pub fn verify(disk: &dyn Disk, layout: &Layout, threads: usize, progress: Progress<'_>) -> Result<Report> {
        verify_at(disk, layout, threads, i64::MAX, progress)
    }
}
