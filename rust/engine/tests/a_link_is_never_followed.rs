//! In the folder of a store no file is reached through a symbolic link, whatever is done with it.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use chronomemory::{Access, Disk, FolderMode, RealDisk, UnexpectedEntry};

/// A folder that is gone when the test is over.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("chronomemory-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("outside")).expect("a folder");
        fs::write(path.join("outside/file"), b"theirs").expect("a file");
        Self(path)
    }

    fn guarded(&self) -> (RealDisk, PathBuf) {
        let (disk, store) = (RealDisk::default(), self.0.join("store"));
        disk.guard(&store, FolderMode::default());
        (disk, store)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refuses<T>(outcome: io::Result<T>, link: &Path) {
    let fault = outcome.err().expect("a refusal");
    let stranger = UnexpectedEntry::in_error(&fault).expect("a stranger");
    assert_eq!(stranger.path(), link, "{fault}");
}

#[test]
fn neither_as_the_last_step_nor_on_the_way() {
    let place = Place::new("links");
    let (disk, store) = place.guarded();
    let outside = place.0.join("outside");
    disk.create_dir(&store.join("real")).expect("a folder");
    symlink(&outside, store.join("way")).expect("a link");
    symlink(outside.join("file"), store.join("file")).expect("a link");
    symlink(outside.join("nothing"), store.join("nowhere")).expect("a link");
    for (path, link) in [("way/file", "way"), ("file", "file"), ("nowhere", "nowhere")] {
        let (path, link) = (store.join(path), store.join(link));
        refuses(disk.open(&path, Access::Read), &link);
        refuses(disk.open(&path, Access::Write), &link);
        refuses(disk.create(&path), &link);
        refuses(disk.remove(&path), &link);
        refuses(disk.lock_file(&path), &link);
        let draft = store.join("draft");
        disk.create(&draft).expect("a draft");
        refuses(disk.rename(&draft, &path), &link);
        refuses(disk.link(&path, &store.join("second")), &link);
    }
    for path in ["way", "way/deeper"] {
        refuses(disk.create_dir(&store.join(path)), &store.join("way"));
    }
    refuses(disk.list(&store.join("way")), &store.join("way"));
    refuses(disk.sync_dir(&store.join("way")), &store.join("way"));
    refuses(disk.status(&store.join("file")), &store.join("file"));
    assert_eq!(fs::read(outside.join("file")).expect("a file"), b"theirs");
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 1);
}

#[test]
fn nor_is_the_store_itself() {
    let place = Place::new("store-link");
    let (disk, store) = place.guarded();
    symlink(place.0.join("outside"), &store).expect("a link");
    refuses(disk.open(&store.join("file"), Access::Read), &store);
    refuses(disk.list(&store), &store);
    refuses(disk.create_dir(&store), &store);
}

#[test]
fn but_the_way_to_a_store_may_lead_through_links() {
    let place = Place::new("way-link");
    symlink(place.0.join("outside"), place.0.join("project")).expect("a link");
    let (disk, store) = (RealDisk::default(), place.0.join("project/store"));
    disk.guard(&store, FolderMode::default());
    disk.create_dir(&store).expect("a folder");
    disk.create(&store.join("file")).expect("a file");
    assert_eq!(disk.list(&store).expect("names"), ["file"]);
    let mode = |path: &Path| fs::metadata(path).expect("what it is").permissions().mode() & 0o7777;
    assert_eq!((mode(&store), mode(&store.join("file"))), (0o700, 0o600));
}

#[test]
fn a_draft_leaves_what_has_another_name_as_it_is() {
    let place = Place::new("hard-link");
    let (disk, store) = place.guarded();
    let outside = place.0.join("outside/file");
    disk.create_dir(&store).expect("a folder");
    fs::hard_link(&outside, store.join("draft")).expect("a second name");
    let draft = disk.create(&store.join("draft")).expect("a draft");
    draft.write_at(b"ours", 0).expect("written");
    assert_eq!(fs::read(outside).expect("a file"), b"theirs");
    assert!(!draft.is_shared().expect("told"));
}
