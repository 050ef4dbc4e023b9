//! At every operation, a write that fails changes nothing, and a sync that fails stops all writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, contents, draft, fresh_disk, layout, open};
use crate::upkeep::Upkeep;
use chronomemory::testing::store::{SealTerms, Shared, seal_state};
use chronomemory::{Draft, Durability, Error, Options, Store};

#[test]
fn a_fault_is_an_error_and_what_was_acknowledged_stays() {
    let actions = [
        Action::Put(1),
        Action::Batch(2),
        Action::Put(9),
        Action::Compact(true),
        Action::Put(12),
    ];
    let whole = fresh_disk();
    let models = crate::scenario::run(&whole, Durability::Full, &actions).models;
    for step in 1..=whole.steps() {
        let disk = fresh_disk();
        disk.fail_at(step);
        let mut acknowledged = 0;
        if let Ok(mut store) = open(&disk, Durability::Full) {
            for (index, action) in actions.iter().enumerate() {
                if crate::scenario::perform(&disk, &mut store, action, crate::scenario::START + index as i64).is_err() {
                    break;
                }
                acknowledged = index + 1;
            }
        }
        let disk = disk.after_kill();
        let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
        assert!(report.valid(), "fault at {step}: {:?}", report.damage);
        let found = contents(&open(&disk, Durability::Full).expect("open"));
        let most = (acknowledged + 1).min(actions.len());
        let is_one_of = (acknowledged..=most).any(|n| models[n] == found);
        assert!(
            is_one_of,
            "fault at {step}: acknowledged {acknowledged}, found {found:?}"
        );
    }
}

#[test]
fn after_a_failed_sync_no_write_is_acknowledged() {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    store
        .commit(&draft(&Action::Put(1)), crate::scenario::START)
        .expect("the first write");
    store
        .commit(&draft(&Action::Put(2)), crate::scenario::START)
        .expect("the second write");
    let before = disk.steps();
    store
        .commit(&draft(&Action::Put(3)), crate::scenario::START)
        .expect("the third write");
    let steps = disk.steps() - before;
    let refused = (1..=steps).any(|step| {
        let mut store = open(&disk, Durability::Full).expect("open");
        store
            .commit(&draft(&Action::Put(4)), crate::scenario::START)
            .expect("a write");
        disk.fail_at(disk.steps() + step);
        let failed = store.commit(&draft(&Action::Put(5)), crate::scenario::START).is_err();
        let next = store.commit(&draft(&Action::Put(6)), crate::scenario::START);
        failed && matches!(next, Err(Error::Poisoned { .. }))
    });
    assert!(refused, "no fault of a commit's operations poisoned the store");
}

/// Writes records of their own ids and compacts now and then, whatever fails; gives the ids that were acknowledged.
fn write_on(disk: &CrashDisk, exclusive: bool, durability: Durability) -> Vec<String> {
    let options = Options {
        durability,
        exclusive,
        ..Options::default()
    };
    let mut acknowledged = Vec::new();
    let Ok(mut store) = Store::open(Arc::new(disk.clone()), layout(), options, &mut |_, _| {}) else {
        return acknowledged;
    };
    for n in 0..12 {
        let now = crate::scenario::START + n;
        let id = format!("K{n}");
        let mut draft = Draft::default();
        draft
            .upsert_value(&crate::scenario::record(&id, "kept"), 0, None)
            .expect("a record");
        if store.commit(&draft, now).is_ok() {
            acknowledged.push(id);
        }
        if n % 5 == 4 {
            // A compaction that fails must cost nothing.
            let _ = store.compact(true, now, &mut |_, _| {});
        }
    }
    // So must a close that fails.
    let _ = store.close();
    acknowledged
}

