//! The container of a derived file: sections of plain little-endian arrays, checksums of pages, and a footer.
//!
//! A file that is read has only its footer checked. Each page of 16 KiB is checked when it is first read. A page whose checksum is wrong
//! reads as zeros and marks the file as failed: callers look at the mark before they use what they read.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chronolog::disk::{DiskFile, Mapping};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

const MAGIC: &[u8; 8] = b"CMSEG\x01\r\n";
/// A page has one checksum.
const PAGE_BYTES: usize = 16 * 1024;
/// Sections and the footer begin at multiples of this.
const ALIGNMENT: usize = 64;
/// Start and length of the footer, XXH3-128 of the footer, and the magic number.
const TRAILER_BYTES: usize = 8 + 8 + 16 + 8;
/// Bytes are written in pieces of this size.
const BUFFER_BYTES: usize = 64 * PAGE_BYTES;

/// The kind of a section; its number is part of the format.
pub type SectionId = u32;

/// Writes a container to a file, from its beginning to its end.
pub struct ContainerWriter {
    file: Arc<dyn DiskFile>,
    /// Bytes that are not yet written; they begin at a multiple of the page size.
    buffer: Vec<u8>,
    /// How many bytes were written before the buffer.
    written: u64,
    pages: Vec<u64>,
    sections: Vec<(SectionId, u64, u64)>,
    /// Where the open section begins.
    open: Option<(SectionId, u64)>,
}

impl ContainerWriter {
    /// A container in an empty file.
    pub fn new(file: Arc<dyn DiskFile>) -> Self {
        let mut writer = Self {
            file,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            written: 0,
            pages: Vec::new(),
            sections: Vec::new(),
            open: None,
        };
        writer.buffer.extend_from_slice(MAGIC);
        writer
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Ends the open section and begins another.
    ///
    /// # Errors
    /// What the disk says.
    pub fn begin(&mut self, id: SectionId) -> io::Result<()> {
        self.end_section();
        self.align();
        self.flush(false)?;
        self.open = Some((id, self.position()));
        Ok(())
    }

    /// Adds bytes to the open section.
    ///
    /// # Errors
    /// What the disk says.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(BUFFER_BYTES) {
            self.buffer.extend_from_slice(piece);
            self.flush(false)?;
        }
        Ok(())
    }

    /// Writes a whole section.
    ///
    /// # Errors
    /// What the disk says.
    pub fn section(&mut self, id: SectionId, bytes: &[u8]) -> io::Result<()> {
        self.begin(id)?;
        self.add(bytes)
    }

    /// Writes the footer with these bytes for the reader. The file is not synced: a torn one fails its checks.
    ///
    /// # Errors
    /// What the disk says.
    pub fn finish(mut self, meta: &[u8]) -> io::Result<Arc<dyn DiskFile>> {
        self.end_section();
        self.align();
        self.flush(true)?;
        let start = self.written;
        let mut footer = Vec::new();
        for number in [self.sections.len(), meta.len(), self.pages.len()] {
            footer.extend_from_slice(&(number as u64).to_le_bytes());
        }
        for (id, from, length) in &self.sections {
            footer.extend_from_slice(&u64::from(*id).to_le_bytes());
            footer.extend_from_slice(&from.to_le_bytes());
            footer.extend_from_slice(&length.to_le_bytes());
        }
        self.pages
            .iter()
            .for_each(|page| footer.extend_from_slice(&page.to_le_bytes()));
        footer.extend_from_slice(meta);
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        trailer.extend_from_slice(&start.to_le_bytes());
        trailer.extend_from_slice(&(footer.len() as u64).to_le_bytes());
        let digest = xxh3_128(&[&footer[..], &trailer].concat());
        trailer.extend_from_slice(&digest.to_le_bytes());
        trailer.extend_from_slice(MAGIC);
        footer.extend_from_slice(&trailer);
        self.file.write_at(&footer, start)?;
        Ok(self.file)
    }

    fn end_section(&mut self) {
        if let Some((id, start)) = self.open.take() {
            self.sections.push((id, start, self.position() - start));
        }
    }

    fn align(&mut self) {
        let length = self.buffer.len().next_multiple_of(ALIGNMENT);
        self.buffer.resize(length, 0);
    }

    /// Writes whole pages once there are many, or everything.
    fn flush(&mut self, all: bool) -> io::Result<()> {
        if self.buffer.len() < BUFFER_BYTES && !all {
            return Ok(());
        }
        let end = if all {
            self.buffer.len()
        } else {
            self.buffer.len() / PAGE_BYTES * PAGE_BYTES
        };
        self.pages.extend(self.buffer[..end].chunks(PAGE_BYTES).map(xxh3_64));
        self.file.write_at(&self.buffer[..end], self.written)?;
        self.written += end as u64;
        self.buffer.drain(..end);
        Ok(())
    }
}

