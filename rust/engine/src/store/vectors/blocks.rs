//! What does a search need of a space in memory, and what of that lies ready on disk?
//!
//! Rows are mapped. Of each whole block of rows there is a companion: codes in eight bits, made when a search first needs
//! them, from rows whose digests were checked. They are kept in `index/`, a slot for each block. A slot ends with what it was
//! made from, the digests of its rows, and a checksum; one that is not right is made anew. Two processes that fill the same
//! slot write the same bytes. A process copies the slots it needs: mapped files have small pages, and codes are all that a
//! search reads from end to end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use roaring::RoaringBitmap;
use xxhash_rust::xxh3::xxh3_128;

use super::check::{is_row, open_rows};
use super::index::{BLOCK_ROWS, Block};
use super::marks::Marks;
use super::words::Bound;
use crate::digest::Hasher;
use crate::disk::{Access, Disk, DiskFile, Mapping};
use crate::layout::Layout;
use crate::memory::Room;
use crate::ordered::in_order;
use crate::vector::companion::{Companion, GROUP_ROWS, group_bytes};
use crate::vector::{Cpu, Rows};

/// How many groups a block has.
pub const BLOCK_GROUPS: usize = BLOCK_ROWS / GROUP_ROWS;
/// The first bytes behind the codes of a slot; the last one is the version.
const MAGIC: &[u8; 8] = b"CMCODE\x00\x01";
/// Magic, dimension, digest of the digests, checksum. A multiple of a cache line, so that codes begin on one.
const TRAILER_BYTES: usize = 64;

/// Codes of a block: somewhere in a room that many blocks share.
#[derive(Clone, Debug)]
pub struct Codes {
    room: Arc<Room>,
    number: usize,
}

impl Codes {
    /// The codes.
    pub fn bytes(&self, dim: usize) -> &[u8] {
        let each = codes_bytes(dim);
        &self.room.bytes()[self.number * each..][..each]
    }
}

fn codes_bytes(dim: usize) -> usize {
    BLOCK_GROUPS * group_bytes(dim)
}

fn slot_bytes(dim: usize) -> usize {
    codes_bytes(dim) + TRAILER_BYTES
}

/// So many blocks may lie alone.
const MOST_SINGLE: usize = 32;

/// What is kept in memory of one generation of a space.
pub struct Shelves {
    /// The space.
    pub bound: Bound,
    disk: Arc<dyn Disk>,
    layout: Layout,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    rows: Option<(Arc<dyn DiskFile>, Arc<Mapping>)>,
    marks: Vec<Arc<Marks>>,
    codes: Vec<Codes>,
    /// How many blocks came one by one, at the end, each in a room of its own.
    single: usize,
    /// Slots of the file that were looked at.
    looked: usize,
}

impl Kept {
    /// Makes room for marks of so many blocks.
    fn mark_blocks(&mut self, blocks: usize) {
        if self.marks.len() < blocks {
            self.marks.resize_with(blocks, Arc::default);
        }
    }
}

/// Everything that one search works with.
pub struct Ready {
    /// The rows, as far as the file holds them.
    pub rows: Arc<Mapping>,
    /// How many rows that is.
    pub count: usize,
    /// The codes of the first blocks.
    pub codes: Vec<Codes>,
    /// What is known of the rows.
    pub marks: Vec<Arc<Marks>>,
}

impl Ready {
    /// The rows that failed their check.
    pub fn failed(&self) -> RoaringBitmap {
        let failed = (0..).step_by(BLOCK_ROWS).zip(&self.marks);
        failed
            .filter(|(_, marks)| !marks.is_empty())
            .flat_map(|(first, marks)| marks.failed().map(move |place| (first + place) as u32))
            .collect()
    }
}

/// What one block becomes.
#[derive(Default)]
struct Making {
    made: Option<Made>,
    marks: Arc<Marks>,
}

enum Made {
    /// There is a slot for it that is right.
    Found,
    /// Made just now; with its trailer if all rows are good, and it is worth keeping.
    Fresh(Companion, Option<[u8; TRAILER_BYTES]>),
}

impl Shelves {
    /// Nothing is kept yet.
    pub fn new(disk: &Arc<dyn Disk>, layout: &Layout, bound: &Bound) -> Self {
        Self {
            bound: bound.clone(),
            disk: Arc::clone(disk),
            layout: layout.clone(),
            kept: Mutex::default(),
        }
    }

    /// Where the rows lie.
    pub fn rows_path(&self) -> PathBuf {
        self.layout.rows(&self.bound.name, self.bound.generation)
    }

