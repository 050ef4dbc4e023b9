//! Puts a copy in the place of the log.
//!
//! What was erased here since the copy was made is erased in it first, in a folder where nobody takes it for a store. A file
//! uses only files above it in this list.

pub(in crate::store) mod known_lines;

pub(in crate::store) mod cleaning;

pub(in crate::store) mod restore;

pub(in crate::store) mod take_back;
