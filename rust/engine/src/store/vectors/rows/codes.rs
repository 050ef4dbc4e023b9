//! The place of the codes of a block of rows: in memory, or in a mapped file.

use std::ops::Range;
use std::sync::Arc;

use super::companions::codes_bytes;
use chronolog::disk::Mapping;
use chronolog::memory::AlignedBytes;

/// Codes of a chunk, wherever they lie.
#[derive(Clone, Debug)]
pub struct RowCodes {
    place: CodesPlace,
    start: usize,
    length: usize,
}

#[derive(Clone, Debug)]
pub enum CodesPlace {
    /// In a room that many chunks share.
    Memory(Arc<AlignedBytes>),
    /// Still in the file.
    File(Arc<Mapping>),
}

impl RowCodes {
    /// The codes.
    pub fn bytes(&self) -> &[u8] {
        let bytes = match &self.place {
            CodesPlace::Memory(room) => room.bytes(),
            CodesPlace::File(slots) => slots.bytes(),
        };
        &bytes[self.start..][..self.length]
    }

    /// The codes of some of the chunks that lie in one place, so far from each other.
    pub fn of_chunks(
        place: &CodesPlace,
        chunks: Range<usize>,
        stride: usize,
        dim: usize,
    ) -> impl Iterator<Item = Self> {
        chunks.map(move |number| Self {
            place: place.clone(),
            start: number * stride,
            length: codes_bytes(dim),
        })
    }

    /// The codes of a chunk that is not whole yet: all that lies in a room.
    pub fn of_part(room: AlignedBytes) -> Self {
        Self {
            start: 0,
            length: room.size(),
            place: CodesPlace::Memory(Arc::new(room)),
        }
    }

    /// The first of them, so many bytes at most.
    pub fn first(&self, bytes: usize) -> Self {
        Self {
            length: self.length.min(bytes),
            ..self.clone()
        }
    }
}
