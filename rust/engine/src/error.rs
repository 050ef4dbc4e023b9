//! What can go wrong, said so that a caller can act on it?

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::damage::Damage;
use crate::disk::Stranger;

/// Everything the engine may answer instead of a result.
#[derive(Debug, Error)]
pub enum Error {
    /// The operating system refused, or something that is not ours stands where a file of ours should be; nothing was half
    /// written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file or folder in question.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
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
    #[error("{path} is a backup: it is read, and never written", path = .path.display())]
    ReadOnly {
        /// Its folder.
        path: PathBuf,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A sync failed earlier: what the system holds in memory may never reach the disk.
    #[error("the store refuses writes since a sync failed: {reason}")]
    Poisoned {
        /// The failure that poisoned it.
        reason: String,
    },
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
    /// A file is of a format this version does not know.
    #[error("{what}")]
    Unsupported {
        /// What was met.
        what: String,
    },
    /// The caller's value cannot be written; nothing was.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field that is wrong.
        field: String,
        /// Why it is wrong.
        reason: String,
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
    /// An I/O failure at `path`, or at what stands in the way to it.
    pub fn io(path: &Path, source: io::Error) -> Self {
        let path = Stranger::in_error(&source).map_or(path, Stranger::path).to_owned();
        Self::Io { path, source }
    }

    /// The same failure for another caller whom it concerns too.
    #[must_use]
    pub fn shared(&self) -> Self {
        match self {
            Self::Io { path, source } => Self::Io {
                path: path.clone(),
                source: match (source.raw_os_error(), Stranger::in_error(source)) {
                    (Some(code), _) => io::Error::from_raw_os_error(code),
                    (None, Some(stranger)) => stranger.clone().into(),
                    (None, None) => io::Error::new(source.kind(), source.to_string()),
                },
            },
            Self::Locked { path, holder } => Self::Locked {
                path: path.clone(),
                holder: holder.clone(),
            },
            Self::OutOfMemory => Self::OutOfMemory,
            Self::ReadOnly { path } => Self::ReadOnly { path: path.clone() },
            Self::Closed => Self::Closed,
            Self::Poisoned { reason } => Self::Poisoned { reason: reason.clone() },
            Self::Corrupted(damage) => Self::Corrupted(damage.clone()),
            Self::Refused { path, reason, instead } => Self::Refused {
                path: path.clone(),
                reason: reason.clone(),
                instead: instead.clone(),
            },
            Self::Unsupported { what } => Self::Unsupported { what: what.clone() },
            Self::Invalid { field, reason } => Self::invalid(field, reason),
            Self::Bound {
                space,
                model,
                dim,
                given_model,
                given_dim,
            } => Self::Bound {
                space: space.clone(),
                model: model.clone(),
                dim: *dim,
                given_model: given_model.clone(),
                given_dim: *given_dim,
            },
            Self::NoSpace { name, known } => Self::NoSpace {
                name: name.clone(),
                known: known.clone(),
            },
            Self::HistoryUnavailable { first_seq, reason } => Self::HistoryUnavailable {
                first_seq: *first_seq,
                reason: reason.clone(),
            },
        }
    }

    /// A value that may not be written.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

/// Names the file in an I/O failure.
pub(crate) trait At<T> {
    /// Turns an `io::Result` into ours.
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| Error::io(path, source))
    }
}