    /// How many rows are known to be damaged.
    pub fn damaged(&self) -> usize {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.marks.iter().map(|marks| marks.failed().count()).sum()
    }

    /// Hears that a row was found damaged.
    pub fn fail(&self, row: u32) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, place) = (row as usize / BLOCK_ROWS, row as usize % BLOCK_ROWS);
        kept.mark_blocks(number + 1);
        kept.marks[number].fail(place);
    }

    /// Maps the rows and completes the companions.
    ///
    /// # Errors
    /// What the disk says about the rows.
    pub fn ready(&self, blocks: &[Arc<Block>], rows: u32, threads: usize) -> io::Result<Ready> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let stride = self.bound.stride();
        let wanted = u64::from(rows) * stride;
        let map = self.map(&mut kept, wanted)?;
        kept.mark_blocks(blocks.len());
        let count = (map.bytes().len() as u64 / stride).min(u64::from(rows)) as usize;
        for row in count..rows as usize {
            kept.marks[row / BLOCK_ROWS].fail(row % BLOCK_ROWS);
        }
        self.complete(&mut kept, &map, &blocks[..count / BLOCK_ROWS], threads);
        Ok(Ready {
            rows: map,
            count,
            codes: kept.codes.iter().take(count / BLOCK_ROWS).cloned().collect(),
            marks: kept.marks.clone(),
        })
    }

    /// The rows, mapped as far as the file goes. Whoever reads what was cut off a mapped file dies, so its length is asked
    /// for each time.
    fn map(&self, kept: &mut Kept, wanted: u64) -> io::Result<Arc<Mapping>> {
        if let Some((file, map)) = &kept.rows {
            let mapped = map.bytes().len() as u64;
            if mapped >= wanted && file.length()? >= mapped {
                return Ok(Arc::clone(map));
            }
        }
        kept.rows = None;
        let Some(file) = open_rows(&*self.disk, &self.layout, &self.bound)? else {
            return Ok(Arc::new(Mapping::nothing()));
        };
        let map = Arc::new(file.map(wanted)?);
        kept.rows = Some((file, Arc::clone(&map)));
        Ok(map)
    }

    /// Makes sure of the codes of all these blocks.
    fn complete(&self, kept: &mut Kept, rows: &Arc<Mapping>, blocks: &[Arc<Block>], threads: usize) {
        let known = kept.codes.len();
        if known >= blocks.len() {
            return;
        }
        let path = self.layout.companion(&self.bound.name, self.bound.generation);
        let slots = self.slots(&path, blocks.len(), &mut kept.looked);
        let marks = &kept.marks;
        let work = |index: u64, making: &mut Making| {
            let number = known + index as usize;
            *making = Making {
                marks: Arc::clone(&marks[number]),
                ..Making::default()
            };
            making.made = match &slots {
                Some(slots) if self.is_right(slots.bytes(), number, &blocks[number]) => Some(Made::Found),
                _ => self.make(&making.marks, rows.bytes(), number, &blocks[number]),
            };
            Ok(())
        };
        let dim = self.bound.dim;
        let mut store = Keeping::new(&*self.disk, &path);
        let mut room = Room::new((blocks.len() - known) * codes_bytes(dim));
        let mut number = 0;
        let outcome = in_order((blocks.len() - known) as u64, threads, work, |making: &mut Making| {
            let place = &mut room.bytes_mut()[number * codes_bytes(dim)..][..codes_bytes(dim)];
            let offset = (known + number) * slot_bytes(dim);
            match (making.made.take(), &slots) {
                (Some(Made::Found), Some(slots)) => place.copy_from_slice(&slots.bytes()[offset..][..codes_bytes(dim)]),
                (Some(Made::Fresh(companion, trailer)), _) => {
                    place.copy_from_slice(companion.bytes());
                    if let Some(trailer) = trailer {
                        store.keep(&[companion.bytes(), &trailer].concat(), offset as u64);
                    }
                }
                _ => return Ok::<bool, io::Error>(false),
            }
            number += 1;
            Ok(true)
        });
        // What could not be made is scored from its floats.
        let _ = outcome;
        let room = Arc::new(room);
        kept.codes.extend((0..number).map(|number| Codes {
            room: Arc::clone(&room),
            number,
        }));
        kept.single = if number == 1 { kept.single + 1 } else { 0 };
        if kept.single == MOST_SINGLE {
            self.gather(kept);
        }
    }

    /// Puts blocks that came one by one into one room: small rooms have small pages.
    fn gather(&self, kept: &mut Kept) {
        let dim = self.bound.dim;
        let first = kept.codes.len() - kept.single;
        let mut room = Room::new(kept.single * codes_bytes(dim));
        for (place, codes) in room
            .bytes_mut()
            .chunks_exact_mut(codes_bytes(dim))
            .zip(&kept.codes[first..])
        {
            place.copy_from_slice(codes.bytes(dim));
        }
        let room = Arc::new(room);
        for (number, codes) in kept.codes[first..].iter_mut().enumerate() {
            *codes = Codes {
                room: Arc::clone(&room),
                number,
            };
        }
        kept.single = 0;
    }

    /// The file of slots, mapped; `None` if it has nothing new.
    fn slots(&self, path: &Path, wanted: usize, looked: &mut usize) -> Option<Arc<Mapping>> {
        let file = self.disk.open(path, Access::Read).ok()?;
        let slots = file.length().ok()? as usize / slot_bytes(self.bound.dim);
        if slots.min(wanted) <= *looked {
            return None;
        }
        *looked = slots.min(wanted);
        file.map((*looked * slot_bytes(self.bound.dim)) as u64)
            .ok()
            .map(Arc::new)
    }

    /// Whether the file holds the codes of a block as they should be.
    fn is_right(&self, slots: &[u8], number: usize, block: &Block) -> bool {
        let dim = self.bound.dim;
        let start = number * slot_bytes(dim);
        slots.get(start..start + slot_bytes(dim)).is_some_and(|slot| {
            let (codes, trailer) = slot.split_at(codes_bytes(dim));
            trailer == self.trailer(codes, block)
        })
    }

    fn trailer(&self, codes: &[u8], block: &Block) -> [u8; TRAILER_BYTES] {
        let mut binding = Hasher::default();
        binding.update(block.digests.as_flattened());
        let mut trailer = [0; TRAILER_BYTES];
        trailer[..8].copy_from_slice(MAGIC);
        trailer[8..16].copy_from_slice(&(self.bound.dim as u64).to_le_bytes());
        trailer[16..48].copy_from_slice(&binding.finish().raw());
        trailer[48..].copy_from_slice(&xxh3_128(codes).to_le_bytes());
        trailer
    }

    /// Makes the codes of a block from its rows, checking each of them.
    fn make(&self, marks: &Marks, rows: &[u8], number: usize, block: &Block) -> Option<Made> {
        let dim = self.bound.dim;
        let first = number * BLOCK_ROWS;
        let mut is_good = true;
        for (place, digest) in block.digests.iter().enumerate() {
            is_good &= marks.admit(place, || is_row(rows, (first + place) as u32, &self.bound, digest));
        }
        let bytes = &rows[first * 4 * dim..][..BLOCK_ROWS * 4 * dim];
        let floats = bytemuck::try_cast_slice(bytes).ok()?;
        let mut companion = Companion::new(dim).ok()?;
        companion.extend(Rows::packed(floats, dim).ok()?, 1, Cpu::best()).ok()?;
        let trailer = is_good.then(|| self.trailer(companion.bytes(), block));
        Some(Made::Fresh(companion, trailer))
    }
}

