//! Stores the bytes of records in chunks that only grow.
//!
//! In chunks that only grow. A full chunk is shared, never moved: whoever froze the state keeps reading it while new
//! records arrive behind.

use std::alloc::{Layout, handle_alloc_error};
use std::sync::Arc;

use chronolog::memory::{AlignedBytes, Refused};

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

impl Address {
    /// No bytes.
    pub const NOTHING: Self = Self {
        chunk: u32::MAX,
        start: 0,
        length: 0,
    };
}

/// Records, end to end.
#[derive(Debug, Default)]
pub struct Arena {
    full: Vec<Arc<AlignedBytes>>,
    /// So many of those are another's, who counts what lies there.
    shared: usize,
    /// None before the first record and just after a freeze.
    open: Option<AlignedBytes>,
    /// Chunks for what was announced.
    spare: Vec<AlignedBytes>,
    /// How much of the open chunk is taken.
    used: usize,
    dead: usize,
    total: usize,
    longest: usize,
}

impl Arena {
    /// An arena in which all that lies in another can be read too, at the same addresses.
    pub fn beside(other: &Self) -> Self {
        Self {
            full: other.full.clone(),
            shared: other.full.len(),
            ..Self::default()
        }
    }

    /// Whether bytes lie where another counts them.
    pub fn is_shared(&self, at: Address) -> bool {
        (at.chunk as usize) < self.shared
    }

    /// Asks for the memory that `push` will need for so many bytes, of which no record has more than `longest`.
    pub fn make_room(&mut self, bytes: usize, longest: usize) -> Result<(), Refused> {
        let left = self.left();
        if bytes <= left {
            return Ok(());
        }
        // The end of a chunk is lost to a record that does not fit there.
        let use_of = |room: usize| room.saturating_sub(longest);
        let mut ready = use_of(left) + self.spare.iter().map(|room| use_of(room.size())).sum::<usize>();
        let usual = (self.total + bytes).clamp(FIRST_CHUNK_BYTES, LARGEST_CHUNK_BYTES);
        while ready < bytes {
            let room = AlignedBytes::new(usual.max(2 * longest))?;
            ready += use_of(room.size());
            self.spare.push(room);
        }
        Ok(())
    }

    fn left(&self) -> usize {
        self.open.as_ref().map_or(0, AlignedBytes::size) - self.used
    }

    /// The next chunk, for a record of so many bytes.
    fn next_chunk(&mut self, bytes: usize) -> AlignedBytes {
        if let Some(at) = self.spare.iter().position(|room| room.size() >= bytes) {
            return self.spare.remove(at);
        }
        let usual = self.total.clamp(FIRST_CHUNK_BYTES, LARGEST_CHUNK_BYTES);
        // What was not announced is small, or what a patch made of a record: that is as long as the record was. Where
        // a usual chunk is refused the least one is had, from the reserve if need be.
        let least = FIRST_CHUNK_BYTES.max(bytes);
        let room = AlignedBytes::new(usual.max(bytes)).or_else(|_| AlignedBytes::new(least));
        room.unwrap_or_else(|_| handle_alloc_error(Layout::new::<[u8; FIRST_CHUNK_BYTES]>()))
    }
    /// Puts bytes behind the others.
    pub fn push(&mut self, bytes: &[u8]) -> Address {
        if bytes.len() > self.left() {
            self.seal();
        }
        if self.open.is_none() {
            self.open = Some(self.next_chunk(bytes.len()));
        }
        let start = self.used;
        if let Some(open) = &mut self.open {
            open.bytes_mut()[start..][..bytes.len()].copy_from_slice(bytes);
        }
        self.used += bytes.len();
        self.total += bytes.len();
        self.longest = self.longest.max(bytes.len());
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
            None => self.open.as_ref().map_or(&[][..], AlignedBytes::bytes),
        };
        &chunk[at.start as usize..(at.start + at.length) as usize]
    }

    /// Notes that nobody will ask for these bytes again.
    pub fn forget(&mut self, at: Address) {
        if !self.is_shared(at) {
            self.dead += at.length as usize;
        }
    }

    /// Forgets these bytes for good: nothing is left of them here. Whoever froze them before still reads them.
    pub fn wipe(&mut self, at: Address) {
        self.forget(at);
        let chunk = match self.full.get_mut(at.chunk as usize) {
            Some(chunk) => own(chunk),
            None => self.open.as_mut(),
        };
        // Where there is no memory for a chunk of one's own the bytes stay until the state is loaded anew.
        if let Some(chunk) = chunk {
            chunk.bytes_mut()[at.start as usize..][..at.length as usize].fill(0);
        }
    }

    /// Whether more than half of the bytes are forgotten: worth moving the rest.
    pub fn is_wasteful(&self) -> bool {
        self.dead > FIRST_CHUNK_BYTES && self.dead > self.total / 2
    }

    /// An empty arena with room for all that is not forgotten here, and for what was announced here.
    pub fn successor(&mut self) -> Result<Self, Refused> {
        let mut next = Self {
            full: self.full[..self.shared].to_vec(),
            shared: self.shared,
            ..Self::default()
        };
        next.make_room(self.total - self.dead + self.left(), self.longest)?;
        next.spare.append(&mut self.spare);
        Ok(next)
    }

    /// All bytes that lie here.
    pub fn bytes(&self) -> usize {
        self.total
    }

    /// A view of all bytes so far that stays as it is.
    pub fn freeze(&mut self) -> Self {
        self.seal();
        Self {
            full: self.full.clone(),
            open: None,
            spare: Vec::new(),
            ..*self
        }
    }

    fn seal(&mut self) {
        self.used = 0;
        self.full.extend(self.open.take().map(Arc::new));
    }
}

/// A chunk that nobody else reads; `None` if there is no memory for one.
fn own(chunk: &mut Arc<AlignedBytes>) -> Option<&mut AlignedBytes> {
    if Arc::get_mut(chunk).is_none() {
        let mut copy = AlignedBytes::new(chunk.size()).ok()?;
        copy.bytes_mut().copy_from_slice(chunk.bytes());
        *chunk = Arc::new(copy);
    }
    Arc::get_mut(chunk)
}
