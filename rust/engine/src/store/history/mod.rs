//! Answers questions about the past: earlier events, and what was known then.

pub(in crate::store) mod lines;
