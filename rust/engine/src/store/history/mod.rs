//! Answers questions about the past: earlier events, and what was known then.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod lines;

pub(in crate::store) mod changed;

pub(in crate::store) mod as_of;
