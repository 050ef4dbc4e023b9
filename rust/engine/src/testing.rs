//! Opens rooms of the engine to the tests, measurements and fuzzers of this tree.
//!
//! A program has the export list of the crate. These are the same rooms without it, as they are today.

/// A room behind the export list.
pub mod archive {
    pub use chronolog::archive::*;
}
/// A room behind the export list.
pub mod digest {
    pub use chronolog::digest::*;
}
/// A room behind the export list.
pub mod disk {
    pub use chronolog::disk::*;
}
/// A room behind the export list.
pub mod error {
    pub use chronolog::error::*;
}
/// A room behind the export list.
pub mod event {
    pub use chronolog::event::*;
}
/// A room behind the export list.
pub mod json {
    pub use chronolog::json::*;
}
/// A room behind the export list.
pub mod snapshot {
    pub use chronomemory_state::snapshot::*;
}
/// A room behind the export list.
pub mod state {
    pub use chronomemory_state::state::*;
}
/// A room behind the export list.
pub mod store {
    pub use crate::store::*;
}
/// A room behind the export list.
pub mod text {
    pub use chronomemory_search::text::*;
}
/// A room behind the export list.
pub mod vector {
    pub use chronomemory_search::vector::*;
}
/// A room behind the export list.
pub mod wal {
    pub use chronolog::wal::*;
}
