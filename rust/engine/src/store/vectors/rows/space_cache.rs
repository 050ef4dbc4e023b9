//! Keeps what searches need of a space: its rows, mapped; what is known of each row; the codes of all whole groups of rows.
//!
//! Codes are computed when a search first needs them, from rows whose digests were checked. Sixteen whole chunks become a file
//! ([`super::codes`]), which is used in place; the codes behind are in memory only.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use roaring::RoaringBitmap;
use xxhash_rust::xxh3::xxh3_64;

use super::check::{are_rows, is_row, open_rows, row_bytes};
use super::codes::{CodesFile, FILE_CHUNKS, codes_path, file_sizes};
use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::{CHUNK_ROWS, NONE, RowChunk};
use chronolog::disk::{Disk, DiskFile, Mapping};
use chronolog::layout::Layout;
use chronolog::log::files::remove_if_there;
use chronomemory_search::vector::codes::GROUP_ROWS;
use chronomemory_search::vector::team::together;
use chronomemory_search::vector::{CodePart, Cpu, MemoryPart, VectorRows};

/// A chunk that is not whole yet is worth a look when it has grown by so many groups.
const GROWN_GROUPS: usize = 16;

/// What is kept in memory of one generation of a space.
pub struct SpaceCache {
    pub bound: Bound,
    disk: Arc<dyn Disk>,
    layout: Layout,
    kept: Mutex<KeptParts>,
}

#[derive(Default)]
struct KeptParts {
    rows: Option<(Arc<dyn DiskFile>, Arc<Mapping>)>,
    /// Shared with the searches that run.
    marks: Arc<Vec<Arc<Marks>>>,
    failures: Arc<AtomicUsize>,
    /// Rows that the log names and the file did not hold.
    missing: usize,
    /// The codes of whole chunks, without gaps; shared likewise.
    codes: Arc<Vec<ChunkCodes>>,
    /// The codes of the first rows of the chunk behind them.
    last: Option<Arc<MemoryPart>>,
}

/// The codes of a whole chunk.
#[derive(Clone)]
enum ChunkCodes {
    Memory(Arc<MemoryPart>),
    File(Arc<CodesFile>),
}

impl KeptParts {
    /// Makes room for marks of so many chunks.
    fn mark_chunks(&mut self, chunks: usize) {
        if self.marks.len() < chunks {
            let fresh = || Arc::new(Marks::counted(&self.failures));
            Arc::make_mut(&mut self.marks).resize_with(chunks, fresh);
        }
    }
}

/// Everything that one search works with.
pub struct Ready {
    /// The rows, as far as the file holds them.
    pub rows: Arc<Mapping>,
    pub count: usize,
    named: u32,
    /// The codes of whole chunks, and of the chunk behind them.
    whole: Arc<Vec<ChunkCodes>>,
    last: Option<Arc<MemoryPart>>,
    marks: Arc<Vec<Arc<Marks>>>,
    failures: Arc<AtomicUsize>,
}

