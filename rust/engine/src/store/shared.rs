//! A store that threads share: readers side by side, and writers in groups behind one leader.
//!
//! A writer that comes while another writes or waits for the disk queues, and the next leader writes for all of them
//! and syncs once. A reader never waits for a sync.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, Thread, ThreadId};

use crate::options::{Durability, WriterTerms};
use crate::store::follow::ExpiryClock;
use crate::store::sealing::wants_segment;
use crate::store::search::select::StateView;
use crate::store::write::commit::check_parts;
use crate::store::{Committed, EncodedAhead, Store};
use chronolog::error::{Error, Result};
use chronolog::event::draft::Draft;
use chronomemory_state::state::{StateId, Watermark};

/// One leader writes at most so many commits.
const GROUP_COMMITS: usize = 256;
/// A reader loads the state at most so often if its checks fail again.
const MOST_LOADS: usize = 4;

/// What should be done soon for a store that is attended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueWork {
    /// So many bytes are not synced, and should be.
    pub unsynced_bytes: u64,
    /// A lock is kept that others may want.
    pub leased: bool,
    /// A snapshot is due.
    pub snapshot: bool,
    /// The state or the text index should be sealed.
    pub sealing: bool,
    /// What segments hold was not verified since the store was opened.
    pub unverified: bool,
    /// A head was synced that is not noted yet.
    pub untold: bool,
    /// No worker did a sync in time: the writer waits for it.
    pub(super) overdue: bool,
}

impl DueWork {
    /// What a store needs now.
    pub fn of(store: &Store, now: i64) -> Self {
        Self {
            unsynced_bytes: match store.options.durability {
                Durability::Normal => store.log.unsynced.bytes(),
                _ => 0,
            },
            leased: store.log.lock.is_leased(),
            snapshot: store.snapshots.wanted,
            sealing: store.views.text.wants_sealing() || wants_segment(store),
            unverified: store.verified.is_pending,
            untold: store.log.head.is_owed,
            overdue: store.log.is_sync_due(now),
        }
    }
}

/// A store that any thread may use.
pub struct Shared {
    store: RwLock<Store>,
    line: Mutex<WriterQueue>,
}

#[derive(Default)]
struct WriterQueue {
    /// A thread leads, or was called to.
    led: bool,
    /// The thread that leads from its read to its commit.
    turn: Option<ThreadId>,
    waiting: VecDeque<Arc<Waiter>>,
}

struct Waiter {
    thread: Thread,
    terms: WriterTerms,
    /// The draft to be written; `None` waits to lead.
    draft: Option<Draft>,
    outcome: Mutex<Option<Result<(Committed, DueWork)>>>,
    /// Its draft was written, or it leads.
    called: AtomicBool,
}

impl Waiter {
    fn call(&self) {
        self.called.store(true, Ordering::Release);
        self.thread.unpark();
    }

    fn wait(&self) {
        while !self.called.load(Ordering::Acquire) {
            thread::park();
        }
    }

    fn outcome(&self) -> MutexGuard<'_, Option<Result<(Committed, DueWork)>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to write. When it ends the next waiter is called, unless the turn of a thread goes on.
struct Lead<'a>(&'a Shared, Option<ThreadId>);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut line = self.0.line();
        line.turn = self.1;
        match line.waiting.front() {
            _ if line.turn.is_some() => {}
            Some(next) => next.call(),
            None => line.led = false,
        }
    }
}

/// The right of a thread to be the only writer of all processes from read to commit, for a limited time.
pub struct WriterTurn<'a>(&'a Shared);

impl Drop for WriterTurn<'_> {
    fn drop(&mut self) {
        if let Some(mut lead) = self.0.lead_at_once()
            && lead.1.take().is_some()
        {
            self.0.write_guard().log.end_turn();
        }
    }
}

impl Shared {
    /// Shares a store.
    pub fn new(store: Store) -> Self {
        Self {
            store: RwLock::new(store),
            line: Mutex::default(),
        }
    }

    /// What the store needs, if that is known without waiting.
    pub fn due_work(&self, now: i64) -> DueWork {
        let store = self.store.try_read();
        store.map_or_else(|_| DueWork::default(), |store| DueWork::of(&store, now))
    }

    /// The store with a state that may lack the last batch.
    pub fn read_guard(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store for something short that may be done beside a writer that waits for the disk.
    pub fn write_guard(&self) -> RwLockWriteGuard<'_, Store> {
        let mut store = self.write_guard_as_it_is();
        store.settle();
        store
    }

    fn write_guard_as_it_is(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the last batch to the state.
    pub fn settle(&self) {
        drop(self.write_guard());
    }

    /// The same, unless the store is in use.
    pub fn try_write_guard(&self) -> Option<RwLockWriteGuard<'_, Store>> {
        let mut store = self.store.try_write().ok()?;
        store.settle();
        Some(store)
    }

    /// Asks a question of a state that has caught up with other processes.
    pub fn read<T>(&self, ask: impl FnMut(&Store) -> Result<T>) -> Result<T> {
        self.read_at(None, ask)
    }

