//! Reads the archives of retired logs: indexes, checks, replays and packs them.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod faults;

pub(in crate::store) mod archive_index;

pub(in crate::store) mod doomed;

pub(in crate::store) mod pruned;

mod way;

mod bound;

pub(in crate::store) mod returned;

pub(in crate::store) mod onlooker;

pub(in crate::store) mod replay;

mod retired;

pub(in crate::store) mod check;

pub(in crate::store) mod packing;

pub(in crate::store) mod segments;
