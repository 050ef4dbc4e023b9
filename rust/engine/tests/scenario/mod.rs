//! A plain model beside the engine, which tells what a store should hold after each of its commits.

pub mod acting;
pub mod allowed;
pub mod chance;
pub mod deltas;
pub mod embedded;
pub mod looked;
pub mod prepared;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::crash_disk::CrashDisk;
use crate::upkeep::Upkeep;
use chronomemory::testing::json;
use chronomemory::testing::store;
use chronomemory::testing::store::{Shared, Turns};
use chronomemory::{
    Author, Checking, Disk, Draft, Durability, Error, Identity, Intake, Layout, Options, Query, Result, RowSource,
    SealTerms, Store, Value,
};

use acting::act;
use deltas::apply;
use embedded::{attach, bear, ids_of};
use prepared::rows;

pub const START: i64 = 1_779_105_600_000_000;

/// How rows of plain records are taken in.
fn intake(author: &Author) -> Intake<'_> {
    Intake {
        author,
        faces: false,
        skips: false,
        seed: b"",
    }
}

pub fn project() -> PathBuf {
    PathBuf::from("/project")
}

pub fn layout() -> Layout {
    Layout::of_project(&project())
}

/// A disk with an empty project on it, all synced.
pub fn fresh_disk() -> CrashDisk {
    let disk = CrashDisk::new();
    disk.create_dir(&project()).expect("a folder");
    for folder in [Path::new("/"), &project()] {
        disk.sync_dir(folder).expect("a sync");
    }
    disk
}

/// Opens a store that is sealed whenever it is closed, and uses what was sealed.
pub fn open(disk: &CrashDisk, durability: Durability) -> Result<Store> {
    let options = Options {
        durability,
        checking: Checking::Later,
        seal: SealTerms {
            events_at_close: 1,
            fewest: 1,
            ..SealTerms::default()
        },
        ..Options::default()
    };
    Store::open(Arc::new(disk.clone()), layout(), options, &mut |_, _| {})
}

/// A disk on which not even the project's folder exists.
pub fn bare_disk() -> CrashDisk {
    let disk = CrashDisk::new();
    disk.create_dir(Path::new("/")).expect("a root");
    disk
}

/// What stands for an embedding that is named and not there.
pub const LOST: &str = "lost";

/// All records as text, by id; and the embeddings of those that have one.
pub type Model = BTreeMap<String, String>;

pub fn contents(store: &Store) -> Model {
    let everything = Query {
        faces: true,
        ..Query::default()
    };
    let mut model = model_of(everything.records(store.state()).expect("memory"));
    if !store.embeddings().spaces().is_empty() {
        for id in ids_of(&model) {
            let embedding = match store.embeddings().embedding(None, &id) {
                Err(Error::Corrupted(_)) => Some(LOST.to_owned()),
                found => found.expect("a look at a row").map(|bytes| format!("{bytes:?}")),
            };
            model.extend(embedding.map(|bytes| (format!("embedding of {id}"), bytes)));
        }
    }
    model
}

pub fn model_of<B: AsRef<[u8]>>(records: Vec<B>) -> Model {
    records
        .into_iter()
        .map(|record| {
            let value = json::parse(record.as_ref()).expect("a record");
            let id = value.get("id").and_then(Value::as_str).expect("an id").to_owned();
            (id, String::from_utf8_lossy(record.as_ref()).into_owned())
        })
        .collect()
}

pub fn record(id: &str, label: &str) -> Value {
    let text = |text: &str| Value::Str(text.to_owned());
    Value::object([("id", text(id)), ("label", text(label))])
}

/// One thing that a caller does.
#[derive(Clone, Debug)]
pub enum Action {
    /// One upsert.
    Put(u32),
    /// Several, as one batch, large enough to span sectors.
    Batch(u32),
    Delete(u32),
    /// Something that happens to several records; the first of it brings them along.
    Act(u32),
    Compact(bool),
    Backup,
    /// Back to the latest backup.
    Restore,
    Repair,
    Sync,
    /// A file of rows, as one batch.
    Ingest,
    /// Embeddings for some of the records that are there.
    Attach(u32),
    /// And one of them taken back.
    Detach(u32),
    /// Records that are written together with their embeddings.
    Born(u32),
    /// Facts are replaced by another, and how far the rule got goes with it.
    Delta(u32),
    /// A long task, and a write of somebody else before one of its turns.
    Beside(Long, Interruption),
}

