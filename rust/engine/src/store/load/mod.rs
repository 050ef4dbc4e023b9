//! Reads the files of a store into a state, with a report of what is wrong with them.
//!
//! Nothing here knows an open store.

pub(in crate::store) mod base;
pub(in crate::store) mod examine;
pub(in crate::store) mod found;
pub(in crate::store) mod load_sealing;
pub(in crate::store) mod loader;
pub(in crate::store) mod replaced;
pub(in crate::store) mod scope_watch;
pub(in crate::store) mod tails;
