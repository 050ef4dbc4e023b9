//! Crashed at any operation of bringing back an old copy, what was erased is gone, or the log says it came back.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use crate::crash_disk::CrashDisk;
use crate::scenario::embedded::{attach_to, vector};
use crate::scenario::{Action, START, contents, draft, fresh_disk, layout, open, perform};
use crate::upkeep::Upkeep;
use chronomemory::testing::archive;
use chronomemory::testing::disk::read_upto;
use chronomemory::testing::store::{Turns, restore};
use chronomemory::{Access, Disk, Durability, Erase, Layout, Restoring, Result, Store};

const NOW: i64 = START + 5_000_000;
const ELSEWHERE: &str = "/elsewhere";

struct Plainly<'a>(RefCell<&'a mut Store>);

impl Turns for Plainly<'_> {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        act(&mut self.0.borrow_mut())
    }
}

/// Copies a folder; all of it is synced.
fn copy(disk: &CrashDisk, from: &Path, to: &Path) {
    disk.create_dir(to).expect("a folder");
    for name in disk.list(from).expect("a list") {
        let (source, target) = (from.join(&name), to.join(&name));
        let Ok(file) = disk.open(&source, Access::Read) else {
            copy(disk, &source, &target);
            continue;
        };
        let (mut bytes, length) = (Vec::new(), file.length().expect("a length"));
        read_upto(&*file, &mut bytes, 0, length as usize).expect("bytes");
        let file = disk.create(&target).expect("a file");
        file.write_at(&bytes, 0).expect("written");
        file.sync().expect("synced");
    }
    for folder in [to, to.parent().expect("a folder above")] {
        disk.sync_dir(folder).expect("synced");
    }
}

/// A store from which R3 was erased, and where a copy lies that was made before.
fn prepared() -> (CrashDisk, Layout) {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    let actions = [
        Action::Put(1),
        Action::Put(3),
        Action::Compact(true),
        Action::Put(4),
        Action::Backup,
    ];
    for (number, action) in actions.iter().enumerate() {
        let now = START + 1000 * number as i64;
        match action {
            Action::Put(_) => drop(store.commit(&draft(action), now).expect("a commit")),
            other => {
                if matches!(other, Action::Backup) {
                    let ids = ["R1", "R3", "R4"].map(str::to_owned);
                    attach_to(&mut store, &ids, 40, now).expect("embeddings");
                }
                perform(&disk, &mut store, other, now).expect("care");
            }
        }
    }
    let names = disk.list(&layout().backups()).expect("a list");
    let name = names.first().expect("a backup");
    let elsewhere = PathBuf::from(ELSEWHERE);
    disk.create_dir(&elsewhere).expect("a folder");
    disk.sync_dir(Path::new("/")).expect("synced");
    copy(&disk, &layout().backups().join(name), &elsewhere.join(name));
    let order = Erase {
        ids: vec!["R3".to_owned()],
        reason: "asked for".to_owned(),
        ..Erase::default()
    };
    store.erase(&order, NOW, &mut |_, _| {}).expect("an erasure");
    store.close().expect("close");
    (disk, Layout::of_folder(elsewhere.join(name)))
}

/// The files of the store that hold what only R3 said, or its embedding, unpacked where they are packed.
fn holding(disk: &CrashDisk, folder: &Path) -> Vec<PathBuf> {
    let row: Vec<u8> = vector(41).iter().flat_map(|part| part.to_le_bytes()).collect();
    let mut found = Vec::new();
    for name in disk.list(folder).unwrap_or_default() {
        let path = folder.join(name);
        if disk.open(&path, Access::Read).is_err() {
            found.extend(holding(disk, &path));
            continue;
        }
        let log = archive::open(disk, &path).expect("a file").log;
        let (mut bytes, length) = (Vec::new(), log.length().expect("a length"));
        read_upto(&*log, &mut bytes, 0, length as usize).expect("bytes");
        let holds = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
        if holds(b"label 3 ") || holds(&row) {
            found.push(path);
        }
    }
    found
}

fn bring_back(disk: &CrashDisk, source: &Layout, is_asked_for: bool) -> Result<()> {
    let mut store = open(disk, Durability::Full)?;
    let wanted = Restoring {
        bring_back: is_asked_for,
        ..Restoring::default()
    };
    let turns = Plainly(RefCell::new(&mut store));
    restore(&turns, source, wanted, &|| NOW + 1, &mut |_, _| {})
}

