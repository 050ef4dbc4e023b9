//! The files of a store, and the places where copies of them lie. Nothing here knows an open store.

pub(in crate::store) mod erasing;
pub(in crate::store) mod held;
pub(in crate::store) mod joined;
pub(in crate::store) mod known_copies;
pub(in crate::store) mod proofs;
pub(in crate::store) mod segments;
pub(in crate::store) mod set_aside;
pub(in crate::store) mod snapshots;
