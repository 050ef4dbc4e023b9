//! Archived, indexed, partly lost: every event is still told once, and what is out of reach is said.

use std::path::PathBuf;

use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, Model, contents, fresh_disk, layout, open, perform};
use chronomemory::testing::disk::read_whole;
use chronomemory::{Access, Disk, Durability, Error, Moment, Store};

const SEGMENTS: u32 = 4;

/// A closed store of several segments; the models by seq, and the seqs at which it was compacted.
fn store() -> (CrashDisk, Vec<(u64, Model)>, Vec<u64>) {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    let (mut models, mut retired) = (Vec::new(), Vec::new());
    for segment in 0..SEGMENTS {
        for n in 0..6 {
            let action = match n {
                3 => Action::Batch(segment + n),
                5 => Action::Delete(segment),
                _ => Action::Put(segment * 3 + n),
            };
            perform(
                &disk,
                &mut store,
                &action,
                crate::scenario::START + i64::from(segment * 10 + n),
            )
            .expect("a write");
            models.push((store.last_seq(), contents(&store)));
        }
        retired.push(store.last_seq());
        perform(
            &disk,
            &mut store,
            &Action::Compact(true),
            crate::scenario::START + i64::from(segment * 10 + 9),
        )
        .expect("compact");
    }
    perform(&disk, &mut store, &Action::Put(50), crate::scenario::START + 1000).expect("a write");
    models.push((store.last_seq(), contents(&store)));
    store.close().expect("close");
    (disk, models, retired)
}

fn reopened(disk: &CrashDisk) -> Store {
    open(disk, Durability::Full).expect("open")
}

fn histories(disk: &CrashDisk) -> Vec<Vec<Vec<u8>>> {
    let store = reopened(disk);
    (0..7)
        .map(|n| store.past().of_record(&format!("R{n}")).expect("history"))
        .collect()
}

fn files(disk: &CrashDisk, folder: &str) -> Vec<PathBuf> {
    let folder = layout().inside(folder);
    let mut names = disk.list(&folder).expect("a list");
    // Beside the indexes of archives lie the segments.
    names.retain(|name| name != "state");
    // Archives are named by their first seq.
    names.sort_by_key(|name| name.split('-').next().and_then(|n| n.parse::<u64>().ok()));
    names.into_iter().map(|name| folder.join(name)).collect()
}

fn overwrite(disk: &CrashDisk, path: &std::path::Path, bytes: &[u8]) {
    let file = disk.open(path, Access::Write).expect("the file");
    file.truncate(0).expect("truncate");
    file.write_at(bytes, 0).expect("write");
}

fn view(view: &chronomemory::View) -> Model {
    let everything = chronomemory::Query {
        faces: true,
        ..Default::default()
    };
    crate::scenario::model_of(everything.records(view.state()).expect("memory"))
}

#[test]
fn every_event_is_told_once_and_in_order() {
    let (disk, _, _) = store();
    let told: Vec<Vec<u8>> = histories(&disk).concat();
    let mut seqs: Vec<u64> = told
        .iter()
        .map(|line| {
            let event = chronomemory::parse_json(line).expect("a line");
            event.get("seq").and_then(chronomemory::Value::as_u64).expect("a seq")
        })
        .collect();
    let count = seqs.len();
    seqs.sort_unstable();
    seqs.dedup();
    assert_eq!(seqs.len(), count, "an event is told twice");
    assert_eq!(count as u32, SEGMENTS * (5 + 5) + 1, "an event is missing");
}

#[test]
fn an_index_that_is_gone_cut_altered_or_anothers_is_made_anew() {
    let (disk, _, _) = store();
    let expected = histories(&disk);
    let indexes = files(&disk, "index");
    assert_eq!(indexes.len(), SEGMENTS as usize);
    let good: Vec<Vec<u8>> = indexes
        .iter()
        .map(|path| read_whole(&disk, path).expect("read").expect("the index"))
        .collect();
    disk.remove(&indexes[0]).expect("remove");
    assert_eq!(histories(&disk), expected, "gone");
    for length in (0..good[1].len()).step_by(7) {
        overwrite(&disk, &indexes[1], &good[1][..length]);
        assert_eq!(histories(&disk), expected, "cut to {length}");
    }
    for at in 0..good[2].len() {
        let mut bad = good[2].clone();
        bad[at] ^= 1 << (at % 8);
        overwrite(&disk, &indexes[2], &bad);
        assert_eq!(histories(&disk), expected, "altered at {at}");
    }
    overwrite(&disk, &indexes[3], &good[0]);
    assert_eq!(histories(&disk), expected, "another archive's");
    for (path, good) in indexes.iter().zip(&good) {
        let made = read_whole(&disk, path).expect("read").expect("the index");
        assert_eq!(&made, good, "what was made anew is what was there");
    }
}

