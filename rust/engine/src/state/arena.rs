//! Where do the bytes of the records lie?
//!
//! In chunks that only grow. A full chunk is shared, never moved: whoever froze the state keeps reading it while new
//! records arrive behind.

use std::sync::Arc;

/// The first chunk; a store of a few records stays small.
const FIRST_CHUNK_BYTES: usize = 64 * 1024;
/// Each further chunk is twice as large, up to this: the system can give it out in large pages.
const LARGEST_CHUNK_BYTES: usize = 8 * 1024 * 1024;

/// Where one record lies.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    chunk: u32,
    start: u32,
    length: u32,
}

/// Records, end to end.
#[derive(Clone, Debug, Default)]
pub struct Arena {
    full: Vec<Arc<Vec<u8>>>,
    open: Vec<u8>,
    dead: usize,
    total: usize,
}

impl Arena {
    /// Puts bytes behind the others.
    pub fn push(&mut self, bytes: &[u8]) -> Address {
        if self.open.len() + bytes.len() > self.open.capacity() {
            if !self.open.is_empty() {
                self.seal();
            }
            let usual = self.total.clamp(FIRST_CHUNK_BYTES, LARGEST_CHUNK_BYTES);
            self.open.reserve_exact(usual.max(bytes.len()));
        }
        let start = self.open.len();
        self.open.extend_from_slice(bytes);
        self.total += bytes.len();
        Address {
            chunk: self.full.len() as u32,
            start: start as u32,
            length: bytes.len() as u32,
        }
    }

    /// The bytes at an address.
    pub fn get(&self, at: Address) -> &[u8] {
        let chunk = self.full.get(at.chunk as usize).map_or(&self.open, |chunk| chunk);
        &chunk[at.start as usize..(at.start + at.length) as usize]
    }

    /// Notes that nobody will ask for these bytes again.
    pub fn forget(&mut self, at: Address) {
        self.dead += at.length as usize;
    }

    /// Whether more than half of the bytes are forgotten: worth moving the rest.
    pub fn is_wasteful(&self) -> bool {
        self.dead > FIRST_CHUNK_BYTES && self.dead > self.total / 2
    }

    /// A view of all bytes so far that stays as it is.
    pub fn freeze(&mut self) -> Self {
        if !self.open.is_empty() {
            self.seal();
        }
        self.clone()
    }

    fn seal(&mut self) {
        self.full.push(Arc::new(std::mem::take(&mut self.open)));
    }
}
