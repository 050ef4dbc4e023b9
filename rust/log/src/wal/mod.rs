//! Reads and writes the lines of the log.

pub mod reader;
pub mod writer;
