//! Reads the moment at which a log began.

use std::io;

use chronolog::disk::DiskFile;
use chronolog::origin::beginning_of;

/// When a log began.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn began_at(file: &dyn DiskFile, length: u64) -> io::Result<i64> {
    Ok(beginning_of(file, length)?.ts)
}
