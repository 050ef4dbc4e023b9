//! Packs a retired log as zstd frames, and reads it as if it were not packed.
//!
//! Each frame holds one mebibyte of the log, only the last one less, with its length and a checksum. So the memory for
//! reading is known beforehand, any place is reached by unpacking one frame, and several threads may unpack at once.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{self, CParameter};

use crate::digest::{Hasher, Hex};
use crate::disk::{Access, Disk, DiskFile, Identity, copy_behind, read_over, read_upto};
use crate::layout::{is_packed_name, is_redacted_name};
use crate::memory;

/// How much of the log one frame holds; the last one may hold less.
pub const FRAME_BYTES: usize = 1024 * 1024;
/// How much room a frame may take: more than what zstd needs for bytes that do not shrink at all.
pub const MOST_PACKED_BYTES: u64 = FRAME_BYTES as u64 + 65_536;
/// What packing or unpacking a frame takes, and more.
const CODEC_BYTES: usize = 8 * FRAME_BYTES;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Behind the blocks of a frame.
const CHECKSUM_BYTES: u64 = 4;
/// The usual one: higher levels take seven times as long and more for a few percent.
const LEVEL: i32 = 3;
/// How many unpacked frames are kept: pieces that are read side by side share them.
const KEPT_FRAMES: usize = 12;

/// Turns pieces of a log into frames.
pub struct Packer(Compressor<'static>);

impl Packer {
    /// Ready for the first piece.
    pub fn new() -> io::Result<Self> {
        memory::could_have(CODEC_BYTES)?;
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Self(compressor))
    }

    /// Packs one piece of at most [`FRAME_BYTES`] in place of what `frame` held.
    pub fn pack(&mut self, piece: &[u8], frame: &mut Vec<u8>) -> io::Result<()> {
        frame.clear();
        frame.reserve(zstd_safe::compress_bound(piece.len()));
        self.0.compress_to_buffer(piece, frame).map(|_| ())
    }
}

/// Why a packed archive cannot be read: what it holds is wrong, not the disk.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Broken(&'static str);

fn broken(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Broken(reason))
}

/// The digest of a whole file.
pub fn file_digest(file: &dyn DiskFile) -> io::Result<Hex> {
    let (mut hasher, mut buffer, mut offset) = (Hasher::default(), Vec::new(), 0);
    while read_over(file, &mut buffer, offset, FRAME_BYTES)? > 0 {
        hasher.update(&buffer);
        offset += buffer.len() as u64;
    }
    Ok(hasher.finish())
}

/// Whether a whole file can be read and has this digest.
pub fn has_digest(file: &dyn DiskFile, sha256: &Hex) -> bool {
    file_digest(file).is_ok_and(|found| found == *sha256)
}

/// What is wrong with the archive, if that is why reading failed.
pub fn damage_in(fault: &io::Error) -> Option<String> {
    let inner = fault.get_ref()?.downcast_ref::<Broken>()?;
    Some(inner.to_string())
}

/// An archive on disk.
#[derive(Clone)]
pub struct Archive {
    /// The file as it lies there: this is what digests are of.
    pub packed: Arc<dyn DiskFile>,
    /// The log that it holds.
    pub log: Arc<dyn DiskFile>,
    unpacking: Option<Arc<Unpacking>>,
}

impl Archive {
    /// Gives back the memory that reading took.
    pub fn rest(&self) {
        if let Some(unpacking) = &self.unpacking {
            guard(&unpacking.kept).clear();
        }
    }
}

/// Opens an archive; its name tells whether it is packed.
pub fn open(disk: &dyn Disk, path: &Path) -> io::Result<Archive> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    open_as(disk, path, &name)
}

/// Opens a file that once was an archive of this name.
pub fn open_as(disk: &dyn Disk, path: &Path, name: &str) -> io::Result<Archive> {
    let packed = disk.open(path, Access::Read)?;
    if !is_packed_name(name) {
        let log = Arc::clone(&packed);
        return Ok(Archive {
            packed,
            log,
            unpacking: None,
        });
    }
    let unpacking = Arc::new(Unpacking::new(Arc::clone(&packed), is_redacted_name(name))?);
    Ok(Archive {
        packed,
        log: Arc::clone(&unpacking) as Arc<dyn DiskFile>,
        unpacking: Some(unpacking),
    })
}

#[derive(Clone, Copy)]
struct Frame {
    start: u64,
    end: u64,
    holds: usize,
}

