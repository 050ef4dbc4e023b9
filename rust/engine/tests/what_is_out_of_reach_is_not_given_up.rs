//! A repair waits for a copy that may not be read, or a file that cannot be read for a moment.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::around::{Around, Closed, Twist};
use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, START, fresh_disk, layout, open, perform};
use crate::upkeep::Upkeep;
use chronomemory::{Access, Disk, DiskFile, Durability, Layout, Options, Repaired, Store};

/// A store with an archive and a backup, in whose log a line is destroyed that the backup holds.
fn damaged(bytes: &[u8]) -> CrashDisk {
    use Action::{Backup, Batch, Compact, Put};
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    for (n, action) in [Batch(1), Compact(true), Put(9), Backup, Put(10), Put(11)]
        .iter()
        .enumerate()
    {
        perform(&disk, &mut store, action, START - 1000 + n as i64).expect("an action");
    }
    store.close().expect("close");
    let log = disk.open(layout().log(), Access::Write).expect("the log");
    let length = log.length().expect("a length") as usize;
    let mut text = vec![0; length];
    log.read_at(&mut text, 0).expect("bytes");
    let second = text.iter().position(|byte| *byte == b'\n').expect("a line") + 20;
    log.write_at(bytes, second as u64).expect("a damage");
    disk
}

fn repair(disk: Arc<dyn Disk>, unproven: bool) -> chronomemory::Result<Option<Repaired>> {
    let mut store = Store::open(disk, layout(), Options::default(), &mut |_, _| {})?;
    let repaired = store.repair(unproven, START, &mut |_, _| {})?;
    store.close()?;
    Ok(repaired)
}

#[test]
fn a_copy_that_others_made() {
    let destroyed = b"#####################################";
    let folder = layout().backups();
    let backup = folder.join(&damaged(destroyed).list(&folder).expect("a list")[0]);
    let inside = Layout::of_folder(backup.clone());
    for closed in [
        folder,
        backup,
        inside.log().to_owned(),
        inside.bases(),
        inside.archives(),
    ] {
        let inner = damaged(destroyed);
        let disk = Around {
            inner: inner.clone(),
            twist: Closed(closed.clone()),
        };
        let refused = repair(Arc::new(disk.clone()), false).expect_err("what is lost may lie there");
        assert!(refused.to_string().contains(&*closed.to_string_lossy()), "{refused}");
        // Who may read it brings it back; who says that it does not matter gives it up.
        let again = inner.after_kill();
        let repaired = repair(Arc::new(again), false).expect("a repair").expect("damage");
        assert_eq!((repaired.healed, repaired.lost.len()), (1, 0), "{repaired:?}");
        assert!(repair(Arc::new(disk), true).expect("a repair").is_some());
    }
}

/// One opening of an archive fails.
#[derive(Clone)]
struct Shaky {
    left: Arc<AtomicU32>,
}

impl Twist for Shaky {
    fn instead(&self, path: &Path) -> Option<io::Result<Arc<dyn DiskFile>>> {
        let is_archive = path.parent() == Some(&layout().archives());
        let is_now = is_archive && self.left.fetch_sub(1, Ordering::Relaxed) == 0;
        is_now.then(|| Err(io::Error::from_raw_os_error(5)))
    }
}

#[test]
fn an_archive_that_cannot_be_read_for_a_moment() {
    let (mut done, mut refused) = (0, 0);
    for number in 0..12 {
        let inner = damaged(b"#");
        let disk = Around {
            inner: inner.clone(),
            twist: Shaky {
                left: Arc::new(AtomicU32::new(number)),
            },
        };
        match repair(Arc::new(disk), false) {
            Ok(Some(repaired)) => {
                assert!(
                    repaired.history_kept && repaired.lost.is_empty(),
                    "{number}: {repaired:?}"
                );
                done += 1;
            }
            Ok(None) => panic!("{number}: the damage was not seen"),
            Err(_) => {
                let again = repair(Arc::new(inner), false).expect("a repair").expect("damage");
                assert!(again.history_kept && again.lost.is_empty(), "{number}: {again:?}");
                refused += 1;
            }
        }
    }
    assert!(done > 0 && refused > 0, "{done} {refused}");
}
