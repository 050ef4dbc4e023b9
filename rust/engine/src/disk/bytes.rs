//! How are bytes in memory read as a file?

use std::io;

use super::{DiskFile, Identity};

/// Bytes that can only be read.
pub struct Bytes(pub Vec<u8>);

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "bytes in memory are only read")
}

impl DiskFile for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(start..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(read_only())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(read_only())
    }

    fn sync(&self) -> io::Result<()> {
        Err(read_only())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn identity(&self) -> io::Result<Identity> {
        Err(read_only())
    }
}
