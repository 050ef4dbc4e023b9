//! Opens the files that one log names, all at one moment, so that they belong together.
//!
//! Readers take no lock, and a compaction beside them replaces the log, removes its base and moves the rows of
//! embeddings. So the files are opened first, and the log must still be the one at its path then.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolog::disk::{Access, Bytes, Disk, DiskFile, Identity, Status, open_if_there};
use chronolog::hint::hint_bytes;
use chronolog::layout::{Layout, ROWS_SUFFIX};
use chronolog::origin::{Origin, origin_of};

/// How often files are gathered again because the log was replaced: opening a few takes far less than a compaction.
const MOST_TRIES: usize = 100;
/// More files of rows than this are not held: a process may open only so many.
const MOST_ROWS: usize = 200;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Need {
    /// The log and what it starts from; it may grow while it is read.
    State,
    /// Rows too, and the log as it is now, however much is added to it.
    Everything,
}

pub(in crate::store) struct HeldFiles<'a> {
    /// All of them, and the others as they are.
    pub disk: Overlay<'a>,
    pub log: Arc<dyn DiskFile>,
    length: u64,
    identity: Identity,
}

impl<'a> HeldFiles<'a> {
    /// Opens the files of a store; `None` if it has no log.
    pub fn gather(disk: &'a dyn Disk, layout: &Layout, need: Need) -> io::Result<Option<Self>> {
        for _ in 0..MOST_TRIES {
            // The hint is read first: a writer in between makes the log longer, never the hint wrong.
            let hint = hint_bytes(disk, layout)?;
            let Some(log) = open_if_there(disk, layout.log())? else {
                return Ok(None);
            };
            let mut held = Self {
                length: log.length()?,
                identity: log.identity()?,
                log,
                disk: Overlay::of(disk),
            };
            match hint {
                Some(hint) => held.disk.show(layout.synced(), Arc::new(Bytes(hint))),
                None => held.disk.hide(layout.synced()),
            }
            held.open_named(layout, need)?;
            if disk.status(layout.log()).is_ok_and(|now| now.identity == held.identity) {
                return Ok(Some(held));
            }
        }
        Err(io::Error::other("the log keeps being replaced: no quiet look at it"))
    }

    fn open_named(&mut self, layout: &Layout, need: Need) -> io::Result<()> {
        let mut paths = Vec::new();
        match origin_of(&*self.log, self.length)? {
            Origin::Nothing => {}
            Origin::Ours(sentinel) => paths.extend(sentinel.base_sha256.map(|sha256| layout.base(sha256.text()))),
            Origin::Foreign => paths.push(layout.snapshot()),
        }
        if need == Need::Everything {
            let folder = layout.vectors();
            let mut names = self.disk.list(&folder).unwrap_or_default();
            names.retain(|name| name.ends_with(ROWS_SUFFIX));
            if names.len() <= MOST_ROWS {
                paths.extend(names.iter().map(|name| folder.join(name)));
            }
        }
        for path in paths {
            // One that cannot be opened is opened again where it is needed, and reported there.
            if let Ok(file) = self.disk.open(&path, Access::Read) {
                self.disk.show(path, file);
            }
        }
        Ok(())
    }

    /// Whether the log has not been written or replaced since.
    pub fn is_untouched(&self, layout: &Layout) -> bool {
        let now = self.disk.status(layout.log());
        now.is_ok_and(|now| now.identity == self.identity && now.length == self.length)
    }

    pub fn log_then(&self) -> Prefix {
        Prefix::of(Arc::clone(&self.log), self.length)
    }
}

/// The beginning of a file that grows.
pub(in crate::store) struct Prefix {
    file: Arc<dyn DiskFile>,
    length: u64,
}

impl Prefix {
    pub fn of(file: Arc<dyn DiskFile>, length: u64) -> Self {
        Self { file, length }
    }
}

impl DiskFile for Prefix {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let room = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = room.min(buffer.len());
        self.file.read_at(&mut buffer[..wanted], offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.length.min(self.file.length()?))
    }

    fn identity(&self) -> io::Result<Identity> {
        self.file.identity()
    }
}

/// A disk with some files in the place of others.
pub(in crate::store) struct Overlay<'a> {
    disk: &'a dyn Disk,
    files: HashMap<PathBuf, Option<Arc<dyn DiskFile>>>,
}

impl<'a> Overlay<'a> {
    pub fn of(disk: &'a dyn Disk) -> Self {
        Self {
            disk,
            files: HashMap::new(),
        }
    }

    pub fn show(&mut self, path: PathBuf, file: Arc<dyn DiskFile>) {
        self.files.insert(path, Some(file));
    }

    pub fn hide(&mut self, path: PathBuf) {
        self.files.insert(path, None);
    }
}

impl Disk for Overlay<'_> {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        if access == Access::Write {
            let refused = "files that are held are only read";
            return Err(io::Error::new(io::ErrorKind::Unsupported, refused));
        }
        match self.files.get(path) {
            Some(Some(file)) => Ok(Arc::clone(file)),
            Some(None) => Err(io::ErrorKind::NotFound.into()),
            None => self.disk.open(path, access),
        }
    }

    fn create_unnamed(&self, folder: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create_unnamed(folder)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        match self.files.get(path) {
            Some(None) => Err(io::ErrorKind::NotFound.into()),
            _ => self.disk.status(path),
        }
    }

    fn exists(&self, path: &Path) -> bool {
        let shown = self.files.get(path).map(Option::is_some);
        shown.unwrap_or_else(|| self.disk.exists(path))
    }
}
