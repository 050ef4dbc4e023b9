//! The copies of a store: a list of them, and how one is made outside its folder.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod listed;

pub(in crate::store) mod outside;
