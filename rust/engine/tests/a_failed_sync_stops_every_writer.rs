//! After a failed sync every process refuses to write, until a fresh one puts it right.

use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, START, contents, draft, fresh_disk, layout, open};
use chronomemory::{Durability, Error, Store};

/// A store whose third commit met a failing sync; the first two were acknowledged.
fn poisoned(disk: &CrashDisk) -> Store {
    let mut store = open(disk, Durability::Full).expect("open");
    for n in [1, 2] {
        store.commit(&draft(&Action::Put(n)), START).expect("a write");
    }
    disk.fail_next_sync();
    assert!(store.commit(&draft(&Action::Put(3)), START).is_err());
    store
}

fn refuses(store: &mut Store) -> bool {
    matches!(
        store.commit(&draft(&Action::Put(4)), START),
        Err(Error::Poisoned { .. })
    )
}

#[test]
fn others_refuse_until_someone_who_came_later_recovered() {
    let disk = fresh_disk();
    let mut other = open(&disk, Durability::Normal).expect("open");
    let mut holder = poisoned(&disk);
    assert!(refuses(&mut holder), "the one who met the fault");
    assert!(refuses(&mut other), "one who was there before it");
    other.refresh().expect("reading goes on");
    assert!(contents(&other).contains_key("R1"));

    let mut later = open(&disk, Durability::Full).expect("open");
    later
        .commit(&draft(&Action::Put(5)), START)
        .expect("recovery, then a write");
    assert!(!refuses(&mut other), "the mark is gone");
    assert!(
        refuses(&mut holder),
        "what this one knows may never have reached the disk"
    );
    let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid(), "{report:?}");
    for seed in 0..50 {
        let found = contents(&open(&disk.after_crash(seed), Durability::Full).expect("open"));
        assert!(
            ["R1", "R2", "R5"].iter().all(|id| found.contains_key(*id)),
            "seed {seed}: {found:?}"
        );
    }
}

#[test]
fn a_recovery_may_be_interrupted_anywhere() {
    let whole = fresh_disk();
    drop(poisoned(&whole));
    let before = whole.steps();
    let mut store = open(&whole, Durability::Full).expect("open");
    store.commit(&draft(&Action::Put(5)), START).expect("a write");
    for step in before + 1..=whole.steps() {
        let disk = fresh_disk();
        drop(poisoned(&disk));
        disk.crash_at(step);
        let acknowledged = open(&disk, Durability::Full)
            .and_then(|mut store| store.commit(&draft(&Action::Put(5)), START))
            .is_ok();
        for after in (0..20).map(|seed| disk.after_crash(seed)).chain([disk.after_kill()]) {
            let report = Store::verify(&after, &layout(), 1, &mut |_, _| {}).expect("verify");
            assert!(report.valid(), "crash at {step}: {report:?}");
            let mut store = open(&after, Durability::Full).expect("open");
            let found = contents(&store);
            assert!(
                ["R1", "R2"].iter().all(|id| found.contains_key(*id)),
                "crash at {step}: {found:?}"
            );
            assert!(!acknowledged || found.contains_key("R5"), "crash at {step}: {found:?}");
            store.commit(&draft(&Action::Put(6)), START).expect("writing goes on");
        }
    }
}
