//! Crashed at any operation of an erasure, or of ending it, either nothing has happened or every byte is gone.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::crash_disk::CrashDisk;
use crate::scenario::embedded::{attach_to, vector};
use crate::scenario::{Action, contents, draft, fresh_disk, layout, open, perform, record};
use crate::upkeep::Upkeep;
use chronomemory::testing::archive;
use chronomemory::testing::disk::read_upto;
use chronomemory::testing::store::{Turns, erase};
use chronomemory::{
    Access, Condition, Disk, Draft, Durability, Erase, Moment, Options, Randomness, Result, Store, Viewer,
};

pub const NOW: i64 = crate::scenario::START + 5_000_000;
/// What only R3 ever said: its labels, by the numbers that they were made of.
pub const SECRETS: [&str; 3] = ["label 3 ", "label 10 ", "label 24 "];

pub fn order() -> Erase {
    Erase {
        ids: vec!["R3".to_owned()],
        reason: "asked for".to_owned(),
        new_backup: true,
        ..Erase::default()
    }
}

/// A store with a past: two archives, a backup, a base and an index beside them.
pub fn prepared() -> CrashDisk {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    let actions = [
        Action::Put(1),
        Action::Put(3),
        Action::Batch(2),
        Action::Compact(true),
        Action::Put(10),
        Action::Put(4),
        Action::Backup,
        Action::Compact(true),
        Action::Put(24),
        Action::Put(5),
    ];
    for (number, action) in actions.iter().enumerate() {
        let now = crate::scenario::START + 1000 * number as i64;
        match action {
            Action::Put(_) | Action::Batch(_) => drop(store.commit(&draft(action), now).expect("a commit")),
            other => perform(&disk, &mut store, other, now).expect("care"),
        }
    }
    assert!(!store.past().of_record("R3").expect("history").is_empty());
    store.close().expect("close");
    disk
}

fn files(disk: &CrashDisk, folder: &Path, found: &mut Vec<PathBuf>) {
    for name in disk.list(folder).unwrap_or_default() {
        let path = folder.join(name);
        match disk.open(&path, Access::Read) {
            Ok(_) => found.push(path),
            Err(_) => files(disk, &path, found),
        }
    }
}

/// The files that hold a text, unpacked where they are packed.
pub fn holding(disk: &CrashDisk) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(disk, layout().folder(), &mut found);
    found.retain(|path| {
        let log = archive::open(disk, path).expect("a file").log;
        let (mut bytes, length) = (Vec::new(), log.length().expect("a length"));
        read_upto(&*log, &mut bytes, 0, length as usize).expect("bytes");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        SECRETS.iter().any(|secret| text.contains(secret))
    });
    found
}

pub fn is_erased(disk: &CrashDisk, what: &str) -> bool {
    let store = open(disk, Durability::Full).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    let report = Store::verify(disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid() && report.returned.is_empty(), "{what}: {report:?}");
    let is_there = contents(&store).contains_key("R3");
    let history = store
        .past()
        .of_record("R3")
        .unwrap_or_else(|fault| panic!("{what}: {fault}"));
    assert_eq!(is_there, !history.is_empty(), "{what}");
    if !is_there {
        assert_eq!(holding(disk), Vec::<PathBuf>::new(), "{what}");
        assert!(!disk.exists(&layout().inside("erasing")), "{what}");
    }
    !is_there
}