/// What takes long enough for others to write meanwhile.
#[derive(Clone, Copy, Debug)]
pub enum Long {
    Compact(bool),
    Backup,
    Restore,
}

/// A write that comes before a certain turn of a long task.
#[derive(Clone, Copy, Debug)]
pub struct Interruption {
    pub record: u32,
    pub turn: usize,
    /// By another process, or by a thread of this one.
    pub elsewhere: bool,
}

pub fn label(n: u32) -> String {
    format!("label {n} {}", "x".repeat((n as usize * 37) % 300))
}

pub fn draft(action: &Action) -> Draft {
    let mut draft = Draft::default();
    let put = |draft: &mut Draft, n: u32| {
        let id = format!("R{}", n % 7);
        draft.upsert_value(&record(&id, &label(n)), 0, None).expect("a record");
    };
    match action {
        Action::Put(n) => put(&mut draft, *n),
        Action::Batch(n) => (0..5).for_each(|i| put(&mut draft, n + i)),
        Action::Delete(n) => draft.delete(&format!("R{}", n % 7), None).expect("an id"),
        Action::Act(n) => act(&mut draft, *n),
        _ => {}
    }
    draft
}

/// What a write beside a long task met and left.
struct Seen {
    models: [Model; 2],
    log: Identity,
}

/// Hands the store to a long task in turns, and lets somebody write before one of them.
struct Interrupted<'a> {
    disk: &'a CrashDisk,
    store: RefCell<&'a mut Store>,
    turns: Cell<usize>,
    by: Interruption,
    now: i64,
    /// What everybody knew before the write and after it: a restore may have changed everything meanwhile.
    seen: RefCell<Option<Seen>>,
}

impl Interrupted<'_> {
    fn write(&self, store: &mut Store) -> Result<()> {
        let draft = draft(&Action::Batch(self.by.record));
        let mut other = open(self.disk, store.durability())?;
        let writer = if self.by.elsewhere { &mut other } else { store };
        let before = contents(writer);
        writer.commit(&draft, self.now)?;
        *self.seen.borrow_mut() = Some(Seen {
            models: [before, contents(writer)],
            log: log_identity(self.disk),
        });
        Ok(())
    }
}

impl Turns for Interrupted<'_> {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        let store = &mut **self.store.borrow_mut();
        self.turns.set(self.turns.get() + 1);
        if self.turns.get() == self.by.turn {
            self.write(store)?;
        }
        act(store)
    }
}

fn log_identity(disk: &CrashDisk) -> Identity {
    disk.status(layout().log()).expect("the log").identity
}

fn latest_backup(disk: &CrashDisk) -> Layout {
    let backups = layout().backups();
    let mut names = disk.list(&backups).expect("a list");
    names.retain(|name| !name.ends_with(".tmp"));
    Layout::of_folder(backups.join(names.last().expect("a backup")))
}

pub fn perform(disk: &CrashDisk, store: &mut Store, action: &Action, now: i64) -> Result<()> {
    match action {
        Action::Put(_) | Action::Batch(_) | Action::Delete(_) | Action::Act(_) => {
            store.commit(&draft(action), now).map(|_| ())
        }
        Action::Compact(keep) => store.compact(*keep, now, &mut |_, _| {}).map(|_| ()),
        Action::Backup => store.backup(now, &mut |_, _| {}).map(|_| ()),
        Action::Restore => store.restore(&latest_backup(disk), now, &mut |_, _| {}),
        Action::Repair => store.repair(false, now, &mut |_, _| {}).map(|_| ()),
        Action::Sync => store.sync(),
        Action::Ingest => {
            let (rows, author) = (rows(), Author::default());
            store::ingest(store, RowSource::File(&rows), intake(&author), &|| now, &mut |_, _| {
                true
            })
            .map(|_| ())
        }
        Action::Attach(n) => attach(store, *n, now),
        Action::Detach(n) => store
            .change_embeddings(now, |known| {
                known.detach(None, &[format!("R{}", n % 7)], &Arc::default())
            })
            .map(|_| ()),
        Action::Born(n) => bear(store, *n, now),
        Action::Delta(n) => apply(store, *n, now),
        Action::Beside(long, by) => perform_beside(disk, store, *long, *by, now).1,
    }
}

