//! Files with the codes of ranges of rows, in `index/vectors/`.
//!
//! A file holds the codes of [`FILE_CHUNKS`] chunks in the container of derived files, the XXH3 that each row had when its SHA-256 was
//! checked, and a checksum of the digests of the rows that it was made of. It is written once, under a temporary name, and mapped. The
//! last range has a file of fewer chunks, which a longer one replaces.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::{CHUNK_ROWS, RowChunk};
use chronolog::disk::{Access, Disk, DiskFile};
use chronolog::layout::{Layout, is_codes_draft, is_old_codes, own_draft};
use chronolog::log::files::remove_ours;
use chronomemory_search::vector::CodePart;
use chronomemory_search::vector::codes::{GROUP_ROWS, PART_GROUPS, high_bytes, low_bytes};
use chronomemory_state::segment::{Container, ContainerWriter};

/// How many chunks of rows a file holds the codes of.
pub const FILE_CHUNKS: usize = 16;
/// The first bytes of the description in the footer. The last one is the version of the format and of the transform.
const MAGIC: &[u8; 8] = b"CMCODES\x01";
const SUM_BYTES: usize = 8;

// A chunk of rows is a part of codes.
const _: () = assert!(PART_GROUPS * GROUP_ROWS == CHUNK_ROWS);

/// Numbers of the sections.
mod section {
    pub const SUMS: u32 = 1;
    pub const HIGH: u32 = 2;
    pub const LOW: u32 = 3;
}

/// How many of some chunks a file may hold, the most first.
pub fn file_sizes(chunks: usize) -> impl Iterator<Item = usize> {
    (1..=chunks.min(FILE_CHUNKS)).rev()
}

/// The file of the codes of some chunks.
pub fn codes_path(layout: &Layout, bound: &Bound, chunks: Range<usize>) -> PathBuf {
    let rows = chunks.start * CHUNK_ROWS..chunks.end * CHUNK_ROWS;
    layout.codes(&bound.name, bound.generation, rows)
}

/// A file of codes, mapped.
pub struct CodesFile {
    /// How many chunks it holds.
    pub chunks: usize,
    file: Arc<dyn DiskFile>,
    length: u64,
    container: Container,
    dim: usize,
    sums: Range<usize>,
    high: Range<usize>,
    low: Range<usize>,
}

impl CodesFile {
    /// Opens the codes of these chunks; `None` if there are none that were made of these rows.
    pub fn open(disk: &dyn Disk, path: &Path, bound: &Bound, chunks: &[Arc<RowChunk>]) -> Option<Self> {
        let file = disk.open(path, Access::Read).ok()?;
        let bytes = file.map(u64::MAX).ok()?;
        let length = bytes.bytes().len() as u64;
        let container = Container::open(bytes, &Arc::default())?;
        let [sums, high, low] = [section::SUMS, section::HIGH, section::LOW].map(|id| container.section(id));
        let groups = chunks.len() * PART_GROUPS;
        let is_whole = container.meta() == meta(bound, chunks)
            && sums.len() == groups * GROUP_ROWS * SUM_BYTES
            && high.len() == groups * high_bytes(bound.dim)
            && low.len() == groups * GROUP_ROWS * low_bytes(bound.dim);
        is_whole.then_some(Self {
            chunks: chunks.len(),
            file,
            length,
            container,
            dim: bound.dim,
            sums,
            high,
            low,
        })
    }

    /// Writes the [contents](Self::contents) of these chunks.
    ///
    /// # Errors
    /// `Io` if the disk refuses.
    pub fn write(
        (disk, layout, path): (&dyn Disk, &Layout, &Path),
        bound: &Bound,
        chunks: &[Arc<RowChunk>],
        contents: &[[&[u8]; 3]],
    ) -> io::Result<()> {
        let folder = layout.codes_folder();
        disk.create_dir(&folder)?;
        // What was not finished, and what an earlier version made.
        for is_stale in [is_codes_draft, is_old_codes] {
            let _ = remove_ours(disk, &folder, is_stale);
        }
        let draft = own_draft(path);
        let file = disk.create(&draft)?;
        // INVARIANT: the rows are checked when the draft is complete, and an erasure removes rows first: no codes outlive them.
        let written = disk
            .status(&layout.rows(&bound.name, bound.generation))
            .and_then(|_| write_sections(file, bound, chunks, contents))
            .and_then(|()| disk.rename(&draft, path));
        if written.is_err() {
            let _ = disk.remove(&draft);
        }
        written
    }

    /// The codes of the first groups of a chunk.
    pub fn part(&self, chunk: usize, groups: usize) -> CodePart<'_> {
        let first = chunk % FILE_CHUNKS * PART_GROUPS;
        let within = |plane: &Range<usize>, each: usize| {
            let start = plane.start + first * each;
            start..start + groups.min(PART_GROUPS) * each
        };
        CodePart::in_file(
            &self.container,
            within(&self.high, high_bytes(self.dim)),
            within(&self.low, GROUP_ROWS * low_bytes(self.dim)),
        )
    }

    /// The XXH3 of a row; `None` if its page failed.
    pub fn sum(&self, row: usize) -> Option<u64> {
        let start = self.sums.start + row % (FILE_CHUNKS * CHUNK_ROWS) * SUM_BYTES;
        let bytes = self.container.bytes(start..start + SUM_BYTES)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The XXH3 of the rows of a chunk and their codes, as bytes; `None` if a page failed.
    pub fn contents(&self, chunk: usize) -> Option<[&[u8]; 3]> {
        let within = |section: &Range<usize>| {
            let each = section.len() / self.chunks;
            let start = section.start + chunk % FILE_CHUNKS * each;
            self.container.bytes(start..start + each)
        };
        Some([within(&self.sums)?, within(&self.high)?, within(&self.low)?])
    }

    /// Marks the file as one that is not to be used.
    pub fn fail(&self) {
        self.container.fail();
    }

    /// Whether a check failed, or the file was cut: what was read of it is not to be used, and mapped bytes behind its end must not be touched.
    pub fn has_failed(&self) -> bool {
        self.container.has_failed() || !self.file.length().is_ok_and(|length| length >= self.length)
    }
}

fn write_sections(
    file: Arc<dyn DiskFile>,
    bound: &Bound,
    chunks: &[Arc<RowChunk>],
    contents: &[[&[u8]; 3]],
) -> io::Result<()> {
    let mut out = ContainerWriter::new(file);
    for (at, id) in [section::SUMS, section::HIGH, section::LOW].into_iter().enumerate() {
        out.begin(id)?;
        for chunk in contents {
            out.add(chunk[at])?;
        }
    }
    out.finish(&meta(bound, chunks)).map(|_| ())
}

fn meta(bound: &Bound, chunks: &[Arc<RowChunk>]) -> Vec<u8> {
    let mut meta = MAGIC.to_vec();
    meta.extend_from_slice(&(bound.dim as u64).to_le_bytes());
    for chunk in chunks {
        meta.extend_from_slice(&xxh3_128(chunk.digests.as_flattened()).to_le_bytes());
    }
    meta
}
