//! What is on the disk before a scenario begins.

use std::path::PathBuf;

use crate::crash_disk::CrashDisk;
use chronomemory::{Access, Disk, Durability};

use super::{Action, START, layout, open, perform, project};

/// Where rows wait to be taken in.
pub fn rows() -> PathBuf {
    project().join("rows.jsonl")
}

/// Puts a file of rows onto the disk, for [`Action::Ingest`].
pub fn put_rows(disk: &CrashDisk) {
    let rows_text: String = (0..12)
        .map(|n| {
            format!(
                "{{\"id\":\"R{}\",\"label\":\"row {n} {}\"}}\n",
                n % 9,
                "y".repeat(n * 20)
            )
        })
        .collect();
    let file = disk.create(&rows()).expect("a file");
    file.write_at(rows_text.as_bytes(), 0).expect("a write");
    file.sync().expect("a sync");
    disk.sync_dir(&project()).expect("a sync");
}

/// Puts a store onto the disk whose log was altered in the middle, where it was synced.
pub fn damaged_store(disk: &CrashDisk) {
    let mut store = open(disk, Durability::Full).expect("open");
    for (n, action) in [
        Action::Put(1),
        Action::Compact(true),
        Action::Batch(2),
        Action::Put(9),
        Action::Put(12),
        Action::Put(1),
    ]
    .iter()
    .enumerate()
    {
        perform(disk, &mut store, action, START - 1000 + n as i64).expect("a write");
    }
    store.close().expect("close");
    let log = disk.open(layout().log(), Access::Write).expect("the log");
    let length = log.length().expect("a length");
    let mut byte = [0];
    log.read_at(&mut byte, length - 700).expect("a byte");
    log.write_at(&[byte[0] ^ 1], length - 700).expect("a write");
    log.sync().expect("a sync");
}

/// Puts a store onto the disk as another tool leaves it after its compaction: a sentinel without digests, a snapshot.
pub fn foreign_store(disk: &CrashDisk) {
    let folder = layout().folder().to_owned();
    disk.create_dir(&folder).expect("a folder");
    let payload = concat!(
        r#"{"op":"compact","prev_hash":"","record":{"data":{},"id":"__compact__"},"#,
        r#""record_id":"__compact__","recursion_depth":0,"seq":5,"ts":"2026-01-01T00:00:00Z"}"#
    );
    let hash = chronomemory::sha256(payload.as_bytes());
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