/// A container that is read, mapped into memory.
#[derive(Debug)]
pub struct Container {
    bytes: Mapping,
    /// Everything before the footer.
    length: usize,
    pages: Vec<u64>,
    /// One bit a page: it was checked.
    checked: Vec<AtomicU64>,
    sections: Vec<(SectionId, Range<usize>)>,
    meta: Vec<u8>,
    failed: Arc<AtomicBool>,
}

impl Container {
    /// Reads the footer of a container; `None` if it is not whole. A page that fails later sets `failed`.
    pub fn open(bytes: Mapping, failed: &Arc<AtomicBool>) -> Option<Self> {
        let all = bytes.bytes();
        let rest = all.strip_suffix(MAGIC)?;
        let end = all.len().checked_sub(TRAILER_BYTES)?;
        let trailer = rest.get(end..)?;
        let start = usize::try_from(number(trailer, 0)?).ok()?;
        let footer = all.get(start..end)?;
        let digest = u128::from_le_bytes(trailer.get(16..32)?.try_into().ok()?);
        if number(trailer, 1)? != footer.len() as u64 || xxh3_128(&all[start..end + 16]) != digest {
            return None;
        }
        let [sections, meta, pages] =
            [0, 1, 2].map(|at| number(footer, at).and_then(|value| usize::try_from(value).ok()));
        let (sections, meta, pages) = (sections?, meta?, pages?);
        if pages != start.div_ceil(PAGE_BYTES) {
            return None;
        }
        let pages_at = sections.checked_mul(3)?.checked_add(3)?;
        let meta_at = pages_at.checked_add(pages)?.checked_mul(8)?;
        let meta = footer.get(meta_at..)?.get(..meta)?.to_vec();
        let section = |at: usize| {
            let [id, from, length] = [0, 1, 2].map(|part| number(footer, 3 + 3 * at + part));
            let from = usize::try_from(from?).ok()?;
            let until = from.checked_add(usize::try_from(length?).ok()?)?;
            let fits = until <= start && from.is_multiple_of(ALIGNMENT);
            fits.then_some((SectionId::try_from(id?).ok()?, from..until))
        };
        let sections = (0..sections).map(section).collect::<Option<_>>()?;
        let pages: Vec<u64> = (0..pages)
            .map(|at| number(footer, pages_at + at))
            .collect::<Option<_>>()?;
        Some(Self {
            checked: pages.chunks(64).map(|_| AtomicU64::new(0)).collect(),
            failed: Arc::clone(failed),
            length: start,
            bytes,
            pages,
            sections,
            meta,
        })
    }

    /// The bytes that the writer gave to `finish`.
    pub fn meta(&self) -> &[u8] {
        &self.meta
    }

    /// Where a section lies; an absent one is empty.
    pub fn section(&self, id: SectionId) -> Range<usize> {
        let found = self.sections.iter().find(|(other, _)| *other == id);
        found.map_or(0..0, |(_, range)| range.clone())
    }

    /// Some bytes, once their pages are checked; `None` if one fails or they lie outside.
    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> Option<&[u8]> {
        if range.start > range.end || range.end > self.length {
            self.fail();
            return None;
        }
        if range.is_empty() {
            return Some(&[]);
        }
        let (first, last) = (range.start / PAGE_BYTES, (range.end - 1) / PAGE_BYTES);
        let is_good = if first == last {
            self.is_good(first)
        } else {
            (first..=last).all(|page| self.is_good(page))
        };
        is_good.then(|| &self.bytes.bytes()[range])
    }