impl Ready {
    /// The codes of the first chunks.
    pub fn codes(&self) -> Vec<CodePart<'_>> {
        let mut left = self.count / GROUP_ROWS;
        let mut take = || {
            let groups = left.min(CHUNK_ROWS / GROUP_ROWS);
            left -= groups;
            groups
        };
        let whole = self.whole.iter().enumerate().map(|(number, codes)| match codes {
            ChunkCodes::Memory(part) => part.part(take()),
            ChunkCodes::File(file) => file.part(number, take()),
        });
        let mut parts: Vec<_> = whole.take(self.count.div_ceil(CHUNK_ROWS)).collect();
        if parts.len() == self.count / CHUNK_ROWS {
            parts.extend(self.last.iter().map(|part| part.part(take())));
        }
        parts
    }

    /// The file that has the codes of a row, if one has.
    fn file_of(&self, row: u32) -> Option<&Arc<CodesFile>> {
        match self.whole.get(row as usize / CHUNK_ROWS)? {
            ChunkCodes::Memory(_) => None,
            ChunkCodes::File(file) => Some(file),
        }
    }

    /// Whether a file of codes failed a check: what was found with it is void. The next search makes the codes anew.
    pub fn has_failed_files(&self) -> bool {
        let mut firsts = self.whole.iter().step_by(FILE_CHUNKS);
        firsts.any(|codes| matches!(codes, ChunkCodes::File(file) if file.has_failed()))
    }

    /// Whether a row may be scored: it is checked once.
    #[inline]
    pub fn admits(&self, bound: &Bound, chunks: &[Arc<RowChunk>], row: u32) -> bool {
        let (number, place) = (row as usize / CHUNK_ROWS, row as usize % CHUNK_ROWS);
        self.marks[number].admit(place, || self.is_right(bound, chunks, row))
    }

    /// Checks a row again. One that failed once stays so.
    pub fn check_again(&self, bound: &Bound, chunks: &[Arc<RowChunk>], row: u32) -> bool {
        let is_right = self.is_right(bound, chunks, row);
        if !is_right {
            self.marks[row as usize / CHUNK_ROWS].fail(row as usize % CHUNK_ROWS);
        }
        is_right
    }

    /// Whether a row has the XXH3 that it had when its SHA-256 was checked, or else the SHA-256 that the log names.
    fn is_right(&self, bound: &Bound, chunks: &[Arc<RowChunk>], row: u32) -> bool {
        let (number, place) = (row as usize / CHUNK_ROWS, row as usize % CHUNK_ROWS);
        let Some(bytes) = row_bytes(self.rows.bytes(), row, bound) else {
            return false;
        };
        let marks = &self.marks[number];
        let known = match self.file_of(row) {
            Some(file) => file.sum(row as usize),
            None => marks.sum(place),
        };
        let sum = xxh3_64(bytes);
        if known == Some(sum) {
            return true;
        }
        let is_right = is_row(bytes, 0, bound, &chunks[number].digests[place]);
        if is_right {
            marks.keep_sum(place, sum);
        }
        is_right
    }

    /// Handles a score that the codes of a row exclude: marks the row or the codes as damaged, and returns whether the row is right.
    pub fn doubt(&self, bound: &Bound, chunks: &[Arc<RowChunk>], row: u32) -> bool {
        let (number, place) = (row as usize / CHUNK_ROWS, row as usize % CHUNK_ROWS);
        if !is_row(self.rows.bytes(), row, bound, &chunks[number].digests[place]) {
            self.marks[number].fail(place);
            return false;
        }
        self.file_of(row).into_iter().for_each(|file| file.fail());
        true
    }

    /// The rows that failed their check, or are not there.
    pub fn failed(&self) -> RoaringBitmap {
        let mut failed = RoaringBitmap::new();
        if self.failures.load(Ordering::Relaxed) > 0 {
            failed = failed_in(&self.marks);
        }
        failed.insert_range(self.count as u32..self.named);
        failed
    }
}

fn failed_in(marks: &[Arc<Marks>]) -> RoaringBitmap {
    let chunks = (0..).step_by(CHUNK_ROWS).zip(marks);
    chunks
        .flat_map(|(first, marks)| marks.failed().map(move |place| (first + place) as u32))
        .collect()
}

impl SpaceCache {
    pub fn new(disk: &Arc<dyn Disk>, layout: &Layout, bound: &Bound) -> Self {
        Self {
            bound: bound.clone(),
            disk: Arc::clone(disk),
            layout: layout.clone(),
            kept: Mutex::default(),
        }
    }

    pub fn rows_path(&self) -> PathBuf {
        self.layout.rows(&self.bound.name, self.bound.generation)
    }

    /// The rows, of so many, that are known to be damaged, or were not there at the last look.
    pub fn damaged(&self, rows: u32) -> RoaringBitmap {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut damaged = failed_in(&kept.marks);
        damaged.insert_range(rows.saturating_sub(kept.missing as u32)..rows);
        damaged
    }

