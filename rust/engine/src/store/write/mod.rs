//! Everything that makes a change part of the log.

pub(in crate::store) mod attach;
pub(in crate::store) mod claims;
pub(in crate::store) mod commit;
pub(in crate::store) mod ingest;
