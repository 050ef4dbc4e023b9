//! Keeps a store small, and saves it elsewhere.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod history_files;

pub(in crate::store) mod retire;

mod beside;

pub(in crate::store) mod new_files;

pub(in crate::store) mod compact_rows;

mod bases;

pub(in crate::store) mod compact;

pub(in crate::store) mod backup;

pub(in crate::store) mod pruning;
