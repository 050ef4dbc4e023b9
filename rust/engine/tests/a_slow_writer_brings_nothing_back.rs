//! A slow writer of what is derived brings nothing back that another erases meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::around::{Around, Twist};
use crate::crash_disk::CrashDisk;
use crate::scenario::{START, fresh_disk, layout, open, write_words};
use crate::upkeep::Upkeep;
use chronomemory::testing::store::{Shared, seal_state, search};
use chronomemory::{Disk, Durability, Erase, Options, RecordSearch, SealTerms, Store};

/// As many as an index on disk is made for.
const RECORDS: usize = 20_001;
/// The record that is erased.
const GONE: &str = "R7";

/// When the other one comes.
#[derive(Clone, Copy, PartialEq)]
enum Comes {
    BeforeTheDraft,
    BeforeTheName,
}

/// Another process erases a record when this one is about to write down a file whose name ends so.
#[derive(Clone)]
struct Meanwhile {
    comes: Comes,
    ending: &'static str,
    /// How the names of files begin that hold what is erased.
    of_before: &'static str,
    is_over: Arc<AtomicBool>,
}

impl Meanwhile {
    fn erase(&self, disk: &CrashDisk, path: &Path, now: Comes) {
        let is_it = path.starts_with(layout().indexes()) && path.to_string_lossy().ends_with(self.ending);
        if now != self.comes || !is_it || self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut other = open(disk, Durability::Off).expect("open");
        let order = Erase {
            ids: vec![GONE.to_owned()],
            reason: "asked for".to_owned(),
            ..Erase::default()
        };
        let told = other.erase(&order, START + 1, &mut |_, _| {}).expect("an erasure");
        assert!(told.seq.is_some());
        other.close().expect("close");
    }
}

impl Twist for Meanwhile {
    fn before_create(&self, disk: &CrashDisk, path: &Path) {
        self.erase(disk, path, Comes::BeforeTheDraft);
    }

    fn before_rename(&self, disk: &CrashDisk, from: &Path) {
        self.erase(disk, from, Comes::BeforeTheName);
        let name = from.file_name().unwrap_or_default().to_string_lossy();
        let is_of_before = self.is_over.load(Ordering::Relaxed) && name.starts_with(self.of_before);
        assert!(!is_of_before || !disk.exists(from), "{name} gets its name after all");
    }
}

fn slowly(disk: &CrashDisk, comes: Comes, of_before: &'static str, seal: SealTerms) -> (Shared, Arc<AtomicBool>) {
    let is_over = Arc::new(AtomicBool::default());
    let twist = Meanwhile {
        comes,
        ending: ".tmp",
        of_before,
        is_over: Arc::clone(&is_over),
    };
    let disk = Around {
        inner: disk.clone(),
        twist,
    };
    let options = Options {
        durability: Durability::Off,
        seal,
        ..Options::default()
    };
    let store = Store::open(Arc::new(disk), layout(), options, &mut |_, _| {}).expect("open");
    (Shared::new(store), is_over)
}

#[test]
fn of_the_words() {
    for comes in [Comes::BeforeTheDraft, Comes::BeforeTheName] {
        let disk = fresh_disk();
        let (store, is_over) = slowly(&disk, comes, "20002-", SealTerms::default());
        write_words(&store, 0..RECORDS, "apple");
        let wanted = RecordSearch {
            text: Some("number7".to_owned()),
            ..RecordSearch::default()
        };
        search(&store, &wanted).expect("a search");
        assert!(is_over.load(Ordering::Relaxed), "there was something to write down");
        let left = disk.list(&layout().text_indexes()).expect("a folder");
        assert!(left.iter().all(|name| !name.starts_with("20002-")), "{left:?}");
        assert!(search(&store, &wanted).expect("a search").is_empty());
    }
}

#[test]
fn of_the_places_of_a_record() {
    for comes in [Comes::BeforeTheDraft, Comes::BeforeTheName] {
        let disk = fresh_disk();
        let (store, is_over) = slowly(&disk, comes, "1-11-", SealTerms::default());
        write_words(&store, 0..10, "apple");
        let mut other = open(&disk, Durability::Off).expect("open");
        other.compact(true, START, &mut |_, _| {}).expect("a compaction");
        other.close().expect("close");
        store.read(|store| store.past().of_record("R1")).expect("a history");
        assert!(is_over.load(Ordering::Relaxed), "there was something to write down");
        let left = disk.list(&layout().indexes()).expect("a folder");
        assert!(left.iter().all(|name| !name.contains(".history")), "{left:?}");
    }
}

#[test]
fn of_the_segments_of_a_state() {
    for comes in [Comes::BeforeTheDraft, Comes::BeforeTheName] {
        let disk = fresh_disk();
        let seal = SealTerms {
            events: 1,
            fewest: 1,
            ..SealTerms::default()
        };
        let (store, is_over) = slowly(&disk, comes, "0-11-", seal);
        write_words(&store, 0..10, "apple");
        // The draft may be gone.
        let _ = seal_state(&store);
        assert!(is_over.load(Ordering::Relaxed), "there was something to write down");
        let left = disk.list(&layout().segments()).expect("a folder");
        assert!(left.iter().all(|name| !name.starts_with("0-11-")), "{left:?}");
        let is_gone = store.read(|store| Ok(store.state().get(GONE).is_none()));
        assert!(is_gone.expect("a read"));
    }
}
