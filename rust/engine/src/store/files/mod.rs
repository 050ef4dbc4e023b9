//! The files of a store, and the places where copies of them lie.
//!
//! Nothing here knows a store that is open: where its files are is enough, and for a snapshot the log and its state. A file
//! uses only files above it in this list.

pub(in crate::store) mod overlay;

pub(in crate::store) mod held;

pub(in crate::store) mod copies;

pub(in crate::store) mod known_copies;

pub(in crate::store) mod proofs;

pub(in crate::store) mod set_aside;

pub(in crate::store) mod snapshots;

pub(in crate::store) mod erasing;
