//! What if the last line of a log is whole, but for its newline?

use std::io;
use std::sync::Arc;

use crate::disk::{DiskFile, Identity, read_upto};
use crate::event::line::{Event, Trust};
use crate::json::MAX_LINE_BYTES;
use crate::store::files::held::Prefix;

/// So much is looked at in search of the last newline.
const REACH: u64 = MAX_LINE_BYTES as u64 + 2;

/// A log, and the newline that its last line has lost.
pub(super) struct Ended {
    log: Prefix,
    length: u64,
}

impl Ended {
    /// The log with its newline; `None` if what stands behind the last newline is no event with the hash that it names.
    ///
    /// # Errors
    /// What the disk says.
    pub fn of(log: &Arc<dyn DiskFile>) -> io::Result<Option<Self>> {
        let length = log.length()?;
        let start = length.saturating_sub(REACH);
        let mut end = Vec::new();
        read_upto(&**log, &mut end, start, (length - start) as usize)?;
        let line = memchr::memrchr(b'\n', &end).map_or(&end[..], |newline| &end[newline + 1..]);
        let is_whole = !line.is_empty() && Event::read(line, Trust::Nothing).is_ok();
        Ok(is_whole.then(|| Self {
            log: Prefix::of(Arc::clone(log), length),
            length,
        }))
    }
}

impl DiskFile for Ended {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset == self.length
            && let Some(first) = buffer.first_mut()
        {
            *first = b'\n';
            return Ok(1);
        }
        self.log.read_at(buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.length + 1)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.log.identity()
    }
}
