//! The worker, which looks after a store between calls.
//!
//! A [`Worker`] syncs, writes snapshots, seals indexes, notes heads, verifies and ends leases. Long work runs on threads of the
//! [`Host`]. A worker has a thread of its own, or is driven by a caller's loop.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::sealing::seal_state;
use super::search::follow_text::seal_text;
use super::shared::{DueWork, Shared};
use super::verifying::{end_verifying, start_verifying};
use chronolog::error::{Error, Result};
use chronolog::host::{Host, Join};
use chronolog::memory;
use chronolog::wal::reader::Reading;

/// What a thread needs at least.
const THREAD_BYTES: usize = 4 * 1024 * 1024;
/// `normal` lets a write wait at most a second for its sync. A sync begins a little earlier: it takes a moment.
const PATIENCE: Duration = Duration::from_millis(900);
/// `normal` leaves at most four mebibytes unsynced; at half of that a sync begins.
const URGENT_BYTES: u64 = 2 * 1024 * 1024;
/// How soon a lock that was kept is looked at.
const LEASE_LOOK: Duration = Duration::from_millis(1);

/// The tasks of a worker, the most urgent first. All but the first may take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    EndLease,
    Sync,
    Snapshot,
    Seal,
    NoteHead,
    Verify,
}

const TASKS: [Task; 6] = [
    Task::EndLease,
    Task::Sync,
    Task::Snapshot,
    Task::Seal,
    Task::NoteHead,
    Task::Verify,
];
const URGENT: u8 = 1 << 6;
const ENDED: u8 = 1 << 7;

impl Task {
    /// The bits of the requests that it answers.
    fn bits(self) -> u8 {
        1 << self as u8 | if self == Self::Sync { URGENT } else { 0 }
    }

    /// How long it waits after it was asked for: of a rush of writes there is one snapshot, at its end.
    fn patience(self) -> Duration {
        match self {
            Self::EndLease => LEASE_LOOK,
            Self::Seal => Duration::ZERO,
            _ => PATIENCE,
        }
    }
}

fn requests_of(due_work: DueWork) -> u8 {
    let wanted = [
        due_work.leased,
        due_work.unsynced_bytes > 0,
        due_work.snapshot,
        due_work.sealing,
        due_work.untold,
        due_work.unverified,
        due_work.unsynced_bytes >= URGENT_BYTES,
    ];
    wanted
        .iter()
        .rev()
        .fold(0, |bits, &wanted| bits << 1 | u8::from(wanted))
}

#[derive(Clone, Copy, Debug, Default)]
struct Schedule {
    since: [Duration; TASKS.len()],
    /// The bits of the tasks under way: of each kind there is one at a time.
    busy: u8,
    is_stopped: bool,
}

impl Schedule {
    fn note(&mut self, fresh: u8, now: Duration) {
        for task in TASKS {
            if fresh & 1 << task as u8 != 0 {
                self.since[task as usize] = now;
            }
        }
    }

    /// The task that is due first, and how long it has to wait; `None` until something else is asked for or a task ends.
    fn next(&self, asked: u8, now: Duration) -> Option<(Duration, Task)> {
        let open = TASKS.into_iter().filter(|task| asked & !self.busy & task.bits() != 0);
        let wait = |task: Task| match task == Task::Sync && asked & URGENT != 0 {
            true => Duration::ZERO,
            false => (self.since[task as usize] + task.patience()).saturating_sub(now),
        };
        open.map(|task| (wait(task), task)).min_by_key(|(wait, _)| *wait)
    }
}

pub(super) struct Worker {
    store: Arc<Shared>,
    host: Arc<dyn Host>,
    /// The requests: a bit stays until its task begins.
    asked: AtomicU8,
    schedule: Mutex<Schedule>,
    moved: Condvar,
    tasks: Mutex<Vec<(Task, Join)>>,
}

/// Ends a task, also if it panics.
struct Ending<'a>(&'a Worker, Task);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.schedule().busy &= !self.1.bits();
        self.0.ask(ENDED);
    }
}

