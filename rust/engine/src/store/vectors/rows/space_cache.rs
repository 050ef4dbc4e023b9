//! Keeps in memory what a search needs of a space, and makes it when it is first needed.
//!
//! Rows are mapped. Of each whole chunk of rows there is a companion: codes in eight bits, made when a search first needs
//! them, from rows whose digests were checked, and kept on disk. The first search of a process checks those that lie there
//! and sweeps them where they lie. Mapped files have small pages, and codes are all that a search reads from end to end: so
//! the searches after it bring them into memory, some each, reading each chunk to its place and checking it there while
//! the processor has it near. The last chunk, which is not whole yet, has codes in memory only, a few rows behind.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use roaring::RoaringBitmap;

use super::check::{are_rows, open_rows};
use super::companions::{CodesPlace, Companions, RowCodes, codes_bytes, slot_bytes};
use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::{CHUNK_ROWS, NONE, RowChunk};
use chronolog::disk::{Disk, DiskFile, Mapping};
use chronolog::layout::Layout;
use chronolog::memory::AlignedBytes;
use chronomemory_search::vector::companion::encode_groups;
use chronomemory_search::vector::groups::{GROUP_ROWS, group_bytes};
use chronomemory_search::vector::team::together;
use chronomemory_search::vector::{Cpu, VectorRows};

/// A chunk that is not whole yet is worth a look when it has grown by so many groups.
const GROWN_GROUPS: usize = 4;
/// So many codes are worth to be left in the file at first, and at least so many are brought into memory at once.
const FEWEST_FILED: usize = 32;
/// After so many searches all codes are in memory.
const MOST_STEPS: usize = 32;
/// So many chunks may lie alone.
const MOST_SINGLE: usize = 32;

/// What is kept in memory of one generation of a space.
pub struct SpaceCache {
    /// The space.
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
    /// How often a row failed.
    failures: Arc<AtomicUsize>,
    /// Rows that the log names and the file did not hold.
    missing: usize,
    /// Shared likewise.
    codes: Arc<Vec<RowCodes>>,
    /// How many chunks came one by one, at the end, each in a room of its own.
    single: usize,
    /// Codes of the first rows of a chunk that is not whole yet.
    last: Option<Last>,
    /// The file that holds codes which were not brought into memory yet, and of which chunks.
    filed: Option<Filed>,
}

struct Filed {
    file: Arc<dyn DiskFile>,
    bytes: u64,
    chunks: Range<usize>,
}

/// What there is of the last chunk.
struct Last {
    number: usize,
    codes: RowCodes,
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
    /// How many rows that is.
    pub count: usize,
    /// How many the log names.
    named: u32,
    /// The codes of whole chunks, and of the chunk behind them.
    whole: Arc<Vec<RowCodes>>,
    last: Option<RowCodes>,
    /// What is known of the rows.
    pub marks: Arc<Vec<Arc<Marks>>>,
    failures: Arc<AtomicUsize>,
}

