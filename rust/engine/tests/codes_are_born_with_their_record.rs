//! A record, its vector and the codes of its tokens are there together or not at all, wherever a crash comes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::crash_disk::CrashDisk;
use crate::scenario::embedded::{DIM, vector};
use crate::scenario::{START, fresh_disk, label, layout, open, record};
use crate::upkeep::Upkeep;
use chronomemory::{AtomicBatch, Attachment, Damage, Draft, Durability, Error, Result, Store, token_rows};

const TOKEN_DIM: usize = 40;
/// A row of so many codes spans more than a sector.
const ROOM: usize = 48;
const SPACE: &str = "tokens";
const RECORDS: u32 = 4;
/// The change behind which the store is compacted.
const COMPACTED_AFTER: u32 = RECORDS + 1;

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
    let change = AtomicBatch {
        draft: &draft,
        attachments: &attachments,
        unless_changed: None,
        at: None,
    };
    store.commit_change(&change, START).map(|_| ())
}

/// How many changes were acknowledged before the disk failed, and the rows of how many of them are on disk for certain.
struct Played {
    acknowledged: u32,
    synced: u32,
}

/// Bears records, each again after a while, and compacts in between, which moves rows to another file.
fn play(disk: &CrashDisk, mode: Durability) -> Played {
    let mut played = Played {
        acknowledged: 0,
        synced: 0,
    };
    let Ok(mut store) = open(disk, mode) else { return played };
    for n in 0..2 * RECORDS {
        if bear(&mut store, n).is_err() {
            return played;
        }
        played.acknowledged = n + 1;
        if n == COMPACTED_AFTER {
            if store.compact(true, START, &mut |_, _| {}).is_err() {
                return played;
            }
            played.synced = n + 1;
        }
        if mode == Durability::Full {
            played.synced = n + 1;
        }
    }
    played
}

/// What was found after a crash.
struct Found {
    /// Which change each record is as of.
    known: BTreeMap<u32, u32>,
    /// How many rows are away.
    lost: usize,
}

/// Looks at each record: its vector and its codes are of the same change as itself. Of what was never synced a row may be away,
/// which verify tells; it is never that of another change.
fn look(disk: &CrashDisk, synced: u32, mode: Durability, what: &str) -> Found {
    let report = Store::verify(disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    let is_lost_row = |damage: &Damage| damage.kind.is_of_row() && mode != Durability::Full;
    assert!(report.damage.iter().all(is_lost_row), "{what}: {:?}", report.damage);
    let store = open(disk, Durability::Full).expect("open");
    let (mut known, mut lost) = (BTreeMap::new(), 0);
    for at in 0..RECORDS {
        let id = format!("R{at}");
        let Some(here) = store.state().get(&id) else { continue };
        let said = |n: &u32| String::from_utf8_lossy(&here).contains(&format!("{:?}", label(*n)));
        let n = (0..2 * RECORDS)
            .filter(|n| n % RECORDS == at)
            .find(said)
            .expect("a label");
        for (space, row) in [(None, vector(n)), (Some(SPACE), codes(n))] {
            match store.embeddings().embedding(space, &id) {
                Err(Error::Corrupted(_)) if n >= synced => lost += 1,
                outcome => {
                    let there = outcome.unwrap_or_else(|fault| panic!("{what}: {id} in {space:?}: {fault}"));
                    assert_eq!(there, Some(bytes(&row)), "{what}: {id} in {space:?}");
                }
            }
        }
        known.insert(at, n);
    }
    // A row that a later change replaced may be away as well, so verify may tell of more.
    assert!(lost <= report.damage.len(), "{what}: {lost} rows are away: {report:?}");
    Found { known, lost }
}

/// Crashes at every other step, twice each; returns how many rows were away in all.
fn crash_in(mode: Durability) -> usize {
    let whole = fresh_disk();
    assert_eq!(play(&whole, mode).acknowledged, 2 * RECORDS);
    let mut lost = 0;
    for step in (1..=whole.steps()).step_by(2) {
        let disk = fresh_disk();
        disk.crash_at(step);
        let Played { acknowledged, synced } = play(&disk, mode);
        for seed in 0..2 {
            let what = format!("{mode:?}, step {step}, seed {seed}");
            let after = disk.after_crash(seed);
            let found = look(&after, synced, mode, &what);
            lost += found.lost;
            // Changes come one after the other: what is there is there up to one of them.
            let last = found.known.values().max().map_or(0, |last| last + 1);
            let expected: BTreeMap<u32, u32> = (0..last).map(|n| (n % RECORDS, n)).collect();
            assert_eq!(found.known, expected, "{what}: the state is that of no moment");
            assert!(last <= acknowledged + 1, "{what}: nobody wrote {last}");
            assert!(last >= synced, "{what}: {synced} were promised");
            // Whoever goes on writes all three again, and they are there whatever was away before.
            let mut store = open(&after, Durability::Full).expect("open");
            bear(&mut store, 2 * RECORDS - 1).expect("a write after recovery");
            for (space, row) in [(None, vector(2 * RECORDS - 1)), (Some(SPACE), codes(2 * RECORDS - 1))] {
                let there = store
                    .embeddings()
                    .embedding(space, &format!("R{}", RECORDS - 1))
                    .expect("a row");
                assert_eq!(there, Some(bytes(&row)), "{what}: in {space:?}");
            }
            drop(store);
            let again = look(&after, synced, mode, &what);
            assert_eq!(again.known[&(RECORDS - 1)], 2 * RECORDS - 1);
            assert!(again.lost <= found.lost, "{what}: a write after recovery lost a row");
        }
    }
    lost
}

#[test]
fn a_crash_leaves_all_of_it_or_nothing() {
    assert_eq!(crash_in(Durability::Full), 0);
}

#[test]
fn where_a_mode_lets_rows_go_a_crash_leaves_its_own_or_none() {
    // Were none ever away, nothing would have been looked at.
    assert!(crash_in(Durability::Normal) > 0);
    assert!(crash_in(Durability::Off) > 0);
}

#[test]
fn codes_that_a_record_loses_stay_lost() {
    for seed in 0..20 {
        let disk = fresh_disk();
        let mut store = open(&disk, Durability::Full).expect("open");
        (0..RECORDS).for_each(|n| bear(&mut store, n).expect("a change"));
        let ids = ["R1".to_owned()];
        assert_eq!(
            store
                .change_embeddings(START, |known| known.detach(Some(SPACE), &ids, &Arc::default()))
                .expect("codes"),
            1
        );
        let after = disk.after_crash(seed);
        let store = open(&after, Durability::Full).expect("open");
        let has = |space, id: &str| store.embeddings().embedding(space, id).expect("no damage").is_some();
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
