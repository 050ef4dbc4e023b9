//! The files of rows, the companions beside them, and the checks against the log.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod check;

pub(in crate::store) mod marks;

pub(in crate::store) mod companions;

pub(in crate::store) mod codes;

pub(in crate::store) mod space_cache;

pub(in crate::store) mod compare;

pub(in crate::store) mod durable;

pub(in crate::store) mod filter;
