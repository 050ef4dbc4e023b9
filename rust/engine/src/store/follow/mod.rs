//! Keeps the memory in step with the files.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod clock;

pub(in crate::store) mod lost;

pub(in crate::store) mod swap;

pub(in crate::store) mod refresh;

pub(in crate::store) mod unfinished;

pub(in crate::store) mod recover;
