//! Where do large pieces of memory lie?
//!
//! Memory comes in pages of four kilobytes, and each costs twice: the system gives it out when it is touched first, and a
//! processor that sweeps over many of them looks up where each lies, which takes a third of the time. So large rooms ask
//! for large pages.

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

    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
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
