//! Every edit of a log, a base or an archive is found and its place named: flipped, cut, inserted or swapped.

use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, draft, fresh_disk, layout, open};
use chronomemory::testing::disk::read_whole;
use chronomemory::{Access, Disk, Durability, Report, Store};
use std::path::{Path, PathBuf};

/// A closed store with an archive, a base, single writes and a batch.
fn store() -> CrashDisk {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    let mut now = crate::scenario::START;
    let mut write = |store: &mut Store, action: Action| {
        now += 1;
        crate::scenario::perform(&disk, store, &action, now).expect("a write");
    };
    for action in [Action::Put(1), Action::Batch(2), Action::Compact(true)] {
        write(&mut store, action);
    }
    for action in [Action::Put(3), Action::Batch(10), Action::Delete(3), Action::Put(20)] {
        write(&mut store, action);
    }
    store.close().expect("close");
    disk
}

fn verify(disk: &CrashDisk) -> Report {
    Store::verify(disk, &layout(), 1, &mut |_, _| {}).expect("verify")
}

fn replace(disk: &CrashDisk, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, Access::Write).expect("the file");
    file.truncate(0).expect("truncate");
    file.write_at(bytes, 0).expect("write");
}

fn contents(disk: &CrashDisk, path: &Path) -> Vec<u8> {
    read_whole(disk, path).expect("read").expect("the file")
}

fn only_file(disk: &CrashDisk, folder: &str) -> PathBuf {
    let folder = layout().inside(folder);
    let names = disk.list(&folder).expect("a list");
    assert_eq!(names.len(), 1);
    folder.join(&names[0])
}

#[test]
fn an_untouched_store_is_valid() {
    let report = verify(&store());
    assert!(report.valid() && report.tail.is_none());
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let disk = store();
    let log = layout().log().to_owned();
    for path in [log.clone(), only_file(&disk, "base"), only_file(&disk, "archive")] {
        let good = contents(&disk, &path);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 7);
            replace(&disk, &path, &bad);
            let report = verify(&disk);
            assert!(!report.valid(), "byte {at} of {}", path.display());
            let named = &report.damage[0];
            assert!(path.ends_with(&named.path), "{named}");
            if path == log {
                let line_start = good[..at]
                    .iter()
                    .rposition(|b| *b == b'\n')
                    .map_or(0, |newline| newline + 1);
                let found = report.damage.iter().any(|damage| damage.offset as usize == line_start);
                assert!(found, "byte {at}: {:?}", report.damage);
            }
        }
        replace(&disk, &path, &good);
    }
    assert!(verify(&disk).valid());
}

#[test]
fn lines_that_were_moved_are_found() {
    let disk = store();
    let log = layout().log().to_owned();
    let good = contents(&disk, &log);
    let lines: Vec<&[u8]> = good.split_inclusive(|b| *b == b'\n').collect();
    let last = lines.len() - 1;
    let mut edits: Vec<(String, Vec<&[u8]>)> = Vec::new();
    for at in 0..lines.len() {
        let mut doubled = lines.clone();
        doubled.insert(at, lines[at]);
        edits.push((format!("line {at} doubled"), doubled));
        if at < last {
            let mut deleted = lines.clone();
            deleted.remove(at);
            edits.push((format!("line {at} deleted"), deleted));
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            edits.push((format!("lines {at} and {} swapped", at + 1), swapped));
        }
    }
    for (what, edit) in edits {
        replace(&disk, &log, &edit.concat());
        let report = verify(&disk);
        // What is put behind the last synced line is an unfinished write by the law: reported, never loaded.
        let is_tail = report.tail.is_some_and(|tail| tail.offset == good.len() as u64);
        assert!(!report.damage.is_empty() || is_tail, "{what}");
    }
}

#[test]
fn a_cut_inside_a_line_is_found() {
    let disk = store();
    let log = layout().log().to_owned();
    let good = contents(&disk, &log);
    for length in (1..good.len()).filter(|&length| good[length - 1] != b'\n') {
        replace(&disk, &log, &good[..length]);
        let report = verify(&disk);
        assert!(!report.valid(), "cut to {length} bytes: {report:?}");
    }
}

/// Whether a write is taken by a log with these contents; and that it hides no damage.
fn takes_a_write(disk: &CrashDisk, bytes: &[u8]) -> bool {
    replace(disk, layout().log(), bytes);
    let before = verify(disk).damage.len();
    let mut store = open(disk, Durability::Full).expect("open");
    let written = store.commit(&draft(&Action::Put(50)), crate::scenario::START + 99);
    store.close().expect("close");
    let reopened = open(disk, Durability::Full).expect("open");
    let is_there = reopened
        .state()
        .get("R1")
        .is_some_and(|record| record.windows(8).any(|text| text == b"label 50"));
    assert_eq!(written.is_ok(), is_there);
    assert_eq!(verify(disk).damage.len(), before);
    is_there
}

#[test]
fn writing_goes_on_behind_damage_and_does_not_hide_it() {
    let disk = store();
    let mut bytes = contents(&disk, layout().log());
    let end = bytes.len();
    bytes[end / 2] ^= 1;
    assert!(takes_a_write(&disk, &bytes));
}

#[test]
fn nothing_is_written_behind_a_lost_end() {
    let disk = store();
    let bytes = contents(&disk, layout().log());
    assert!(!takes_a_write(&disk, &bytes[..bytes.len() - 30]));
}
