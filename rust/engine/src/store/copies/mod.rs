//! Where do copies of a store lie, and how are they made outside of it?
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod listed;

pub(in crate::store) mod outside;
