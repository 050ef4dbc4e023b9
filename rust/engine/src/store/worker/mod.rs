//! The worker, which looks after a store between calls.
//!
//! A [`Worker`] syncs, writes snapshots, seals the text index and ends leases; [`due`] decides when. Long work runs on
//! threads of the [`Host`]. A worker has a thread of its own, or is driven by a caller's loop.

mod due;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use due::asked::{ENDED, LEASED};
use due::{Due, DueSince, Task, asks_of};

use super::sealing::seal_state;
use super::search::follow_text::seal_text;
use super::shared::{DueWork, Shared};
use chronolog::error::{Error, Result};
use chronolog::host::{Host, Join};
use chronolog::memory;
use chronolog::wal::reader::Reading;

/// What a thread needs at least.
const THREAD_BYTES: usize = 4 * 1024 * 1024;

pub(super) struct Worker {
    store: Arc<Shared>,
    host: Arc<dyn Host>,
    /// What is asked for: a bit stays until somebody has begun to act on it.
    asked: AtomicU8,
    /// What the tasks that are under way answer to.
    busy: AtomicU8,
    inbox: Mutex<WorkerInbox>,
    moved: Condvar,
    rounds: Mutex<Rounds>,
}

#[derive(Default)]
struct WorkerInbox {
    since: DueSince,
    stopped: bool,
}

/// What a round knows of those before it.
#[derive(Default)]
struct Rounds {
    looked: Option<Duration>,
    tasks: Vec<(Task, Join)>,
}

/// Says that a task is over, however it ended.
struct Ending<'a>(&'a Worker, Task);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_and(!self.1.answers(), Ordering::Release);
        self.0.ask(ENDED);
    }
}

impl Worker {
    /// Looks after a store, by the clock and with the threads of a host.
    pub fn new(store: Arc<Shared>, host: Arc<dyn Host>) -> Arc<Self> {
        Arc::new(Self {
            store,
            host,
            asked: AtomicU8::new(0),
            busy: AtomicU8::new(0),
            inbox: Mutex::default(),
            moved: Condvar::new(),
            rounds: Mutex::default(),
        })
    }

    /// Gives the worker a thread of its own; [`Worker::stop`] ends it.
    pub fn start(self: &Arc<Self>) -> Result<Join> {
        let worker = Arc::clone(self);
        let run = move || {
            let mut round = worker.round();
            while worker.wait(round) {
                round = worker.round();
            }
        };
        self.host.spawn("chronomemory-sync", Box::new(run)).map_err(|fault| {
            // Mostly because there is no memory for it.
            match memory::could_have(THREAD_BYTES) {
                Ok(()) => Error::io(self.store.read_guard().site.layout.folder(), fault),
                Err(refused) => refused.into(),
            }
        })
    }

    /// Says that nothing more should be begun, and waits for all that was.
    pub fn stop(&self, thread: Option<Join>) {
        self.inbox().stopped = true;
        self.moved.notify_all();
        let tasks = |rounds: &mut Rounds| std::mem::take(&mut rounds.tasks);
        thread.into_iter().for_each(|join| join());
        let begun = tasks(&mut self.rounds());
        begun.into_iter().for_each(|(_, join)| join());
    }

    pub fn tell(&self, due_work: DueWork) {
        let asked = asks_of(due_work);
        if asked & !self.asked.load(Ordering::Relaxed) != 0 {
            self.ask(asked);
        }
    }

    fn ask(&self, asked: u8) {
        let now = self.host.steady();
        // Under the mutex, or the thread could miss it between its look and its sleep.
        let mut inbox = self.inbox();
        let before = self.asked.fetch_or(asked, Ordering::Relaxed);
        inbox.since.note(asked & !before, now);
        self.moved.notify_all();
    }

    fn take_up(&self, asked: u8) {
        self.asked.fetch_and(!asked, Ordering::Relaxed);
    }

