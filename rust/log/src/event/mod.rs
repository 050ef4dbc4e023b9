//! An event of the log, one line: how it is drafted, written, read, and found again in damaged lines.
//!
//! `docs/format.md` specifies it.

pub mod act;
pub mod draft;
pub mod draft_value;
pub mod erasure;
pub mod expiry;
pub mod faces;
pub mod line;
pub mod mend;
pub mod salt;
pub mod stamp;
pub mod tie;

use crate::json::RecordSpans;

/// `{"hash":"`, 64 digits, `",`: what stands before the rest of the payload in a line of our own form.
pub const HASH_PREFIX_BYTES: usize = 75;

/// Where the record begins in the line of an upsert of our own form, unless the line is the first of a log.
pub const UPSERT_RECORD_START: usize =
    HASH_PREFIX_BYTES + b"\"op\":\"upsert\",\"prev_hash\":\"".len() + 64 + b"\",\"record\":".len();

/// An event, as far as the state is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// What it does.
    pub op: Op,
    /// The id as it stands between quotes in canonical JSON.
    pub id: &'a [u8],
    /// The canonical record.
    pub record: &'a [u8],
    /// Where its fields lie.
    pub fields: RecordSpans,
    /// Its hash, while it is at hand.
    pub hash: &'a [u8],
    /// Where its line begins in the log.
    pub offset: u64,
    /// Its seq.
    pub seq: u64,
}

/// Events that are about to be taken in, as far as memory is concerned.
#[derive(Clone, Copy, Debug, Default)]
pub struct IncomingEvents {
    /// How many there are.
    pub events: usize,
    /// How many bytes their ids and records have at most.
    pub bytes: usize,
    /// How many the longest of them has.
    pub longest: usize,
    /// How many records they touch beyond one for each event: acts touch several.
    pub further: usize,
}

impl IncomingEvents {
    /// One event of so many bytes.
    pub fn one(bytes: usize) -> Self {
        Self {
            events: 1,
            bytes,
            longest: bytes,
            further: 0,
        }
    }

    /// These and others.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self {
            events: self.events + others.events,
            bytes: self.bytes + others.bytes,
            longest: self.longest.max(others.longest),
            further: self.further + others.further,
        }
    }
}

/// What an event does to the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The record is now this.
    Upsert,
    /// The record is a tombstone now.
    Delete,
    /// An RFC 7396 merge patch of the record.
    Patch,
    /// Something happened to several records; what they are now follows by a rule.
    Act,
    /// The next n events are one batch.
    Begin,
    /// The log starts from a state named here.
    Compact,
    /// Anchors the state that another tool's compaction left.
    Adopt,
    /// Another tool's upsert.
    Migrate,
    /// Describes an erasure, and is stored like an upsert.
    Erase,
    /// Describes archives that were removed, likewise.
    Prune,
    /// Has no contents: the next event is linked to a hash that cannot be guessed.
    Mark,
    /// Something this version does not know: part of the chain, without effect.
    Other,
}

impl Op {
    /// Reads the word of a line; [`erasure::op_of`] reads the words that are valid in one shape only.
    pub fn read(word: &[u8]) -> Self {
        match word {
            b"upsert" => Self::Upsert,
            b"delete" => Self::Delete,
            b"patch" => Self::Patch,
            b"act" => Self::Act,
            b"begin" => Self::Begin,
            b"compact" => Self::Compact,
            b"adopt" => Self::Adopt,
            b"migrate" => Self::Migrate,
            b"mark" => Self::Mark,
            _ => Self::Other,
        }
    }

    /// The word written into a line; unknown operations are never written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Upsert => "upsert",
            Self::Delete => "delete",
            Self::Patch => "patch",
            Self::Act => "act",
            Self::Begin => "begin",
            Self::Compact => "compact",
            Self::Adopt => "adopt",
            Self::Migrate => "migrate",
            Self::Erase => "erase",
            Self::Prune => "prune",
            Self::Mark => "mark",
            Self::Other => "",
        }
    }
}
