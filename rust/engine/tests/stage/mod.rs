//! A clock and threads for an engine on which time passes only when a test says so, and a disk slow to sync.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::crash_disk::CrashDisk;
use chronomemory::{DiskFile, Draft, Durability, Engine, Host, Identity, Join, Options, Result, Work};

use crate::around::{Around, Twist};
use crate::scenario::{self, START, contents, layout, record};

/// What `normal` promises, in microseconds.
pub const SECOND: i64 = 1_000_000;

/// What happens while the disk is at work: before it has what was written, and after.
type Meanwhile = Box<dyn FnMut(bool) + Send>;

/// A clock that stands still, and threads that wait to be let run.
#[derive(Default)]
pub struct Stage {
    clock: AtomicI64,
    waiting: Mutex<Vec<Work>>,
    /// A task runs: a sync that comes now keeps nobody from writing.
    at_work: AtomicBool,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl Stage {
    /// Microseconds since the beginning.
    pub fn time(&self) -> i64 {
        self.clock.load(Ordering::Relaxed)
    }

    pub fn wait(&self, micros: i64) {
        self.clock.fetch_add(micros, Ordering::Relaxed);
    }

    /// Lets threads run that were begun; says whether there were any.
    fn let_run(&self) -> bool {
        let waiting = std::mem::take(&mut *self.waiting.lock().expect("a list"));
        let any = !waiting.is_empty();
        for work in waiting {
            self.at_work.store(true, Ordering::Relaxed);
            work();
            self.at_work.store(false, Ordering::Relaxed);
        }
        any
    }

    fn pass_time(&self, is_before: bool) {
        // Whoever comes meanwhile may sync too.
        let taken = self.meanwhile.lock().expect("a hook").take();
        if let Some(mut meanwhile) = taken {
            meanwhile(is_before);
            *self.meanwhile.lock().expect("a hook") = Some(meanwhile);
        }
    }
}

impl Host for Stage {
    fn now(&self) -> i64 {
        START + self.time()
    }

    fn steady(&self) -> Duration {
        Duration::from_micros(self.time().unsigned_abs())
    }

    fn spawn(&self, _name: &str, work: Work) -> io::Result<Join> {
        self.waiting.lock().expect("a list").push(work);
        Ok(Box::new(|| {}))
    }
}

/// Files whose syncs take time, if a task waits for them.
#[derive(Clone)]
pub struct Busy(Arc<Stage>);

struct BusyFile {
    inner: Arc<dyn DiskFile>,
    stage: Arc<Stage>,
}

impl Twist for Busy {
    fn hand_out(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(BusyFile {
            inner: file,
            stage: Arc::clone(&self.0),
        })
    }
}

impl DiskFile for BusyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(bytes, offset)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }
    fn sync(&self) -> io::Result<()> {
        // Once in a task: what it syncs behind that it does under a lock.
        let is_task = self.stage.at_work.swap(false, Ordering::Relaxed);
        if is_task {
            self.stage.pass_time(true);
        }
        let outcome = self.inner.sync();
        if is_task && outcome.is_ok() {
            self.stage.pass_time(false);
        }
        outcome
    }
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn identity(&self) -> io::Result<Identity> {
        self.inner.identity()
    }
}

/// One commit: which records it wrote, and when it was acknowledged, if it was.
struct Said {
    ids: Vec<String>,
    acknowledged: Option<i64>,
}

/// A store in use, and what it has promised.
#[derive(Clone)]
pub struct Play {
    pub disk: CrashDisk,
    pub stage: Arc<Stage>,
    pub engine: Arc<Engine>,
    said: Arc<Mutex<Vec<Said>>>,
}

impl Play {
    pub fn on(disk: CrashDisk, durability: Durability) -> Result<Self> {
        let stage = Arc::new(Stage::default());
        let around = Around {
            inner: disk.clone(),
            twist: Busy(Arc::clone(&stage)),
        };
        let options = Options {
            durability,
            ..Options::default()
        };
        let host: Arc<dyn Host> = Arc::clone(&stage) as Arc<dyn Host>;
        let engine = Engine::open_unattended(Arc::new(around), layout(), options, host)?;
        Ok(Self {
            disk,
            stage,
            engine: Arc::new(engine),
            said: Arc::default(),
        })
    }

    /// Says what happens while a task waits for the disk.
    pub fn meanwhile(&self, act: impl FnMut(bool) + Send + 'static) {
        *self.stage.meanwhile.lock().expect("a hook") = Some(Box::new(act));
    }

    fn said(&self) -> MutexGuard<'_, Vec<Said>> {
        self.said.lock().expect("a list")
    }

    /// Writes so many records as one batch.
    pub fn write(&self, records: usize) {
        let known: usize = self.said().iter().map(|said| said.ids.len()).sum();
        let ids: Vec<String> = (known..known + records).map(|n| format!("W{n}")).collect();
        let mut draft = Draft::default();
        for id in &ids {
            draft.upsert_value(&record(id, "kept"), 0, None).expect("a record");
        }
        self.said().push(Said {
            ids,
            acknowledged: None,
        });
        if self.engine.commit(&mut draft).is_ok() {
            let now = self.stage.time();
            self.said().last_mut().expect("what was said").acknowledged = Some(now);
        }
    }

    /// Lets time pass, as the worker wants to be called.
    pub fn live(&self, micros: i64) {
        let until = self.stage.time() + micros;
        while !self.disk.crashed() {
            let sleep = self.engine.attend().expect("this process");
            if self.stage.let_run() {
                continue;
            }
            let sleep = sleep.map_or(i64::MAX, |sleep| i64::try_from(sleep.as_micros()).expect("a time"));
            let left = until - self.stage.time();
            self.stage.wait(sleep.min(left).max(0));
            if left <= sleep {
                return;
            }
        }
    }

    /// How many commits a power failure now would leave, if the promise holds: so many are old enough, so many there were.
    fn promised(&self) -> (usize, usize) {
        let old = self.stage.time() - SECOND;
        let said = self.said();
        let is_old = |said: &Said| said.acknowledged.is_some_and(|at| at <= old);
        (said.iter().rposition(is_old).map_or(0, |last| last + 1), said.len())
    }

    /// What a power failure at this moment takes that was promised; nothing if all is well.
    pub fn lost(&self, seed: u64) -> Option<String> {
        let after = self.disk.after_crash(seed);
        let store = scenario::open(&after, Durability::Full).expect("open");
        let found: BTreeSet<String> = contents(&store).into_keys().collect();
        let (least, most) = self.promised();
        let said = self.said();
        let mut known = BTreeSet::new();
        for number in 0..=most {
            if number >= least && found == known {
                return None;
            }
            known.extend(said.get(number).iter().flat_map(|said| said.ids.iter().cloned()));
        }
        Some(format!(
            "at {} µs, seed {seed}: {least} of {most} commits were promised, and {} records are found: {found:?}",
            self.stage.time(),
            found.len()
        ))
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        // What happens meanwhile may hold another one.
        if Arc::strong_count(&self.said) == 2 {
            let taken = self.stage.meanwhile.lock().expect("a hook").take();
            drop(taken);
        }
    }
}
