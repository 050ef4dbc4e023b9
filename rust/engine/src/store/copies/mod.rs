//! The copies of a store: a list of them, and how one is made outside its folder.

pub(in crate::store) mod outside;