/// Performs a long task that somebody interrupts; gives what was known before and after their write, if it
/// was acknowledged.
fn perform_beside(
    disk: &CrashDisk,
    store: &mut Store,
    long: Long,
    by: Interruption,
    now: i64,
) -> (Option<Seen>, Result<()>) {
    let turns = Interrupted {
        disk,
        store: RefCell::new(store),
        turns: Cell::new(0),
        by,
        now,
        seen: RefCell::default(),
    };
    let quiet = &mut |_, _| {};
    let outcome = match long {
        Long::Compact(keep) => store::compact(&turns, keep, &|| now, quiet).map(|_| ()),
        Long::Backup => store::backup(&turns, &|| now, quiet).map(|_| ()),
        Long::Restore => store::restore(
            &turns,
            &latest_backup(disk),
            store::Restoring::default(),
            &|| now,
            quiet,
        ),
    };
    (turns.seen.into_inner(), outcome)
}

/// What a crash left behind, as far as the caller knows.
pub struct Run {
    /// The model after each write, the empty one first.
    pub models: Vec<Model>,
    /// How many writes were acknowledged.
    pub acknowledged: usize,
    /// How many of them were known to be synced.
    pub synced: usize,
    /// Whether nothing failed.
    pub is_complete: bool,
}

impl Run {
    fn acknowledge(&mut self, model: Model, is_synced: bool) {
        self.models.push(model);
        self.acknowledged += 1;
        if is_synced {
            self.synced = self.acknowledged;
        }
    }
}

/// Performs actions until one fails; `models` must come from a run that did not fail.
pub fn run(disk: &CrashDisk, durability: Durability, actions: &[Action]) -> Run {
    let mut run = Run {
        models: vec![Model::new()],
        acknowledged: 0,
        synced: 0,
        is_complete: false,
    };
    let mut act = || -> Result<()> {
        let mut store = open(disk, durability)?;
        run.models[0] = contents(&store);
        // A log is born synced, whatever the mode.
        let born = store.last_seq() == 0;
        for (index, action) in actions.iter().enumerate() {
            let now = START + index as i64 * 10;
            let mut is_synced = durability == Durability::Full || (index == 0 && born);
            if let Action::Beside(long, by) = action {
                let (seen, outcome) = perform_beside(disk, &mut store, *long, *by, now);
                // What was written into a log that was swapped afterwards was synced before that.
                let swaps = outcome.is_ok() && !matches!(long, Long::Backup);
                let swapped = swaps && seen.as_ref().is_none_or(|seen| seen.log != log_identity(disk));
                if let Some([before, after]) = seen.map(|seen| seen.models) {
                    run.acknowledge(before, is_synced || swaps);
                    run.acknowledge(after, is_synced || swapped);
                }
                outcome?;
                is_synced |= swapped;
            } else {
                perform(disk, &mut store, action, now)?;
            }
            is_synced |= matches!(
                action,
                Action::Compact(_) | Action::Backup | Action::Restore | Action::Repair | Action::Sync
            );
            store.refresh()?;
            run.acknowledge(contents(&store), is_synced);
        }
        store.close()
    };
    // A failure is what the crash is for; what counts is what was acknowledged before it.
    run.is_complete = act().is_ok();
    run
}

/// Writes records by their numbers, each with a word that all have and one of its own.
pub fn write_words(store: &Shared, numbers: std::ops::Range<usize>, word: &str) {
    let mut draft = Draft::default();
    for number in numbers {
        let record = record(&format!("R{number}"), &format!("{word} number{number}"));
        draft.upsert_value(&record, 0, None).expect("a record");
    }
    let terms = Options {
        durability: Durability::Off,
        ..Options::default()
    };
    store
        .commit(&mut draft, terms.writer_terms(), &|| START)
        .expect("a commit");
}
