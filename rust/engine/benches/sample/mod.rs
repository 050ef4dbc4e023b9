//! The records that the benches write, of about 400 bytes with all twelve fields, and stores of them.

#![allow(dead_code)] // each bench uses its own part

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chronomemory::testing::json;
use chronomemory::{Draft, Durability, Layout, Options, RealDisk, Store, Value};
use criterion::Criterion;

/// The moment at which everything here happens.
pub const START_MICROS: i64 = 1_779_105_600_000_000;

/// Criterion in a hurry: the whole of `cargo bench` is to stay under a minute.
pub fn criterion() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20)
        .configure_from_args()
}

/// One record, as JSON text in canonical form.
pub fn record(number: u32) -> String {
    const KINDS: [&str; 5] = ["fact", "decision", "requirement", "test", "risk"];
    format!(
        concat!(
            r#"{{"confidence":0.{confidence},"data":{{"attempts":{attempts},"component":"ingest","owner":"agent-{owner}","#,
            r#""reviewed":true,"score":{score}.25}},"epistemic_boundary":[],"#,
            r#""evidence":["commit:{number:08x}","tests/test_store.py:{line}"],"id":"REC-{number:07}","#,
            r#""is_hypothesis":false,"kind":"{kind}","label":"Writer {owner} keeps the chain of record {number:07} "#,
            r#"unbroken across a restart – née","model_assumptions":{{}},"recursion_depth":0,"#,
            r#""source_type":"observed","status":"active"}}"#
        ),
        confidence = 51 + 10 * (number % 5),
        attempts = number % 7,
        owner = 10 + number % 13,
        score = 10 + number % 90,
        line = 100 + number % 900,
        number = number,
        kind = KINDS[number as usize % KINDS.len()],
    )
}

/// A draft of consecutive records.
pub fn draft(first: u32, count: u32) -> Draft {
    let mut draft = Draft::default();
    for number in first..first + count {
        let text = record(number);
        let value = json::parse(text.as_bytes()).expect("JSON");
        draft.upsert_value(&value, 0, None).expect("a record");
        let change = draft.changes().last().expect("a change");
        assert_eq!(draft.record(change), text.as_bytes(), "the sample is not canonical");
    }
    draft
}

/// The record as a value.
pub fn value(number: u32) -> Value {
    json::parse(record(number).as_bytes()).expect("JSON")
}

/// An empty folder that goes away with the value.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes one.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("chronomemory-bench-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The files of the store in it.
    pub fn layout(&self) -> Layout {
        Layout::of_project(&self.0)
    }

    /// Opens the store in it.
    pub fn store(&self) -> Store {
        let options = Options {
            durability: Durability::Off,
            ..Options::default()
        };
        Store::open(Arc::new(RealDisk::default()), self.layout(), options, &mut |_, _| {}).expect("a store")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder left behind in the system's temporary place harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How many threads there is work for.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
