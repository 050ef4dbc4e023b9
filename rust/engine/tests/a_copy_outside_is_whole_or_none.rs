//! Crashed or failed at any operation of making a copy outside, what looks like a copy is whole.
//!
//! The store knows of every place that holds a byte of it.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::around::{Around, Twist};
use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, START, contents, draft, fresh_disk, layout, open, perform};
use crate::upkeep::Upkeep;
use chronomemory::testing::disk::read_whole;
use chronomemory::testing::store::{Turns, copy_out, forget, list};
use chronomemory::{Access, CopyMade, CopyOrder, Disk, Durability, Erase, Error, Layout, Options, Result, Store};

const NOW: i64 = START + 5_000_000;
const ELSEWHERE: &str = "/elsewhere/copies";

fn order(keep: Option<u64>) -> CopyOrder {
    CopyOrder {
        to: PathBuf::from(ELSEWHERE),
        keep,
    }
}

fn make(store: &mut Store, now: i64, keep: Option<u64>) -> Result<CopyMade> {
    store.copy_out(&order(keep), now, &mut |_, _| {})
}

/// A store with a past and rows, of which a copy lies outside already.
fn prepared() -> CrashDisk {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    let actions = [
        Action::Put(1),
        Action::Put(3),
        Action::Attach(1),
        Action::Compact(true),
        Action::Put(4),
    ];
    for (number, action) in actions.iter().enumerate() {
        perform(&disk, &mut store, action, START + 1000 * number as i64).expect("an action");
    }
    make(&mut store, NOW, None).expect("a copy");
    store.commit(&draft(&Action::Put(5)), NOW + 10).expect("a commit");
    store.close().expect("close");
    disk
}

fn names(disk: &CrashDisk) -> Vec<String> {
    disk.list(Path::new(ELSEWHERE)).unwrap_or_default()
}

/// Whether a folder or one in it has a file.
fn has_files(disk: &CrashDisk, folder: &Path) -> bool {
    let inner = disk.list(folder).unwrap_or_default();
    inner.iter().any(|name| {
        let path = folder.join(name);
        disk.status(&path).is_ok() || has_files(disk, &path)
    })
}

/// What holds at any moment, once the store is open again; gives how many copies are whole.
fn check(disk: &CrashDisk, what: &str) -> usize {
    let mut store = open(disk, Durability::Full).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    let report = Store::verify(disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid(), "{what}: {report:?}");
    assert!(contents(&store).contains_key("R5"), "{what}");
    let dry = Erase {
        ids: vec!["R3".to_owned()],
        reason: "asked for".to_owned(),
        dry_run: true,
        ..Erase::default()
    };
    let told = store.erase(&dry, NOW + 20, &mut |_, _| {}).expect("a dry run");
    let mut whole = 0;
    for name in names(disk) {
        let folder = Path::new(ELSEWHERE).join(&name);
        if has_files(disk, &folder) {
            let is_begun = name.ends_with(".tmp");
            // Of one that is not done there may be too little to hold it.
            let is_told = told.copies.contains(&folder.display().to_string());
            assert!(is_told || is_begun, "{what}: {name} is not known: {told:?}");
        }
        if !name.ends_with(".tmp") {
            let copy = Store::verify(disk, &Layout::of_folder(folder), 1, &mut |_, _| {}).expect("verify");
            assert!(copy.valid() && copy.events > 0, "{what}: {name}: {copy:?}");
            whole += 1;
        }
    }
    // The next one is made, and what was begun before is gone.
    make(&mut store, NOW + 30, None).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    let left = names(disk).into_iter().filter(|name| name.ends_with(".tmp"));
    for name in left {
        assert!(!has_files(disk, &Path::new(ELSEWHERE).join(&name)), "{what}: {name}");
    }
    whole
}

#[test]
fn at_every_operation_of_it() {
    let whole = prepared();
    let first = whole.steps() + 1;
    let mut store = open(&whole, Durability::Full).expect("open");
    make(&mut store, NOW + 15, Some(1)).expect("a copy");
    assert_eq!(names(&whole).len(), 1, "the older one went");
    let (mut copies, mut runs) = ([0; 3], 0);
    for step in first..=whole.steps() {
        let disk = prepared();
        disk.crash_at(step);
        if let Ok(mut store) = open(&disk, Durability::Full) {
            let _ = make(&mut store, NOW + 15, Some(1));
        }
        assert!(disk.crashed());
        for (after, what) in [
            (disk.after_kill(), format!("killed at {step}")),
            (disk.after_crash(step), format!("power lost at {step}")),
        ] {
            let found = check(&after, &what);
            assert!((1..=2).contains(&found), "{what}: never without a copy: {found}");
            copies[found] += 1;
            runs += 1;
        }
    }
    assert!(runs > 60 && copies[1] > 20 && copies[2] > 1, "{copies:?}");
}

#[test]
fn a_disk_that_fails_leaves_no_half_of_it() {
    let whole = prepared();
    let first = whole.steps() + 1;
    let mut store = open(&whole, Durability::Full).expect("open");
    make(&mut store, NOW + 15, None).expect("a copy");
    let mut failed = 0;
    for step in first..=whole.steps() {
        let disk = prepared();
        disk.fail_at(step);
        let outcome = open(&disk, Durability::Full).and_then(|mut store| make(&mut store, NOW + 15, None));
        failed += usize::from(outcome.is_err());
        check(&disk, &format!("failed at {step}"));
    }
    assert!(failed > 20, "{failed}");
}