#[test]
fn every_moment_of_every_segment_can_be_seen() {
    let (disk, models, _) = store();
    let store = reopened(&disk);
    for (seq, model) in &models {
        let then = store.past().as_of(Moment::Seq(*seq)).expect("a view");
        assert_eq!((&view(&then), then.seq()), (model, *seq));
    }
}

#[test]
fn a_segment_without_its_base_starts_from_the_one_before_it() {
    let (disk, models, _) = store();
    let sentinels = reopened(&disk).past().replay(0).expect("the live log");
    let live = String::from_utf8_lossy(&sentinels[0]).into_owned();
    for base in files(&disk, "base") {
        let name = base.file_name().expect("a name").to_string_lossy().into_owned();
        if !live.contains(&name) {
            disk.remove(&base).expect("remove");
        }
    }
    let store = reopened(&disk);
    for (seq, model) in &models {
        let then = store.past().as_of(Moment::Seq(*seq)).expect("a view");
        assert_eq!((&view(&then), then.seq()), (model, *seq));
    }
    // All of it is there: what came before adds up to them.
    let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid() && !report.notes.iter().any(|note| note.contains("history unavailable")));
}

#[test]
fn what_is_out_of_reach_is_said_with_the_first_seq_that_is_not() {
    let (disk, models, retired) = store();
    let archives = files(&disk, "archive");
    disk.remove(&archives[1]).expect("remove");
    let store = reopened(&disk);
    for (seq, model) in &models {
        match store.past().as_of(Moment::Seq(*seq)) {
            Ok(then) => assert_eq!((&view(&then), *seq >= retired[1]), (model, true)),
            Err(Error::HistoryUnavailable { first_seq, .. }) => {
                assert_eq!((first_seq, *seq < retired[1]), (retired[1], true));
            }
            Err(fault) => panic!("{fault}"),
        }
    }
    // An answer without what is missing would look like all there ever was.
    for fault in [
        store.past().of_record("R1").err(),
        store.past().changed_since(1, false).err(),
    ] {
        assert!(matches!(fault, Some(Error::HistoryUnavailable { first_seq, .. }) if first_seq > retired[1]));
    }
    let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid() && report.notes.iter().any(|note| note.contains("history unavailable")));
}

#[test]
fn another_archive_is_damage() {
    let (disk, models, _) = store();
    let archives = files(&disk, "archive");
    let other = read_whole(&disk, &archives[0]).expect("read").expect("the archive");
    overwrite(&disk, &archives[1], &other);
    let store = reopened(&disk);
    let first = store.past().as_of(Moment::Seq(models[0].0));
    assert!(matches!(first, Err(Error::Corrupted(_))));
    assert!(matches!(store.past().of_record("R1"), Err(Error::Corrupted(_))));
}

#[test]
fn what_was_dropped_is_out_of_reach() {
    let (disk, models, _) = store();
    assert!(!histories(&disk).is_empty() && files(&disk, "index").len() == SEGMENTS as usize);
    let mut store = reopened(&disk);
    let last = store.last_seq();
    perform(
        &disk,
        &mut store,
        &Action::Compact(false),
        crate::scenario::START + 2000,
    )
    .expect("compact");
    assert!(files(&disk, "archive").is_empty() && files(&disk, "base").len() == 1);
    assert!(files(&disk, "index").is_empty());
    assert!(store.past().of_record("R1").is_ok_and(|lines| lines.is_empty()));
    let gone = store.past().as_of(Moment::Seq(models[0].0));
    assert!(matches!(gone, Err(Error::HistoryUnavailable { first_seq, .. }) if first_seq == last));
}