    /// Leaves out what has expired by the clock, which is only read if something expires. If the check of a segment fails, the
    /// state is loaded from the log and asked again, a few times at most.
    pub fn read_at<T>(&self, clock: Option<&dyn Fn() -> i64>, mut ask: impl FnMut(&Store) -> Result<T>) -> Result<T> {
        for _ in 0..MOST_LOADS {
            let store = self.read_guard();
            let is_due = || clock.is_some_and(|clock| ExpiryClock::is_due(&store.state, clock));
            if store.pending.is_settled() && !store.is_behind_for_reader()? && !is_due() {
                let answer = ask(&store);
                if !store.has_failed() {
                    return answer;
                }
            }
            drop(store);
            let store = &mut *self.write_guard();
            store.refresh()?;
            if let Some(clock) = clock {
                store.clock.tell(&mut store.state, clock);
            }
            let answer = ask(store);
            if !store.has_failed() {
                return answer;
            }
        }
        let reason = "what was loaded from the log fails its checks again: the disk may be faulty, or another program changes the files";
        let fault = io::Error::new(io::ErrorKind::InvalidData, reason);
        Err(Error::io(&self.read_guard().site.layout.segments(), fault))
    }

    /// Shows the store, if its state is still the one with this id.
    pub(super) fn look_at_state(&self, state_id: &StateId, look: &mut dyn FnMut(StateView<'_>)) -> Option<()> {
        let store = self.read_guard();
        let is_same = store.state.changes().state_id() == state_id;
        is_same.then(|| look(StateView::of(&store)))
    }

    /// Leaves out of the next answers what has expired.
    pub fn tell_time(&self, clock: &dyn Fn() -> i64) {
        if ExpiryClock::is_due(&self.read_guard().state, clock) {
            let store = &mut *self.write_guard();
            store.clock.tell(&mut store.state, clock);
        }
    }

    /// Runs a change as the only writer; gives what the store needs then.
    pub fn change<T>(
        &self,
        terms: WriterTerms,
        clock: &dyn Fn() -> i64,
        act: impl FnOnce(&mut Store) -> T,
    ) -> (T, DueWork) {
        let _lead = self.lead(terms);
        let mut store = self.write_guard();
        store.set_writer_options(terms);
        let outcome = act(&mut store);
        (outcome, DueWork::of(&store, clock()))
    }

    /// Makes this thread the only writer, on the newest state; `None` if it is that already.
    pub fn begin_turn(&self, terms: WriterTerms, clock: &dyn Fn() -> i64) -> Result<Option<WriterTurn<'_>>> {
        let mut lead = self.lead(terms);
        if lead.1.is_some() {
            return Ok(None);
        }
        let mut store = self.write_guard();
        store.set_writer_options(terms);
        let now = clock();
        store.with_lock(now, |store| {
            store.log.lock.turn = Some(now);
            Ok(())
        })?;
        lead.1 = Some(thread::current().id());
        Ok(Some(WriterTurn(self)))
    }

    /// Ends an unused lease and a turn that took too long; gives whether the lock is kept. Needs [`Shared::try_write_guard`].
    pub fn end_lease(&self, store: &mut Store, now: i64) -> bool {
        let mut line = self.line();
        if line.led && line.turn.is_none() {
            // The leader uses the lock, or is about to.
            return store.log.lock.is_leased();
        }
        let is_kept = store.end_lease(now);
        if !is_kept && line.turn.take().is_some() {
            drop(line);
            drop(Lead(self, None));
        }
        is_kept
    }

    /// The same for a change that leaves a due sync to its caller: others go on during the sync.
    pub fn change_and_sync<T>(
        &self,
        terms: WriterTerms,
        clock: &dyn Fn() -> i64,
        act: impl FnOnce(&mut Store) -> Result<T>,
    ) -> Result<(T, DueWork)> {
        let (outcome, due_work) = self.change(terms, clock, act);
        let outcome = outcome?;
        self.catch_up_with_disk(&due_work)?;
        Ok((outcome, due_work))
    }

    /// Runs an overdue sync without the store.
    fn catch_up_with_disk(&self, due_work: &DueWork) -> Result<()> {
        let due = due_work.overdue.then(|| self.read_guard().start_sync());
        let Some(syncing) = due.flatten() else { return Ok(()) };
        let outcome = syncing.run();
        self.write_guard_as_it_is().end_sync(&syncing, outcome)
    }

    /// Writes a draft as one atomic batch, together with those of other threads. The draft may be empty then.
    pub fn commit(
        &self,
        draft: &mut Draft,
        terms: WriterTerms,
        clock: &dyn Fn() -> i64,
    ) -> Result<(Committed, DueWork)> {
        let (committed, due_work) = self.commit_in_turn(draft, terms, clock)?;
        self.catch_up_with_disk(&due_work)?;
        Ok((committed, due_work))
    }

