//! Opens rooms of the engine to the tests, measurements and fuzzers of this tree.
//!
//! A program has the export list of the crate. These are the same rooms without it, as they are today.

/// A room behind the export list.
pub mod archive {
    pub use crate::archive::*;
}
/// A room behind the export list.
pub mod digest {
    pub use crate::digest::*;
}
/// A room behind the export list.
pub mod disk {
    pub use crate::disk::*;
}
/// A room behind the export list.
pub mod error {
    pub use crate::error::*;
}
/// A room behind the export list.
pub mod event {
    pub use crate::event::*;
}
/// A room behind the export list.
pub mod json {
    pub use crate::json::*;
}
/// A room behind the export list.
pub mod snapshot {
    pub use crate::snapshot::*;
}
/// A room behind the export list.
pub mod state {
    pub use crate::state::*;
}
/// A room behind the export list.
pub mod store {
    pub use crate::store::*;
}
/// A room behind the export list.
pub mod text {
    pub use crate::text::*;
}
/// A room behind the export list.
pub mod vector {
    pub use crate::vector::*;
}
/// A room behind the export list.
pub mod wal {
    pub use crate::wal::*;
}
