//! The errors of the engine, by what a caller can do about each.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use crate::damage::Damage;
use crate::disk::NamedFault;

/// The process, or the system, has as many files open as it may: ENFILE, EMFILE.
const NO_MORE_FILES: [i32; 2] = [23, 24];

/// Whether a process cannot read any file now: that is no fault of the file.
pub fn is_of_process(fault: &io::Error) -> bool {
    let is_full = |code| NO_MORE_FILES.contains(&code);
    fault.kind() == io::ErrorKind::OutOfMemory || fault.raw_os_error().is_some_and(is_full)
}

/// Everything the engine may answer instead of a result.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused, or an unexpected entry is in the way; nothing was half written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file or folder in question.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The system has no more memory for this process; nothing was written.
    #[error("there is not enough memory")]
    OutOfMemory,
    /// Another writer kept the lock for longer than the caller would wait.
    #[error("{path} is held by {holder}; leave the file alone: without it two could write at once", path = .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// What the holder wrote about itself.
        holder: String,
    },
    /// The store is a copy, which is only read.
    #[error("{path} is a backup: it is read, and never written", path = .0.display())]
    ReadOnly(PathBuf),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The store was opened before this process was forked: only the parent may use it.
    #[error("the store was opened before this process was forked")]
    Forked,
    /// A progress callback would wait for the call that waits for it.
    #[error("a progress callback cannot use the store that calls it")]
    InProgress,
    /// A sync failed earlier: what the system holds in memory may never reach the disk.
    #[error("the store refuses writes since a sync failed: {0}")]
    Poisoned(String),
    /// The files contradict their own hashes.
    #[error("{0}")]
    Corrupted(Box<Damage>),
    /// It would lose something, or what was named cannot be used for it; nothing was changed.
    #[error("{path}: {reason}")]
    Refused {
        /// The file or folder that is in the way.
        path: String,
        /// Why.
        reason: String,
        /// What to do instead.
        instead: String,
    },
    /// Others were at work for as long as the caller would try; the same call may succeed later.
    #[error("{0}")]
    Busy(String),
    /// The store is as large as it can become; nothing was written.
    #[error("{0}")]
    Limit(String),
    /// The caller's value is larger than a line of the log; nothing was written.
    #[error("{field}: {reason}")]
    TooLarge {
        /// The field that is too large.
        field: String,
        /// How large it may be.
        reason: String,
    },
    /// An argument is not one that the call takes; nothing was looked at or written.
    #[error("{}", said(.field, .reason))]
    Argument {
        /// The name of the argument.
        field: String,
        /// What it must be, and what was given.
        reason: String,
    },
    /// The caller's value cannot be written; nothing was.
    #[error("{}", said(.field, .reason))]
    Invalid {
        /// The field that is wrong.
        field: String,
        /// Why it is wrong.
        reason: String,
    },
    /// The id belongs to a record that the caller does not see; nothing was written.
    #[error("id {0:?}: taken in this store; use handle.id({0:?}), or leave the id out")]
    IdTaken(String),
    /// There is no such record, as far as the caller sees; nothing was written.
    #[error("id {0:?}: there is no such record")]
    UnknownRecord(String),
    /// The record is wider than the caller's scope, who may read it but not change it; nothing was written.
    #[error("id {0:?}: it is not of this scope, which may read it but not change it")]
    OutOfScope(String),
    /// The store requires a name that the writer did not give; nothing was written.
    #[error("{0}: this store requires it for every write; what is for all is written through shared()")]
    ScopeRequired(&'static str),
    /// One of several rows cannot be written; nothing of its batch was.
    #[error("row {row}, {fault}")]
    InBatch {
        /// Which one, from 0.
        row: usize,
        /// Why.
        fault: Box<Error>,
    },
    /// One line of a file cannot be written; nothing of its batch was.
    #[error("{file} line {line}{}, {fault} ({kept} records before it were kept)", shown_id(.id.as_deref()))]
    InFile {
        /// The name of the file.
        file: String,
        /// Which line, from 1.
        line: u64,
        /// The id in it, if there is one.
        id: Option<String>,
        /// Why.
        fault: Box<Error>,
        /// How many records were written before.
        kept: u64,
    },
    /// An embedding space belongs to another model or dimension; nothing was written.
    #[error("the space {space:?} is bound to {model:?} with {dim} dimensions, not to {given_model:?} with {given_dim}")]
    Bound {
        /// The space.
        space: String,
        /// The model it is bound to.
        model: String,
        /// The dimension it is bound to.
        dim: usize,
        /// The model that came.
        given_model: String,
        /// The dimension that came.
        given_dim: usize,
    },
    /// There is no embedding space of this name.
    #[error("there is no embedding space {name:?}")]
    NoSpace {
        /// The name that was asked for.
        name: String,
        /// The spaces there are.
        known: Vec<String>,
    },
    /// The past asked for is not in the log any more.
    #[error("the state before seq {first_seq} is not available: {reason}")]
    HistoryUnavailable {
        /// The first seq that can be reached.
        first_seq: u64,
        /// Why nothing earlier can.
        reason: String,
    },
}

/// The engine's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An I/O failure at `path`, or at the file that the failure names.
    pub fn io(path: &Path, source: io::Error) -> Self {
        let (named, source) = NamedFault::apart(source);
        Self::Io {
            path: named.unwrap_or_else(|| path.to_owned()),
            source: Arc::new(source),
        }
    }

    /// Whether the process or the system has no more file handles: nothing was asked of the disk then.
    pub fn is_scarcity(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.raw_os_error().is_some_and(|code| NO_MORE_FILES.contains(&code)))
    }

    /// The source of random bytes failed.
    pub fn randomness(fault: io::Error) -> Self {
        Self::io(Path::new("(random bytes of the system)"), fault)
    }

    /// Others are at work.
    pub fn busy(what: impl Into<String>) -> Self {
        Self::Busy(what.into())
    }

    /// The store cannot become larger.
    pub fn limit(what: impl Into<String>) -> Self {
        Self::Limit(what.into())
    }

    /// A value that no line of the log can hold.
    pub fn too_large(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::TooLarge {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// An argument that makes no sense, and why.
    pub fn argument(field: &str, reason: impl std::fmt::Display) -> Self {
        Self::Argument {
            field: field.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// What an argument must be or have, and what was given.
    pub fn must(field: &str, need: impl std::fmt::Display, given: impl std::fmt::Display) -> Self {
        Self::argument(field, format!("must {need}, got {given}"))
    }

    /// A value that may not be written.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

/// What is said of a field: "k must be at least 0, got -1", or "as_of: embeddings are those of now".
#[must_use]
pub fn said(field: &str, reason: &str) -> String {
    let mark = if reason.starts_with("must ") { "" } else { ":" };
    format!("{field}{mark} {reason}")
}

fn shown_id(id: Option<&str>) -> String {
    id.map(|id| format!(" (id {id:?})")).unwrap_or_default()
}

/// Names the file in an I/O failure.
pub trait At<T> {
    /// Turns an `io::Result` into ours.
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| Error::io(path, source))
    }
}
