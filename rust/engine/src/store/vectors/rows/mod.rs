//! The files of rows, the companions beside them, and the checks against the log.

pub(in crate::store) mod check;
pub(in crate::store) mod companions;
pub(in crate::store) mod durable;
pub(in crate::store) mod filter;
pub(in crate::store) mod space_cache;
