//! Verifies a store, and repairs one that is damaged.

pub(in crate::store) mod cure;
pub(in crate::store) mod gaps;
pub(in crate::store) mod judge;
pub(in crate::store) mod repair;
pub(in crate::store) mod returning;
pub(in crate::store) mod route;
