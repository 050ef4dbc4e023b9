//! How does it get to disk, and back?
//!
//! Split by verb: [`reader`] takes the log apart on all cores and hands its lines over in order; [`writer`] spells drafts
//! as chained lines; [`synced`] remembers how far the disk has followed.

pub mod reader;
pub mod synced;
pub mod writer;