#[test]
fn nothing_is_left_of_it_and_all_else_stays() {
    let disk = prepared();
    assert!(!holding(&disk).is_empty(), "the test looks in the right places");
    let mut store = open(&disk, Durability::Full).expect("open");
    let mut before = contents(&store);
    let others: Vec<_> = ["R1", "R2", "R4", "R5"]
        .map(|id| store.past().of_record(id).expect("history"))
        .into();
    let dry = Erase {
        dry_run: true,
        ..order()
    };
    let steps = disk.steps();
    let counted = store.erase(&dry, NOW, &mut |_, _| {}).expect("a dry run");
    assert_eq!((counted.seq, counted.lines), (None, 4));
    assert!(disk.steps() - steps < 40, "nothing but locks is touched");
    let told = store.erase(&order(), NOW, &mut |_, _| {}).expect("an erasure");
    assert_eq!((told.lines, told.unsalted, told.backups.len()), (4, 4, 1));
    let backups = disk.list(&layout().backups()).expect("a folder");
    let folder = told.new_backup.expect("a new backup replaces the one that was removed");
    assert_eq!(vec![folder.file_name().expect("a name").to_string_lossy()], backups);
    before.remove("R3");
    before.retain(|id, _| id != "R3");
    let mut now = contents(&store);
    now.retain(|id, _| !id.starts_with("erasure:"));
    assert_eq!(now, before);
    let histories: Vec<_> = ["R1", "R2", "R4", "R5"]
        .map(|id| store.past().of_record(id).expect("history"))
        .into();
    assert_eq!(histories, others);
    let view = store.past().as_of(Moment::Seq(3)).expect("a view");
    let everybody = Viewer::default();
    assert!(view.state().seen(&everybody, "R3").is_none() && view.state().seen(&everybody, "R1").is_some());
    store.close().expect("close");
    assert!(is_erased(&disk, "at once"));
    let mut store = open(&disk, Durability::Full).expect("open");
    let again = store.erase(&order(), NOW + 1, &mut |_, _| {}).expect("nothing to do");
    assert_eq!((again.seq, again.lines), (None, 0), "twice is once");
}

#[test]
fn at_every_operation_it_has_happened_or_not() {
    let whole = prepared();
    let first = whole.steps() + 1;
    let mut store = open(&whole, Durability::Full).expect("open");
    store.erase(&order(), NOW, &mut |_, _| {}).expect("an erasure");
    let last = whole.steps();
    let (mut done, mut undone, mut ended) = (0, 0, 0);
    for step in first..=last {
        let disk = prepared();
        disk.crash_at(step);
        if let Ok(mut store) = open(&disk, Durability::Full) {
            let _ = store.erase(&order(), NOW, &mut |_, _| {});
        }
        assert!(disk.crashed());
        for (after, what) in [
            (disk.after_kill(), format!("killed at {step}")),
            (disk.after_crash(step), format!("power lost at {step}")),
        ] {
            let unfinished = after.exists(&layout().inside("erasing"));
            if unfinished {
                ended += crash_the_ending(&after, &what);
            }
            match is_erased(&after, &what) {
                true => done += 1,
                false => undone += 1,
            }
        }
    }
    assert!(done > 10 && undone > 50 && ended > 10, "{done} {undone} {ended}");
}

#[test]
fn an_erasure_is_done_even_if_the_new_backup_fails() {
    let whole = prepared();
    let first = whole.steps() + 1;
    let mut store = open(&whole, Durability::Full).expect("open");
    store.erase(&order(), NOW, &mut |_, _| {}).expect("an erasure");
    let mut reported = 0;
    for step in first..=whole.steps() {
        let disk = prepared();
        let mut store = open(&disk, Durability::Full).expect("open");
        disk.fail_at(step);
        let Ok(told) = store.erase(&order(), NOW, &mut |_, _| {}) else {
            // What is erased on disk is not shown from memory.
            let _ = store.refresh();
            let is_there = contents(&open(&disk, Durability::Full).expect("open")).contains_key("R3");
            assert!(is_there || !contents(&store).contains_key("R3"), "failed at {step}");
            continue;
        };
        if let Some(fault) = told.backup_fault {
            assert!(told.seq.is_some() && told.new_backup.is_none(), "{step}: {fault}");
            reported += 1;
        }
        drop(store);
        assert!(is_erased(&disk, &format!("failed at {step}")));
    }
    assert!(reported > 5, "{reported}");
}

/// Two threads write at the same time: the archive of the log, and the base beside it.
fn open_for_two(disk: &CrashDisk) -> Result<Store> {
    let options = Options {
        durability: Durability::Full,
        threads: 2,
        beside_from_bytes: 0,
        ..Options::default()
    };
    Store::open(Arc::new(disk.clone()), layout(), options, &mut |_, _| {})
}

