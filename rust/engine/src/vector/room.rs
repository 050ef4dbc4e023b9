//! Where do codes lie, so that a sweep over all of them is not held up?
//!
//! A sweep is as fast as memory is read, and looking up where each page of four kilobytes lies slows that down by a third.
//! So large rooms ask the system for large pages.

use memmap2::MmapMut;

/// Rooms from this size on are worth pages of their own.
const LARGE_BYTES: usize = 2 * 1024 * 1024;
/// Registers load faster from a whole cache line.
const ALIGNMENT_BYTES: usize = 64;

/// Bytes that begin on a cache line; zeros at first.
#[derive(Debug)]
pub struct Room {
    memory: Memory,
    start: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Memory {
    Pages(MmapMut),
    Heap(Vec<u8>),
}

impl Room {
    /// A room of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let pages = (bytes >= LARGE_BYTES).then(|| MmapMut::map_anon(bytes).ok()).flatten();
        let memory = match pages {
            Some(pages) => {
                // Only a wish: without it everything is right, and slower.
                #[cfg(target_os = "linux")]
                let _ = pages.advise(memmap2::Advice::HugePage);
                Memory::Pages(pages)
            }
            None => Memory::Heap(vec![0; bytes + ALIGNMENT_BYTES]),
        };
        let start = match &memory {
            Memory::Pages(_) => 0,
            Memory::Heap(heap) => heap.as_ptr().align_offset(ALIGNMENT_BYTES).min(ALIGNMENT_BYTES),
        };
        Self { memory, start, bytes }
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
