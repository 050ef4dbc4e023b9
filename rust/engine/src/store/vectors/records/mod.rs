//! What the log says of embeddings: the records of spaces and groups.
//!
//! The records of spaces and groups, how they are spelled, and which row is whose by them.

pub(in crate::store) mod format;
pub(in crate::store) mod index;
