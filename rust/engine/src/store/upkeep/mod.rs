//! Keeps a store small, and saves it elsewhere.

pub(in crate::store) mod backup;
pub(in crate::store) mod bases;
pub(in crate::store) mod compact;
pub(in crate::store) mod compact_rows;
pub(in crate::store) mod history_files;
