//! Opens modules of the crates to the tests, measurements and fuzzers of this tree.

pub use chronolog::{archive, digest, disk, error, event, hint, json, log, wal};
pub use chronomemory_search::{text, vector};
pub use chronomemory_state::{segment, snapshot, state};

/// The store behind the export list.
pub mod store {
    pub use crate::store::*;
}
