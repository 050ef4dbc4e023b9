//! Searches among rows, and other questions about them.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod query;

pub(in crate::store) mod nearby;

pub(in crate::store) mod tokens;

pub(in crate::store) mod ask;

pub(in crate::store) mod feed;
