//! Keeps the companions of rows on disk, with what proves them right.
//!
//! They lie in `index/`, a slot for each chunk. A slot ends with what it was made from, the digests of its rows, and a
//! checksum. Both are XXH3: the file is derived, and guarded against accidents; whoever can forge it can forge the codes as
//! well. A slot that is not right is written anew where it lies. Two processes that fill the same slot write the same bytes,
//! so whoever has mapped a slot that was right goes on seeing it. The file is never cut.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_128;

use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::{CHUNK_ROWS, RowChunk};
use chronolog::disk::{Access, Disk, DiskFile, Mapping, fill};
use chronolog::layout::Layout;
use chronolog::memory::AlignedBytes;
use chronomemory_search::vector::groups::{GROUP_ROWS, group_bytes};

/// How many groups a chunk has.
pub const CHUNK_GROUPS: usize = CHUNK_ROWS / GROUP_ROWS;
/// The first bytes behind the codes of a slot; the last one is the version.
const MAGIC: &[u8; 8] = b"CMCODE\x00\x02";
/// Magic, dimension, what stands for the digests of the rows.
const ORIGIN_BYTES: usize = 32;
/// The origin, the checksum of the codes, zeros.
const TRAILER_BYTES: usize = 64;

/// How many bytes the codes of a chunk take.
pub fn codes_bytes(dim: usize) -> usize {
    CHUNK_GROUPS * group_bytes(dim)
}

/// How far the codes of two chunks lie apart: a multiple of a cache line, so that all begin on one.
pub fn slot_bytes(dim: usize) -> usize {
    codes_bytes(dim) + TRAILER_BYTES
}

/// The file of one generation of a space.
pub struct Companions<'a> {
    disk: &'a dyn Disk,
    path: PathBuf,
    /// The rows that it is made of.
    rows: PathBuf,
    dim: usize,
    /// What there is to read.
    there: Option<Arc<dyn DiskFile>>,
    /// The file to write to, once there was something to write; none if the disk refused.
    kept: Mutex<Option<Option<Arc<dyn DiskFile>>>>,
}

impl<'a> Companions<'a> {
    /// Looks for the file.
    pub fn new(disk: &'a dyn Disk, layout: &Layout, bound: &Bound) -> Self {
        let path = layout.companion(&bound.name, bound.generation);
        Self {
            there: disk.open(&path, Access::Read).ok(),
            kept: Mutex::default(),
            disk,
            path,
            rows: layout.rows(&bound.name, bound.generation),
            dim: bound.dim,
        }
    }

    /// The first slots, mapped, so many at most; `None` if there are none.
    pub fn map(&self, slots: usize) -> Option<(Arc<dyn DiskFile>, Mapping)> {
        let file = self.there.as_ref()?;
        let each = slot_bytes(self.dim);
        let slots = slots.min(file.length().ok()? as usize / each);
        let map = (slots > 0).then(|| file.map((slots * each) as u64).ok()).flatten()?;
        Some((Arc::clone(file), map))
    }

    /// Whether mapped slots hold the codes that were made of the rows of a chunk.
    pub fn is_right(&self, slots: &[u8], number: usize, chunk: &RowChunk) -> bool {
        let each = slot_bytes(self.dim);
        let slot = slots.get(number * each..(number + 1) * each);
        slot.is_some_and(|slot| {
            let (codes, trailer) = slot.split_at(codes_bytes(self.dim));
            trailer == self.trailer(chunk, codes)
        })
    }

    /// Reads the codes of a chunk; whether they are those that were made of its rows.
    pub fn read(&self, number: usize, chunk: &RowChunk, codes: &mut [u8]) -> bool {
        let Some(file) = &self.there else {
            return false;
        };
        let mut trailer = [0; TRAILER_BYTES];
        let offset = self.offset(number);
        // The trailer first: a slot of other rows, or none at all, is told by few bytes.
        let read = |bytes: &mut [u8], offset| fill(&**file, bytes, offset).is_ok_and(|filled| filled == bytes.len());
        read(&mut trailer, offset + codes.len() as u64)
            && trailer[..ORIGIN_BYTES] == self.origin(chunk)
            && read(codes, offset)
            && trailer == self.trailer(chunk, codes)
    }

    /// Keeps the codes of a chunk, as long as the disk lets us: they can be made again.
    pub fn keep(&self, number: usize, chunk: &RowChunk, codes: &[u8]) {
        let offset = self.offset(number);
        let trailer = self.trailer(chunk, codes);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let file = kept.get_or_insert_with(|| self.open().ok());
        let write = |file: &Arc<dyn DiskFile>| {
            file.write_at(codes, offset)?;
            file.write_at(&trailer, offset + codes.len() as u64)
        };
        if file.as_ref().is_some_and(|file| write(file).is_err()) {
            *file = None;
        }
    }

    fn open(&self) -> io::Result<Arc<dyn DiskFile>> {
        match self.disk.open(&self.path, Access::Write) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = self.path.parent() {
                    self.disk.create_dir(folder)?;
                }
                let file = self.disk.create(&self.path)?;
                // INVARIANT: the rows are looked for when the file is there, and whoever erases takes rows away first: no codes
                // stay of rows that are gone.
                match self.disk.status(&self.rows) {
                    Ok(_) => Ok(file),
                    Err(fault) => {
                        self.disk.remove(&self.path)?;
                        Err(fault)
                    }
                }
            }
            // Another name leads to it: what is written here must not be written there.
            Ok(file) if file.is_shared()? => self.disk.create(&self.path),
            opened => opened,
        }
    }

    fn offset(&self, number: usize) -> u64 {
        (number * slot_bytes(self.dim)) as u64
    }

    /// What codes are made of, as their trailer begins.
    fn origin(&self, chunk: &RowChunk) -> [u8; ORIGIN_BYTES] {
        let mut origin = [0; ORIGIN_BYTES];
        origin[..8].copy_from_slice(MAGIC);
        origin[8..16].copy_from_slice(&(self.dim as u64).to_le_bytes());
        origin[16..].copy_from_slice(&xxh3_128(chunk.digests.as_flattened()).to_le_bytes());
        origin
    }

    fn trailer(&self, chunk: &RowChunk, codes: &[u8]) -> [u8; TRAILER_BYTES] {
        let mut trailer = [0; TRAILER_BYTES];
        trailer[..ORIGIN_BYTES].copy_from_slice(&self.origin(chunk));
        trailer[ORIGIN_BYTES..][..16].copy_from_slice(&xxh3_128(codes).to_le_bytes());
        trailer
    }
}

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
