//! Every mode keeps its promise, crashed at every operation of every write path, with several outcomes each.
//!
//! Every failure names the mode, the operation and the seed; the same three give the same run again.

use crate::crash_disk::CrashDisk;
use crate::scenario::allowed::Allowed;
use crate::scenario::looked::Looked;
use crate::scenario::{Action, Interruption, Long, Model, chance, contents, draft, fresh_disk, layout, open, run};
use chronomemory::{Disk, Durability, Error, Layout, Store};

const MODES: [Durability; 3] = [Durability::Full, Durability::Normal, Durability::Off];

fn actions() -> Vec<Action> {
    use Action::{Act, Backup, Batch, Compact, Delete, Put, Restore, Sync};
    vec![
        Put(1),
        Put(2),
        Batch(3),
        Delete(2),
        Sync,
        Batch(20),
        Act(0),
        Compact(true),
        Act(1),
        Batch(11),
        Backup,
        Delete(12),
        Compact(false),
        Put(30),
        Restore,
        Put(31),
    ]
}

/// The first write after a crash.
const AFTERWARDS: Action = Action::Put(77);

fn with_afterwards(model: &Model) -> Model {
    let mut expected = model.clone();
    let draft = draft(&AFTERWARDS);
    let record = String::from_utf8_lossy(draft.record(&draft.changes()[0])).into_owned();
    expected.insert("R0".to_owned(), record);
    expected
}

fn write_afterwards(disk: &CrashDisk) -> chronomemory::Result<()> {
    let mut store = open(disk, Durability::Full)?;
    store.commit(&draft(&AFTERWARDS), crate::scenario::START + 1_000_000)?;
    store.close()
}

/// Writes after a crash. In a log that was damaged before, what a crash left at its end is damage too, and nothing is written
/// behind that before a repair: then it is refused.
fn is_refused(disk: &CrashDisk, allowed: &Allowed) -> bool {
    match write_afterwards(disk) {
        Err(Error::Corrupted(_)) if allowed.damaged => true,
        outcome => {
            outcome.expect("a write after recovery");
            false
        }
    }
}

/// What was found, which must be allowed, and whether it is undamaged; and that all of it holds together.
fn judge(after: &CrashDisk, allowed: &Allowed, what: &str) -> (Model, bool) {
    let report = Store::verify(after, &layout(), 1, &mut |_, _| {}).expect("verify");
    let store = open(after, Durability::Full).expect("open");
    let found = contents(&store);
    assert!(
        report.damage.iter().all(|damage| allowed.holds(damage)),
        "{what}: {:?}",
        report.damage
    );
    assert!(
        allowed.has(&found),
        "{what}: the state is that of no moment; it differs in {:#?}",
        allowed.differences(&found)
    );
    for id in found.keys() {
        let lines = store
            .past()
            .of_record(id)
            .unwrap_or_else(|fault| panic!("{what}: history: {fault}"));
        let mut unique = lines.clone();
        unique.dedup();
        assert_eq!(lines, unique, "{what}: an event of {id} is told twice");
    }
    for name in after.list(&layout().backups()).expect("a list") {
        if !name.ends_with(".tmp") {
            let copy = Layout::of_folder(layout().backups().join(&name));
            let report = Store::verify(after, &copy, 1, &mut |_, _| {}).expect("verify a backup");
            assert!(
                report.valid() && report.events > 0,
                "{what}: backup {name}: {:?}",
                report.damage
            );
        }
    }
    (found, report.valid())
}

