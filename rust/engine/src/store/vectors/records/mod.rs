//! What the log says of embeddings: the records of spaces and groups.
//!
//! The records of spaces and groups, how they are spelled, and which row is whose by them. A file uses only files above it
//! in this list.

pub(in crate::store) mod format;

pub(in crate::store) mod read;

pub(in crate::store) mod implied;

pub(in crate::store) mod index;

pub(in crate::store) mod ids;
