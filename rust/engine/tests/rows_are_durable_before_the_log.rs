//! A row is on disk whenever an event on disk names it, whoever wrote it and whoever synced.

use crate::crash_disk::CrashDisk;
use crate::scenario::embedded::{DIM, attach_to, vector};
use crate::scenario::{Action, START, draft, fresh_disk, layout, open};
use chronomemory::testing::store::Shared;
use chronomemory::{Access, Disk, Durability, Error, Query, Store, VectorQuestion};

fn attach(store: &mut Store, id: &str, n: u32) -> chronomemory::Result<()> {
    attach_to(store, &[id.to_owned()], n, START)
}

fn bytes(n: u32) -> Vec<u8> {
    vector(n).iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn another_process_that_syncs_the_log_syncs_its_rows() {
    for seed in 0..40 {
        let disk = fresh_disk();
        let mut one = open(&disk, Durability::Off).expect("open");
        one.commit(&draft(&Action::Batch(1)), START).expect("records");
        attach(&mut one, "R1", 7).expect("an embedding");
        let mut other = open(&disk, Durability::Full).expect("open");
        other.commit(&draft(&Action::Put(9)), START).expect("a record");
        // Only the other one has synced, and only a record of its own.
        let after = disk.after_crash(seed);
        let store = open(&after, Durability::Full).expect("open");
        assert!(store.state().get("R2").is_some());
        assert_eq!(
            store.embeddings().embedding(None, "R1").expect("no damage"),
            Some(bytes(7)),
            "seed {seed}"
        );
        assert!(
            Store::verify(&after, &layout(), 1, &mut |_, _| {})
                .expect("verify")
                .valid()
        );
    }
}

#[test]
fn a_sync_of_rows_that_fails_stops_every_writer() {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    store.commit(&draft(&Action::Batch(1)), START).expect("records");
    attach(&mut store, "R1", 3).expect("an embedding");
    disk.fail_next_sync();
    assert!(attach(&mut store, "R2", 4).is_err());
    assert!(matches!(attach(&mut store, "R2", 4), Err(Error::Poisoned { .. })));
    drop(store);
    // Whoever opens it later copies log and rows into fresh files, which the disk must take.
    let mut later = open(&disk, Durability::Full).expect("open");
    attach(&mut later, "R3", 5).expect("a write after recovery");
    let after = disk.after_crash(1);
    let store = open(&after, Durability::Full).expect("open");
    assert_eq!(
        store.embeddings().embedding(None, "R1").expect("no damage"),
        Some(bytes(3))
    );
    assert_eq!(store.embeddings().embedding(None, "R2").expect("no damage"), None);
    assert_eq!(
        store.embeddings().embedding(None, "R3").expect("no damage"),
        Some(bytes(5))
    );
    assert!(
        Store::verify(&after, &layout(), 1, &mut |_, _| {})
            .expect("verify")
            .valid()
    );
}

#[test]
fn a_write_that_fails_leaves_its_place_to_the_next() {
    let steps = |disk: &CrashDisk| {
        let mut store = open(disk, Durability::Normal).expect("open");
        store.commit(&draft(&Action::Batch(1)), START).expect("records");
        attach(&mut store, "R1", 3).expect("an embedding");
        store
    };
    let whole = fresh_disk();
    let mut store = steps(&whole);
    let before = whole.steps();
    attach(&mut store, "R2", 4).expect("an embedding");
    for step in before + 1..=whole.steps() {
        let disk = fresh_disk();
        let mut store = steps(&disk);
        disk.fail_at(step);
        let failed = attach(&mut store, "R2", 4).is_err();
        store.close().ok();
        let mut store = open(&disk, Durability::Normal).expect("open");
        attach(&mut store, "R3", 5).expect("the next one");
        assert_eq!(
            store.embeddings().embedding(None, "R1").expect("no damage"),
            Some(bytes(3))
        );
        assert_eq!(
            store.embeddings().embedding(None, "R3").expect("no damage"),
            Some(bytes(5))
        );
        let second = store.embeddings().embedding(None, "R2").expect("no damage");
        assert!(second.is_none() == failed, "step {step}");
        store.sync().expect("a sync");
        assert!(
            Store::verify(&disk, &layout(), 1, &mut |_, _| {})
                .expect("verify")
                .valid()
        );
    }
}

#[test]
fn no_byte_of_a_row_can_change_unseen() {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    store.commit(&draft(&Action::Batch(1)), START).expect("records");
    for (id, n) in [("R1", 3), ("R2", 4), ("R3", 5)] {
        attach(&mut store, id, n).expect("an embedding");
    }
    drop(store);
    let path = layout().rows("default", 0);
    let file = disk.open(&path, Access::Write).expect("the rows");
    let question = VectorQuestion {
        k: 9,
        query: Query::default(),
        ..VectorQuestion::default()
    };
    for offset in (0..file.length().expect("a length")).step_by(37) {
        let mut byte = [0];
        file.read_at(&mut byte, offset).expect("a byte");
        file.write_at(&[byte[0] ^ 0x10], offset).expect("a write");
        let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
        let row = offset / (4 * DIM as u64);
        assert_eq!(report.damage.len(), 1, "byte {offset}");
        assert_eq!(report.damage[0].offset, row * 4 * DIM as u64);
        let store = open(&disk, Durability::Full).expect("open");
        let store = Shared::new(store);
        let found = store.nearest(&question, &vector(3), DIM).expect("a search");
        let rows: Vec<u64> = found[0].iter().map(|near| u64::from(near.row)).collect();
        assert!(rows.len() == 2 && !rows.contains(&row), "byte {offset}: {rows:?}");
        assert_eq!(store.read_guard().embeddings().spaces()[0].damaged, 1);
        file.write_at(&byte, offset).expect("a write");
    }
    assert!(
        Store::verify(&disk, &layout(), 1, &mut |_, _| {})
            .expect("verify")
            .valid()
    );
}

#[test]
fn the_name_of_a_file_is_made_durable_by_whoever_finds_it() {
    for seed in 0..40 {
        let disk = fresh_disk();
        let mut store = open(&disk, Durability::Full).expect("open");
        store.commit(&draft(&Action::Batch(1)), START).expect("records");
        // Somebody created it and died before the folder was synced.
        disk.create_dir(&layout().vectors()).expect("a folder");
        disk.sync_dir(layout().folder()).expect("a sync");
        disk.create(&layout().rows("default", 0)).expect("a file");
        attach(&mut store, "R1", 3).expect("an embedding");
        let after = disk.after_crash(seed);
        let store = open(&after, Durability::Full).expect("open");
        let found = store.embeddings().embedding(None, "R1").expect("no damage");
        assert_eq!(found, Some(bytes(3)), "seed {seed}");
    }
}
