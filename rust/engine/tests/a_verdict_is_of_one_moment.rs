//! Nothing is told as lost or damaged because another process replaced files during the look.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::around::{Around, Twist};
use crate::crash_disk::CrashDisk;
use crate::scenario::embedded::{DIM, attach_to, vector};
use crate::scenario::{Action, START, draft, fresh_disk, layout, open};
use crate::upkeep::Upkeep;
use chronomemory::testing::log::standing_of;
use chronomemory::testing::store::Shared;
use chronomemory::{Access, Disk, Durability, HeadStanding, Options, Store, VectorQuestion};

/// Another process compacts, so many times, right before a file of this kind is opened.
#[derive(Clone)]
struct Haste {
    ending: &'static str,
    keep_history: bool,
    left: Arc<AtomicU32>,
}

impl Twist for Haste {
    fn before(&self, disk: &CrashDisk, path: &Path) {
        let is_it = path.to_string_lossy().ends_with(self.ending);
        let took = |left: u32| left.checked_sub(1);
        if is_it
            && self
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, took)
                .is_ok()
        {
            for n in 0..2 {
                let mut other = noting(disk);
                attach_to(&mut other, &["R1".to_owned()], n, START).expect("an embedding");
                other
                    .compact(self.keep_history, START, &mut |_, _| {})
                    .expect("a compaction");
                other.close().expect("close");
            }
        }
    }
}

fn note() -> PathBuf {
    layout().folder().join("../../note.json")
}

fn noting(disk: &CrashDisk) -> Store {
    let options = Options {
        durability: Durability::Full,
        head_file: Some(note()),
        ..Options::default()
    };
    Store::open(Arc::new(disk.clone()), layout(), options, &mut |_, _| {}).expect("open")
}

fn filled() -> CrashDisk {
    let disk = fresh_disk();
    let mut store = noting(&disk);
    for n in 0..3 {
        store.commit(&draft(&Action::Batch(n)), START).expect("records");
        attach_to(&mut store, &["R1".to_owned()], n, START).expect("an embedding");
        store.compact(true, START, &mut |_, _| {}).expect("a compaction");
    }
    store.close().expect("close");
    disk
}

fn hasty(ending: &'static str, keep_history: bool, times: u32) -> Around<Haste> {
    Around {
        inner: filled(),
        twist: Haste {
            ending,
            keep_history,
            left: Arc::new(AtomicU32::new(times)),
        },
    }
}

#[test]
fn files_that_move_are_no_damage() {
    for ending in [".f32", "events.wal", ".json", ".zst", "synced"] {
        for keep_history in [true, false] {
            for times in [1, 2, 5] {
                let disk = hasty(ending, keep_history, times);
                let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
                assert!(report.valid(), "{ending} {keep_history} {times}: {:?}", report.damage);
                let store = Store::open(Arc::new(disk), layout(), Options::default(), &mut |_, _| {}).expect("open");
                assert!(
                    store.log().report.valid(),
                    "{ending} {times}: {:?}",
                    store.log().report.damage
                );
            }
        }
    }
}

#[test]
fn rows_that_move_after_the_log_was_read_are_no_damage() {
    let disk = filled();
    let meddle = |left: &mut u32| {
        if *left > 0 {
            *left -= 1;
            let mut other = noting(&disk);
            attach_to(&mut other, &["R1".to_owned()], 7, START).expect("an embedding");
            other.compact(true, START, &mut |_, _| {}).expect("a compaction");
        }
    };
    for mut left in [1, 3, 50] {
        let report = Store::verify(&disk, &layout(), 1, &mut |_, _| meddle(&mut left)).expect("verify");
        assert!(report.valid(), "{:?}", report.damage);
    }
}

#[test]
fn rows_that_are_gone_are_damage_also_beside_a_compaction() {
    let disk = hasty("synced", true, 1);
    let inner = disk.inner.clone();
    let rows = inner.list(&layout().vectors()).expect("a folder");
    for name in rows {
        inner.remove(&layout().vectors().join(name)).expect("a file");
    }
    let report = Store::verify(&disk.inner, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(!report.valid());
}

#[test]
fn a_head_is_not_missed_because_history_is_dropped_during_the_look() {
    for ending in ["events.wal", "note.json"] {
        for times in [1, 2, 10] {
            let disk = hasty(ending, false, times);
            let standing = standing_of(&disk, &layout(), &note()).expect("a look");
            assert_eq!(standing, HeadStanding::Kept, "{ending} {times}");
        }
    }
}

#[test]
fn a_compaction_that_is_killed_anywhere_loses_no_head() {
    for step in 1.. {
        let disk = filled();
        let mut store = noting(&disk);
        // Less than a second after the last note: this head is noted by nobody.
        store.commit(&draft(&Action::Put(9)), START).expect("a record");
        disk.crash_at(disk.steps() + step);
        let outcome = store.compact(false, START, &mut |_, _| {});
        let standing = standing_of(&disk.after_kill(), &layout(), &note()).expect("a look");
        assert_eq!(standing, HeadStanding::Kept, "killed at step {step}");
        if outcome.is_ok() && !disk.crashed() {
            assert!(step > 10);
            return;
        }
    }
}

#[test]
fn forged_codes_are_named_and_right_ones_are_not() {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    let ids: Vec<String> = (0..17_000).map(|n| format!("N{n}")).collect();
    store.commit(&draft(&Action::Batch(1)), START).expect("records");
    let mut records = chronomemory::Draft::default();
    for id in &ids {
        records
            .upsert_value(&crate::scenario::record(id, "x"), 0, None)
            .expect("a record");
    }
    store.commit(&records, START).expect("records");
    attach_to(&mut store, &ids, 0, START).expect("embeddings");
    let shared = Shared::new(store);
    let question = VectorQuestion {
        k: 3,
        ..VectorQuestion::default()
    };
    shared.nearest(&question, &vector(2), DIM).expect("neighbours");
    let path = layout().codes("default", 0, 0..16_384);
    let codes = disk.open(&path, Access::Write).expect("codes");
    let altered = || {
        Store::verify(&disk, &layout(), 2, &mut |_, _| {})
            .expect("verify")
            .altered
    };
    assert_eq!(altered(), []);

    let length = codes.length().expect("length") as usize;
    let mut bytes = vec![0; length];
    chronomemory::testing::disk::fill(&*codes, &mut bytes, 0).expect("codes");
    // A byte of the high plane, which lies behind the checksums of the rows.
    let page = 16 * 1024;
    let at = 9 * page + 7;
    bytes[at] ^= 0x55;
    codes.write_at(&bytes, 0).expect("a forgery");
    // Without its checksum it is an accident: the file is dropped and made anew.
    assert_eq!(altered(), []);
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize;
    let (end, start) = (length - 40, number(length - 40));
    let sum = start + 24 + 24 * number(start) + 8 * (at / page);
    let forged = xxhash_rust::xxh3::xxh3_64(&bytes[at / page * page..][..page]).to_le_bytes();
    bytes[sum..sum + 8].copy_from_slice(&forged);
    let footer = xxhash_rust::xxh3::xxh3_128(&bytes[start..end + 16]).to_le_bytes();
    bytes[end + 16..end + 32].copy_from_slice(&footer);
    codes.write_at(&bytes, 0).expect("a forgery");
    let found = altered();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].path, "index/vectors/default.0.0-16384.codes");
    assert_eq!(found[0].kind.word(), "index-altered");
}
