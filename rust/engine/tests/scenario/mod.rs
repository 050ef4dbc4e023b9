//! What would a store look like after each of its commits? A plain model beside the engine.

#![allow(dead_code)] // each test file uses its own part

pub mod chance;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronomemory::disk::{CrashDisk, Disk};
use chronomemory::error::Result;
use chronomemory::event::draft::Draft;
use chronomemory::json::{self, Value};
use chronomemory::layout::Layout;
use chronomemory::options::{Durability, Options};
use chronomemory::state::Query;
use chronomemory::store::Store;

pub const START: i64 = 1_779_105_600_000_000;

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

pub fn open(disk: &CrashDisk, durability: Durability) -> Result<Store> {
    let options = Options {
        durability,
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

/// All records as text, by id.
pub type Model = BTreeMap<String, String>;

pub fn contents(store: &Store) -> Model {
    let everything = Query {
        faces: true,
        ..Query::default()
    };
    store
        .query(&everything)
        .into_iter()
        .map(|record| {
            let value = json::parse(record).expect("a record");
            let id = value.get("id").and_then(Value::as_str).expect("an id").to_owned();
            (id, String::from_utf8_lossy(record).into_owned())
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
    Compact(bool),
    Backup,
    /// Back to the latest backup.
    Restore,
    Repair,
    Sync,
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
        _ => {}
    }
    draft
}

pub fn perform(disk: &CrashDisk, store: &mut Store, action: &Action, now: i64) -> Result<()> {
    match action {
        Action::Put(_) | Action::Batch(_) | Action::Delete(_) => store.commit(&draft(action), now).map(|_| ()),
        Action::Compact(keep) => store.compact(*keep, now, &mut |_, _| {}).map(|_| ()),
        Action::Backup => store.backup(now, &mut |_, _| {}).map(|_| ()),
        Action::Restore => {
            let backups = layout().backups();
            let mut names = disk.list(&backups).expect("a list");
            names.retain(|name| !name.ends_with(".tmp"));
            let source = Layout::of_folder(backups.join(names.last().expect("a backup")));
            store.restore(&source, now, &mut |_, _| {})
        }
        Action::Repair => store.repair(now, &mut |_, _| {}).map(|_| ()),
        Action::Sync => store.sync(),
    }
}

/// What a crash left behind, as far as the caller knows.
pub struct Run {
    /// The model after each action, the empty one first.
    pub models: Vec<Model>,
    /// How many actions were acknowledged.
    pub acknowledged: usize,
    /// How many of them were known to be synced.
    pub synced: usize,
}

/// Performs actions until one fails; `models` must come from a run that did not fail.
pub fn run(disk: &CrashDisk, durability: Durability, actions: &[Action]) -> Run {
    let mut models = vec![Model::new()];
    let (mut acknowledged, mut synced) = (0, 0);
    let mut act = || -> Result<()> {
        let mut store = open(disk, durability)?;
        models[0] = contents(&store);
        // A log is born synced, whatever the mode.
        let born = store.last_seq() == 0;
        for (index, action) in actions.iter().enumerate() {
            perform(disk, &mut store, action, START + index as i64 * 10)?;
            acknowledged = index + 1;
            models.push(contents(&store));
            let syncs = matches!(
                action,
                Action::Compact(_) | Action::Backup | Action::Restore | Action::Sync
            );
            if durability == Durability::Full || syncs || (index == 0 && born) {
                synced = index + 1;
            }
        }
        store.close()
    };
    // A failure is what the crash is for; what counts is what was acknowledged before it.
    let _ = act();
    Run {
        models,
        acknowledged,
        synced,
    }
}

/// Puts a store onto the disk as another tool leaves it after its compaction: a sentinel without digests, a snapshot.
pub fn foreign_store(disk: &CrashDisk) {
    let folder = layout().folder().to_owned();
    disk.create_dir(&folder).expect("a folder");
    let payload = concat!(
        r#"{"op":"compact","prev_hash":"","record":{"data":{},"id":"__compact__"},"#,
        r#""record_id":"__compact__","recursion_depth":0,"seq":5,"ts":"2026-01-01T00:00:00Z"}"#
    );
    let hash = chronomemory::digest::sha256(payload.as_bytes());
    let line = format!("{{\"hash\":\"{}\",{}\n", hash.text(), &payload[1..]);
    let snapshot = concat!(
        "{\n \"seq\": 4, \"last_hash\": \"\", \"ts\": \"2026-01-01T00:00:00Z\",\n",
        " \"records\": [{\"id\": \"R1\", \"label\": \"one\"}, {\"id\": \"OLD\", \"label\": \"old\"}]}"
    );
    for (path, text) in [(layout().log(), line.as_str()), (&layout().snapshot(), snapshot)] {
        let file = disk.create(path).expect("a file");
        file.write_at(text.as_bytes(), 0).expect("a write");
        file.sync().expect("a sync");
    }
    disk.sync_dir(&folder).expect("a sync");
    disk.sync_dir(&project()).expect("a sync");
}
