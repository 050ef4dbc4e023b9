//! What does a search need of a space in memory?
//!
//! Rows are mapped. Of each whole block of rows there is a companion: codes in eight bits, made when a search first needs
//! them, from rows whose digests were checked, and kept on disk. A process reads those it needs into memory: mapped files
//! have small pages, and codes are all that a search reads from end to end. Each is read, or made, at its place, and checked
//! there while the processor has it near. The last block, which is not whole yet, has codes in memory only, and they lag
//! behind by a few rows.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use roaring::RoaringBitmap;

use super::check::{is_row, open_rows};
use super::companions::{Companions, codes_bytes};
use super::index::{BLOCK_ROWS, Block};
use super::marks::Marks;
use super::words::Bound;
use crate::disk::{Disk, DiskFile, Mapping};
use crate::layout::Layout;
use crate::memory::Room;
use crate::vector::companion::{GROUP_ROWS, encode_groups, group_bytes};
use crate::vector::team::together;
use crate::vector::{Cpu, Rows};

/// Codes of a block: somewhere in a room that many blocks share.
#[derive(Clone, Debug)]
pub struct Codes {
    room: Arc<Room>,
    start: usize,
    length: usize,
}

impl Codes {
    /// The codes.
    pub fn bytes(&self) -> &[u8] {
        &self.room.bytes()[self.start..][..self.length]
    }

    /// The codes of blocks that lie in one room.
    fn of_blocks(room: Room, blocks: usize, dim: usize) -> impl Iterator<Item = Self> {
        let (room, length) = (Arc::new(room), codes_bytes(dim));
        (0..blocks).map(move |number| Self {
            room: Arc::clone(&room),
            start: number * length,
            length,
        })
    }
}

/// A block that is not whole yet is worth a look when it has grown by so many groups.
const GROWN_GROUPS: usize = 4;
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
    /// Codes of the first rows of a block that is not whole yet.
    last: Option<Last>,
}

/// What there is of the last block.
struct Last {
    number: usize,
    codes: Codes,
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
        self.complete_last(&mut kept, &map, blocks, count);
        let mut codes: Vec<Codes> = kept.codes.iter().take(count / BLOCK_ROWS).cloned().collect();
        codes.extend(self.last_codes(&kept, count));
        Ok(Ready {
            rows: map,
            count,
            codes,
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
    fn complete(&self, kept: &mut Kept, rows: &Mapping, blocks: &[Arc<Block>], threads: usize) {
        let known = kept.codes.len();
        let fresh = blocks.len().saturating_sub(known);
        if fresh == 0 {
            return;
        }
        let dim = self.bound.dim;
        let path = self.layout.companion(&self.bound.name, self.bound.generation);
        let companions = Companions::new(&*self.disk, path, dim);
        let mut room = Room::new(fresh * codes_bytes(dim));
        // Codes have no gaps: from the first block on that cannot be made, rows are scored from their floats.
        let end = AtomicUsize::new(blocks.len());
        let places = Mutex::new((known..).zip(room.bytes_mut().chunks_exact_mut(codes_bytes(dim))));
        together(threads.min(fresh), || {
            loop {
                let next = places.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((number, codes)) = next.filter(|(number, _)| *number < end.load(Ordering::Relaxed)) else {
                    return;
                };
                let block = &blocks[number];
                if companions.read(number, block, codes) {
                    continue;
                }
                match self.make(&kept.marks[number], rows.bytes(), number, block, 0..BLOCK_ROWS, codes) {
                    Some(true) => companions.keep(number, block, codes),
                    Some(false) => {}
                    None => {
                        end.fetch_min(number, Ordering::Relaxed);
                    }
                }
            }
        });
        let made = end.into_inner() - known;
        kept.codes.extend(Codes::of_blocks(room, made, dim));
        kept.single = if made == 1 { kept.single + 1 } else { 0 };
        if kept.single == MOST_SINGLE {
            self.gather(kept);
        }
    }

    /// Goes on with the codes of a block that is not whole yet, when it has grown by enough to be worth it.
    fn complete_last(&self, kept: &mut Kept, rows: &Mapping, blocks: &[Arc<Block>], count: usize) {
        let number = count / BLOCK_ROWS;
        let before = kept.last.as_ref().filter(|last| last.number == number);
        let before: &[u8] = before.map_or(&[], |last| last.codes.bytes());
        let each = group_bytes(self.bound.dim);
        let (old, new) = (before.len() / each, count % BLOCK_ROWS / GROUP_ROWS);
        if new < old + GROWN_GROUPS || kept.codes.len() != number {
            return;
        }
        let mut room = Room::new(new * each);
        let (known, fresh) = room.bytes_mut().split_at_mut(before.len());
        known.copy_from_slice(before);
        let places = old * GROUP_ROWS..new * GROUP_ROWS;
        if self
            .make(
                &kept.marks[number],
                rows.bytes(),
                number,
                &blocks[number],
                places,
                fresh,
            )
            .is_some()
        {
            let codes = Codes {
                start: 0,
                length: room.len(),
                room: Arc::new(room),
            };
            kept.last = Some(Last { number, codes });
        }
    }

    /// The codes of the block that so many rows end in. Others may have seen more of it, and be done with it.
    fn last_codes(&self, kept: &Kept, count: usize) -> Option<Codes> {
        let number = count / BLOCK_ROWS;
        let last = kept.last.as_ref().filter(|last| last.number == number);
        let last = last.filter(|_| kept.codes.len() == number).map(|last| &last.codes);
        let codes = kept.codes.get(number).or(last)?;
        let there = count % BLOCK_ROWS / GROUP_ROWS * group_bytes(self.bound.dim);
        Some(Codes {
            length: codes.length.min(there),
            ..codes.clone()
        })
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
            place.copy_from_slice(codes.bytes());
        }
        kept.codes.truncate(first);
        kept.codes.extend(Codes::of_blocks(room, kept.single, dim));
        kept.single = 0;
    }

    /// Makes the codes of rows of a block, checking each of them; whether all are good, and the codes worth keeping.
    fn make(
        &self,
        marks: &Marks,
        rows: &[u8],
        number: usize,
        block: &Block,
        places: Range<usize>,
        codes: &mut [u8],
    ) -> Option<bool> {
        let dim = self.bound.dim;
        let first = number * BLOCK_ROWS;
        let mut is_good = true;
        for place in places.clone() {
            let check = || is_row(rows, (first + place) as u32, &self.bound, &block.digests[place]);
            is_good &= marks.admit(place, check);
        }
        let bytes = rows.get((first + places.start) * 4 * dim..(first + places.end) * 4 * dim)?;
        let floats = bytemuck::try_cast_slice(bytes).ok()?;
        encode_groups(Rows::packed(floats, dim).ok()?, 0, codes, Cpu::best()).ok()?;
        Some(is_good)
    }
}
