//! A file that is read from bytes in memory.

use std::io;

use super::{DiskFile, Identity};

/// Bytes that can only be read.
pub struct Bytes(pub Vec<u8>);

impl DiskFile for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(start..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn identity(&self) -> io::Result<Identity> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