impl Worker {
    pub fn new(store: Arc<Shared>, host: Arc<dyn Host>) -> Arc<Self> {
        Arc::new(Self {
            store,
            host,
            asked: AtomicU8::new(0),
            schedule: Mutex::default(),
            moved: Condvar::new(),
            tasks: Mutex::default(),
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

    /// Begins nothing more, and waits for all that was begun.
    pub fn stop(&self, thread: Option<Join>) {
        self.schedule().is_stopped = true;
        self.moved.notify_all();
        thread.into_iter().for_each(|join| join());
        let begun = std::mem::take(&mut *self.tasks());
        begun.into_iter().for_each(|(_, join)| join());
    }

    pub fn tell(&self, due_work: DueWork) {
        let asked = requests_of(due_work);
        if asked & !self.asked.load(Ordering::Relaxed) != 0 {
            self.ask(asked);
        }
    }

    fn ask(&self, asked: u8) {
        let now = self.host.steady();
        // Under the mutex, or the thread could miss it between its look and its sleep.
        let mut schedule = self.schedule();
        let before = self.asked.fetch_or(asked, Ordering::Relaxed);
        schedule.note(asked & !before, now);
        self.moved.notify_all();
    }

    fn take_up(&self, asked: u8) {
        self.asked.fetch_and(!asked, Ordering::Relaxed);
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<(Task, Join)>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps after a round until something else is asked for, or for so long; `false` at the end.
    fn wait(&self, (known, sleep): (u8, Option<Duration>)) -> bool {
        let is_idle =
            |schedule: &mut Schedule| !schedule.is_stopped && self.asked.load(Ordering::Relaxed) & !known == 0;
        let sleep = sleep.unwrap_or(Duration::MAX);
        let waited = self.moved.wait_timeout_while(self.schedule(), sleep, is_idle);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_stopped
    }

    /// Begins all that is due; gives what is asked for beside that, and how long nothing more will be due.
    pub fn round(self: &Arc<Self>) -> (u8, Option<Duration>) {
        let mut tasks = self.tasks();
        // Before the look at what is under way: what ends later asks again.
        self.take_up(ENDED);
        loop {
            let now = self.host.steady();
            let asked = self.asked.load(Ordering::Relaxed) & !ENDED;
            let next = self.schedule().next(asked, now);
            match next {
                Some((Duration::ZERO, Task::EndLease)) => {
                    if !self.is_given_back() {
                        self.schedule().note(Task::EndLease.bits(), now);
                    }
                }
                Some((Duration::ZERO, task)) => self.begin(task, &mut tasks),
                later => return (asked, later.map(|(wait, _)| wait)),
            }
        }
    }

    /// Runs a task on another thread, or here if there is none; then no lease is left to the worker meanwhile.
    fn begin(self: &Arc<Self>, task: Task, tasks: &mut Vec<(Task, Join)>) {
        self.schedule().busy |= task.bits();
        // Before the store is looked at: what is written then asks again.
        self.take_up(task.bits());
        if let Some(before) = tasks.iter().position(|(other, _)| *other == task) {
            let (_, join) = tasks.swap_remove(before);
            join();
        }
        let worker = Arc::clone(self);
        let work = move || {
            let _ending = Ending(&worker, task);
            worker.perform(task);
        };
        if let Ok(join) = self.host.spawn("chronomemory-task", Box::new(work)) {
            tasks.push((task, join));
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
            Task::NoteHead => self.note_head(),
            Task::Verify => self.verify(),
        }
    }

    /// Ends the lease unless commits go on; the request is withdrawn while no writer can renew it.
    fn is_given_back(&self) -> bool {
        let Some(mut store) = self.store.try_write_guard() else {
            return false;
        };
        let ended = !self.store.end_lease(&mut store, self.host.now());
        if ended {
            self.take_up(Task::EndLease.bits());
        }
        ended
    }

    /// Syncs while others read and write. A failure poisons the store: the next write says so.
    fn sync(&self) {
        let Some(syncing) = self.store.read_guard().start_sync() else {
            return;
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| syncing.run())).unwrap_or_else(|_| {
            let died = std::io::Error::other("the thread that waits for the disk died");
            Err(Error::io(syncing.path(), died))
        });
        // The store keeps the outcome: the next write reports it.
        let _ = self.store.write_guard().end_sync(&syncing, outcome);
    }

    /// Verifies what an opening took from segments. It takes at most a quarter of a core, and ends when the store is closed.
    fn verify(&self) {
        let Some(work) = start_verifying(&self.store.read_guard()) else {
            return;
        };
        let stopped = AtomicBool::new(false);
        let mut before = self.host.steady();
        let outcome = work.run(Reading::new(1), &stopped, &mut || {
            let pause = 3 * self.host.steady().saturating_sub(before);
            let goes_on = |schedule: &mut Schedule| !schedule.is_stopped;
            let waited = self.moved.wait_timeout_while(self.schedule(), pause, goes_on);
            let schedule = waited.unwrap_or_else(PoisonError::into_inner).0;
            stopped.store(schedule.is_stopped, Ordering::Relaxed);
            before = self.host.steady();
        });
        if let Some(is_whole) = outcome {
            let now = self.host.now();
            let store = &mut *self.store.write_guard();
            end_verifying(store, &work, is_whole, now);
            // What is damaged is found here and not by the next call, which warns of it.
            let _ = store.refresh();
        }
    }

    /// Notes a head that was synced so soon after another one that it was left for later.
    fn note_head(&self) {
        let mut store = self.store.write_guard();
        if store.log.head.is_owed {
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

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn asked(task: Task, since: u64) -> (u8, Schedule) {
        let (bits, mut schedule) = (1 << task as u8, Schedule::default());
        schedule.note(bits, at(since));
        (bits, schedule)
    }

    #[test]
    fn each_task_waits_as_long_as_it_may() {
        assert_eq!(Schedule::default().next(0, at(5)), None);
        assert!(PATIENCE < Duration::from_secs(1));
        for (task, patience) in TASKS.into_iter().zip([1, 900, 900, 0, 900, 900]) {
            let (bits, mut schedule) = asked(task, 100);
            assert_eq!(schedule.next(bits, at(100)), Some((at(patience), task)));
            assert_eq!(schedule.next(bits, at(7_000)), Some((Duration::ZERO, task)));
            schedule.busy = task.bits();
            assert_eq!(schedule.next(bits, at(7_000)), None, "one at a time");
        }
    }

    #[test]
    fn much_is_synced_at_once() {
        let requests = |unsynced_bytes| {
            requests_of(DueWork {
                unsynced_bytes,
                ..DueWork::default()
            })
        };
        let (written, schedule) = asked(Task::Sync, 0);
        assert_eq!((requests(0), requests(URGENT_BYTES - 1)), (0, written));
        let urgent = requests(URGENT_BYTES);
        assert_eq!(schedule.next(urgent, at(0)), Some((Duration::ZERO, Task::Sync)));
    }
}