/// Puts slots into the file, as long as the disk lets us: they can be made again.
struct Keeping<'a> {
    disk: &'a dyn Disk,
    path: PathBuf,
    file: Option<Option<Arc<dyn DiskFile>>>,
}

impl<'a> Keeping<'a> {
    fn new(disk: &'a dyn Disk, path: &Path) -> Self {
        Self {
            disk,
            path: path.to_owned(),
            file: None,
        }
    }

    fn keep(&mut self, slot: &[u8], offset: u64) {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                let opened = self.open(slot.len() as u64, offset).ok();
                self.file = Some(opened.clone());
                opened
            }
        };
        if file.is_some_and(|file| file.write_at(slot, offset).is_err()) {
            self.file = Some(None);
        }
    }

    /// The file to write to. Slots that are there and are not right may be mapped by somebody who was right before: those
    /// keep their file, and a new one takes its name.
    fn open(&self, slot_bytes: u64, offset: u64) -> io::Result<Arc<dyn DiskFile>> {
        match self.disk.open(&self.path, Access::Write) {
            Ok(file) if file.length()? < offset + slot_bytes => Ok(file),
            Ok(_) => {
                self.disk.remove(&self.path)?;
                self.disk.create(&self.path)
            }
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = self.path.parent() {
                    self.disk.create_dir(folder)?;
                }
                self.disk.create(&self.path)
            }
            Err(fault) => Err(fault),
        }
    }
}
