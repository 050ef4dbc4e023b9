//! A hint about the last sync that is kept open is read as the file at its path is now.

use crate::crash_disk::CrashDisk;
use chronomemory::testing::disk::{Access, Disk};
use chronomemory::testing::hint::{KeptHint, SYNCED_BYTES, Synced, read_hint, write_hint};
use chronomemory::{Layout, sha256};

#[test]
fn a_hint_that_is_kept_open_is_seen_as_it_is_now() {
    let (disk, layout) = (CrashDisk::new(), Layout::of_folder("/store".into()));
    disk.create_dir(layout.folder()).expect("a folder");
    let (path, mut kept) = (layout.synced(), KeptHint::default());
    let synced = |seq: u64| Synced {
        offset: 100 * seq,
        seq,
        first: sha256(b"first"),
        head: sha256(b"head"),
    };
    let look = |kept: &mut KeptHint| {
        let seen = kept.read(&disk, &path).expect("read");
        assert_eq!(seen, read_hint(&disk, &layout).expect("read"));
        seen.map(|synced| synced.seq)
    };
    assert_eq!(look(&mut kept), None);
    // Overwritten in place, as all do.
    for seq in [1, 2, 3] {
        write_hint(&disk, &layout, &synced(seq)).expect("written");
        assert_eq!(look(&mut kept), Some(seq));
    }
    // Another file in its place, one that is not whole, and none.
    let other = disk.create(&layout.log_draft()).expect("a file");
    other.write_at(&synced(4).spell(), 0).expect("written");
    disk.rename(&layout.log_draft(), &path).expect("renamed");
    assert_eq!(look(&mut kept), Some(4));
    other.write_at(b"more", SYNCED_BYTES as u64).expect("written");
    assert_eq!(look(&mut kept), None);
    other.truncate(7).expect("cut");
    assert_eq!(look(&mut kept), None);
    disk.remove(&path).expect("removed");
    assert_eq!(look(&mut kept), None);
    write_hint(&disk, &layout, &synced(5)).expect("written");
    assert_eq!(look(&mut kept), Some(5));
    // Written through the open file, as long as that is the one.
    for seq in [6, 7] {
        kept.write(&disk, &layout, &synced(seq)).expect("written");
        assert_eq!(look(&mut kept), Some(seq));
    }
    let before = disk.open(&path, Access::Read).expect("a file");
    disk.create(&layout.log_draft()).expect("a file");
    disk.rename(&layout.log_draft(), &path).expect("renamed");
    kept.write(&disk, &layout, &synced(8)).expect("written");
    assert_eq!(look(&mut kept), Some(8));
    let mut bytes = [0; SYNCED_BYTES];
    before.read_at(&mut bytes, 0).expect("read");
    assert_eq!(Synced::read(&bytes), Some(synced(7)), "the file that is gone");
    disk.remove(&path).expect("removed");
    kept.write(&disk, &layout, &synced(9)).expect("written");
    assert_eq!(look(&mut kept), Some(9));
}
