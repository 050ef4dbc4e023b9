//! Verifies a store, and repairs one that is damaged.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod returning;

pub(in crate::store) mod within_reach;

pub(in crate::store) mod judge;

pub(in crate::store) mod runs;

pub(in crate::store) mod heaviest;

pub(in crate::store) mod route;

pub(in crate::store) mod bad_line;

pub(in crate::store) mod gaps;

pub(in crate::store) mod going_on;

pub(in crate::store) mod parted;

pub(in crate::store) mod scraps;

pub(in crate::store) mod lost_acts;

pub(in crate::store) mod seeming;

pub(in crate::store) mod losses;

pub(in crate::store) mod batches;

pub(in crate::store) mod alike;

pub(in crate::store) mod on_hold;

pub(in crate::store) mod derived;

pub(in crate::store) mod heal;

pub(in crate::store) mod mending;

pub(in crate::store) mod cure;

pub(in crate::store) mod repair;
