//! Reads records of log and base, many at once where they follow each other.

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use chronolog::disk::{DiskFile, fill};

/// A read may begin so many bytes behind the one before and still follow it.
const NEAR_BYTES: u64 = 16 * 1024;
/// The first read ahead, and the longest one: each is twice as long as the one before.
const FIRST_AHEAD: usize = 16 * 1024;
const LONGEST_AHEAD: usize = 256 * 1024;

thread_local! {
    static WINDOW: RefCell<Window> = const { RefCell::new(Window::EMPTY) };
}

/// Identifies an open file for as long as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileNumber(u64);

impl FileNumber {
    const NONE: Self = Self(0);

    /// A number that no other file has.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The bytes that this thread read last.
struct Window {
    file: FileNumber,
    start: u64,
    bytes: Vec<u8>,
    /// How much is read at the next read that follows.
    ahead: usize,
}

/// Forgets what this thread read last.
pub(super) fn forget() {
    WINDOW.with_borrow_mut(|window| window.file = FileNumber::NONE);
}

/// Calls `take` with some bytes of a file, or with fewer if it is shorter. What this thread read last is not read again.
pub(super) fn read<T>(
    (number, file): (FileNumber, &dyn DiskFile),
    offset: u64,
    length: usize,
    take: impl FnOnce(&[u8]) -> T,
) -> io::Result<T> {
    WINDOW.with_borrow_mut(|window| {
        let start = window.reach((number, file), offset, length)?;
        let bytes = window.bytes.get(start..).unwrap_or_default();
        Ok(take(&bytes[..length.min(bytes.len())]))
    })
}

impl Window {
    const EMPTY: Self = Self {
        file: FileNumber::NONE,
        start: 0,
        bytes: Vec::new(),
        ahead: 0,
    };

    /// Reads some bytes unless they are here; gives where they begin.
    fn reach(&mut self, (number, file): (FileNumber, &dyn DiskFile), offset: u64, length: usize) -> io::Result<usize> {
        let end = self.start + self.bytes.len() as u64;
        let is_behind = self.file == number && offset >= self.start;
        if is_behind && offset + length as u64 <= end {
            return Ok((offset - self.start) as usize);
        }
        self.ahead = match is_behind && offset <= end + NEAR_BYTES {
            true => (self.ahead * 2).clamp(FIRST_AHEAD, LONGEST_AHEAD),
            false => 0,
        };
        // Nothing is here if the read fails.
        self.file = FileNumber::NONE;
        let wanted = length.max(self.ahead);
        self.bytes.clear();
        self.bytes.try_reserve_exact(wanted)?;
        self.bytes.resize(wanted, 0);
        let read = fill(file, &mut self.bytes, offset)?;
        self.bytes.truncate(read);
        (self.file, self.start) = (number, offset);
        Ok(0)
    }
}
