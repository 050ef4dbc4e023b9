//! Where do bytes live? The only place that knows the names of the files.

use std::path::{Path, PathBuf};

/// The folder of a store inside a project.
pub const FOLDER: &str = ".chronomemory";
/// The log's name inside the folder.
pub const LOG: &str = "events.wal";
/// The snapshot's name inside the folder.
pub const SNAPSHOT: &str = "snapshot.json";

/// What the names of files of rows end with.
pub const ROWS_SUFFIX: &str = ".f32";
/// And those of the codes derived from them.
pub const CODES_SUFFIX: &str = ".i8";

/// The paths of one store.
#[derive(Clone, Debug)]
pub struct Layout {
    folder: PathBuf,
    log: PathBuf,
    lock: PathBuf,
}

impl Layout {
    /// The store of a project folder.
    pub fn of_project(root: &Path) -> Self {
        Self::of_folder(root.join(FOLDER))
    }

    /// A store whose files lie directly in `folder`, as in a backup.
    pub fn of_folder(folder: PathBuf) -> Self {
        // Every commit asks for these.
        Self {
            log: folder.join(LOG),
            lock: folder.join("lock"),
            folder,
        }
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The chained log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The log while it is being born or replaced.
    pub fn log_draft(&self) -> PathBuf {
        self.folder.join("events.wal.tmp")
    }

    /// The materialised state for people and other tools.
    pub fn snapshot(&self) -> PathBuf {
        self.folder.join(SNAPSHOT)
    }

    /// The snapshot while it is being written.
    pub fn snapshot_draft(&self) -> PathBuf {
        self.folder.join("snapshot.json.tmp")
    }

    /// How far the log is known to be on disk.
    pub fn synced(&self) -> PathBuf {
        self.folder.join("synced")
    }

    /// The writer lock.
    pub fn lock(&self) -> &Path {
        &self.lock
    }

    /// The lock of those who compact, back up, restore or repair.
    pub fn care_lock(&self) -> PathBuf {
        self.folder.join("care.lock")
    }

    /// The states that compactions started from.
    pub fn bases(&self) -> PathBuf {
        self.folder.join("base")
    }

    /// One base, named by its digest.
    pub fn base(&self, sha256: &str) -> PathBuf {
        self.folder.join(base_name(sha256))
    }

    /// Log segments retired by compactions.
    pub fn archives(&self) -> PathBuf {
        self.folder.join("archive")
    }

    /// What is derived and can be made again.
    pub fn indexes(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Which events of an archive speak of which record.
    pub fn history_index(&self, archive: &str) -> PathBuf {
        let name = archive.rsplit('/').next().unwrap_or(archive);
        self.indexes().join(format!("{name}.history"))
    }

    /// The rows of all embedding spaces.
    pub fn vectors(&self) -> PathBuf {
        self.folder.join("vectors")
    }

    /// The rows of one generation of an embedding space.
    pub fn rows(&self, space: &str, generation: u64) -> PathBuf {
        self.folder.join(rows_name(space, generation))
    }

    /// The same rows in eight bits a component.
    pub fn companion(&self, space: &str, generation: u64) -> PathBuf {
        self.companions().join(format!("{space}.{generation}{CODES_SUFFIX}"))
    }

    /// Where those are.
    pub fn companions(&self) -> PathBuf {
        self.indexes().join("vectors")
    }

    /// Sealed parts of the text index.
    pub fn text_indexes(&self) -> PathBuf {
        self.indexes().join("text")
    }

    /// One of them, named by the last event that it knows.
    pub fn text_index(&self, seq: u64, head: &str) -> PathBuf {
        let short = head.get(..16).unwrap_or(head);
        self.text_indexes().join(format!("{seq}-{short}.text"))
    }

    /// The lock of those who write one.
    pub fn text_lock(&self) -> PathBuf {
        self.text_indexes().join("lock")
    }

    /// What recovery cut away.
    pub fn quarantine(&self) -> PathBuf {
        self.folder.join("quarantine")
    }

    /// Consistent copies.
    pub fn backups(&self) -> PathBuf {
        self.folder.join("backup")
    }

    /// A path as reports and sentinels name it, made absolute.
    pub fn inside(&self, relative: &str) -> PathBuf {
        self.folder.join(relative)
    }
}

/// A base's name relative to the folder.
pub fn base_name(sha256: &str) -> String {
    format!("base/{sha256}.json")
}

/// The name of a file of rows relative to the folder.
pub fn rows_name(space: &str, generation: u64) -> String {
    format!("vectors/{space}.{generation}{ROWS_SUFFIX}")
}

/// An archive's name relative to the folder.
pub fn archive_name(first_seq: u64, last_seq: u64, sha256: &str) -> String {
    let short = sha256.get(..16).unwrap_or(sha256);
    format!("archive/{first_seq}-{last_seq}-{short}.wal.zst")
}

/// The name of a file in `index/` relative to the folder.
pub fn index_name(path: &Path) -> String {
    let inside: Vec<_> = path.iter().rev().take_while(|part| *part != "index").collect();
    let parts = inside.iter().rev().map(|part| part.to_string_lossy());
    parts.fold("index".to_owned(), |name, part| name + "/" + &part)
}

/// Whether a file of this name in `index/` tells which events of an archive speak of which record.
pub fn is_history_index(name: &str) -> bool {
    name.ends_with(".history") || name.ends_with(".history.tmp")
}

/// The last event that a sealed part of the text index of this name knows.
pub fn text_index_seq(name: &str) -> Option<u64> {
    name.strip_suffix(".text")?.split('-').next()?.parse().ok()
}

/// Whether an archive of this name is packed.
pub fn is_packed_name(name: &str) -> bool {
    name.ends_with(".zst")
}

/// Whether a name taken from a log stays inside its folder: digests name files, nothing else may.
pub fn is_archive_name(name: &str) -> bool {
    name.strip_prefix("archive/").is_some_and(|rest| {
        !rest.is_empty()
            && !rest.starts_with('.')
            && rest
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
    })
}
