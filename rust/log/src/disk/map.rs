//! Reads a file without copying it, by mapping it into memory.
//!
//! The compiler cannot check that the file is not shortened while it is mapped. So only files are mapped that we never
//! cut: rows of embeddings, and what is derived from them.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::MmapOptions;

/// Bytes of a file, as long as this value lives.
#[derive(Debug)]
pub struct Mapping {
    bytes: MappedBytes,
    length: usize,
}

#[derive(Debug)]
enum MappedBytes {
    Mapped(memmap2::Mmap),
    /// In words, so that whatever the file holds is aligned.
    Copied(Vec<u64>),
}

impl Mapping {
    /// Maps the first bytes of a file that is at least so long.
    pub(super) fn of(file: &File, length: usize) -> io::Result<Self> {
        if length == 0 {
            return Ok(Self::nothing());
        }
        // SAFETY: the caller saw this length, and mapped files are never cut: rows are appended, other files replaced.
        let map = unsafe { MmapOptions::new().len(length).map(file)? };
        Ok(Self {
            bytes: MappedBytes::Mapped(map),
            length,
        })
    }

    /// Copies bytes, where there is nothing to map.
    pub(super) fn copied(read: impl FnOnce(&mut [u8]) -> io::Result<usize>, length: usize) -> io::Result<Self> {
        let mut words = vec![0_u64; length.div_ceil(size_of::<u64>())];
        let length = read(&mut bytemuck::cast_slice_mut(&mut words)[..length])?;
        Ok(Self {
            bytes: MappedBytes::Copied(words),
            length,
        })
    }

    /// No bytes.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            bytes: MappedBytes::Copied(Vec::new()),
            length: 0,
        }
    }

    /// The bytes; they begin on a multiple of eight.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            MappedBytes::Mapped(map) => map,
            MappedBytes::Copied(words) => &bytemuck::cast_slice(words)[..self.length],
        }
    }
}
