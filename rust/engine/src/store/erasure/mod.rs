//! Erases records so that the chain still proves all the rest.
//!
//! An erasure is a compaction: the retired logs are packed anew without the lines that speak of the record, the new log begins
//! with a sentinel that binds them and an event that tells of it. One rename commits all of that; what is left behind is named
//! in `erasing` first, so that whoever comes next can end it. The law is section 16 of `docs/format.md`.
//!
//! A file uses only files above it in this list.

pub(in crate::store) mod check;

pub(in crate::store) mod order;

pub(in crate::store) mod redact;

pub(in crate::store) mod chosen;

mod lines;

mod reach;

mod mentions;

pub(in crate::store) mod survey;

pub(in crate::store) mod copies;

pub(in crate::store) mod rewrite;

pub(in crate::store) mod rows;

pub(in crate::store) mod new_log;

mod surveyed;

mod preparation;

pub(in crate::store) mod erase;
