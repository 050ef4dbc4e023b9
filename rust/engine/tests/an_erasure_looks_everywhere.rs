//! What others could not finish is cleared of what is erased, and what cannot be looked into is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::an_erasure_is_whole_or_none::{NOW, SECRETS, holding, is_erased, order, prepared};
use crate::around::{Around, Closed};
use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, layout, open, perform};
use crate::upkeep::Upkeep;
use chronomemory::testing::archive::FRAME_BYTES;
use chronomemory::{Disk, Durability, Layout, Options, Store, holds_any};

#[test]
fn what_others_could_not_finish_holds_nothing_of_it() {
    let whole = prepared();
    let first = whole.steps() + 1;
    let mut store = open(&whole, Durability::Full).expect("open");
    perform(&whole, &mut store, &Action::Compact(true), NOW - 1).expect("a compaction");
    let mut left = 0;
    for step in first..=whole.steps() {
        let disk = prepared();
        disk.crash_at(step);
        if let Ok(mut store) = open(&disk, Durability::Full) {
            let _ = perform(&disk, &mut store, &Action::Compact(true), NOW - 1);
        }
        let after = disk.after_kill();
        let mut store = open(&after, Durability::Full).expect("open");
        // Another process is writing a snapshot, and dies.
        let draft = after.create(&layout().snapshot_draft_at(7)).expect("a draft");
        draft.write_at(SECRETS[0].as_bytes(), 0).expect("a text");
        let bases = after.list(&layout().bases()).expect("a list").len();
        store.erase(&order(), NOW, &mut |_, _| {}).expect("an erasure");
        left += u32::from(after.list(&layout().bases()).expect("a list").len() < bases);
        store.close().expect("close");
        assert_eq!(
            holding(&after),
            Vec::<PathBuf>::new(),
            "a compaction was killed at {step}"
        );
        assert!(is_erased(&after, &format!("a compaction was killed at {step}")));
    }
    assert!(left > 2, "{left}");
}

#[test]
fn a_copy_that_cannot_be_looked_into_is_told_and_nothing_is_erased() {
    let place = |disk: &CrashDisk, folder: PathBuf| folder.join(&disk.list(&folder).expect("a list")[0]);
    let backup = place(&prepared(), layout().backups());
    let inside = Layout::of_folder(backup.clone());
    for closed in [layout().backups(), backup, inside.bases(), inside.archives()] {
        let inner = prepared();
        let disk = Around {
            inner: inner.clone(),
            twist: Closed(closed.clone()),
        };
        let mut store =
            Store::open(Arc::new(disk), layout(), Options::default(), &mut |_, _| {}).expect("open beside it");
        let refused = store.erase(&order(), NOW, &mut |_, _| {}).expect_err("it may hold it");
        assert!(refused.to_string().contains(&*closed.to_string_lossy()), "{refused}");
        drop(store);
        assert!(!is_erased(&inner, "refused"));
    }
}

#[test]
fn a_text_is_found_in_any_case_and_across_pieces() {
    let (disk, path) = (CrashDisk::new(), Path::new("/file"));
    disk.create_dir(Path::new("/")).expect("a folder");
    let mut bytes = vec![b'x'; FRAME_BYTES - 3];
    bytes.extend_from_slice(b"A SecreT");
    let file = disk.create(path).expect("a file");
    file.write_at(&bytes, 0).expect("its bytes");
    let holds = |text: &str| holds_any(&disk, path, &[text.as_bytes().to_vec()]).expect("a look");
    assert!(holds("a secret") && holds("secret") && !holds("another"));
}
