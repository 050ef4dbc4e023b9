//! Large pieces of memory on large pages, and the error for memory that was refused.
//!
//! A page of four kilobytes costs twice: when it is touched first, and when a processor that sweeps over many looks up
//! where it lies, a third of the time.

mod reserve;

use std::collections::TryReserveError;
use std::io;

use memmap2::MmapMut;

pub use reserve::{Reserved, check};

use crate::error::Error;

/// Memory was refused; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl From<TryReserveError> for Refused {
    fn from(_: TryReserveError) -> Self {
        Self
    }
}

impl From<hashbrown::TryReserveError> for Refused {
    fn from(_: hashbrown::TryReserveError) -> Self {
        Self
    }
}

impl From<Refused> for io::Error {
    fn from(_: Refused) -> Self {
        io::ErrorKind::OutOfMemory.into()
    }
}

impl From<Refused> for Error {
    fn from(_: Refused) -> Self {
        Self::OutOfMemory
    }
}

/// Whether so much memory could be had now, for work with allocations that cannot report a refusal.
pub fn could_have(bytes: usize) -> Result<(), Refused> {
    check()?;
    MmapMut::map_anon(bytes.max(1)).map(drop).map_err(|_| Refused)
}

/// So much is asked for at a time where many small pieces are needed.
const ASKED_BYTES: usize = 3 * 1024 * 1024;

/// Memory that could be had when last asked, for work with many small allocations.
#[derive(Debug, Default)]
pub struct Allowance {
    left: usize,
}

impl Allowance {
    /// Takes so many bytes off it; when that is too much it is asked for more.
    pub fn take(&mut self, bytes: usize) -> Result<(), Refused> {
        if self.left < bytes {
            let asked = ASKED_BYTES.max(bytes);
            could_have(asked)?;
            self.left = asked;
        }
        self.left -= bytes;
        Ok(())
    }
}

/// Collects items. Errors: `Refused` if that is too much.
pub fn gathered<T>(items: impl Iterator<Item = T>) -> Result<Vec<T>, Refused> {
    let mut gathered = Vec::new();
    gathered.try_reserve(items.size_hint().0)?;
    for item in items {
        if gathered.len() == gathered.capacity() {
            gathered.try_reserve(1)?;
        }
        gathered.push(item);
    }
    Ok(gathered)
}

/// Rooms from this size on are worth pages of their own.
const LARGE_BYTES: usize = 2 * 1024 * 1024;
/// Registers load faster from a whole cache line.
const ALIGNMENT_BYTES: usize = 64;

/// Bytes that begin on a cache line; zeros at first.
#[derive(Debug)]
pub struct AlignedBytes {
    memory: Memory,
    start: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Memory {
    Pages(MmapMut),
    Heap(Vec<u8>),
}

impl AlignedBytes {
    /// A room of so many bytes.
    pub fn new(bytes: usize) -> Result<Self, Refused> {
        let pages = (bytes >= LARGE_BYTES).then(|| MmapMut::map_anon(bytes).ok()).flatten();
        let memory = match pages {
            Some(pages) => {
                // Only a wish: without it everything is right, and slower.
                #[cfg(target_os = "linux")]
                let _ = pages.advise(memmap2::Advice::HugePage);
                Memory::Pages(pages)
            }
            None => {
                let mut heap = Vec::new();
                heap.try_reserve_exact(bytes + ALIGNMENT_BYTES)?;
                heap.resize(bytes + ALIGNMENT_BYTES, 0);
                Memory::Heap(heap)
            }
        };
        let start = match &memory {
            Memory::Pages(_) => 0,
            Memory::Heap(heap) => heap.as_ptr().align_offset(ALIGNMENT_BYTES).min(ALIGNMENT_BYTES),
        };
        Ok(Self { memory, start, bytes })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let memory: &[u8] = match &self.memory {
            Memory::Pages(pages) => pages,
            Memory::Heap(heap) => heap,
        };
        &memory[self.start..][..self.bytes]
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let memory: &mut [u8] = match &mut self.memory {
            Memory::Pages(pages) => pages,
            Memory::Heap(heap) => heap,
        };
        &mut memory[self.start..][..self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_lasts_until_it_is_used_up() {
        let mut allowance = Allowance::default();
        allowance.take(1).expect("memory");
        assert_eq!(allowance.left, ASKED_BYTES - 1);
        allowance.take(ASKED_BYTES - 1).expect("memory");
        assert_eq!(allowance.left, 0);
        allowance.take(2 * ASKED_BYTES).expect("memory");
        assert_eq!(allowance.left, 0);
        assert_eq!(allowance.take(usize::MAX / 2), Err(Refused));
        assert_eq!(allowance.left, 0, "what was refused is not had");
    }
}