/// Whether R3 is there; the log says so then, and tells of the erasure otherwise.
fn is_back(disk: &CrashDisk, what: &str) -> bool {
    let store = open(disk, Durability::Full).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    let report = Store::verify(disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid(), "{what}: {report:?}");
    let known = contents(&store);
    let is_there = known.contains_key("R3");
    let is_told = known.keys().any(|id| id.starts_with("erasure:returned:"));
    assert_eq!(is_there, is_told, "{what}");
    assert!(
        is_told || known.keys().any(|id| id.starts_with("erasure:")),
        "{what}: the erasure is told of"
    );
    assert!(known.contains_key("R1") && known.contains_key("R4"), "{what}");
    is_there
}

#[test]
fn it_comes_back_only_if_asked_for() {
    let (disk, source) = prepared();
    assert!(
        !holding(&disk, source.folder()).is_empty(),
        "the test looks in the right places"
    );
    bring_back(&disk, &source, false).expect("a restore");
    assert!(!is_back(&disk, "not asked for"));
    assert_eq!(holding(&disk, layout().folder()), Vec::<PathBuf>::new());
    let store = open(&disk, Durability::Full).expect("open");
    let known = contents(&store);
    let wanted = ["R1", "R4", "embedding of R1", "embedding of R4"];
    assert!(wanted.iter().all(|name| known.contains_key(*name)), "{known:?}");
    drop(store);
    // Twice is once: what is known here by now tells what has to go.
    bring_back(&disk, &source, false).expect("a restore");
    assert!(!is_back(&disk, "again"));
    bring_back(&disk, &source, true).expect("a restore");
    assert!(is_back(&disk, "asked for"));
    assert!(!holding(&disk, layout().folder()).is_empty());
}

#[test]
fn at_every_operation_nothing_is_left_of_it() {
    let (whole, source) = prepared();
    let first = whole.steps() + 1;
    bring_back(&whole, &source, false).expect("a restore");
    let is_restored = |disk: &CrashDisk| {
        let store = open(disk, Durability::Full).expect("open");
        contents(&store).keys().any(|id| id.starts_with("erasure:upheld:"))
    };
    assert!(is_restored(&whole));
    let (mut done, mut undone, mut unfinished) = (0, 0, 0);
    for step in first..=whole.steps() {
        let (disk, source) = prepared();
        disk.crash_at(step);
        let _ = bring_back(&disk, &source, false);
        assert!(disk.crashed());
        for (after, what) in [
            (disk.after_kill(), format!("killed at {step}")),
            (disk.after_crash(step), format!("power lost at {step}")),
        ] {
            unfinished += u64::from(!holding(&after, layout().folder()).is_empty());
            assert!(!is_back(&after, &what));
            assert_eq!(holding(&after, layout().folder()), Vec::<PathBuf>::new(), "{what}");
            // What was taken away stays so if the power fails once more.
            let again = after.after_crash(step + 1);
            assert!(!is_back(&again, &what));
            assert_eq!(
                holding(&again, layout().folder()),
                Vec::<PathBuf>::new(),
                "{what}, and again"
            );
            match is_restored(&again) {
                true => done += 1,
                false => undone += 1,
            }
        }
    }
    assert!(
        done > 10 && undone > 50 && unfinished > 20,
        "{done} {undone} {unfinished}"
    );
}

#[test]
fn at_every_operation_it_is_told_or_has_not_happened() {
    let (whole, source) = prepared();
    let first = whole.steps() + 1;
    bring_back(&whole, &source, true).expect("a restore");
    let (mut back, mut not) = (0, 0);
    for step in first..=whole.steps() {
        let (disk, source) = prepared();
        disk.crash_at(step);
        let _ = bring_back(&disk, &source, true);
        assert!(disk.crashed());
        for (after, what) in [
            (disk.after_kill(), format!("killed at {step}")),
            (disk.after_crash(step), format!("power lost at {step}")),
        ] {
            match is_back(&after, &what) {
                true => back += 1,
                false => not += 1,
            }
        }
    }
    assert!(back > 3 && not > 20, "{back} {not}");
}
