//! The kinds of damage that a file may have, each with the place where it was found.

use std::fmt;

/// The kinds of damage, as the format names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// The line is not JSON that a log may hold.
    Unreadable,
    /// JSON, but not an event.
    Malformed,
    /// The hash is not the hash of the payload.
    Altered,
    /// A field that the hash does not cover, in a line of our own form.
    Injected,
    /// The event does not follow from the one before it.
    Unlinked,
    /// A batch that is not whole.
    BrokenBatch,
    /// There is no log, or an empty one, where one was.
    LogMissing,
    /// The state that the log starts from is not there.
    BaseMissing,
    /// The state that the log starts from is not the one the log names.
    BaseAltered,
    /// An archive is not the one the log names.
    ArchiveAltered,
    /// The snapshot contradicts the log.
    SnapshotRefused,
    /// A row of embeddings is not the one the log names.
    RowAltered,
    /// A row of embeddings that the log names is not there.
    RowMissing,
    /// An index is whole, but not what the log would make of it. Nothing of the log is lost: it is derived.
    IndexAltered,
    /// A sentinel and an event do not tell of an erasure together.
    EraseUnbound,
    /// The hashes of the history are not those that a sentinel names.
    TrailBroken,
    /// A base is not what the history before it adds up to.
    BaseDiffers,
    /// A file is there that an erasure took away. The chain is none the worse, but what was erased is back.
    ErasedReturned,
}

impl DamageKind {
    /// The word used in reports and in `docs/format.md`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Malformed => "malformed",
            Self::Altered => "altered",
            Self::Injected => "injected",
            Self::Unlinked => "unlinked",
            Self::BrokenBatch => "broken-batch",
            Self::LogMissing => "log-missing",
            Self::BaseMissing => "base-missing",
            Self::BaseAltered => "base-altered",
            Self::ArchiveAltered => "archive-altered",
            Self::SnapshotRefused => "snapshot-refused",
            Self::RowAltered => "row-altered",
            Self::RowMissing => "row-missing",
            Self::IndexAltered => "index-altered",
            Self::EraseUnbound => "erase-unbound",
            Self::TrailBroken => "trail-broken",
            Self::BaseDiffers => "base-differs",
            Self::ErasedReturned => "erased-returned",
        }
    }

    /// Whether the history as a whole is wrong, though each of its files may be right.
    pub fn is_of_history(self) -> bool {
        matches!(self, Self::EraseUnbound | Self::TrailBroken | Self::BaseDiffers)
    }

    /// Whether the state that a log starts from is missing or another one.
    pub fn is_of_base(self) -> bool {
        matches!(self, Self::BaseMissing | Self::BaseAltered | Self::SnapshotRefused)
    }

    /// Whether an embedding is missing, and nothing else.
    pub fn is_of_row(self) -> bool {
        matches!(self, Self::RowAltered | Self::RowMissing)
    }
}

/// One finding, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the store's folder.
    pub path: String,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// The physical line, counted from 1; 0 where lines do not apply.
    pub line: u64,
    /// The event's seq, where it could be read.
    pub seq: Option<u64>,
    /// What kind of damage.
    pub kind: DamageKind,
    /// What exactly. It is quoted in messages to every caller, so it names no record and no text.
    pub reason: String,
    /// The id of the record that it is about, if it is one: only for reports on the store as a whole.
    pub id: Option<String>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.path, self.offset)?;
        if self.line > 0 {
            write!(f, " (line {})", self.line)?;
        }
        if let Some(seq) = self.seq {
            write!(f, ", seq {seq}")?;
        }
        write!(f, ": {}: {}", self.kind.word(), self.reason)
    }
}

/// Bytes at the end of the log that belong to no committed write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Where the tail begins: the committed end of the log.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// Why it is a tail.
    pub reason: String,
    /// How many whole events it holds, if it is more than an interrupted write.
    pub events: u64,
}
