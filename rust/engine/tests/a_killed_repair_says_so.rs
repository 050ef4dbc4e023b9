//! A repair that is interrupted anywhere leaves the damage as it was, or a store that says it was repaired.
//!
//! A second one brings every value back.

use std::path::{Path, PathBuf};

use crate::crash_disk::CrashDisk;
use crate::scenario::looked::Looked;
use crate::scenario::{Action, Model, START, chance, contents, fresh_disk, layout, open, perform};
use crate::upkeep::Upkeep;
use chronomemory::{Access, Disk, Durability, Report, Store};

/// How many outcomes of each power failure are looked at.
const SEEDS: u64 = 3;

/// What the base or archive holds that is damaged. A repair tries every byte of it, so that its time grows with the square
/// of the size: a batch only in a soak.
fn first() -> Action {
    if chance::is_thorough() {
        Action::Batch(1)
    } else {
        Action::Put(1)
    }
}

fn flip(disk: &CrashDisk, path: &Path) {
    let file = disk.open(path, Access::Write).expect("a file");
    let middle = file.length().expect("a length") / 2;
    let mut byte = [0];
    file.read_at(&mut byte, middle).expect("a byte");
    file.write_at(&[byte[0] ^ 1], middle).expect("a write");
    // A second one: no search for one lost byte finds these.
    file.write_at(b"#", middle + 3).expect("a write");
    file.sync().expect("a sync");
}

fn only(disk: &CrashDisk, folder: &Path) -> PathBuf {
    let names = disk.list(folder).expect("a list");
    assert_eq!(names.len(), 1, "{names:?}");
    folder.join(&names[0])
}

/// A store made by these actions, then damaged; and what it held.
fn damaged(actions: &[Action], harm: impl Fn(&CrashDisk)) -> (CrashDisk, Model) {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    for (n, action) in actions.iter().enumerate() {
        perform(&disk, &mut store, action, START - 1000 + n as i64).expect("an action");
    }
    let held = records(&store);
    store.close().expect("close");
    // What is derived proves bases too; here it is not there.
    disk.remove(&layout().snapshot()).ok();
    harm(&disk);
    disk.sync_dir(layout().folder()).expect("a sync");
    (disk, held)
}

/// The records that callers wrote; those of embeddings are changed by a repair that takes rows back.
fn records(store: &Store) -> Model {
    let mut records = contents(store);
    records.retain(|id, _| id.starts_with('R'));
    records
}

fn look(disk: &CrashDisk) -> Report {
    Store::verify(disk, &layout(), 1, &mut |_, _| {}).expect("verify")
}

fn says_so(report: &Report) -> bool {
    report.notes.iter().any(|note| note.starts_with("repaired at event"))
}

fn repair(disk: &CrashDisk, now: i64) -> chronomemory::Result<()> {
    let mut store = open(disk, Durability::Full)?;
    store.repair(false, now, &mut |_, _| {})?;
    store.close()
}

fn check(after: &CrashDisk, held: &Model, what: &str) {
    let report = look(after);
    assert!(
        !report.valid() || says_so(&report),
        "{what}: it was repaired and does not say so: {report:?}"
    );
    repair(after, START + 10).unwrap_or_else(|fault| panic!("{what}: a second repair: {fault}"));
    let report = look(after);
    assert!(
        report.valid() && says_so(&report),
        "{what}: after a second repair: {report:?}"
    );
    let store = open(after, Durability::Full).expect("open");
    assert_eq!(&records(&store), held, "{what}");
}

fn kill_everywhere(prepare: impl Fn() -> (CrashDisk, Model)) {
    kill_at_every(1, prepare);
}

/// Kills at one operation of so many, where each repair searches for long; at all of them if there is time.
fn kill_at_every(stride: usize, prepare: impl Fn() -> (CrashDisk, Model)) {
    let (disk, held) = prepare();
    assert!(!look(&disk).valid());
    let first = disk.steps() + 1;
    repair(&disk, START).expect("a repair");
    let report = look(&disk);
    assert!(report.valid() && says_so(&report), "{report:?}");
    let (mut looked, mut kills) = (Looked::new(), 0);
    let stride = if chance::is_thorough() { 1 } else { stride };
    for step in (first..=disk.steps()).step_by(stride) {
        let (again, held_again) = prepare();
        assert_eq!(held, held_again);
        again.crash_at(step);
        repair(&again, START).expect_err("a crash");
        kills += 1;
        let killed = again.after_kill();
        if looked.is_new(&killed, ()) {
            check(&killed, &held, &format!("killed at operation {step}"));
        }
        for seed in 0..SEEDS {
            let after = again.after_crash(seed * 7919 + step);
            if looked.is_new(&after, ()) {
                check(&after, &held, &format!("power lost at operation {step}, {seed}"));
            }
        }
    }
    chance::tell("killed repairs", kills);
}

#[test]
fn when_the_base_comes_from_a_backup() {
    use Action::{Backup, Batch, Compact, Put};
    kill_everywhere(|| {
        damaged(&[Batch(1), Compact(false), Backup, Put(9)], |disk| {
            flip(disk, &only(disk, &layout().bases()));
        })
    });
}

#[test]
fn when_the_base_is_rebuilt_from_archives() {
    use Action::{Compact, Put};
    kill_at_every(23, || {
        damaged(&[first(), Compact(true), Put(9)], |disk| {
            flip(disk, &only(disk, &layout().bases()));
        })
    });
}

#[test]
fn when_a_missing_base_comes_from_a_backup() {
    use Action::{Backup, Batch, Compact, Put};
    kill_everywhere(|| {
        damaged(&[Batch(1), Compact(false), Backup, Put(9)], |disk| {
            disk.remove(&only(disk, &layout().bases())).expect("a removal");
            disk.sync_dir(&layout().bases()).expect("a sync");
        })
    });
}

#[test]
fn when_an_archive_comes_from_a_backup_and_when_it_is_lost() {
    use Action::{Backup, Compact, Put};
    for with_backup in [true, false] {
        let mut actions = vec![first(), Compact(true), Put(9)];
        if with_backup {
            actions.insert(2, Backup);
        }
        kill_at_every(11, || {
            damaged(&actions, |disk| {
                flip(disk, &only(disk, &layout().archives()));
            })
        });
    }
}

#[test]
fn when_a_row_is_taken_back() {
    use Action::{Attach, Batch};
    kill_everywhere(|| {
        damaged(&[Batch(1), Attach(4)], |disk| {
            flip(disk, &only(disk, &layout().vectors()));
        })
    });
}

#[test]
fn when_rows_come_back_from_a_backup() {
    use Action::{Attach, Backup, Batch};
    for is_gone in [true, false] {
        kill_everywhere(|| {
            damaged(&[Batch(1), Attach(4), Backup], |disk| {
                let rows = only(disk, &layout().vectors());
                if is_gone {
                    disk.remove(&rows).expect("a removal");
                    disk.sync_dir(&layout().vectors()).expect("a sync");
                } else {
                    flip(disk, &rows);
                }
            })
        });
    }
}