/// A medium that gives back other bytes than it was given.
#[derive(Clone)]
struct Forgetful(&'static str);

impl Twist for Forgetful {
    fn before(&self, disk: &CrashDisk, path: &Path) {
        let text = path.to_string_lossy();
        let is_it = text.starts_with(ELSEWHERE) && text.contains(self.0);
        if let (true, Ok(file)) = (is_it, disk.open(path, Access::Write)) {
            file.write_at(b"#", 5).expect("a byte");
        }
    }
}

#[test]
fn what_cannot_be_read_again_is_no_copy() {
    for part in ["events.wal", ".json", ".wal.zst", ".f32"] {
        let disk = prepared();
        let before = names(&disk);
        let around = Arc::new(Around {
            inner: disk.clone(),
            twist: Forgetful(part),
        });
        let mut store = Store::open(around, layout(), Options::default(), &mut |_, _| {}).expect("open");
        let fault = make(&mut store, NOW + 15, None).expect_err(part);
        assert!(matches!(fault, Error::Refused { .. }), "{part}: {fault}");
        assert_eq!(names(&disk), before, "{part}");
    }
}

#[test]
fn an_erasure_tells_where_else_it_is() {
    let disk = prepared();
    let mut store = open(&disk, Durability::Full).expect("open");
    let turns = Plainly::of(&mut store);
    let copies = list(&turns).expect("a list");
    assert_eq!(copies.len(), 1);
    assert!(copies[0].is_verified && copies[0].is_there && !copies[0].is_inside && copies[0].bytes > 0);
    let erase = Erase {
        ids: vec!["R3".to_owned()],
        reason: "asked for".to_owned(),
        ..Erase::default()
    };
    let told = store.erase(&erase, NOW + 20, &mut |_, _| {}).expect("an erasure");
    assert_eq!(told.copies, [copies[0].path.display().to_string()]);
    // One that was made since does not hold it, whatever is asked.
    let made = make(&mut store, NOW + 2_000_000, Some(1)).expect("a copy");
    assert_eq!(made.removed.len(), 1);
    let told = store.erase(&erase, NOW + 40, &mut |_, _| {}).expect("nothing to do");
    assert!(told.copies.is_empty() && told.missing_copies.is_empty(), "{told:?}");
    // One that is gone by other hands may lie on a medium that is not attached.
    let elsewhere = Path::new("/moved");
    disk.rename(&made.path, elsewhere).expect("moved");
    let another = Erase {
        ids: vec!["R4".to_owned()],
        ..erase
    };
    let told = store.erase(&another, NOW + 50, &mut |_, _| {}).expect("an erasure");
    assert_eq!(told.missing_copies, [made.path.display().to_string()]);
    let turns = Plainly::of(&mut store);
    let paths = [made.path.clone()];
    assert_eq!(forget(&turns, &paths, &|| NOW).expect("forgotten"), 1);
    assert!(list(&turns).expect("a list").is_empty());
}

#[test]
fn what_others_put_there_stays() {
    let disk = prepared();
    let mine = Path::new(ELSEWHERE).join("20200101T000000");
    disk.create_dir(&mine).expect("a folder");
    let mut store = open(&disk, Durability::Full).expect("open");
    let first = names(&disk).remove(1);
    let note = Path::new(ELSEWHERE).join(&first).join("mine.txt");
    disk.create(&note).expect("a file").write_at(b"mine", 0).expect("bytes");
    make(&mut store, NOW + 2_000_000, Some(1)).expect("a copy");
    assert!(disk.exists(&mine), "nobody but us has copies of ours");
    let kept = Path::new(ELSEWHERE).join(format!("{first}.tmp")).join("mine.txt");
    assert_eq!(read_whole(&disk, &kept).expect("a look").as_deref(), Some(&b"mine"[..]));
}

#[test]
fn it_lies_outside_and_nowhere_else() {
    let disk = prepared();
    let mut store = open(&disk, Durability::Full).expect("open");
    for to in [
        "/project/.chronomemory",
        "/project/.chronomemory/backup/x",
        "/other/.chronomemory/x",
        "here",
        "/a/../b",
    ] {
        let order = CopyOrder {
            to: PathBuf::from(to),
            keep: None,
        };
        assert!(store.copy_out(&order, NOW, &mut |_, _| {}).is_err(), "{to}");
    }
    assert_eq!(names(&disk).len(), 1);
}

/// Hands out a store; before each turn somebody else writes, if asked.
struct Plainly<'a> {
    store: RefCell<&'a mut Store>,
    disk: Option<&'a CrashDisk>,
    turns: Cell<u32>,
}

impl<'a> Plainly<'a> {
    fn of(store: &'a mut Store) -> Self {
        Self {
            store: RefCell::new(store),
            disk: None,
            turns: Cell::new(0),
        }
    }
}

impl Turns for Plainly<'_> {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        self.turns.set(self.turns.get() + 1);
        if let Some(disk) = self.disk {
            let mut other = open(disk, Durability::Full)?;
            other.commit(&draft(&Action::Batch(self.turns.get())), NOW)?;
        }
        act(&mut self.store.borrow_mut())
    }
}

#[test]
fn others_write_meanwhile() {
    let disk = prepared();
    let mut store = open(&disk, Durability::Full).expect("open");
    let turns = Plainly {
        disk: Some(&disk),
        ..Plainly::of(&mut store)
    };
    let made = copy_out(&turns, &order(None), &|| NOW + 2_000_000, &mut |_, _| {}).expect("a copy");
    let copy = Layout::of_folder(made.path);
    let report = Store::verify(&disk, &copy, 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid() && report.tail.is_none());
    assert_eq!(report.last_seq, made.seq);
    assert!(turns.turns.get() > 2);
}