#[test]
fn two_threads_write_all_of_it_or_nothing_counts() {
    let whole = prepared();
    let first = whole.steps() + 1;
    let mut store = open_for_two(&whole).expect("open");
    store.erase(&order(), NOW, &mut |_, _| {}).expect("an erasure");
    assert!(is_erased(&whole, "by two threads"));
    let last = whole.steps();
    let (mut done, mut undone) = (0, 0);
    // Which of the two comes first differs from run to run, and so does what a step is.
    for step in (first..=last).step_by(2) {
        let disk = prepared();
        disk.crash_at(step);
        if let Ok(mut store) = open_for_two(&disk) {
            let _ = store.erase(&order(), NOW, &mut |_, _| {});
        }
        for (after, what) in [
            (disk.after_kill(), format!("two threads killed at {step}")),
            (
                disk.after_crash(step),
                format!("power lost at {step}, with two threads"),
            ),
        ] {
            match is_erased(&after, &what) {
                true => done += 1,
                false => undone += 1,
            }
        }
    }
    assert!(done > 5 && undone > 25, "{done} {undone}");
}

fn put(store: &mut Store, id: &str, label: &str, now: i64) -> Result<()> {
    let mut draft = Draft::default();
    draft.upsert_value(&record(id, label), 0, None)?;
    store.commit(&draft, now).map(|_| ())
}

/// Between the first look and the lock others change what is meant.
struct Meanwhile<'a> {
    disk: &'a CrashDisk,
    store: RefCell<&'a mut Store>,
    turns: Cell<usize>,
    at: usize,
}

impl Turns for Meanwhile<'_> {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        self.turns.set(self.turns.get() + 1);
        if self.turns.get() == self.at {
            let mut other = open(self.disk, Durability::Full)?;
            for (id, label) in [("M1", "kept after all"), ("M3", "spilled")] {
                put(&mut other, id, label, NOW - 1)?;
            }
        }
        act(&mut self.store.borrow_mut())
    }
}

