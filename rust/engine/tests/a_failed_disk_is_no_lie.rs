//! A write that fails changes nothing; a sync that fails stops all writes. Is it so at every operation?

mod scenario;

use chronomemory::error::Error;
use chronomemory::options::Durability;
use chronomemory::store::Store;
use scenario::{Action, contents, draft, fresh_disk, layout, open};

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
    let models = scenario::run(&whole, Durability::Full, &actions).models;
    for step in 1..=whole.steps() {
        let disk = fresh_disk();
        disk.fail_at(step);
        let mut acknowledged = 0;
        if let Ok(mut store) = open(&disk, Durability::Full) {
            for (index, action) in actions.iter().enumerate() {
                if scenario::perform(&mut store, action, scenario::START + index as i64).is_err() {
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
        .commit(&draft(&Action::Put(1)), scenario::START)
        .expect("the first write");
    store
        .commit(&draft(&Action::Put(2)), scenario::START)
        .expect("the second write");
    let before = disk.steps();
    store
        .commit(&draft(&Action::Put(3)), scenario::START)
        .expect("the third write");
    let steps = disk.steps() - before;
    let refused = (1..=steps).any(|step| {
        let mut store = open(&disk, Durability::Full).expect("open");
        store.commit(&draft(&Action::Put(4)), scenario::START).expect("a write");
        disk.fail_at(disk.steps() + step);
        let failed = store.commit(&draft(&Action::Put(5)), scenario::START).is_err();
        let next = store.commit(&draft(&Action::Put(6)), scenario::START);
        failed && matches!(next, Err(Error::Poisoned { .. }))
    });
    assert!(refused, "no fault of a commit's operations poisoned the store");
}