/// A packed archive, read like the log that it holds. Frames are found as they are needed.
struct Unpacking {
    file: Arc<dyn DiskFile>,
    length: u64,
    is_redacted: bool,
    found: Mutex<Vec<Frame>>,
    kept: Mutex<Vec<(usize, Arc<Vec<u8>>)>>,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Unpacking {
    fn new(file: Arc<dyn DiskFile>, is_redacted: bool) -> io::Result<Self> {
        Ok(Self {
            is_redacted,
            length: file.length()?,
            file,
            found: Mutex::default(),
            kept: Mutex::default(),
        })
    }

    /// The frame with this number; `None` behind the last one.
    fn frame(&self, number: usize) -> io::Result<Option<Frame>> {
        let mut found = guard(&self.found);
        while found.len() <= number {
            let start = found.last().map_or(0, |frame| frame.end);
            if start == self.length {
                return if start == 0 {
                    Err(broken("it is empty"))
                } else {
                    Ok(None)
                };
            }
            if found.last().is_some_and(|frame| frame.holds < FRAME_BYTES) {
                return Err(broken("a frame that is not the last holds less than one mebibyte"));
            }
            found.push(self.look_at_frame(start)?);
        }
        Ok(found.get(number).copied())
    }

    /// Follows the headers of a frame to its end. Nothing is unpacked.
    fn look_at_frame(&self, start: u64) -> io::Result<Frame> {
        let mut header = Vec::new();
        read_upto(&*self.file, &mut header, start, 9)?;
        if header.len() < 6 || header[..4] != MAGIC {
            return Err(broken("a frame does not begin as one"));
        }
        // One segment, a checksum, no dictionary; what differs is how many bytes the length takes.
        let (width, least) = match header[4] {
            0x24 => (1, 0),
            0x64 => (2, 256),
            0xa4 => (4, 0),
            _ => {
                return Err(broken(
                    "a frame is not of our kind: one segment, its length, a checksum",
                ));
            }
        };
        let Some(digits) = header.get(5..5 + width) else {
            return Err(broken("a frame does not end"));
        };
        let holds = digits.iter().rev().fold(0, |sum, b| sum << 8 | usize::from(*b)) + least;
        if holds == 0 || holds > FRAME_BYTES {
            return Err(broken("a frame says that it holds nothing, or more than one mebibyte"));
        }
        let mut end = start + 5 + width as u64;
        loop {
            let mut block = Vec::new();
            if read_upto(&*self.file, &mut block, end, 3)? < 3 {
                return Err(broken("a frame does not end"));
            }
            let word = block.iter().rev().fold(0_u64, |sum, b| sum << 8 | u64::from(*b));
            end += 3 + if word >> 1 & 3 == 1 { 1 } else { word >> 3 };
            if word >> 1 & 3 == 3 || end - start > MOST_PACKED_BYTES {
                return Err(broken("the blocks of a frame are not what they could be"));
            }
            if word & 1 == 1 {
                break;
            }
        }
        end += CHECKSUM_BYTES;
        if end > self.length {
            return Err(broken("a frame does not end"));
        }
        Ok(Frame { start, end, holds })
    }

    fn unpacked(&self, number: usize) -> io::Result<Option<Arc<Vec<u8>>>> {
        if let Some((_, bytes)) = guard(&self.kept).iter().find(|(kept, _)| *kept == number) {
            return Ok(Some(Arc::clone(bytes)));
        }
        let Some(frame) = self.frame(number)? else {
            return Ok(None);
        };
        let mut packed = Vec::new();
        read_upto(
            &*self.file,
            &mut packed,
            frame.start,
            (frame.end - frame.start) as usize,
        )?;
        // Asked before: zstd would say of a frame that it cannot be unpacked, and it is not broken.
        memory::could_have(CODEC_BYTES)?;
        let mut bytes = Vec::with_capacity(frame.holds);
        let unpacked = Decompressor::new()?.decompress_to_buffer(&packed, &mut bytes);
        if unpacked.is_err() || bytes.len() != frame.holds {
            return Err(broken("a frame cannot be unpacked to what it says"));
        }
        let bytes = Arc::new(bytes);
        let mut kept = guard(&self.kept);
        if kept.len() == KEPT_FRAMES {
            kept.remove(0);
        }
        kept.push((number, Arc::clone(&bytes)));
        Ok(Some(bytes))
    }
}

impl DiskFile for Unpacking {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let number = usize::try_from(offset / FRAME_BYTES as u64).map_err(io::Error::other)?;
        let frame = self.unpacked(number)?;
        Ok(frame.map_or(0, |bytes| copy_behind(&bytes, offset % FRAME_BYTES as u64, buffer)))
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn is_redacted(&self) -> bool {
        self.is_redacted
    }

    fn length(&self) -> io::Result<u64> {
        let mut number = guard(&self.found).len();
        while self.frame(number)?.is_some() {
            number += 1;
        }
        let found = guard(&self.found);
        Ok(found.iter().map(|frame| frame.holds as u64).sum())
    }

    fn identity(&self) -> io::Result<Identity> {
        self.file.identity()
    }
}
