//! Reads the lines of a file one after the other, and digests them meanwhile.

use std::io;

use memchr::memchr;

use chronolog::digest::Hasher;
use chronolog::disk::{DiskFile, read_upto};
use chronolog::json::MAX_LINE_BYTES;

const BUFFER_BYTES: usize = 1024 * 1024;

/// Lines of a file, hashed as they pass if anyone wants to know the digest.
pub struct LineReader<'a> {
    file: &'a dyn DiskFile,
    buffer: Vec<u8>,
    start: usize,
    offset: u64,
    /// A line is longer than that of a record and its comma: nothing more is read.
    pub too_long: bool,
}

impl<'a> LineReader<'a> {
    /// Those from some place on.
    pub fn from(file: &'a dyn DiskFile, offset: u64) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            start: 0,
            offset,
            too_long: false,
        }
    }

    /// Goes to the line that begins at an offset. What was read and is near is not read again.
    pub fn seek(&mut self, offset: u64) {
        let first = self.offset - self.buffer.len() as u64;
        match offset.checked_sub(first).map(|within| within as usize) {
            Some(within) if within <= self.buffer.len() => self.start = within,
            _ => {
                self.buffer.clear();
                (self.start, self.offset) = (0, offset);
            }
        }
    }

    /// The next one, without its newline; none behind one that is too long.
    pub fn next(&mut self, mut hasher: Option<&mut Hasher>) -> io::Result<Option<&[u8]>> {
        let mut searched = self.start;
        loop {
            if let Some(newline) = memchr(b'\n', &self.buffer[searched..]) {
                let line = self.start..searched + newline;
                self.start = line.end + 1;
                return Ok(Some(&self.buffer[line]));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            searched = self.buffer.len();
            self.too_long |= searched > MAX_LINE_BYTES + 1;
            if self.too_long {
                return Ok(None);
            }
            let got = read_upto(self.file, &mut self.buffer, self.offset, BUFFER_BYTES)?;
            if let Some(hasher) = &mut hasher {
                hasher.update(&self.buffer[searched..]);
            }
            self.offset += got as u64;
            if got == 0 {
                let rest = !self.buffer.is_empty();
                self.start = self.buffer.len();
                return Ok(rest.then_some(&self.buffer[..]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronolog::disk::Bytes;

    #[test]
    fn lines_are_found_wherever_they_begin() {
        let texts: Vec<String> = (0..3000_usize)
            .map(|n| "x".repeat(n * 7 % 1500))
            .chain(["y".repeat(5 * BUFFER_BYTES)])
            .collect();
        let file = Bytes(texts.join("\n").into_bytes());
        let mut lines = LineReader::from(&file, 0);
        let mut starts = vec![0];
        for text in &texts {
            assert_eq!(lines.next(None).expect("a line"), Some(text.as_bytes()));
            starts.push(starts[starts.len() - 1] + text.len() as u64 + 1);
        }
        assert_eq!(lines.next(None).expect("the end"), None);
        for at in [2999, 5, 1500, 3000, 0, 1] {
            lines.seek(starts[at]);
            assert_eq!(lines.next(None).expect("a line"), Some(texts[at].as_bytes()));
        }
    }
}