    /// Writes a draft as one atomic batch if that waits for no other writer and no disk; otherwise `None`.
    pub fn commit_at_once(
        &self,
        draft: &Draft,
        terms: WriterTerms,
        clock: &dyn Fn() -> i64,
    ) -> Result<Option<(Committed, DueWork)>> {
        let Some(_lead) = self.lead_at_once() else {
            return Ok(None);
        };
        let Ok(mut store) = self.store.try_write() else {
            return Ok(None);
        };
        let now = clock();
        store.set_writer_options(terms);
        // The lock is kept since the last commit, so others have added nothing, and no sync is promised or overdue.
        let is_ready = store.log.lock.is_leased() && store.pending.is_settled();
        if !is_ready || store.options.syncs_every_commit() || store.log.is_sync_due(now) {
            return Ok(None);
        }
        let committed = store.with_lock(now, |store| store.check_and_write(draft, now))?;
        Ok(Some((committed, DueWork::of(&store, now))))
    }

    fn commit_in_turn(
        &self,
        draft: &mut Draft,
        terms: WriterTerms,
        clock: &dyn Fn() -> i64,
    ) -> Result<(Committed, DueWork)> {
        if let Some(_lead) = self.lead_at_once() {
            let (mut outcomes, due_work) = self.write_together(&[draft], terms, clock)?;
            let outcome = outcomes.pop().unwrap_or(Err(Error::Closed));
            return outcome.map(|committed| (committed, due_work));
        }
        let me = self.enqueue(Some(std::mem::take(draft)), terms);
        me.wait();
        if let Some(outcome) = me.outcome().take() {
            return outcome;
        }
        let _lead = Lead(self, None);
        let group = self.take_group();
        let drafts: Vec<&Draft> = group.iter().filter_map(|waiter| waiter.draft.as_ref()).collect();
        let terms = group.iter().fold(terms, |terms, waiter| terms.with(waiter.terms));
        let written = self.write_together(&drafts, terms, clock);
        let mut mine = Err(Error::Closed);
        let (outcomes, due_work) = written.unwrap_or_else(|fault| {
            let outcomes = group.iter().map(|_| Err(fault.clone())).collect();
            (outcomes, DueWork::default())
        });
        for (waiter, outcome) in group.iter().zip(outcomes) {
            let outcome = outcome.map(|committed| (committed, due_work));
            if Arc::ptr_eq(waiter, &me) {
                mine = outcome;
            } else {
                *waiter.outcome() = Some(outcome);
                waiter.call();
            }
        }
        mine
    }

    /// Begins to encode a batch of so many changes.
    pub fn encode_ahead(&self, changes: usize, now: i64) -> EncodedAhead {
        let store = &mut *self.write_guard_as_it_is();
        EncodedAhead::begin(&mut store.log, &store.options, None, changes, now)
    }

    /// The edition of the state on which a batch is allowed as it is, if that is known now.
    pub fn check_ahead(&self, parts: &[Arc<Draft>]) -> Option<Watermark> {
        let store = self.store.try_read().ok()?;
        let fits = store.pending.is_settled() && matches!(check_parts(&store.state, parts), Ok(None));
        fits.then(|| store.state.changes().watermark())
    }

    fn line(&self) -> MutexGuard<'_, WriterQueue> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lead_at_once(&self) -> Option<Lead<'_>> {
        let mut line = self.line();
        let turn = line.turn.take_if(|holder| *holder == thread::current().id());
        // Lazily: a lead that is made is a lead that ends.
        (!std::mem::replace(&mut line.led, true) || turn.is_some()).then(|| Lead(self, turn))
    }

    fn lead(&self, terms: WriterTerms) -> Lead<'_> {
        if let Some(lead) = self.lead_at_once() {
            return lead;
        }
        let me = self.enqueue(None, terms);
        me.wait();
        self.line().waiting.pop_front();
        Lead(self, None)
    }

    /// Puts the caller at the end of the queue; it is called when its turn comes.
    fn enqueue(&self, draft: Option<Draft>, terms: WriterTerms) -> Arc<Waiter> {
        let me = Arc::new(Waiter {
            thread: thread::current(),
            terms,
            draft,
            outcome: Mutex::default(),
            called: AtomicBool::new(false),
        });
        let mut line = self.line();
        line.waiting.push_back(Arc::clone(&me));
        if !std::mem::replace(&mut line.led, true) {
            // The leader went away just before.
            me.call();
        }
        me
    }

    /// The commits at the front of the queue; the first is the leader's own.
    fn take_group(&self) -> Vec<Arc<Waiter>> {
        let mut line = self.line();
        let commits = line.waiting.iter().take_while(|waiter| waiter.draft.is_some()).count();
        line.waiting.drain(..commits.min(GROUP_COMMITS)).collect()
    }

    fn write_together(
        &self,
        drafts: &[&Draft],
        terms: WriterTerms,
        clock: &dyn Fn() -> i64,
    ) -> Result<(Vec<Result<Committed>>, DueWork)> {
        let mut store = self.write_guard();
        store.set_writer_options(terms);
        let group = store.start_group(drafts, clock())?;
        drop(store);
        let synced = group.run();
        store = self.write_guard();
        let now = clock();
        let outcomes = store.end_group(group, synced, now)?;
        Ok((outcomes, DueWork::of(&store, now)))
    }
}