    fn inbox(&self) -> MutexGuard<'_, WorkerInbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps after a round until something else is asked for, or for so long; `false` at the end.
    fn wait(&self, (known, sleep): (u8, Option<Duration>)) -> bool {
        let nothing_new = |inbox: &mut WorkerInbox| !inbox.stopped && self.asked.load(Ordering::Relaxed) & !known == 0;
        let inbox = self.inbox();
        let inbox = match sleep {
            None => self
                .moved
                .wait_while(inbox, nothing_new)
                .unwrap_or_else(PoisonError::into_inner),
            Some(sleep) => {
                let waited = self.moved.wait_timeout_while(inbox, sleep, nothing_new);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        !inbox.stopped
    }

    /// Begins all that is due; says what is asked for beside that, and how long nothing more will be due.
    pub fn round(self: &Arc<Self>) -> (u8, Option<Duration>) {
        let mut rounds = self.rounds();
        // Before the look at what is under way: what ends later asks again.
        self.take_up(ENDED);
        loop {
            let now = self.host.steady();
            let due = self.due(&rounds);
            match due.next(now) {
                None => return (due.asked, due.sleep(now)),
                Some(Task::EndLease) => rounds.looked = (!self.is_given_back()).then_some(now),
                Some(task) => self.begin(task, &mut rounds),
            }
        }
    }

    fn due(&self, rounds: &Rounds) -> Due {
        let inbox = self.inbox();
        Due {
            asked: self.asked.load(Ordering::Relaxed) & !ENDED,
            since: inbox.since,
            busy: self.busy.load(Ordering::Acquire),
            looked: rounds.looked,
        }
    }

    /// Runs a task on another thread, or here if there is none; then no lease is left to the worker meanwhile.
    fn begin(self: &Arc<Self>, task: Task, rounds: &mut Rounds) {
        self.busy.fetch_or(task.answers(), Ordering::Relaxed);
        // Before the store is looked at: what is written then asks again.
        self.take_up(task.answers());
        if let Some(before) = rounds.tasks.iter().position(|(other, _)| *other == task) {
            let (_, join) = rounds.tasks.swap_remove(before);
            join();
        }
        let worker = Arc::clone(self);
        let work = move || {
            let _ending = Ending(&worker, task);
            worker.perform(task);
        };
        if let Ok(join) = self.host.spawn("chronomemory-task", Box::new(work)) {
            rounds.tasks.push((task, join));
            return;
        }
        let _ending = Ending(self, task);
        self.store.write_guard().leave_alone(true);
        self.perform(task);
        self.store.write_guard().leave_alone(false);
    }

    fn perform(&self, task: Task) {
        match task {
            Task::EndLease => drop(self.is_given_back()),
            Task::Sync => self.sync(),
            Task::Snapshot => self.write_snapshot(),
            // It is derived: if that fails, searches go on with what there is.
            Task::Seal => {
                drop(seal_state(&self.store));
                drop(seal_text(&self.store));
            }
            Task::Tell => self.tell_head(),
            Task::Verify => self.verify(),
        }
    }

    /// Ends the lease unless commits go on; the wish is taken back while nobody can renew it.
    fn is_given_back(&self) -> bool {
        let Some(mut store) = self.store.try_write_guard() else {
            return false;
        };
        let ended = !self.store.end_lease(&mut store, self.host.now());
        if ended {
            self.take_up(LEASED);
        }
        ended
    }

    /// Syncs without keeping anyone from reading or writing meanwhile. A failure poisons the store: the next write says so.
    fn sync(&self) {
        let Some(syncing) = self.store.read_guard().start_sync() else {
            return;
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| syncing.run())).unwrap_or_else(|_| {
            let died = std::io::Error::other("the thread that waits for the disk died");
            Err(Error::io(syncing.path(), died))
        });
        // The store has heard of it, and says so to whoever writes next.
        let _ = self.store.write_guard().end_sync(&syncing, outcome);
    }

    /// Verifies what an opening took from segments. It takes at most a quarter of a core, and ends when the store is closed.
    fn verify(&self) {
        let Some(work) = self.store.read_guard().start_verifying() else {
            return;
        };
        let stopped = AtomicBool::new(false);
        let mut before = self.host.steady();
        let outcome = work.run(Reading::new(1), &stopped, &mut || {
            let pause = 3 * self.host.steady().saturating_sub(before);
            let inbox = self.inbox();
            let waited = self.moved.wait_timeout_while(inbox, pause, |inbox| !inbox.stopped);
            let inbox = waited.unwrap_or_else(PoisonError::into_inner).0;
            stopped.store(inbox.stopped, Ordering::Relaxed);
            before = self.host.steady();
        });
        if let Some(is_whole) = outcome {
            let now = self.host.now();
            self.store.write_guard().end_verifying(&work, is_whole, now);
        }
    }

    /// Notes a head that was synced so soon after another one that it was left for later.
    fn tell_head(&self) {
        let mut store = self.store.write_guard();
        if store.log.head.is_owed() {
            store.log.tell_known_head();
        }
    }

    /// Writes a snapshot that is due. It is derived: if that fails, nothing is lost.
    fn write_snapshot(&self) {
        let started = {
            let store = &mut *self.store.write_guard();
            store.snapshots.start(&store.log, &mut store.state)
        };
        let Some(snapshot) = started else {
            return;
        };
        if snapshot.run().is_ok() {
            let store = &mut *self.store.write_guard();
            let _ = store.snapshots.end(&mut store.log, &snapshot);
        }
    }
}
