//! What somebody attaches or takes back stays so while another looks after the store, also in a new space.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::crash_disk::CrashDisk;
use crate::scenario::embedded::{DIM, vector};
use crate::scenario::{Action, START, draft, fresh_disk, layout, open};
use crate::upkeep::Upkeep;
use chronomemory::testing::store;
use chronomemory::testing::store::Turns;
use chronomemory::{Attachment, Disk, Durability, Layout, Result, Store};

/// Another process does something before one of the turns.
struct Beside<'a> {
    disk: &'a CrashDisk,
    store: RefCell<Store>,
    turns: Cell<usize>,
    at: usize,
    act: fn(&mut Store, u32) -> Result<()>,
}

impl Turns for Beside<'_> {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        self.turns.set(self.turns.get() + 1);
        if self.turns.get() == self.at {
            let mut other = open(self.disk, Durability::Full)?;
            (self.act)(&mut other, self.at as u32)?;
            other.close()?;
        }
        act(&mut self.store.borrow_mut())
    }
}

fn attach(store: &mut Store, space: &str, n: u32) -> Result<()> {
    let attachment = Attachment {
        space: Some(space),
        model: Some("a model"),
        dim: DIM,
        tokens: 0,
        ids: &["R1"].into_iter().collect(),
        rows: &vector(n),
    };
    store.attach(&attachment, &Arc::default(), None, START).map(|_| ())
}

fn filled() -> CrashDisk {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    store.commit(&draft(&Action::Batch(1)), START).expect("records");
    for n in 0..4 {
        attach(&mut store, "default", n).expect("an embedding");
    }
    store.close().expect("close");
    disk
}

fn into_a_new_space(store: &mut Store, n: u32) -> Result<()> {
    attach(store, "born-beside", n)
}

/// Lets somebody attach into a space of their own before every turn of a long task, one at a time.
fn beside_every_turn(prepare: fn() -> CrashDisk, task: fn(&Beside<'_>) -> Result<()>) {
    before_every_turn(prepare, into_a_new_space, task, |_| {});
}

/// Lets somebody act before every turn of a long task, one at a time, and looks at the store afterwards.
fn before_every_turn(
    prepare: fn() -> CrashDisk,
    act: fn(&mut Store, u32) -> Result<()>,
    task: fn(&Beside<'_>) -> Result<()>,
    look: fn(&Store),
) {
    let mut at = 1;
    loop {
        let disk = prepare();
        let store = open(&disk, Durability::Full).expect("open");
        let beside = Beside {
            disk: &disk,
            store: RefCell::new(store),
            turns: Cell::new(0),
            at,
            act,
        };
        task(&beside).expect("the task ends well");
        let turns = beside.turns.get();
        beside.store.into_inner().close().expect("close");
        if turns < at {
            assert!(at > 4, "there were hardly any turns");
            return;
        }
        let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("a look at the files");
        assert!(report.damage.is_empty(), "before turn {at}: {:?}", report.damage);
        look(&open(&disk, Durability::Full).expect("open"));
        at += 1;
    }
}

#[test]
fn of_a_compaction() {
    beside_every_turn(filled, |beside| {
        store::compact(beside, true, &|| START, &mut |_, _| {}).map(|_| ())
    });
}

#[test]
fn of_a_repair() {
    let prepare = || {
        let disk = filled();
        let path = layout().rows("default", 0);
        let rows = disk.open(&path, chronomemory::Access::Write).expect("rows");
        rows.write_at(b"damage", 3 * 4 * DIM as u64).expect("a write");
        rows.sync().expect("a sync");
        disk
    };
    beside_every_turn(prepare, |beside| {
        store::repair(beside, false, &|| START, &mut |_, _| {}).map(|_| ())
    });
}

#[test]
fn of_a_restore() {
    let prepare = || {
        let disk = filled();
        let mut store = open(&disk, Durability::Full).expect("open");
        store.backup(START, &mut |_, _| {}).expect("a backup");
        store.close().expect("close");
        disk
    };
    beside_every_turn(prepare, |beside| {
        let backups = layout().backups();
        let name = beside.disk.list(&backups).expect("a list").remove(0);
        let source = Layout::of_folder(backups.join(name));
        store::restore(beside, &source, store::Restoring::default(), &|| START, &mut |_, _| {})
    });
}

#[test]
fn what_is_taken_back_beside_a_compaction_does_not_return() {
    let replace_and_detach = |store: &mut Store, n: u32| {
        attach(store, "default", 50 + n)?;
        store
            .change_embeddings(START, |known| known.detach(None, &["R1".to_owned()], &Arc::default()))
            .map(|_| ())
    };
    before_every_turn(
        filled,
        replace_and_detach,
        |beside| store::compact(beside, true, &|| START, &mut |_, _| {}).map(|_| ()),
        |store| assert_eq!(store.embeddings().embedding(None, "R1").expect("no damage"), None),
    );
}
