//! Where do the bytes of the records lie?
//!
//! In chunks that only grow. A full chunk is shared, never moved: whoever froze the state keeps reading it while new
//! records arrive behind.

use std::sync::Arc;

use crate::memory::Room;

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
#[derive(Debug, Default)]
pub struct Arena {
    full: Vec<Arc<Room>>,
    /// None before the first record and just after a freeze.
    open: Option<Room>,
    /// How much of the open chunk is taken.
    used: usize,
    dead: usize,
    total: usize,
}

impl Arena {
    /// Puts bytes behind the others.
    pub fn push(&mut self, bytes: &[u8]) -> Address {
        let left = self.open.as_ref().map_or(0, Room::len) - self.used;
        if bytes.len() > left {
            self.seal();
        }
        let usual = self.total.clamp(FIRST_CHUNK_BYTES, LARGEST_CHUNK_BYTES);
        let open = self.open.get_or_insert_with(|| Room::new(usual.max(bytes.len())));
        let start = self.used;
        open.bytes_mut()[start..][..bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
        self.total += bytes.len();
        Address {
            chunk: self.full.len() as u32,
            start: start as u32,
            length: bytes.len() as u32,
        }
    }

    /// The bytes at an address.
    pub fn get(&self, at: Address) -> &[u8] {
        let chunk = match self.full.get(at.chunk as usize) {
            Some(chunk) => chunk.bytes(),
            None => self.open.as_ref().map_or(&[][..], Room::bytes),
        };
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
        self.seal();
        Self {
            full: self.full.clone(),
            open: None,
            ..*self
        }
    }

    fn seal(&mut self) {
        self.used = 0;
        self.full.extend(self.open.take().map(Arc::new));
    }
}
