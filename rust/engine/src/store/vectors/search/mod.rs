//! Searches among rows, and other questions about them.

pub(in crate::store) mod ask;
pub(in crate::store) mod query;
