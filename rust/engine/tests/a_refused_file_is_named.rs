//! An error names the file that could not be read, and not the log that stands on it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::around::{Around, Twist};
use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, START, draft, fresh_disk, layout, open};
use crate::upkeep::Upkeep;
use chronomemory::{Disk, DiskFile, Durability, Error, Identity, Options, Store};

/// What the system says to who may not, and where a disk fails.
const NOT_PERMITTED: i32 = 13;
const FAILED: i32 = 5;

/// One file cannot be opened, or not be read.
#[derive(Clone)]
struct Refusal {
    path: PathBuf,
    code: i32,
}

impl Twist for Refusal {
    fn instead(&self, path: &Path) -> Option<io::Result<Arc<dyn DiskFile>>> {
        (path == self.path).then(|| match self.code {
            NOT_PERMITTED => Err(io::Error::from_raw_os_error(NOT_PERMITTED)),
            code => Ok(Arc::new(Broken(code)) as Arc<dyn DiskFile>),
        })
    }
}

/// A file that cannot be read.
struct Broken(i32);

impl DiskFile for Broken {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(self.0))
    }
    fn length(&self) -> io::Result<u64> {
        Ok(1)
    }
    fn identity(&self) -> io::Result<Identity> {
        Ok(Identity { device: 0, inode: 0 })
    }
}

/// A store that starts from a base.
fn compacted() -> CrashDisk {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    store.commit(&draft(&Action::Put(1)), START).expect("a record");
    store.compact(false, START, &mut |_, _| {}).expect("a compaction");
    store.commit(&draft(&Action::Put(2)), START).expect("a record");
    store.close().expect("close");
    disk
}

fn base(disk: &CrashDisk) -> PathBuf {
    let folder = layout().folder().join("base");
    let names = disk.list(&folder).expect("a folder");
    folder.join(names.first().expect("a base"))
}

/// What a caller is told, by all who look at the files.
fn told(inner: &CrashDisk, path: &Path, code: i32) -> Vec<Error> {
    let disk = Around {
        inner: inner.clone(),
        twist: Refusal {
            path: path.to_owned(),
            code,
        },
    };
    let verified = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).err();
    let opened = Store::open(Arc::new(disk), layout(), Options::default(), &mut |_, _| {}).err();
    [verified, opened].into_iter().flatten().collect()
}

#[test]
fn the_file_is_named_that_could_not_be_read() {
    let disk = compacted();
    for path in [base(&disk), layout().synced(), layout().log().to_owned()] {
        for code in [NOT_PERMITTED, FAILED] {
            let told = told(&disk, &path, code);
            assert_eq!(told.len(), 2, "{}", path.display());
            for error in told {
                let Error::Io { path: named, source } = &error else {
                    panic!("{error}");
                };
                assert_eq!(*named, path, "{error}");
                assert_eq!(source.raw_os_error(), Some(code), "{error}");
            }
        }
    }
}