#[test]
fn what_is_meant_is_decided_under_the_lock() {
    let mut changed_in_time = 0;
    for at in 1..=9 {
        let disk = fresh_disk();
        let mut store = open(&disk, Durability::Full).expect("open");
        for (id, label) in [("M1", "spilled"), ("M2", "spilled"), ("M3", "kept")] {
            put(&mut store, id, label, NOW - 2).expect("a commit");
        }
        let condition = Condition::parse(br#"{"label":"spilled"}"#).expect("a condition");
        let order = Erase {
            condition: Some((Arc::new(Viewer::default()), condition)),
            reason: "asked for".to_owned(),
            ..Erase::default()
        };
        let turns = Meanwhile {
            disk: &disk,
            store: RefCell::new(&mut store),
            turns: Cell::default(),
            at,
        };
        let mut told = erase(&turns, &order, &|| NOW, &mut |_, _| {}).expect("an erasure");
        let is_in_time = turns.turns.get() >= at && told.ids.contains(&"M3".to_owned());
        told.ids.sort();
        // Whoever came before the lock counts as a whole, and whoever came behind it not at all.
        let wanted = if is_in_time { ["M2", "M3"] } else { ["M1", "M2"] };
        assert_eq!(told.ids, wanted, "changed before turn {at}");
        changed_in_time += u64::from(is_in_time);
        let known = contents(&open(&disk, Durability::Full).expect("open"));
        let is_there = |id: &str| known.get(id).is_some_and(|record| record.contains("label"));
        assert_eq!(is_there("M1"), turns.turns.get() >= at, "{at}");
        assert_eq!(is_there("M3"), !is_in_time, "{at}");
        assert!(!is_there("M2"), "{at}");
    }
    assert!(changed_in_time > 3, "{changed_in_time}");
}

/// Ending it is crashed too: whoever comes then ends it.
fn crash_the_ending(disk: &CrashDisk, what: &str) -> u64 {
    let whole = disk.after_kill();
    let before = whole.steps();
    drop(open(&whole, Durability::Full));
    let steps = whole.steps() - before;
    for step in 1..=steps {
        let again = disk.after_kill();
        again.crash_at(again.steps() + step);
        drop(open(&again, Durability::Full));
        let after = again.after_crash(step);
        is_erased(&after, &format!("{what}, ending it crashed at {step}"));
    }
    steps
}

#[test]
fn a_history_can_go_as_a_whole() {
    let disk = prepared();
    let mut store = open(&disk, Durability::Full).expect("open");
    let drop_all = Erase {
        drop_history: true,
        ..order()
    };
    let refused = store.erase(&drop_all, NOW, &mut |_, _| {});
    assert!(
        refused.is_err(),
        "without randomness its last hash would be a way to guess"
    );
    store.close().expect("close");
    let options = Options {
        randomness: Some(Randomness::of(|bytes| {
            bytes.fill(7);
            Ok(())
        })),
        ..Options::default()
    };
    let mut store = Store::open(Arc::new(disk.clone()), layout(), options, &mut |_, _| {}).expect("open");
    store.erase(&drop_all, NOW, &mut |_, _| {}).expect("an erasure");
    assert!(store.state().get("R1").is_some() && store.state().get("R3").is_none());
    store.close().expect("close");
    assert!(is_erased(&disk, "history dropped"));
    let archives = disk.list(&layout().archives()).unwrap_or_default();
    assert_eq!(archives, Vec::<String>::new());
}

/// The embedding of R3.
fn row() -> Vec<u8> {
    vector(41).iter().flat_map(|part| part.to_le_bytes()).collect()
}

pub fn with_rows() -> CrashDisk {
    let disk = prepared();
    let mut store = open(&disk, Durability::Full).expect("open");
    let ids = ["R1", "R3", "R4"].map(str::to_owned);
    attach_to(&mut store, &ids, 40, NOW - 1).expect("embeddings");
    store.close().expect("close");
    disk
}

fn holds_row(disk: &CrashDisk) -> bool {
    let (mut found, row) = (Vec::new(), row());
    files(disk, layout().folder(), &mut found);
    found.iter().any(|path| {
        let file = disk.open(path, Access::Read).expect("a file");
        let (mut bytes, length) = (Vec::new(), file.length().expect("a length"));
        read_upto(&*file, &mut bytes, 0, length as usize).expect("bytes");
        bytes.windows(row.len()).any(|window| window == row)
    })
}

#[test]
fn rows_go_with_it_or_are_as_they_were() {
    let whole = with_rows();
    let first = whole.steps() + 1;
    let mut store = open(&whole, Durability::Full).expect("open");
    let embeddings = |store: &Store| {
        let mut found = contents(store);
        found.retain(|name, _| name.starts_with("embedding of"));
        found
    };
    let before = embeddings(&store);
    assert_eq!(before.len(), 3);
    assert!(holds_row(&whole), "the test looks in the right places");
    store.erase(&order(), NOW, &mut |_, _| {}).expect("an erasure");
    let last = whole.steps();
    let (mut done, mut undone) = (0, 0);
    for step in first..=last {
        let disk = with_rows();
        disk.crash_at(step);
        if let Ok(mut store) = open(&disk, Durability::Full) {
            let _ = store.erase(&order(), NOW, &mut |_, _| {});
        }
        for (after, what) in [
            (disk.after_kill(), format!("killed at {step}")),
            (disk.after_crash(step), format!("power lost at {step}")),
        ] {
            let mut wanted = before.clone();
            if is_erased(&after, &what) {
                wanted.retain(|name, _| name != "embedding of R3");
                assert!(!holds_row(&after), "{what}");
                done += 1;
            } else {
                undone += 1;
            }
            let store = open(&after, Durability::Full).expect("open");
            assert_eq!(embeddings(&store), wanted, "{what}");
        }
    }
    assert!(done > 10 && undone > 50, "{done} {undone}");
}