    pub fn is_damaged(&self) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.missing > 0 || kept.failures.load(Ordering::Relaxed) > 0
    }

    /// Hears that a row was found damaged.
    pub fn fail(&self, row: u32) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, place) = (row as usize / CHUNK_ROWS, row as usize % CHUNK_ROWS);
        kept.mark_chunks(number + 1);
        kept.marks[number].fail(place);
    }

    /// Maps the rows and completes the codes.
    pub fn ready(&self, chunks: &[Arc<RowChunk>], rows: u32, threads: usize) -> io::Result<Ready> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let stride = self.bound.stride();
        let map = self.map(&mut kept, u64::from(rows) * stride)?;
        kept.mark_chunks(chunks.len());
        let count = (map.bytes().len() as u64 / stride).min(u64::from(rows)) as usize;
        // They may come back, so nothing is noted about them.
        kept.missing = rows as usize - count;
        self.replace_failed(&mut kept, &map, &chunks[..count / CHUNK_ROWS], threads);
        // Codes of tokens are not swept.
        if self.bound.tokens == 0 {
            self.complete(&mut kept, &map, &chunks[..count / CHUNK_ROWS], threads);
            self.complete_last(&mut kept, &map, chunks, count);
        }
        Ok(Ready {
            rows: map,
            count,
            named: rows,
            whole: Arc::clone(&kept.codes),
            last: kept.last.clone(),
            marks: Arc::clone(&kept.marks),
            failures: Arc::clone(&kept.failures),
        })
    }

    /// The rows, mapped as far as the file goes. Reading what was cut off a mapped file ends the process, so its length is asked
    /// for each time.
    fn map(&self, kept: &mut KeptParts, wanted: u64) -> io::Result<Arc<Mapping>> {
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

    /// Removes files of codes that failed a check, and makes these codes in memory.
    fn replace_failed(&self, kept: &mut KeptParts, rows: &Mapping, chunks: &[Arc<RowChunk>], threads: usize) {
        for first in (0..kept.codes.len()).step_by(FILE_CHUNKS) {
            let ChunkCodes::File(file) = &kept.codes[first] else {
                continue;
            };
            if !file.has_failed() {
                continue;
            }
            let numbers = first..first + file.chunks;
            let _ = remove_if_there(&*self.disk, &codes_path(&self.layout, &self.bound, numbers.clone()));
            let made = match chunks.get(numbers.clone()) {
                Some(_) => self.make_all(&kept.marks, rows, chunks, numbers.clone(), threads),
                None => Vec::new(),
            };
            let codes = Arc::make_mut(&mut kept.codes);
            if made.len() < numbers.len() {
                codes.truncate(first);
                kept.last = None;
                return;
            }
            for (codes, made) in codes[first..].iter_mut().zip(made) {
                *codes = ChunkCodes::Memory(made);
            }
        }
    }

    /// Makes sure of the codes of all these chunks. They have no gaps: from the first chunk on that cannot be made, rows are scored from
    /// their floats.
    fn complete(&self, kept: &mut KeptParts, rows: &Mapping, chunks: &[Arc<RowChunk>], threads: usize) {
        while kept.codes.len() < chunks.len() {
            kept.last = None;
            let first = kept.codes.len() / FILE_CHUNKS * FILE_CHUNKS;
            let end = chunks.len().min(first + FILE_CHUNKS);
            if !file_sizes(end - first).any(|size| self.open(kept, chunks, first..first + size))
                || kept.codes.len() < end
            {
                let known = kept.codes.len();
                let made = self.make_all(&kept.marks, rows, chunks, known..end, threads);
                let is_complete = made.len() == end - known;
                Arc::make_mut(&mut kept.codes).extend(made.into_iter().map(ChunkCodes::Memory));
                if !is_complete {
                    return;
                }
                self.write(kept, chunks, first..end);
            }
        }
    }

    /// Uses the file of the codes of some chunks if that is more than is known; false if there is none.
    fn open(&self, kept: &mut KeptParts, chunks: &[Arc<RowChunk>], range: Range<usize>) -> bool {
        let path = codes_path(&self.layout, &self.bound, range.clone());
        let is_known =
            matches!(kept.codes.get(range.start), Some(ChunkCodes::File(file)) if file.chunks >= range.len());
        if is_known {
            return true;
        }
        let Some(file) = CodesFile::open(&*self.disk, &path, &self.bound, &chunks[range.clone()]) else {
            return false;
        };
        let codes = Arc::make_mut(&mut kept.codes);
        let filed = vec![ChunkCodes::File(Arc::new(file)); range.len()];
        codes.splice(range.start..codes.len().min(range.end), filed);
        true
    }

    /// Writes the codes of as many chunks of a range as a file may hold, if each of their rows was checked and is right, and uses the file.
    fn write(&self, kept: &mut KeptParts, chunks: &[Arc<RowChunk>], range: Range<usize>) {
        let first = range.start;
        let held = match &kept.codes[first] {
            ChunkCodes::File(file) => file.chunks,
            ChunkCodes::Memory(_) => 0,
        };
        let Some(size) = file_sizes(range.len()).next().filter(|size| *size > held) else {
            return;
        };
        let numbers = first..first + size;
        // No file has codes of a row that failed, and none is checked without a sum.
        let sums = kept.marks[numbers.clone()].iter().map(|marks| {
            let is_good = marks.failed().next().is_none();
            let sums = (0..CHUNK_ROWS).map(|place| marks.sum(place).filter(|_| is_good));
            sums.map(|sum| Some(sum?.to_le_bytes())).collect::<Option<Vec<_>>>()
        });
        let sums: Vec<_> = sums.collect();
        let contents = numbers
            .clone()
            .zip(&sums)
            .map(|(number, sums)| match &kept.codes[number] {
                ChunkCodes::Memory(part) => {
                    let (high, low) = part.planes();
                    Some([sums.as_ref()?.as_flattened(), high, low])
                }
                ChunkCodes::File(file) => file.contents(number),
            });
        let Some(contents) = contents.collect::<Option<Vec<_>>>() else {
            return;
        };
        let path = codes_path(&self.layout, &self.bound, numbers.clone());
        let place = (&*self.disk, &self.layout, &*path);
        if CodesFile::write(place, &self.bound, &chunks[numbers.clone()], &contents).is_ok() {
            self.open(kept, chunks, numbers);
            for smaller in file_sizes(size - 1) {
                let path = codes_path(&self.layout, &self.bound, first..first + smaller);
                let _ = remove_if_there(&*self.disk, &path);
            }
        }
    }

    /// The codes of some chunks, as far as there is memory.
    fn make_all(
        &self,
        marks: &[Arc<Marks>],
        rows: &Mapping,
        chunks: &[Arc<RowChunk>],
        numbers: Range<usize>,
        threads: usize,
    ) -> Vec<Arc<MemoryPart>> {
        let next = AtomicUsize::new(numbers.start);
        let made = together(threads.min(numbers.len()), || {
            let mut made = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= numbers.end {
                    return made;
                }
                let groups = CHUNK_ROWS / GROUP_ROWS;
                if let Some(part) = self.make(&marks[number], rows.bytes(), (number, &chunks[number]), groups) {
                    made.push((number, Arc::new(part)));
                }
            }
        });
        let mut made: Vec<_> = made.into_iter().flatten().collect();
        made.sort_unstable_by_key(|(number, _)| *number);
        let in_order = numbers.zip(made).take_while(|(wanted, (number, _))| wanted == number);
        in_order.map(|(_, (_, part))| part).collect()
    }

    /// Makes the codes of a chunk that is not whole yet, when it has grown by enough to be worth it.
    fn complete_last(&self, kept: &mut KeptParts, rows: &Mapping, chunks: &[Arc<RowChunk>], count: usize) {
        let number = count / CHUNK_ROWS;
        let old = kept.last.as_deref().map_or(0, MemoryPart::groups);
        let new = count % CHUNK_ROWS / GROUP_ROWS;
        if new < old + GROWN_GROUPS || kept.codes.len() != number {
            return;
        }
        let chunk = (number, &*chunks[number]);
        if let Some(part) = self.make(&kept.marks[number], rows.bytes(), chunk, new) {
            kept.last = Some(Arc::new(part));
        }
    }

    /// Makes the codes of the first groups of a chunk, and checks each row.
    fn make(
        &self,
        marks: &Marks,
        rows: &[u8],
        (number, chunk): (usize, &RowChunk),
        groups: usize,
    ) -> Option<MemoryPart> {
        let dim = self.bound.dim;
        let first = number * CHUNK_ROWS;
        let are_right = are_rows(rows, first as u32, &self.bound, &chunk.digests[..groups * GROUP_ROWS]);
        for (place, is_right) in are_right.into_iter().enumerate() {
            // What no group names is nobody's, and no damage.
            if marks.admit(place, || is_right || chunk.owners[place] == NONE)
                && let Some(bytes) = row_bytes(rows, (first + place) as u32, &self.bound)
            {
                marks.keep_sum(place, xxh3_64(bytes));
            }
        }
        let bytes = rows.get(first * 4 * dim..(first + groups * GROUP_ROWS) * 4 * dim)?;
        let floats = bytemuck::try_cast_slice(bytes).ok()?;
        MemoryPart::of(VectorRows::packed(floats, dim).ok()?, groups, Cpu::best()).ok()
    }
}

