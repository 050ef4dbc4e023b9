//! Finds records: by value, page, network, words, vectors and recalls.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod find;

pub(in crate::store) mod network;

pub(in crate::store) mod moments;

pub(in crate::store) mod select;

pub(in crate::store) mod page;

mod ties;

pub(in crate::store) mod rank;

pub(in crate::store) mod text_rows;

pub(in crate::store) mod text_files;

pub(in crate::store) mod live_text;

pub(in crate::store) mod views;

pub(in crate::store) mod follow_text;

pub(in crate::store) mod nearest;

pub(in crate::store) mod recall;

pub(in crate::store) mod ask;
