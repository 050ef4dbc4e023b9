//! No search waits until the index of the text is sealed, and nothing is lost that was written meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::scenario::{START, fresh_disk, open, write_words};
use chronomemory::testing::store::{DueWork, Shared, seal_state, seal_text, search};
use chronomemory::{Durability, RecordSearch};

/// More than may change before the index should be sealed, in batches that are taken in one by one.
const RECORDS: usize = 24_000;
const BATCH: usize = 6_000;

fn found(store: &Shared, text: &str) -> Vec<(Vec<u8>, u64)> {
    let wanted = RecordSearch {
        text: Some(text.to_owned()),
        limit: 20,
        ..RecordSearch::default()
    };
    let hits = search(store, &wanted).expect("a search");
    hits.into_iter().map(|hit| (hit.record, hit.score.to_bits())).collect()
}

fn wants_sealing(store: &Shared) -> bool {
    DueWork::of(&store.read_guard(), START).sealing
}

fn seal(store: &Shared) {
    seal_state(store).expect("sealing");
    seal_text(store).expect("sealing");
}

fn ragged() -> Shared {
    let store = Shared::new(open(&fresh_disk(), Durability::Off).expect("open"));
    write_words(&store, 0..1, "first");
    found(&store, "first");
    for start in (0..RECORDS).step_by(BATCH) {
        write_words(&store, start..start + BATCH, "apple");
        found(&store, "apple");
    }
    store
}

#[test]
fn whoever_is_not_asked_seals() {
    let store = ragged();
    assert!(wants_sealing(&store));
    let before = found(&store, "apple number7");
    assert!(wants_sealing(&store), "a search seals nothing");
    seal(&store);
    assert!(!wants_sealing(&store));
    assert_eq!(found(&store, "apple number7"), before);
    seal_text(&store).expect("nothing to do");
    assert_eq!(found(&store, "apple number7"), before);
}

#[test]
fn every_write_is_seen_while_it_is_sealed() {
    let store = ragged();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            seal_text(&store).expect("sealing");
            is_done.store(true, Ordering::Relaxed);
        });
        for turn in 0.. {
            let word = format!("turn{turn}");
            write_words(&store, turn..turn + 3, &word);
            assert_eq!(found(&store, &word).len(), 3, "turn {turn}");
            if is_done.load(Ordering::Relaxed) && turn >= 20 {
                break;
            }
        }
    });
    assert!(!wants_sealing(&store));
    assert_eq!(found(&store, "number23999").len(), 1);
}

#[test]
fn far_too_much_is_sealed_at_once() {
    let store = ragged();
    let mut is_sealed = false;
    for turn in 0..12 {
        write_words(&store, 0..BATCH, &format!("turn{turn}"));
        found(&store, "apple");
        seal_state(&store).expect("sealing");
        is_sealed |= !wants_sealing(&store);
    }
    assert!(is_sealed, "somebody has to, if nobody else does");
    assert_eq!(found(&store, "turn11").len(), 20);
    assert!(found(&store, "turn10").is_empty());
}
