//! The next write leaves a broken batch alone, and a second one that closed it and of which only half is there.

use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, contents, draft, fresh_disk, layout, open};
use chronomemory::testing::event::Op;
use chronomemory::testing::wal::writer::{ChainEnd, EventBody, Lines};
use chronomemory::{Access, Disk, Draft, Durability, Store};

/// One event, then a batch of two that was cut after its first, then a batch of which only the beginning is there.
fn half_batches(disk: &CrashDisk) {
    disk.create_dir(layout().folder()).expect("a folder");
    let mut lines = Lines::after(ChainEnd {
        head: None,
        next_seq: 1,
    });
    let mut first = Draft::default();
    first
        .upsert_value(&crate::scenario::record("A", "whole"), 0, None)
        .expect("a record");
    lines.add(&first, b"2026-01-01T00:00:00.000000Z", 0);
    let begin = EventBody {
        op: Op::Begin,
        id: b"__begin__",
        record: br#"{"events":2}"#,
        ts: b"2026-01-01T00:00:00.000000Z",
        depth: 0,
    };
    let member = EventBody {
        op: Op::Upsert,
        id: b"B",
        record: br#"{"id":"B","label":"half"}"#,
        ts: b"2026-01-01T00:00:00.000000Z",
        depth: 0,
    };
    for body in [begin, member] {
        lines.push(body);
    }
    lines.push(begin);
    let file = disk.create(layout().log()).expect("a log");
    file.write_at(&lines.bytes, 0).expect("a write");
}

#[test]
fn the_next_write_does_not_complete_it() {
    let disk = fresh_disk();
    half_batches(&disk);
    let before = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(!before.valid() && before.tail.is_some(), "{before:?}");
    let mut store = open(&disk, Durability::Full).expect("open");
    store
        .commit(&draft(&Action::Put(1)), crate::scenario::START)
        .expect("a write");
    store.close().expect("close");
    let after = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert_eq!(after.damage.len(), 1, "{after:?}");
    assert!(disk.open(layout().log(), Access::Read).is_ok());
    let known = contents(&open(&disk, Durability::Full).expect("open"));
    assert_eq!(known.keys().collect::<Vec<_>>(), ["A", "R1"]);
}
