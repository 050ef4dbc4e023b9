//! The place of a log: its disk, its layout and its files.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Access, Disk, Identity};
use crate::error::{At, Error, Result};
use crate::layout::Layout;
use crate::origin::Beginning;

/// The folder of a log, on its disk.
pub struct Site {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// The names of the files.
    pub layout: Layout,
    archives: Mutex<SeenArchives>,
}

impl Site {
    /// A folder on a disk.
    pub fn new(disk: Arc<dyn Disk>, layout: Layout) -> Self {
        Self {
            disk,
            layout,
            archives: Mutex::default(),
        }
    }

    /// What was seen of its archives; each change of it is whole.
    pub fn archives(&self) -> MutexGuard<'_, SeenArchives> {
        self.archives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the log is.
    pub fn log(&self) -> &Path {
        self.layout.log()
    }

    /// Whether a file is the log at its path.
    pub fn is_at_its_path(&self, file: Identity) -> bool {
        self.disk.status(self.log()).is_ok_and(|now| now.identity == file)
    }

    /// Makes the folder, and its name durable.
    pub fn create_folder(&self) -> Result<()> {
        let folder = self.layout.folder();
        // Every folder that is new needs its name made durable in the one above.
        let missing: Vec<&Path> = folder.ancestors().take_while(|path| !self.disk.exists(path)).collect();
        self.disk.create_dir(folder).at(folder)?;
        for parent in missing.iter().filter_map(|path| path.parent()) {
            let parent = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            self.disk.sync_dir(parent).at(parent)?;
        }
        Ok(())
    }

    /// Makes sure of a folder inside, and that its name is durable.
    pub fn make_folder(&self, path: &Path, parent: &Path) -> Result<()> {
        self.disk.create_dir(path).at(path)?;
        self.disk.sync_dir(parent).at(parent)
    }

    /// Removes the hint about the last sync, durably.
    pub fn forget_hint(&self) -> Result<()> {
        let (hint, folder) = (self.layout.synced(), self.layout.folder());
        match self.disk.remove(&hint) {
            Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&hint, fault)),
            _ => self.disk.sync_dir(folder).at(folder),
        }
    }

    /// Makes the hint about the last sync durable as it is.
    pub fn sync_hint(&self) -> Result<()> {
        let (hint, folder) = (self.layout.synced(), self.layout.folder());
        let file = self.disk.open(&hint, Access::Write).at(&hint)?;
        file.sync().at(&hint)?;
        self.disk.sync_dir(folder).at(folder)
    }

    /// Gives the log new contents, as a whole or not at all.
    pub fn replace_log(&self, bytes: &[u8]) -> Result<()> {
        let (draft, path, folder) = (self.layout.log_draft(), self.log(), self.layout.folder());
        let file = self.disk.create(&draft).at(&draft)?;
        file.write_at(bytes, 0).at(&draft)?;
        file.sync().at(&draft)?;
        self.disk.rename(&draft, path).at(path)?;
        self.disk.sync_dir(folder).at(folder)
    }
}

/// What this process has seen of archives, by their names from the store's folder on.
#[derive(Default)]
pub struct SeenArchives {
    /// How long the log is in each, and how it begins.
    pub beginnings: HashMap<String, (u64, Beginning)>,
    /// Those that have the digest that a log names.
    pub proved: HashSet<String>,
}
