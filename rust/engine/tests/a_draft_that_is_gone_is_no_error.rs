//! A compaction goes on if a draft of an index is finished or gone right before it is cleared away.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::around::{Around, Twist};
use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, START, draft, fresh_disk, layout};
use crate::upkeep::Upkeep;
use chronomemory::{Disk, Options, Store};

/// Takes a draft away when it is opened.
#[derive(Clone, Default)]
struct Finished(Arc<AtomicUsize>);

impl Twist for Finished {
    fn before(&self, disk: &CrashDisk, path: &Path) {
        if path.extension().is_some_and(|end| end == "tmp") && path.starts_with(index()) {
            disk.remove(path).expect("a draft");
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn index() -> PathBuf {
    layout().folder().join("index")
}

#[test]
fn a_compaction_does_not_mind_who_was_faster() {
    let twist = Finished::default();
    let disk = Around {
        inner: fresh_disk(),
        twist: twist.clone(),
    };
    let mut store = Store::open(Arc::new(disk.clone()), layout(), Options::default(), &mut |_, _| {}).expect("open");
    store.commit(&draft(&Action::Put(1)), START).expect("a record");
    disk.inner.create_dir(&index()).expect("a folder");
    for name in [
        "1-2-0123456789abcdef.wal.zst.history.tmp",
        "1-2-0123456789abcdef.wal.zst.history.7-0.tmp",
    ] {
        disk.inner.create(&index().join(name)).expect("a draft");
    }
    store.compact(true, START, &mut |_, _| {}).expect("a compaction");
    assert_eq!(twist.0.load(Ordering::Relaxed), 2, "both were seen to");
    assert!(disk.inner.list(&index()).expect("a folder").is_empty());
}
