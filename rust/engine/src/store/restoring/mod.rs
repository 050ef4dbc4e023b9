//! Puts a copy in the place of the log, without what was erased here since it was made.

pub(in crate::store) mod cleaning;
pub(in crate::store) mod restore;
