//! The files of rows, the codes derived from them, and the checks against the log.

pub(in crate::store) mod check;
pub(in crate::store) mod codes;
pub(in crate::store) mod durable;
pub(in crate::store) mod filter;
pub(in crate::store) mod space_cache;
