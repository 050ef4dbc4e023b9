//! Changes of rows: how they come, move, go, and come back.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod named;

pub(in crate::store) mod write;

pub(in crate::store) mod bind;

pub(in crate::store) mod left_behind;

pub(in crate::store) mod regain;

pub(in crate::store) mod damaged;
