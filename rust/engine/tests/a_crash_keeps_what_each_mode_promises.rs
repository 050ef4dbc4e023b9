//! Crashed at every operation of every write path, with several outcomes each: does every mode keep its promise?

mod scenario;

use chronomemory::disk::CrashDisk;
use chronomemory::options::Durability;
use chronomemory::store::Store;
use scenario::{Action, Model, chance, contents, draft, fresh_disk, layout, open, run};

const MODES: [Durability; 3] = [Durability::Full, Durability::Normal, Durability::Off];

fn actions() -> Vec<Action> {
    use Action::{Backup, Batch, Compact, Delete, Put, Restore, Sync};
    vec![
        Put(1),
        Put(2),
        Batch(3),
        Delete(2),
        Sync,
        Batch(20),
        Put(9),
        Compact(true),
        Put(10),
        Batch(11),
        Backup,
        Delete(12),
        Compact(false),
        Put(30),
        Restore,
        Put(31),
    ]
}

/// Opens what a crash left, checks it against the model and goes on writing.
fn check(after: &CrashDisk, models: &[Model], least: usize, most: usize, what: &str) {
    let report = Store::verify(after, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid(), "{what}: {:?}", report.damage);
    let mut store = open(after, Durability::Full).expect("open");
    let found = contents(&store);
    let kept = (least..=most).rev().find(|&n| models[n] == found);
    assert!(
        kept.is_some(),
        "{what}: the state is that of no moment from {least} to {most}: {found:?}"
    );
    store
        .commit(&draft(&Action::Put(77)), scenario::START + 1_000_000)
        .expect("a write after recovery");
    store.close().expect("close");
    let report = Store::verify(after, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(
        report.valid() && report.tail.is_none(),
        "{what}: after recovery: {report:?}"
    );
    let reopened = open(after, Durability::Full).expect("open again");
    let mut expected = found;
    let id = draft(&Action::Put(77));
    expected.insert(
        "R0".to_owned(),
        String::from_utf8_lossy(id.record(&id.changes()[0])).into_owned(),
    );
    assert_eq!(contents(&reopened), expected, "{what}: what was read is read again");
}

fn crash_everywhere(prepare: impl Fn() -> CrashDisk, usual_seeds: u64) -> u64 {
    let mut crashes = 0;
    for mode in MODES {
        let disk = prepare();
        let whole = run(&disk, mode, &actions());
        assert_eq!(whole.acknowledged, actions().len());
        let (first, last) = (prepare().steps() + 1, disk.steps());
        for step in first..=last {
            let wanted = chance::wanted(&format!("{mode:?}"), step, usual_seeds);
            if wanted.is_empty() {
                continue;
            }
            let disk = prepare();
            disk.crash_at(step);
            let stopped = run(&disk, mode, &actions());
            assert!(disk.crashed());
            let most = (stopped.acknowledged + 1).min(whole.models.len() - 1);
            for seed in wanted {
                let what = format!("{mode:?}, power lost at operation {step}, seed {seed}");
                check(
                    &disk.after_crash(seed * 7919 + step),
                    &whole.models,
                    stopped.synced,
                    most,
                    &what,
                );
                crashes += 1;
            }
            let what = format!("{mode:?}, killed at operation {step}");
            check(&disk.after_kill(), &whole.models, stopped.acknowledged, most, &what);
        }
    }
    chance::tell("crash points", crashes);
    if chance::is_replay() { u64::MAX } else { crashes }
}

#[test]
fn from_an_empty_folder() {
    assert!(crash_everywhere(fresh_disk, 8) > 2000);
}

#[test]
fn from_a_disk_without_the_project() {
    assert!(crash_everywhere(scenario::bare_disk, 4) > 1000);
}

#[test]
fn from_a_log_that_another_tool_compacted() {
    let prepare = || {
        let disk = fresh_disk();
        scenario::foreign_store(&disk);
        disk
    };
    assert!(crash_everywhere(prepare, 4) > 1000);
}
