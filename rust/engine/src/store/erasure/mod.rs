//! Erases records so that the chain still proves all the rest.
//!
//! An erasure is a compaction with a filter (`upkeep::compact`): the retired logs are packed again without the lines of
//! the records, and the new log begins with a sentinel that names them and an event that reports the erasure. One
//! rename commits all of that; the file `erasing` names what is left to remove. Section 16 of `docs/format.md`
//! specifies the result.

pub(in crate::store) mod chosen;
pub(in crate::store) mod copies;
pub(in crate::store) mod erase;
mod filter;
pub(in crate::store) mod scan;
