//! Reads parts of several files, and bytes in memory, as one file.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use chronolog::disk::{Bytes, DiskFile, Identity};

#[derive(Clone)]
struct Part {
    /// Where it begins in the whole, and in its own file.
    start: u64,
    from: u64,
    file: Arc<dyn DiskFile>,
}

/// Parts of files, one after the other.
#[derive(Clone)]
pub(in crate::store) struct JoinedFile {
    /// The file whose identity it has.
    original: Arc<dyn DiskFile>,
    parts: Arc<Vec<Part>>,
    pub length: u64,
}

impl JoinedFile {
    /// Reads in the place of a file; nothing was added yet.
    pub fn in_place_of(original: &Arc<dyn DiskFile>) -> Self {
        Self {
            original: Arc::clone(original),
            parts: Arc::default(),
            length: 0,
        }
    }

    pub fn add(&mut self, file: &Arc<dyn DiskFile>, range: Range<u64>) {
        if !range.is_empty() {
            Arc::make_mut(&mut self.parts).push(Part {
                start: self.length,
                from: range.start,
                file: Arc::clone(file),
            });
            self.length += range.end - range.start;
        }
    }

    pub fn add_bytes(&mut self, bytes: Vec<u8>) {
        let length = bytes.len() as u64;
        self.add(&(Arc::new(Bytes(bytes)) as Arc<dyn DiskFile>), 0..length);
    }
}

impl DiskFile for JoinedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let next = self.parts.partition_point(|part| part.start <= offset);
        let Some(part) = next.checked_sub(1).map(|at| &self.parts[at]) else {
            return Ok(0);
        };
        let end = self.parts.get(next).map_or(self.length, |part| part.start);
        let room = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = room.min(buffer.len());
        part.file
            .read_at(&mut buffer[..wanted], part.from + (offset - part.start))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.original.identity()
    }
}
