//! Are a record, its vector and the codes of its tokens there together or not at all, wherever a crash comes?

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::scenario::embedded::{DIM, vector};
use crate::scenario::{START, fresh_disk, label, layout, open, record};
use chronomemory::testing::disk::CrashDisk;
use chronomemory::{Attachment, Change, Draft, Durability, Result, Store, token_rows};

const TOKEN_DIM: usize = 40;
/// A row of so many codes spans more than a sector.
const ROOM: usize = 48;
const SPACE: &str = "tokens";
const RECORDS: u32 = 4;
/// The others let rows go that were never synced, and say so.
const MODES: [Durability; 1] = [Durability::Full];

/// The codes of three tokens that no other record has.
fn codes(n: u32) -> Vec<f32> {
    let tokens: Vec<f32> = (0..3 * TOKEN_DIM as u32)
        .map(|at| ((n * 53 + at * 11) % 89) as f32 - 44.5)
        .collect();
    token_rows(&tokens, TOKEN_DIM, &[3], ROOM, 1).expect("codes")
}

fn bytes(row: &[f32]) -> Vec<u8> {
    row.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Writes a record with its vector and its codes, as one change.
fn bear(store: &mut Store, n: u32) -> Result<()> {
    let mut draft = Draft::default();
    let id = format!("R{}", n % RECORDS);
    draft.upsert_value(&record(&id, &label(n)), 0, None).expect("a record");
    let (rows, coded) = (vector(n), codes(n));
    let ids = [&id].into_iter().collect();
    let of = |space, dim, tokens, rows| Attachment {
        space,
        model: Some("a model"),
        dim,
        tokens,
        ids: &ids,
        rows,
    };
    let attachments = [of(None, DIM, 0, &rows), of(Some(SPACE), coded.len(), TOKEN_DIM, &coded)];
    let change = Change {
        draft: &draft,
        attachments: &attachments,
        unless_changed: None,
        at: None,
    };
    store.commit_change(&change, START).map(|_| ())
}

/// Bears records, each again after a while, and compacts in between, which moves rows to another file; returns how many changes
/// were acknowledged before the disk failed.
fn play(disk: &CrashDisk, mode: Durability) -> u32 {
    let Ok(mut store) = open(disk, mode) else { return 0 };
    for n in 0..2 * RECORDS {
        if bear(&mut store, n).is_err() {
            return n;
        }
        if n == RECORDS + 1 && store.compact(true, START, &mut |_, _| {}).is_err() {
            return n + 1;
        }
    }
    2 * RECORDS
}

/// Which change each record is as of; its vector and its codes are of the same.
fn found(disk: &CrashDisk, what: &str) -> BTreeMap<u32, u32> {
    let report = Store::verify(disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid(), "{what}: {:?}", report.damage);
    let store = open(disk, Durability::Full).expect("open");
    let mut known = BTreeMap::new();
    for at in 0..RECORDS {
        let id = format!("R{at}");
        let Some(here) = store.get(&id) else { continue };
        let said = |n: &u32| String::from_utf8_lossy(here).contains(&format!("{:?}", label(*n)));
        let n = (0..2 * RECORDS)
            .filter(|n| n % RECORDS == at)
            .find(said)
            .expect("a label");
        let embedding = |space| store.embedding(space, &id).expect("no damage");
        assert_eq!(embedding(None), Some(bytes(&vector(n))), "{what}: the vector of {id}");
        assert_eq!(
            embedding(Some(SPACE)),
            Some(bytes(&codes(n))),
            "{what}: the codes of {id}"
        );
        known.insert(at, n);
    }
    known
}

#[test]
fn a_crash_leaves_all_of_it_or_nothing() {
    for mode in MODES {
        let whole = fresh_disk();
        assert_eq!(play(&whole, mode), 2 * RECORDS);
        for step in (1..=whole.steps()).step_by(2) {
            let disk = fresh_disk();
            disk.crash_at(step);
            let acknowledged = play(&disk, mode);
            for seed in 0..2 {
                let what = format!("{mode:?}, step {step}, seed {seed}");
                let after = disk.after_crash(seed);
                let known = found(&after, &what);
                // Changes come one after the other: what is there is there up to one of them.
                let last = known.values().max().map_or(0, |last| last + 1);
                let expected: BTreeMap<u32, u32> = (0..last).map(|n| (n % RECORDS, n)).collect();
                assert_eq!(known, expected, "{what}: the state is that of no moment");
                assert!(last <= acknowledged + 1, "{what}: nobody wrote {last}");
                if mode == Durability::Full {
                    assert!(last >= acknowledged, "{what}: {acknowledged} were promised");
                }
                // Whoever goes on writes all three again.
                let mut store = open(&after, Durability::Full).expect("open");
                bear(&mut store, 2 * RECORDS - 1).expect("a write after recovery");
                drop(store);
                assert_eq!(found(&after, &what)[&(RECORDS - 1)], 2 * RECORDS - 1);
            }
        }
    }
}

#[test]
fn codes_that_a_record_loses_stay_lost() {
    for seed in 0..20 {
        let disk = fresh_disk();
        let mut store = open(&disk, Durability::Full).expect("open");
        (0..RECORDS).for_each(|n| bear(&mut store, n).expect("a change"));
        let ids = ["R1".to_owned()];
        assert_eq!(
            store.detach(Some(SPACE), &ids, &Arc::default(), START).expect("codes"),
            1
        );
        let after = disk.after_crash(seed);
        let store = open(&after, Durability::Full).expect("open");
        let has = |space, id: &str| store.embedding(space, id).expect("no damage").is_some();
        assert!(
            !has(Some(SPACE), "R1") && has(None, "R1") && has(Some(SPACE), "R2"),
            "seed {seed}"
        );
        assert!(
            Store::verify(&after, &layout(), 1, &mut |_, _| {})
                .expect("verify")
                .valid()
        );
    }
}