/// Opens what a crash left, checks it against the model and goes on writing; what was found.
fn check(after: &CrashDisk, allowed: &Allowed, what: &str) -> Model {
    let (found, was_valid) = judge(after, allowed, what);
    if is_refused(after, allowed) {
        return found;
    }
    let report = Store::verify(after, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(
        report.valid() == was_valid && report.tail.is_none(),
        "{what}: after recovery: {report:?}"
    );
    let reopened = open(after, Durability::Full).expect("open again");
    assert_eq!(
        contents(&reopened),
        with_afterwards(&found),
        "{what}: what was read is read again"
    );
    let mut reopened = reopened;
    crate::scenario::perform(
        after,
        &mut reopened,
        &Action::Backup,
        crate::scenario::START + 1_000_010,
    )
    .expect("a backup");
    let leftovers = after.list(&layout().backups()).expect("a list");
    assert!(
        leftovers.iter().all(|name| !name.ends_with(".tmp")),
        "{what}: unfinished backups are cleared away: {leftovers:?}"
    );
    found
}

/// Crashes the recovery itself at every operation: what was found before is found again.
fn crash_the_recovery(
    crashed: &CrashDisk,
    seed: u64,
    (allowed, terms): (&Allowed, Terms),
    what: &str,
    looked: &mut Looked<(u64, bool, Terms)>,
) -> u64 {
    let whole = crashed.after_crash(seed);
    let before = whole.fingerprint();
    let (found, _) = judge(&crashed.after_crash(seed), allowed, what);
    if is_refused(&whole, allowed) {
        return 0;
    }
    let known = [found.clone(), with_afterwards(&found)];
    let allowed = allowed.with(&known[1]);
    for step in 1..=whole.steps() {
        let again = crashed.after_crash(seed);
        again.crash_at(step);
        let is_acknowledged = write_afterwards(&again).is_ok();
        assert!(again.crashed());
        let what = format!("{what}, recovery crashed at operation {step}");
        let after = again.after_crash(seed + step);
        if looked.is_new(&after, (before, is_acknowledged, terms)) {
            let found = check(&after, &allowed, &what);
            let least = usize::from(is_acknowledged);
            assert!(known[least..].contains(&found), "{what}: something was lost: {found:?}");
        }
    }
    whole.steps()
}

/// What a disk is held to: the first and the last moment whose state it may have, and whether rows may be lost.
type Terms = (usize, usize, bool);

struct Plan {
    modes: &'static [Durability],
    seeds: u64,
    /// Crash the recovery too.
    twice: bool,
    /// The store is damaged at first.
    damaged: bool,
}

fn crash_everywhere(prepare: impl Fn() -> CrashDisk, actions: &[Action], plan: &Plan) -> u64 {
    let (mut crashes, mut different) = (0, 0);
    let beside = actions.iter().any(|action| matches!(action, Action::Beside(..)));
    for mode in plan.modes {
        let disk = prepare();
        let whole = run(&disk, *mode, actions);
        assert!(whole.is_complete, "{mode:?}: {actions:?}");
        let (first, last) = (prepare().steps() + 1, disk.steps());
        let (mut looked, mut looked_twice) = (Looked::new(), Looked::new());
        for step in first..=last {
            let wanted = chance::wanted(&format!("{mode:?}"), step, plan.seeds, !plan.twice);
            if wanted.is_empty() {
                continue;
            }
            let disk = prepare();
            disk.crash_at(step);
            let stopped = run(&disk, *mode, actions);
            assert!(disk.crashed());
            // One write may have been under way, beside a long task that changes the state as well.
            let under_way = if beside { 2 } else { 1 };
            let most = (stopped.acknowledged + under_way).min(whole.models.len() - 1);
            let held_to = |(first, last, rows): Terms| Allowed {
                models: whole.models[first..=last].to_vec(),
                damaged: plan.damaged,
                rows,
            };
            let terms = (stopped.acknowledged, most, false);
            let killed = disk.after_kill();
            if looked.is_new(&killed, terms) {
                let what = format!("{mode:?} {step}: killed at that operation of {actions:?}");
                check(&killed, &held_to(terms), &what);
            }
            let terms = (stopped.synced, most, *mode != Durability::Full);
            let allowed = held_to(terms);
            for number in wanted {
                let seed = number * 7919 + step;
                let what = format!("{mode:?} {step} {number}: power lost at that operation of {actions:?}");
                let after = disk.after_crash(seed);
                if looked.is_new(&after, terms) {
                    check(&after, &allowed, &what);
                }
                crashes += 1;
                if plan.twice {
                    crashes += crash_the_recovery(&disk, seed, (&allowed, terms), &what, &mut looked_twice);
                }
            }
        }
        different += looked.count() + looked_twice.count();
    }
    chance::tell("crash points", crashes);
    chance::tell("different disks after them", different);
    if chance::is_replay() {
        u64::from(u32::MAX)
    } else {
        crashes
    }
}

const THOROUGH: Plan = Plan {
    modes: &MODES,
    seeds: 4,
    twice: false,
    damaged: false,
};
const BRIEF: Plan = Plan {
    modes: &MODES,
    seeds: 2,
    twice: false,
    damaged: false,
};
const TWICE: Plan = Plan {
    modes: &[Durability::Full, Durability::Normal],
    seeds: 1,
    twice: true,
    damaged: false,
};

#[test]
fn from_an_empty_folder() {
    assert!(crash_everywhere(fresh_disk, &actions(), &THOROUGH) > 800);
}

#[test]
fn from_a_disk_without_the_project() {
    assert!(crash_everywhere(crate::scenario::bare_disk, &actions(), &BRIEF) > 400);
}

#[test]
fn from_a_log_that_another_tool_compacted() {
    let prepare = || {
        let disk = fresh_disk();
        crate::scenario::prepared::foreign_store(&disk);
        disk
    };
    assert!(crash_everywhere(prepare, &actions(), &BRIEF) > 400);
    // Restored before it was ever compacted by us: its adopted base must come along and stay.
    let early = [
        Action::Put(3),
        Action::Backup,
        Action::Put(4),
        Action::Restore,
        Action::Put(5),
    ];
    assert!(crash_everywhere(prepare, &early, &BRIEF) > 200);
}

#[test]
fn while_a_recovery_is_under_way() {
    assert!(crash_everywhere(fresh_disk, &actions(), &TWICE) > 800);
}

#[test]
fn while_others_write_beside_long_tasks() {
    let mut crashes = 0;
    // More turns than any of the tasks takes: the last ones come too late and show that.
    let all: Vec<usize> = (1..=11).collect();
    let turns = if chance::is_thorough() {
        &all[..]
    } else {
        &[1, 2, 4, 7, 11][..]
    };
    for &turn in turns {
        let beside = |long, record| {
            let by = Interruption {
                record,
                turn,
                elsewhere: turn % 2 == 1,
            };
            Action::Beside(long, by)
        };
        let actions = [
            Action::Put(1),
            beside(Long::Compact(true), 2),
            Action::Delete(3),
            beside(Long::Backup, 11),
            Action::Put(4),
            beside(Long::Compact(turn % 3 != 0), 20),
            beside(Long::Restore, 30),
            Action::Put(31),
        ];
        let plan = Plan {
            modes: if turn % 2 == 0 { &MODES[..1] } else { &MODES[1..2] },
            seeds: 1,
            twice: false,
            damaged: false,
        };
        crashes += crash_everywhere(fresh_disk, &actions, &plan);
    }
    assert!(crashes > 600);
}

#[test]
fn of_a_repair() {
    let prepare = || {
        let disk = fresh_disk();
        crate::scenario::prepared::damaged_store(&disk);
        disk
    };
    let actions = [Action::Repair, Action::Put(40), Action::Compact(true), Action::Put(41)];
    let damaged = true;
    assert!(crash_everywhere(prepare, &actions, &Plan { damaged, ..BRIEF }) > 200);
    assert!(crash_everywhere(prepare, &actions[..2], &Plan { damaged, ..TWICE }) > 200);
}

#[test]
fn of_an_ingest() {
    let prepare = || {
        let disk = fresh_disk();
        crate::scenario::prepared::put_rows(&disk);
        disk
    };
    let actions = [Action::Ingest, Action::Put(40), Action::Ingest, Action::Compact(true)];
    assert!(crash_everywhere(prepare, &actions, &BRIEF) > 120);
    assert!(crash_everywhere(prepare, &actions[..3], &TWICE) > 120);
}

#[test]
fn of_deltas_that_replace_facts() {
    use Action::{Compact, Delta, Put};
    let actions = [Delta(0), Delta(1), Put(1), Delta(2), Delta(3), Compact(true), Delta(4)];
    assert!(crash_everywhere(fresh_disk, &actions, &BRIEF) > 120);
    assert!(crash_everywhere(fresh_disk, &actions[..3], &TWICE) > 120);
}

#[test]
fn of_embeddings() {
    use Action::{Attach, Backup, Batch, Compact, Detach, Put, Restore, Sync};
    let actions = [
        Batch(1),
        Attach(3),
        Put(2),
        Attach(1),
        Detach(2),
        Sync,
        Attach(6),
        Backup,
        Attach(7),
        // More than a quarter of the rows are dead by now: the others move.
        Compact(true),
        Attach(9),
        Restore,
        Attach(12),
        Compact(false),
        Put(20),
    ];
    assert!(crash_everywhere(fresh_disk, &actions, &BRIEF) > 400);
    assert!(crash_everywhere(fresh_disk, &actions[..9], &TWICE) > 400);
}

#[test]
fn of_records_that_are_born_with_their_embeddings() {
    use Action::{Backup, Born, Put, Sync};
    let actions = [Born(1), Born(4), Put(2), Sync, Born(7), Backup, Born(10), Born(8)];
    assert!(crash_everywhere(fresh_disk, &actions, &BRIEF) > 200);
    assert!(crash_everywhere(fresh_disk, &actions[..6], &TWICE) > 200);
}

#[test]
fn of_embeddings_while_others_write() {
    let all = [2, 5, 9, 13, 4, 6, 7, 11];
    let turns = if chance::is_thorough() { &all[..] } else { &all[..3] };
    for &turn in turns {
        let beside = |long, record| {
            let by = Interruption {
                record,
                turn,
                elsewhere: turn % 2 == 1,
            };
            Action::Beside(long, by)
        };
        let actions = [
            Action::Batch(1),
            Action::Attach(3),
            Action::Attach(7),
            Action::Backup,
            beside(Long::Compact(true), 20),
            Action::Attach(2),
            beside(Long::Restore, 30),
            Action::Attach(5),
        ];
        let modes = match (chance::is_thorough(), turn % 2) {
            (true, _) => &MODES[..],
            (false, 0) => &MODES[..1],
            (false, _) => &MODES[1..2],
        };
        let plan = Plan {
            modes,
            seeds: 1,
            ..BRIEF
        };
        assert!(crash_everywhere(fresh_disk, &actions, &plan) > 60);
    }
}