#[test]
fn writing_on_after_a_fault_loses_nothing() {
    for (exclusive, durability) in [
        (false, Durability::Full),
        (true, Durability::Full),
        (true, Durability::Normal),
    ] {
        let whole = fresh_disk();
        assert_eq!(write_on(&whole, exclusive, durability).len(), 12);
        for step in 1..=whole.steps() {
            let disk = fresh_disk();
            disk.fail_at(step);
            let acknowledged = write_on(&disk, exclusive, durability);
            let disk = disk.after_kill();
            let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
            assert!(
                report.valid(),
                "exclusive {exclusive}, fault at {step}: {:?}",
                report.damage
            );
            let found = contents(&open(&disk, Durability::Full).expect("open"));
            let lost: Vec<_> = acknowledged.iter().filter(|id| !found.contains_key(*id)).collect();
            assert!(lost.is_empty(), "exclusive {exclusive}, fault at {step}: lost {lost:?}");
        }
    }
}

#[test]
fn syncs_may_overtake_one_another() {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Normal).expect("open");
    for n in 1..4 {
        store
            .commit(&draft(&Action::Put(n)), crate::scenario::START)
            .expect("a write");
    }
    let slow = store.start_sync().expect("something to sync");
    store.sync().expect("a sync that overtakes");
    store
        .commit(&draft(&Action::Put(4)), crate::scenario::START)
        .expect("a write");
    let outcome = slow.run();
    store
        .commit(&draft(&Action::Put(5)), crate::scenario::START)
        .expect("a write");
    store.end_sync(&slow, outcome).expect("the slow sync");
    assert!(store.log().unsynced.bytes() > 0, "the last writes are not on disk yet");
    store.close().expect("close");
    let expected = contents(&open(&disk, Durability::Full).expect("open"));
    for seed in 0..50 {
        let after = open(&disk.after_crash(seed), Durability::Full).expect("open");
        assert_eq!(contents(&after), expected, "seed {seed}");
    }
}

#[test]
fn a_large_batch_that_fails_leaves_no_trace() {
    let options = || Options {
        threads: 2,
        ..Options::default()
    };
    let batch = || {
        let mut draft = Draft::default();
        for n in 0..800 {
            let record = crate::scenario::record(&format!("L{n}"), &"x".repeat(400));
            draft.upsert_value(&record, 0, None).expect("a record");
        }
        draft
    };
    let prepared = || {
        let disk = fresh_disk();
        let mut store = Store::open(Arc::new(disk.clone()), layout(), options(), &mut |_, _| {}).expect("open");
        store
            .commit(&draft(&Action::Put(1)), crate::scenario::START)
            .expect("a write");
        (disk, store)
    };
    let (disk, mut store) = prepared();
    let before = disk.steps();
    store
        .commit(&batch(), crate::scenario::START + 1)
        .expect("a large batch");
    assert_eq!(contents(&store).len(), 801);
    for step in 1..=disk.steps() - before {
        let (disk, mut store) = prepared();
        let known = contents(&store);
        disk.fail_at(disk.steps() + step);
        if store.commit(&batch(), crate::scenario::START + 1).is_err() {
            store.refresh().expect("a look");
            assert_eq!(contents(&store), known, "fault at {step}");
            if let Ok(done) = store.commit(&draft(&Action::Put(2)), crate::scenario::START + 2) {
                assert_eq!(done.first_seq, 2, "fault at {step}");
            }
        }
        let report = Store::verify(&disk.after_kill(), &layout(), 1, &mut |_, _| {}).expect("verify");
        assert!(report.valid(), "fault at {step}: {report:?}");
    }
}

#[test]
fn a_read_whose_state_fails_its_checks_at_every_load_is_an_error() {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    for n in 1..4 {
        store
            .commit(&draft(&Action::Put(n)), crate::scenario::START)
            .expect("a write");
    }
    drop(store);
    let options = Options {
        seal: SealTerms {
            events: 1,
            events_at_close: 1,
            fewest: 1,
        },
        ..Options::default()
    };
    let store = Store::open(Arc::new(disk), layout(), options, &mut |_, _| {}).expect("open");
    let store = Shared::new(store);
    seal_state(&store).expect("sealing");
    let mut asked = 0;
    let outcome = store.read(|store| {
        asked += 1;
        assert!(asked < 100, "a read ends");
        let sealed = store.state().slots.sealed().expect("segments");
        sealed.mark().store(true, Ordering::Relaxed);
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::Io { .. })), "{outcome:?}");
    assert_eq!(store.read(|store| Ok(store.state().len())).expect("a read"), 3);
}
