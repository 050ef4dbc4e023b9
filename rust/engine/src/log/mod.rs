//! How does the log grow, and who may write to it?
//!
//! A file uses only files above it in this list.

pub(crate) mod files;
mod open;

pub use files::Progress;
pub(crate) use open::OpenLog;