    /// Whether a page passes its check, which it does once.
    #[inline]
    fn is_good(&self, page: usize) -> bool {
        let bits = self
            .checked
            .get(page / 64)
            .map_or(0, |bits| bits.load(Ordering::Relaxed));
        bits >> (page % 64) & 1 == 1 || self.check(page)
    }

    #[cold]
    fn check(&self, page: usize) -> bool {
        let start = page * PAGE_BYTES;
        let bytes = &self.bytes.bytes()[start..self.length.min(start + PAGE_BYTES)];
        let is_good = xxh3_64(bytes) == self.pages[page];
        match is_good {
            true => _ = self.checked[page / 64].fetch_or(1 << (page % 64), Ordering::Relaxed),
            false => self.fail(),
        }
        is_good
    }

    /// Marks the file as one that cannot be used.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Whether a check failed: nothing that was read is to be used then.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// The mark that a failed check sets.
    pub fn mark(&self) -> &Arc<AtomicBool> {
        &self.failed
    }

    /// Checks every page.
    pub fn check_all(&self) -> bool {
        (0..self.pages.len()).all(|page| self.check(page))
    }
}

/// A number of a footer or trailer.
fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at.checked_mul(8)?..)?.get(..8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use chronolog::disk::{Bytes, MemoryFile};

    use super::*;

    fn mapped(bytes: &[u8]) -> Mapping {
        Bytes(bytes.to_vec()).map(u64::MAX).expect("memory")
    }

    fn written() -> Vec<u8> {
        let file = Arc::new(MemoryFile::default());
        let mut writer = ContainerWriter::new(file.clone());
        let long: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        writer.section(7, &long).expect("written");
        writer.section(9, b"").expect("written");
        writer.begin(3).expect("written");
        writer.add(b"one").expect("written");
        writer.add(b"two").expect("written");
        writer.finish(b"meta").expect("written");
        file.contents()
    }

    #[test]
    fn sections_come_back() {
        let bytes = written();
        let failed = Arc::default();
        let read = Container::open(mapped(&bytes), &failed).expect("a container");
        assert_eq!(read.meta(), b"meta");
        assert_eq!(read.bytes(read.section(3)), Some(&b"onetwo"[..]));
        assert_eq!(read.bytes(read.section(9)), Some(&b""[..]));
        assert_eq!(read.section(4), 0..0);
        let long = read.section(7);
        assert_eq!(long.len(), 800_000);
        let last = read.bytes(long.end - 4..long.end).expect("a number");
        assert_eq!(last, 199_999_u32.to_le_bytes());
        assert!(read.check_all() && !failed.load(Ordering::Relaxed));
        assert!(
            read.bytes(0..bytes.len()).is_none() && failed.load(Ordering::Relaxed),
            "the footer is no section"
        );
    }

    #[test]
    fn every_altered_byte_is_found_before_it_is_used() {
        let bytes = written();
        let whole = Container::open(mapped(&bytes), &Arc::default())
            .expect("a container")
            .length;
        for at in (0..whole).step_by(4_099).chain(whole..bytes.len()) {
            let mut altered = bytes.clone();
            altered[at] ^= 0x10;
            let failed: Arc<AtomicBool> = Arc::default();
            match Container::open(mapped(&altered), &failed) {
                None => assert!(at >= whole, "byte {at} is in no footer"),
                Some(read) => {
                    assert!(at < whole, "byte {at} is in the footer");
                    assert!(read.bytes(at..at + 1).is_none() && failed.load(Ordering::Relaxed));
                    let other = if at < PAGE_BYTES { 3 * PAGE_BYTES } else { 0 };
                    assert!(read.bytes(other..other + 8).is_some(), "other pages can be read");
                }
            }
        }
        for length in (0..bytes.len()).step_by(997) {
            assert!(Container::open(mapped(&bytes[..length]), &Arc::default()).is_none());
        }
    }
}
