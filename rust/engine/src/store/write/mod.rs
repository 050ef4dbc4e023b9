//! Everything that makes a change part of the log.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod adopt;

pub(in crate::store) mod pending;

pub(in crate::store) mod spell;

pub(in crate::store) mod claims;

pub(in crate::store) mod commit;

pub(in crate::store) mod sweep;

pub(in crate::store) mod bookmark;

pub(in crate::store) mod attach;

pub(in crate::store) mod optimistic;

pub(in crate::store) mod row_batch;

pub(in crate::store) mod ingest;

pub(in crate::store) mod declare;
