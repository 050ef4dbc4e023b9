//! The threads of a program share one engine, a large batch is one batch, and nobody calls it while it is kept.

use std::sync::Arc;

use crate::crash_disk::CrashDisk;
use crate::scenario::{contents, fresh_disk, layout, record};
use chronomemory::{
    Author, Draft, Durability, Engine, Error, Intake, Machine, Options, Query, RowSource, Verified, Viewer,
};

/// More than are worth a second thread.
const MANY: usize = 2_000;

fn open(disk: &CrashDisk, threads: usize) -> Engine {
    let options = Options {
        threads,
        ..Options::default()
    };
    Engine::open_on(Arc::new(disk.clone()), layout(), options, Arc::new(Machine::default())).expect("open")
}

fn put(draft: &mut Draft, id: &str) {
    draft.upsert_value(&record(id, "kept"), 0, None).expect("a record");
}

fn everything() -> Query {
    Query {
        faces: true,
        ..Query::default()
    }
}

#[test]
fn a_large_batch_is_one_batch_whoever_spells_it() {
    let mut logs = Vec::new();
    for threads in [1, 4] {
        let disk = fresh_disk();
        let engine = open(&disk, threads);
        // The second one finds the thread and the memory of the first.
        for round in 0..2 {
            let mut draft = Draft::default();
            let mut batch = engine.batch(MANY).expect("a batch");
            for n in 0..MANY {
                put(&mut draft, &format!("R{round}-{n}"));
                batch.drafted(&mut draft);
            }
            let committed = batch.commit(&mut draft).expect("a write");
            assert!(draft.is_empty());
            assert_eq!(committed.next_seq - committed.first_seq, MANY as u64);
        }
        engine.close().expect("close");
        let store = crate::scenario::open(&disk, Durability::Full).expect("open");
        assert_eq!(
            store.last_seq(),
            2 * (MANY as u64 + 1),
            "two batches, each with a line before it"
        );
        assert!(store.log().report.valid());
        logs.push(contents(&store));
    }
    assert_eq!(logs[0].len(), 2 * MANY);
    assert_eq!(logs[0], logs[1]);
}

#[test]
fn a_batch_that_is_given_up_leaves_nothing() {
    let engine = open(&fresh_disk(), 4);
    let mut draft = Draft::default();
    let mut batch = engine.batch(MANY).expect("a batch");
    for n in 0..MANY / 2 {
        put(&mut draft, &format!("R{n}"));
        batch.drafted(&mut draft);
    }
    drop(batch);
    assert_eq!(engine.count(&everything()).expect("a count"), 0);
    put(&mut draft, "R");
    draft.recycle();
    put(&mut draft, "S");
    engine.commit(&mut draft).expect("a write");
    assert_eq!(engine.count(&everything()).expect("a count"), 1);
}

#[test]
fn threads_share_it_and_each_sees_what_it_wrote() {
    let disk = fresh_disk();
    let engine = open(&disk, 2);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                let mut draft = Draft::default();
                for n in 0..50 {
                    let id = format!("T{thread}-{n}");
                    put(&mut draft, &id);
                    engine.commit(&mut draft).expect("a write");
                    assert!(engine.get(&Viewer::default(), &id).expect("a look").is_some());
                }
            });
        }
    });
    assert_eq!(engine.query(&everything()).expect("a query").len(), 200);
    let found = engine.verify(&mut |_, _| {}).expect("verify");
    assert!(found.report.valid() && found.report.events == 200);
    let beside = Verified::of_files(&disk, &layout(), None, &Machine::default(), 1, &mut |_, _| {}).expect("verify");
    assert_eq!(beside.report.events, 200);
    drop(engine);
    let again = open(&disk, 1);
    assert_eq!(again.count(&everything()).expect("a count"), 200, "dropped is closed");
    again.close().expect("close");
    assert!(matches!(again.get(&Viewer::default(), "T0-0"), Err(Error::Closed)));
    again.close().expect("twice is fine");
}

#[test]
fn a_callback_may_use_the_store_only_while_nobody_keeps_it() {
    let disk = fresh_disk();
    crate::scenario::prepared::put_rows(&disk);
    let engine = open(&disk, 1);
    let (mut kept, mut shared) = (0, 0);
    engine
        .ingest(
            RowSource::File(&crate::scenario::project().join("rows.jsonl")),
            Intake {
                author: &Author::default(),
                faces: false,
                skips: false,
                seed: b"",
            },
            &mut |_, _| {
                assert!(matches!(engine.get(&Viewer::default(), "R1"), Err(Error::InProgress)));
                kept += 1;
                true
            },
        )
        .expect("an ingest");
    assert!(
        engine.count(&everything()).expect("a count") > 0,
        "afterwards it may be used"
    );
    engine
        .compact(true, &mut |_, _| {
            engine.count(&everything()).expect("others go on beside it");
            shared += 1;
        })
        .expect("a compaction");
    assert!(kept > 0 && shared > 0, "{kept} and {shared} calls");
}
