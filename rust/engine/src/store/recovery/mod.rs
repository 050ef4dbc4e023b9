//! Verifies a store, and repairs one that is damaged.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod returning;

pub(in crate::store) mod within_reach;

pub(in crate::store) mod judge;

pub(in crate::store) mod runs;

pub(in crate::store) mod route;

pub(in crate::store) mod bad_line;

pub(in crate::store) mod gaps;

pub(in crate::store) mod losses;

pub(in crate::store) mod heal;

pub(in crate::store) mod mending;

pub(in crate::store) mod cure;

pub(in crate::store) mod repair;