impl Ready {
    /// The codes of the first chunks.
    pub fn codes(&self) -> Vec<&[u8]> {
        let whole = self.whole.iter().take(self.count / CHUNK_ROWS);
        whole.chain(&self.last).map(RowCodes::bytes).collect()
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

/// The rows that failed their check.
fn failed_in(marks: &[Arc<Marks>]) -> RoaringBitmap {
    let chunks = (0..).step_by(CHUNK_ROWS).zip(marks);
    chunks
        .flat_map(|(first, marks)| marks.failed().map(move |place| (first + place) as u32))
        .collect()
}

impl SpaceCache {
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

    /// The rows, of so many, that are known to be damaged, or were not there at the last look.
    pub fn damaged(&self, rows: u32) -> RoaringBitmap {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut damaged = failed_in(&kept.marks);
        damaged.insert_range(rows.saturating_sub(kept.missing as u32)..rows);
        damaged
    }

    /// Whether there are such rows.
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

    /// Maps the rows and completes the companions.
    pub fn ready(&self, chunks: &[Arc<RowChunk>], rows: u32, threads: usize) -> io::Result<Ready> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let stride = self.bound.stride();
        let wanted = u64::from(rows) * stride;
        let map = self.map(&mut kept, wanted)?;
        kept.mark_chunks(chunks.len());
        let count = (map.bytes().len() as u64 / stride).min(u64::from(rows)) as usize;
        // They may come back, so nothing is noted about them.
        kept.missing = rows as usize - count;
        // Codes of tokens are not swept.
        let swept = if self.bound.tokens == 0 { count } else { 0 };
        self.complete(&mut kept, &map, &chunks[..swept / CHUNK_ROWS], threads);
        self.complete_last(&mut kept, &map, chunks, swept);
        Ok(Ready {
            rows: map,
            count,
            named: rows,
            whole: Arc::clone(&kept.codes),
            last: self.last_codes(&kept, count),
            marks: Arc::clone(&kept.marks),
            failures: Arc::clone(&kept.failures),
        })
    }

    /// The rows, mapped as far as the file goes. Whoever reads what was cut off a mapped file dies, so its length is asked
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

    /// Makes sure of the codes of all these chunks.
    fn complete(&self, kept: &mut KeptParts, rows: &Mapping, chunks: &[Arc<RowChunk>], threads: usize) {
        self.bring_some(kept, rows, chunks, threads);
        if kept.filed.is_none() && chunks.len() >= kept.codes.len() + FEWEST_FILED {
            self.find_filed(kept, chunks, threads);
        }
        let known = kept.codes.len();
        if known >= chunks.len() {
            return;
        }
        let made = self.bring(&kept.marks, rows, chunks, known..chunks.len(), threads);
        kept.single = if made.len() == 1 { kept.single + 1 } else { 0 };
        Arc::make_mut(&mut kept.codes).extend(made);
        if kept.single == MOST_SINGLE {
            self.gather(kept);
        }
    }

    /// Looks for codes that lie ready, and leaves them there for now: to give out memory for all of them takes the system
    /// longer than the search that waits for them.
    fn find_filed(&self, kept: &mut KeptParts, chunks: &[Arc<RowChunk>], threads: usize) {
        let known = kept.codes.len();
        let companions = self.companions();
        let Some((file, slots)) = companions.map(chunks.len()) else {
            return;
        };
        let end = AtomicUsize::new(chunks.len());
        let next = AtomicUsize::new(known);
        together(threads, || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end.load(Ordering::Relaxed) {
                    return;
                }
                if !companions.is_right(slots.bytes(), number, &chunks[number]) {
                    end.fetch_min(number, Ordering::Relaxed);
                }
            }
        });
        let found = known..end.into_inner();
        let (bytes, dim) = (slots.bytes().len() as u64, self.bound.dim);
        let place = CodesPlace::File(Arc::new(slots));
        Arc::make_mut(&mut kept.codes).extend(RowCodes::of_chunks(&place, found.clone(), slot_bytes(dim), dim));
        kept.filed = (!found.is_empty()).then_some(Filed {
            file,
            bytes,
            chunks: found,
        });
    }

    /// Brings some of the codes that still lie in the file into memory. A sweep over small pages is slower, and others can
    /// write to a file.
    fn bring_some(&self, kept: &mut KeptParts, rows: &Mapping, chunks: &[Arc<RowChunk>], threads: usize) {
        let Some(filed) = kept.filed.take() else {
            return;
        };
        if !filed.file.length().is_ok_and(|length| length >= filed.bytes) {
            // Somebody cut it: what is gone from a mapped file must not be touched.
            Arc::make_mut(&mut kept.codes).truncate(filed.chunks.start);
            return;
        }
        let Range { start, end } = filed.chunks;
        // A search that began before others may know fewer chunks.
        let until = (start + (end / MOST_STEPS).max(FEWEST_FILED))
            .min(end)
            .min(chunks.len());
        let some = start..until.max(start);
        let brought = self.bring(&kept.marks, rows, chunks, some, threads);
        let rest = start + brought.len()..end;
        for (codes, brought) in Arc::make_mut(&mut kept.codes)[start..].iter_mut().zip(brought) {
            *codes = brought;
        }
        kept.filed = (!rest.is_empty()).then_some(Filed { chunks: rest, ..filed });
    }

    /// Reads or makes the codes of some chunks. They have no gaps: from the first chunk on that cannot be made, rows are
    /// scored from their floats.
    fn bring(
        &self,
        marks: &[Arc<Marks>],
        rows: &Mapping,
        chunks: &[Arc<RowChunk>],
        numbers: Range<usize>,
        threads: usize,
    ) -> Vec<RowCodes> {
        let dim = self.bound.dim;
        let each = codes_bytes(dim);
        let companions = self.companions();
        let Ok(mut room) = AlignedBytes::new(numbers.len() * each) else {
            return Vec::new();
        };
        let end = AtomicUsize::new(numbers.end);
        let places = Mutex::new(numbers.clone().zip(room.bytes_mut().chunks_exact_mut(each)));
        together(threads.min(numbers.len()), || {
            loop {
                let next = places.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((number, codes)) = next.filter(|(number, _)| *number < end.load(Ordering::Relaxed)) else {
                    return;
                };
                let chunk = &chunks[number];
                if companions.read(number, chunk, codes) {
                    continue;
                }
                match self.make(&marks[number], rows.bytes(), number, chunk, 0..CHUNK_ROWS, codes) {
                    Some(true) => companions.keep(number, chunk, codes),
                    Some(false) => {}
                    None => {
                        end.fetch_min(number, Ordering::Relaxed);
                    }
                }
            }
        });
        let made = end.into_inner() - numbers.start;
        RowCodes::of_chunks(&CodesPlace::Memory(Arc::new(room)), 0..made, each, dim).collect()
    }

    fn companions(&self) -> Companions<'_> {
        Companions::new(&*self.disk, &self.layout, &self.bound)
    }

    /// Goes on with the codes of a chunk that is not whole yet, when it has grown by enough to be worth it.
    fn complete_last(&self, kept: &mut KeptParts, rows: &Mapping, chunks: &[Arc<RowChunk>], count: usize) {
        let number = count / CHUNK_ROWS;
        let before = kept.last.as_ref().filter(|last| last.number == number);
        let before: &[u8] = before.map_or(&[], |last| last.codes.bytes());
        let each = group_bytes(self.bound.dim);
        let (old, new) = (before.len() / each, count % CHUNK_ROWS / GROUP_ROWS);
        if new < old + GROWN_GROUPS || kept.codes.len() != number {
            return;
        }
        let Ok(mut room) = AlignedBytes::new(new * each) else {
            return;
        };
        let (known, fresh) = room.bytes_mut().split_at_mut(before.len());
        known.copy_from_slice(before);
        let places = old * GROUP_ROWS..new * GROUP_ROWS;
        if self
            .make(
                &kept.marks[number],
                rows.bytes(),
                number,
                &chunks[number],
                places,
                fresh,
            )
            .is_some()
        {
            let codes = RowCodes::of_part(room);
            kept.last = Some(Last { number, codes });
        }
    }

    /// The codes of the chunk that so many rows end in. Others may have seen more of it, and be done with it.
    fn last_codes(&self, kept: &KeptParts, count: usize) -> Option<RowCodes> {
        let number = count / CHUNK_ROWS;
        let last = kept.last.as_ref().filter(|last| last.number == number);
        let last = last.filter(|_| kept.codes.len() == number).map(|last| &last.codes);
        let codes = kept.codes.get(number).or(last)?;
        let there = count % CHUNK_ROWS / GROUP_ROWS * group_bytes(self.bound.dim);
        Some(codes.first(there))
    }

    /// Puts chunks that came one by one into one room: small rooms have small pages.
    fn gather(&self, kept: &mut KeptParts) {
        let dim = self.bound.dim;
        let first = kept.codes.len() - kept.single;
        let Ok(mut room) = AlignedBytes::new(kept.single * codes_bytes(dim)) else {
            // They stay where they are.
            kept.single = 0;
            return;
        };
        for (place, codes) in room
            .bytes_mut()
            .chunks_exact_mut(codes_bytes(dim))
            .zip(&kept.codes[first..])
        {
            place.copy_from_slice(codes.bytes());
        }
        let place = CodesPlace::Memory(Arc::new(room));
        let codes = Arc::make_mut(&mut kept.codes);
        codes.truncate(first);
        codes.extend(RowCodes::of_chunks(&place, 0..kept.single, codes_bytes(dim), dim));
        kept.single = 0;
    }

    /// Makes the codes of rows of a chunk, checking each of them; whether all are good, and the codes worth keeping.
    fn make(
        &self,
        marks: &Marks,
        rows: &[u8],
        number: usize,
        chunk: &RowChunk,
        places: Range<usize>,
        codes: &mut [u8],
    ) -> Option<bool> {
        let dim = self.bound.dim;
        let first = number * CHUNK_ROWS;
        let are_right = are_rows(
            rows,
            (first + places.start) as u32,
            &self.bound,
            &chunk.digests[places.clone()],
        );
        let mut is_good = true;
        for (place, is_right) in places.clone().zip(are_right) {
            // What no group names is nobody's, and no damage.
            is_good &= marks.admit(place, || is_right || chunk.owners[place] == NONE);
        }
        let bytes = rows.get((first + places.start) * 4 * dim..(first + places.end) * 4 * dim)?;
        let floats = bytemuck::try_cast_slice(bytes).ok()?;
        encode_groups(VectorRows::packed(floats, dim).ok()?, 0, codes, Cpu::best()).ok()?;
        Some(is_good)
    }
}

const WORDS: usize = CHUNK_ROWS / 64;

/// What this process knows of the rows of a chunk. A row that passed once is scored without another check, but checked
/// again before it is handed out; one that failed stays so.
#[derive(Debug, Default)]
pub struct Marks {
    good: [AtomicU64; WORDS],
    bad: [AtomicU64; WORDS],
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

    /// The places of rows that failed.
    pub fn failed(&self) -> impl Iterator<Item = usize> + '_ {
        self.bad.iter().enumerate().flat_map(|(word, bits)| {
            let bits = bits.load(Ordering::Relaxed);
            (0..64)
                .filter(move |bit| bits >> bit & 1 == 1)
                .map(move |bit| word * 64 + bit)
        })
    }
}
