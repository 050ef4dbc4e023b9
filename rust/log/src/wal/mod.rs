//! Reads and spells the lines of the log, and the hint of how far the disk has followed.
//!
//! Split by verb: [`reader`] takes the log apart on all cores and hands its lines over in order; [`writer`] spells drafts
//! as chained lines; [`synced`] remembers how far the disk has followed.

pub mod reader;
pub mod synced;
pub mod writer;