const WORDS: usize = CHUNK_ROWS / 64;

/// What this process knows of the rows of a chunk. A row that passed once is scored without another check, but checked
/// again before it is handed out; one that failed stays so.
#[derive(Debug, Default)]
pub struct Marks {
    good: [AtomicU64; WORDS],
    bad: [AtomicU64; WORDS],
    /// The XXH3 of rows whose SHA-256 was checked; zero if none was.
    sums: OnceLock<Box<[AtomicU64]>>,
    /// How often a row of the space failed: mostly never, and then nobody needs to look at every chunk.
    failures: Arc<AtomicUsize>,
}

impl Marks {
    /// Nothing is known yet of a chunk of the space whose failures are counted here.
    pub fn counted(failures: &Arc<AtomicUsize>) -> Self {
        Self {
            failures: Arc::clone(failures),
            ..Self::default()
        }
    }

    /// Whether a row may be believed, asking `check` if nobody has yet.
    #[inline]
    pub fn admit(&self, place: usize, check: impl FnOnce() -> bool) -> bool {
        let (word, bit) = (place / 64, 1 << (place % 64));
        // Each bit stands for itself, and nothing is published by it.
        if self.bad[word].load(Ordering::Relaxed) & bit != 0 {
            return false;
        }
        if self.good[word].load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        let is_good = check();
        if is_good {
            self.good[word].fetch_or(bit, Ordering::Relaxed);
        } else {
            self.fail(place);
        }
        is_good
    }

    /// Hears that a row failed, whatever was known of it.
    pub fn fail(&self, place: usize) {
        self.bad[place / 64].fetch_or(1 << (place % 64), Ordering::Relaxed);
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// The XXH3 that a row had when its SHA-256 was checked.
    pub fn sum(&self, place: usize) -> Option<u64> {
        let sum = self.sums.get()?[place].load(Ordering::Relaxed);
        (sum != 0).then_some(sum)
    }

    pub fn keep_sum(&self, place: usize, sum: u64) {
        let sums = self
            .sums
            .get_or_init(|| (0..CHUNK_ROWS).map(|_| AtomicU64::new(0)).collect());
        sums[place].store(sum, Ordering::Relaxed);
    }

    pub fn failed(&self) -> impl Iterator<Item = usize> + '_ {
        self.bad.iter().enumerate().flat_map(|(word, bits)| {
            let bits = bits.load(Ordering::Relaxed);
            (0..64)
                .filter(move |bit| bits >> bit & 1 == 1)
                .map(move |bit| word * 64 + bit)
        })
    }
}
