//! Threads that write at the same time in mode `full` share syncs, and each is told the truth.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::around::Around;
use crate::scenario::{START, contents, fresh_disk, layout, record};
use crate::slow::Slow;
use chronomemory::testing::store::Shared;
use chronomemory::{Draft, Durability, Options, Store};

const THREADS: usize = 16;
const EACH: usize = 20;

fn slow_disk(delay: Duration) -> Around<Slow> {
    Around {
        inner: fresh_disk(),
        twist: Slow {
            delay,
            syncs: Arc::new(AtomicU64::new(0)),
        },
    }
}

fn open(disk: &Around<Slow>) -> Shared {
    let options = Options {
        durability: Durability::Full,
        ..Options::default()
    };
    Shared::new(Store::open(Arc::new(disk.clone()), layout(), options, &mut |_, _| {}).expect("open"))
}

fn put(store: &Shared, id: &str) -> chronomemory::Result<u64> {
    put_as(store, id, Durability::Full)
}

fn put_as(store: &Shared, id: &str, durability: Durability) -> chronomemory::Result<u64> {
    let mut draft = Draft::default();
    draft.upsert_value(&record(id, "kept"), 0, None).expect("a record");
    let terms = Options {
        durability,
        ..Options::default()
    };
    store
        .commit(&mut draft, terms.writer_terms(), &|| START)
        .map(|(committed, _)| committed.first_seq)
}

#[test]
fn each_writer_has_the_durability_that_it_asked_for() {
    let disk = slow_disk(Duration::ZERO);
    let store = open(&disk);
    put(&store, "first").expect("a write");
    let syncs = || disk.twist.syncs.load(Ordering::Relaxed);
    let before = syncs();
    put_as(&store, "hasty", Durability::Off).expect("a write");
    assert_eq!(syncs(), before, "who asks for nothing waits for nothing");
    assert!(store.read_guard().log().log_status().unsynced_bytes > 0);
    put(&store, "careful").expect("a write");
    assert!(syncs() > before);
    assert_eq!(store.read_guard().log().log_status().unsynced_bytes, 0);
}

#[test]
fn careful_and_hasty_writers_beside_each_other_are_both_told_the_truth() {
    let disk = slow_disk(Duration::from_millis(1));
    let store = open(&disk);
    put(&store, "first").expect("a write");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, disk) = (&store, &disk);
            scope.spawn(move || {
                for n in 0..EACH {
                    let careful = thread % 2 == 0;
                    let mode = if careful { Durability::Full } else { Durability::Off };
                    let id = format!("T{thread}-{n}");
                    put_as(store, &id, mode).expect("a write");
                    if careful && n + 1 == EACH {
                        let after = disk.inner.after_crash(n as u64);
                        let found = crate::scenario::open(&after, Durability::Full).expect("open");
                        assert!(contents(&found).contains_key(&id), "{id} was acknowledged");
                    }
                }
            });
        }
    });
}

#[test]
fn sixteen_threads_need_a_fraction_of_the_syncs_and_lose_nothing() {
    let disk = slow_disk(Duration::from_millis(8));
    let store = open(&disk);
    put(&store, "first").expect("a write");
    let before = disk.twist.syncs.load(Ordering::Relaxed);
    let began = Instant::now();
    let mut seqs: Vec<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || -> Vec<u64> {
                    let ids = (0..EACH).map(|n| format!("T{thread}-{n}"));
                    ids.map(|id| put(store, &id).expect("a write")).collect()
                })
            })
            .collect();
        writers
            .into_iter()
            .flat_map(|writer| writer.join().expect("a thread"))
            .collect()
    });
    let (together, syncs) = (began.elapsed(), disk.twist.syncs.load(Ordering::Relaxed) - before);
    seqs.sort_unstable();
    seqs.dedup();
    assert_eq!(seqs.len(), THREADS * EACH, "every commit has a seq of its own");
    let mean = (THREADS * EACH) as f64 / syncs as f64;
    assert!(mean >= 8.0, "{mean} events a sync, {together:?} in all");

    // Everything acknowledged is on disk: a power failure at this very moment keeps it.
    let after = disk.inner.after_crash(7);
    let found = crate::scenario::open(&after, Durability::Full).expect("open");
    assert_eq!(contents(&found).len(), THREADS * EACH + 1);
}

#[test]
fn a_failed_sync_is_told_to_all_who_shared_it() {
    let disk = slow_disk(Duration::from_millis(8));
    let store = open(&disk);
    put(&store, "first").expect("a write");
    let failed = AtomicU64::new(0);
    let acknowledged: Vec<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (store, failed, disk) = (&store, &failed, &disk);
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for n in 0..EACH {
                        if thread == 0 && n == EACH / 2 {
                            disk.inner.fail_next_sync();
                        }
                        let id = format!("T{thread}-{n}");
                        match put(store, &id) {
                            Ok(_) => kept.push(id),
                            Err(_) => _ = failed.fetch_add(1, Ordering::Relaxed),
                        }
                    }
                    kept
                })
            })
            .collect();
        writers
            .into_iter()
            .flat_map(|writer| writer.join().expect("a thread"))
            .collect()
    });
    assert!(failed.load(Ordering::Relaxed) > 0, "the fault was met");
    for seed in 0..20 {
        let after = disk.inner.after_crash(seed);
        let found = contents(&crate::scenario::open(&after, Durability::Full).expect("open"));
        let lost: Vec<_> = acknowledged.iter().filter(|id| !found.contains_key(*id)).collect();
        assert!(lost.is_empty(), "seed {seed}: lost {lost:?}");
    }
}

#[test]
fn a_reader_does_not_wait_for_a_sync() {
    let delay = Duration::from_millis(300);
    let disk = slow_disk(delay);
    let store = open(&disk);
    put(&store, "first").expect("a write");
    let writing = AtomicBool::new(true);
    let looks = std::thread::scope(|scope| {
        scope.spawn(|| {
            put(&store, "second").expect("a write");
            writing.store(false, Ordering::Release);
        });
        let mut looks = 0;
        while writing.load(Ordering::Acquire) {
            store.read(|store| Ok(store.last_seq())).expect("a look");
            looks += 1;
        }
        looks
    });
    assert!(looks > 100, "{looks} looks while a sync of {delay:?} ran");
}
