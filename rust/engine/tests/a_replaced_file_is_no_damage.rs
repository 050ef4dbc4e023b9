//! A row is found that another process moves to another file between two looks, and damage is still told.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::around::{Around, Twist};
use crate::crash_disk::CrashDisk;
use crate::scenario::embedded::{DIM, attach_to, vector};
use crate::scenario::{Action, START, draft, fresh_disk, layout, open};
use crate::upkeep::Upkeep;
use chronomemory::testing::store::Shared;
use chronomemory::{Disk, Durability, Error, Options, RecordSearch, Store, VectorQuestion, Viewer};

/// Another process compacts right before rows are opened for the first time.
#[derive(Clone)]
struct Haste(Arc<AtomicBool>);

impl Twist for Haste {
    fn before(&self, disk: &CrashDisk, path: &Path) {
        if path.extension().is_some_and(|end| end == "f32") && self.0.swap(false, Ordering::Relaxed) {
            let mut other = open(disk, Durability::Full).expect("open");
            attach(&mut other, 2);
            other.compact(false, START, &mut |_, _| {}).expect("a compaction");
            assert!(!disk.exists(path));
        }
    }
}

fn attach(store: &mut Store, n: u32) {
    attach_to(store, &["R1".to_owned()], n, START).expect("an embedding");
}

fn reader(inner: &CrashDisk, is_due: bool) -> Shared {
    let twist = Haste(Arc::default());
    let disk = Around {
        inner: inner.clone(),
        twist: twist.clone(),
    };
    let store = Store::open(Arc::new(disk), layout(), Options::default(), &mut |_, _| {}).expect("open");
    twist.0.store(is_due, Ordering::Relaxed);
    Shared::new(store)
}

fn filled() -> CrashDisk {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    store.commit(&draft(&Action::Batch(1)), START).expect("records");
    attach(&mut store, 1);
    store.close().expect("close");
    disk
}

#[test]
fn an_embedding_is_found_where_it_went() {
    let expected: Vec<u8> = vector(2).iter().flat_map(|value| value.to_le_bytes()).collect();
    let found = reader(&filled(), true).embedding(&Viewer::Everyone, None, "R1");
    assert_eq!(found.expect("no damage"), Some(expected));
}

#[test]
fn a_file_that_is_gone_is_damage() {
    let disk = filled();
    disk.remove(&layout().rows("default", 0)).expect("a file");
    let found = reader(&disk, false).embedding(&Viewer::Everyone, None, "R1");
    assert!(matches!(found, Err(Error::Corrupted(_))), "{found:?}");
}

#[test]
fn a_search_follows_rows_that_move() {
    let question = VectorQuestion {
        k: 3,
        ..VectorQuestion::default()
    };
    let found = reader(&filled(), true).nearest(&question, &vector(2), DIM);
    let found = found.expect("no damage");
    let ids: Vec<&str> = found[0].iter().map(|near| near.id.as_str()).collect();
    assert_eq!(ids, ["R1"]);
}

#[test]
fn a_search_by_words_and_vectors_follows_them_too() {
    let search = RecordSearch {
        vector: Some(vector(2)),
        limit: 3,
        ..RecordSearch::default()
    };
    let hits = chronomemory::testing::store::search(&reader(&filled(), true), &search).expect("no damage");
    assert!(hits.first().is_some_and(|hit| hit.cosine.is_some()), "{hits:?}");
}
