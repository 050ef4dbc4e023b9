//! Sealed segments: the state of a range of events, in files that are mapped and checked as they are read.
//!
//! A segment holds one row for every id that its events mention: columns of fixed width, a hash table of ids, the sets of rows of each
//! class and scope, and where each event lies in the log. Canonical bytes stay where they are, in log and base; a row has a
//! [`Locator`] that leads to them. Only records that exist nowhere in canonical form are stored inline.
//!
//! Segments are derived: they can be deleted at any time, and a file whose check fails is never used for an answer.

mod build;
mod column;
mod container;
mod ids;
mod read;
mod window;

pub(crate) use build::add_runs;
pub use build::{ClassName, EventRow, Head, ScopeName, SegmentDraft, SegmentRow, merge, write};
pub use column::{Column, JoinedNames};
pub use container::{Container, ContainerWriter, SectionId};
pub use read::{KeyFolder, Sealed, Segment, Sources, seed_of};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The version of the rules by which rows are derived from events. A segment of another version is not used.
pub const RULES_VERSION: u32 = 3;
/// No event of the live log mentions the record.
pub const NO_EVENT: u32 = u32::MAX;
/// The record never expires.
pub const NEVER: i64 = i64::MAX;
/// An event that mentions several records; they are listed apart.
pub const SEVERAL: u32 = u32::MAX - 1;
/// The class of an id that events mention and that has no record.
pub const NO_CLASS: u32 = u32::MAX;

/// Numbers of the sections.
mod section {
    pub const ORDINALS: u32 = 1;
    pub const LOCATORS: u32 = 2;
    pub const IDS: u32 = 3;
    pub const HASHES: u32 = 4;
    pub const CLASSES: u32 = 5;
    pub const SCOPES: u32 = 6;
    pub const CONFIDENCES: u32 = 7;
    pub const MOMENTS: u32 = 8;
    pub const LAST_EVENTS: u32 = 9;
    pub const EXPIRIES: u32 = 10;
    pub const EXPIRY_KEYS: u32 = 11;
    pub const ID_TABLE: u32 = 12;
    pub const CLASS_NAMES: u32 = 13;
    pub const CLASS_SETS: u32 = 14;
    pub const SCOPE_NAMES: u32 = 15;
    pub const SCOPE_SETS: u32 = 16;
    pub const EVENTS: u32 = 17;
    pub const FURTHER: u32 = 18;
    pub const RUNS: u32 = 19;
    pub const INLINE: u32 = 20;
    pub const RENAMES: u32 = 21;
    /// One more than the last of them.
    pub const COUNT: usize = 22;
}

/// Where the bytes of a record are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// In the live log.
    Log,
    /// In the base.
    Base,
    /// In the segment.
    Inline,
}

/// Where the canonical bytes of a record are, and a check of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locator {
    /// In which file.
    pub source: Source,
    /// From which byte on.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
    /// They contain a salt, which is no part of the record.
    pub is_salted: bool,
    /// The id has another ordinal by now: this one is not found by it.
    pub is_gone: bool,
    /// The low 32 bits of XXH3 of the record.
    pub check: u32,
}

const SALTED: u64 = 1 << 61;
const GONE: u64 = 1 << 60;
const OFFSET: u64 = GONE - 1;
const LOCATOR_BYTES: usize = 16;

impl Locator {
    /// Of a record that lies in a file as it is.
    pub fn of(source: Source, offset: u64, record: &[u8]) -> Self {
        Self {
            source,
            offset,
            length: record.len() as u32,
            is_salted: false,
            is_gone: false,
            check: check_of(record),
        }
    }

    fn to_bytes(self) -> [u8; LOCATOR_BYTES] {
        let source = match self.source {
            Source::Log => 0,
            Source::Base => 1,
            Source::Inline => 2,
        };
        let flags = (u64::from(self.is_salted) * SALTED) | (u64::from(self.is_gone) * GONE);
        let first = (source << 62) | flags | (self.offset & OFFSET);
        let mut bytes = [0; LOCATOR_BYTES];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..].copy_from_slice(&self.check.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; LOCATOR_BYTES]) -> Self {
        let first = u64::from_le_bytes(std::array::from_fn(|at| bytes[at]));
        Self {
            source: match first >> 62 {
                0 => Source::Log,
                1 => Source::Base,
                _ => Source::Inline,
            },
            offset: first & OFFSET,
            length: u32::from_le_bytes(std::array::from_fn(|at| bytes[8 + at])),
            is_salted: first & SALTED != 0,
            is_gone: first & GONE != 0,
            check: u32::from_le_bytes(std::array::from_fn(|at| bytes[12 + at])),
        }
    }
}

/// The check of the bytes of a record.
pub fn check_of(record: &[u8]) -> u32 {
    xxh3_64(record) as u32
}

/// The hash of an id as it stands between quotes in canonical JSON. The seed differs from store to store.
pub fn id_hash(id: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(id, seed)
}
