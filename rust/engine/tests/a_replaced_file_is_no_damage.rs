//! Is a row found that another process moves to another file between two looks, and is damage told all the same?

mod scenario;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chronomemory::disk::{Access, CrashDisk, Disk, DiskFile, LockFile, Status};
use chronomemory::error::Error;
use chronomemory::options::{Durability, Options};
use chronomemory::store::{Attachment, Shared, Store};
use scenario::{Action, DIM, START, draft, fresh_disk, layout, open, vector};

/// A disk on which another process compacts right before rows are opened for the first time.
struct HastyDisk {
    inner: CrashDisk,
    is_due: AtomicBool,
}

impl Disk for HastyDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        if path.extension().is_some_and(|end| end == "f32") && self.is_due.swap(false, Ordering::Relaxed) {
            let mut other = open(&self.inner, Durability::Full).expect("open");
            attach(&mut other, 2);
            other.compact(false, START, &mut |_, _| {}).expect("a compaction");
            assert!(!self.inner.exists(path));
        }
        self.inner.open(path, access)
    }
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.inner.create(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir(path)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.link(from, to)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.inner.list(path)
    }
    fn status(&self, path: &Path) -> io::Result<Status> {
        self.inner.status(path)
    }
    fn exists(&self, path: &Path) -> bool {
        self.inner.exists(path)
    }
    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn LockFile>> {
        self.inner.lock_file(path)
    }
}

fn attach(store: &mut Store, n: u32) {
    let (ids, rows) = (["R1".to_owned()], vector(n));
    let attachment = Attachment {
        space: None,
        model: Some("a model"),
        dim: DIM,
        ids: &ids,
        rows: &rows,
    };
    store.attach(&attachment, START).expect("an embedding");
}

fn reader(inner: &CrashDisk, is_due: bool) -> Shared {
    let disk = HastyDisk {
        inner: inner.clone(),
        is_due: AtomicBool::new(false),
    };
    let disk = Arc::new(disk);
    let store = Store::open(disk.clone(), layout(), Options::default(), &mut |_, _| {}).expect("open");
    disk.is_due.store(is_due, Ordering::Relaxed);
    Shared::new(store)
}

fn filled() -> CrashDisk {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    store.commit(&draft(&Action::Batch(1)), START).expect("records");
    attach(&mut store, 1);
    store.close().expect("close");
    disk
}

#[test]
fn an_embedding_is_found_where_it_went() {
    let expected: Vec<u8> = vector(2).iter().flat_map(|value| value.to_le_bytes()).collect();
    let found = reader(&filled(), true).embedding(None, "R1");
    assert_eq!(found.expect("no damage"), Some(expected));
}

#[test]
fn a_file_that_is_gone_is_damage() {
    let disk = filled();
    disk.remove(&layout().rows("default", 0)).expect("a file");
    let found = reader(&disk, false).embedding(None, "R1");
    assert!(matches!(found, Err(Error::Corrupted(_))), "{found:?}");
}
