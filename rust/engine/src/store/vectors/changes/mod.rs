//! Changes of rows: how they come, move, go, and come back.

pub(in crate::store) mod regain;
pub(in crate::store) mod write;
