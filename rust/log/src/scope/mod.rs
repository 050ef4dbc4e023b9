//! Scopes: which one a record carries in `data["@scope"]`, some of three names, and who sees it.
//!
//! A scope separates; it is no protection against a reader of the files.

mod carried;
mod names;
mod viewer;

pub use carried::{Carried, KEY, carried, check, given, other_than, replace, stamp};
pub use names::{LEVELS, Scope};
pub use viewer::{SeenAs, Viewer};
