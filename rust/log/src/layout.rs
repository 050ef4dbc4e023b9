//! The names of all files and folders of a store. No other place knows them.

mod shape;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use shape::{
    Shape, digest_in_base_name, is_archive_draft, is_archive_file, is_aside_folder, is_backup_draft, is_backup_folder,
    is_base_draft, is_base_file, is_draft, is_file_of_space, is_history_index, is_in_backup, is_in_draft, is_kept_hint,
    is_quarantine_draft, is_quarantine_name, is_rows_draft, is_rows_file, is_space_name, is_text_draft,
    is_unpacked_base, last_seq_in_archive_name, offset_of_tail, short_digest_in_archive_name, text_index_seq,
};

/// The folder of a store inside a project.
pub const FOLDER: &str = ".chronomemory";
/// The log's name inside the folder.
pub const LOG: &str = "events.wal";
/// The snapshot's name inside the folder.
pub const SNAPSHOT: &str = "snapshot.json";

/// What tells that an erasure is not finished, inside the folder.
pub const ERASING: &str = "erasing";

/// What tells where copies outside were made, inside the folder.
pub const COPIES: &str = "copies";

/// The name of the writer lock inside the folder.
const LOCK: &str = "lock";
/// And of the lock of those who look after the store.
const CARE_LOCK: &str = "care.lock";

/// The name of the hint about the last sync inside the folder.
pub const SYNCED: &str = "synced";

/// What the names of files of rows end with.
pub const ROWS_SUFFIX: &str = ".f32";
/// And those of the codes derived from them.
pub const CODES_SUFFIX: &str = ".i8";

/// What the name of an archive ends with in which lines were erased.
pub const ERASED_SUFFIX: &str = ".erased";

/// What the name of a packed file ends with.
const PACKED_SUFFIX: &str = ".zst";
/// What is not finished ends so.
const DRAFT_SUFFIX: &str = ".tmp";
/// The longest name of a space.
const LONGEST_SPACE_BYTES: usize = 64;
/// How many digits of a digest stand in the name of an archive or of a text index.
const SHORT_DIGITS: usize = 16;
/// And in that of a base.
const DIGEST_DIGITS: usize = 64;

/// Where a file is written before it gets its name, if several may write it at the same time: each has a draft of its own.
pub fn own_draft(path: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{number}{DRAFT_SUFFIX}", std::process::id()));
    PathBuf::from(name)
}

/// The paths of one store.
#[derive(Clone, Debug)]
pub struct Layout {
    folder: PathBuf,
    log: PathBuf,
    lock: PathBuf,
    is_backup: bool,
}

impl Layout {
    /// The store of a project folder.
    pub fn of_project(root: &Path) -> Self {
        Self::of_folder(root.join(FOLDER))
    }

    /// A store whose files lie directly in `folder`, as in a backup.
    pub fn of_folder(folder: PathBuf) -> Self {
        // Without a slash at its end, which would lead through a link.
        let folder: PathBuf = folder.components().collect();
        // Every commit asks for these.
        Self {
            log: folder.join(LOG),
            lock: folder.join(LOCK),
            folder,
            is_backup: false,
        }
    }

    /// The same, to be read only.
    pub fn of_backup(folder: PathBuf) -> Self {
        Self {
            is_backup: true,
            ..Self::of_folder(folder)
        }
    }

    /// Whether it is a copy that is only read.
    pub fn is_backup(&self) -> bool {
        self.is_backup
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

    /// A log that is being brought back line by line.
    pub fn healed_draft(&self) -> PathBuf {
        self.archives().join(HEALED_LOG)
    }

    /// A log that a restore brings, until it takes its place.
    pub fn restored_draft(&self) -> PathBuf {
        self.archives().join(RESTORED_LOG)
    }

    /// The materialised state for people and other tools.
    pub fn snapshot(&self) -> PathBuf {
        self.folder.join(SNAPSHOT)
    }

    /// The snapshot while it is being written.
    pub fn snapshot_draft(&self) -> PathBuf {
        self.folder.join("snapshot.json.tmp")
    }

    /// The same, written beside others who may write one too: each as of another event.
    pub fn snapshot_draft_at(&self, seq: u64) -> PathBuf {
        self.folder.join(format!("{SNAPSHOT}.{seq}{DRAFT_SUFFIX}"))
    }

    /// How far the log is known to be on disk.
    pub fn synced(&self) -> PathBuf {
        self.folder.join(SYNCED)
    }

    /// The writer lock.
    pub fn lock(&self) -> &Path {
        &self.lock
    }

    /// The lock of those who compact, back up, restore or repair.
    pub fn care_lock(&self) -> PathBuf {
        self.folder.join(CARE_LOCK)
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
        let short = head.get(..SHORT_DIGITS).unwrap_or(head);
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

/// The same, packed: how bases of the past are kept.
pub fn packed_base_name(sha256: &str) -> String {
    format!("base/{sha256}.json{PACKED_SUFFIX}")
}

/// The name of a file of rows relative to the folder.
pub fn rows_name(space: &str, generation: u64) -> String {
    format!("vectors/{space}.{generation}{ROWS_SUFFIX}")
}

/// An archive's name relative to the folder.
pub fn archive_name(first_seq: u64, last_seq: u64, sha256: &str) -> String {
    let short = sha256.get(..SHORT_DIGITS).unwrap_or(sha256);
    format!("archive/{first_seq}-{last_seq}-{short}.wal.zst")
}

/// A base while it is being written.
pub const NEW_BASE: &str = "new.json.tmp";
/// A snapshot while it is being written by whoever looks after the store.
pub const NEW_SNAPSHOT: &str = "snapshot.json.tmp";
/// An archive while it is being packed.
pub const NEW_ARCHIVE: &str = "new.wal.zst.tmp";
/// A log that is brought back.
pub const RESTORED_LOG: &str = "restored.wal.tmp";
/// A log that is brought back line by line.
pub const HEALED_LOG: &str = "healed.wal.tmp";
/// The snapshot of a log that is brought back.
pub const RESTORED_SNAPSHOT: &str = "restored.json.tmp";

/// The name of a file in `index/` relative to the folder.
pub fn index_name(path: &Path) -> String {
    let inside: Vec<_> = path.iter().rev().take_while(|part| *part != "index").collect();
    let parts = inside.iter().rev().map(|part| part.to_string_lossy());
    parts.fold("index".to_owned(), |name, part| name + "/" + &part)
}

/// Whether an archive of this name is packed.
pub fn is_packed_name(name: &str) -> bool {
    name.strip_suffix(ERASED_SUFFIX)
        .unwrap_or(name)
        .ends_with(PACKED_SUFFIX)
}

/// Whether lines of an archive of this name were erased.
pub fn is_redacted_name(name: &str) -> bool {
    name.ends_with(ERASED_SUFFIX)
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
