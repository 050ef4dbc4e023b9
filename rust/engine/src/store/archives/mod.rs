//! Reads the archives of retired logs: indexes, checks, replays and packs them.

pub(in crate::store) mod archive_index;
pub(in crate::store) mod check;
pub(in crate::store) mod replay;
pub(in crate::store) mod way;
