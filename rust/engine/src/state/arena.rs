//! Where do the bytes of the records lie?
//!
//! In chunks that only grow. A full chunk is shared, never moved: whoever froze the state keeps reading it while new
//! records arrive behind.

use std::sync::Arc;

const CHUNK_BYTES: usize = 1024 * 1024;

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
        if self.open.len() + bytes.len() > CHUNK_BYTES && !self.open.is_empty() {
            self.seal();
        }
        if self.open.capacity() == 0 {
            self.open.reserve_exact(CHUNK_BYTES.max(bytes.len()));
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
        self.dead > CHUNK_BYTES && self.dead > self.total / 2
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
