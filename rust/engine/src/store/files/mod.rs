//! Which files belong to a store, and where do copies of them lie?
//!
//! Nothing here knows a store that is open: a disk and a layout are enough. A file uses only files above it in this list.

pub(in crate::store) mod copies;
pub(in crate::store) mod held;
pub(in crate::store) mod overlay;
pub(in crate::store) mod proofs;
pub(in crate::store) mod set_aside;
