//! What is left of a log whose first line is damaged, and the newest base that it may have started from.

use std::io;
use std::sync::Arc;

use memchr::memmem;

use chronolog::digest::Hex;
use chronolog::disk::{Access, Disk, DiskFile, Naming, read_upto};
use chronolog::json::MAX_LINE_BYTES;
use chronolog::layout::{Layout, digest_in_base_name, is_unpacked_base};
use chronolog::log::files::is_folder;
use chronolog::origin::{ALONE, Beginning};
use chronolog::wal::reader::read_pieces;

use super::found::header_of;

/// What a line says that names a base, or adopts one.
const NAMING: [&[u8]; 3] = [b"base_sha256", b"__compact__", b"__adopt__"];

/// What is left of a log whose first line is damaged or missing.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// The seq of the first event that can be read.
    pub first: Option<u64>,
    /// How many damaged lines stand before that event, at least one.
    pub lines: u64,
    /// A damaged line seems to name a base.
    pub seems_compacted: bool,
}

impl Left {
    /// Reads the damaged lines of a log.
    ///
    /// # Errors
    /// What the disk says.
    pub fn of_log(log: &dyn DiskFile, length: u64, beginning: &Beginning) -> io::Result<Self> {
        let end = beginning.seq.map_or(length, |_| beginning.offset);
        let mut left = Self {
            first: beginning.seq,
            ..Self::default()
        };
        each_damaged(log, length, |offset, text| {
            left.lines += u64::from(offset < end);
            left.seems_compacted |= names_base(text);
        })?;
        // An event that follows another was not the first, even if nothing stands before it.
        left.lines = left.lines.max(1);
        Ok(left)
    }

    /// Of a log that is gone: it may have had any number of lines.
    pub fn of_nothing() -> Self {
        Self {
            lines: 2,
            ..Self::default()
        }
    }

    /// The first event that can be read, if more events came before it than there are damaged lines.
    pub fn unaccounted(&self) -> Option<u64> {
        let first = self.first?;
        (first.saturating_sub(1) > self.lines).then_some(first)
    }
}

fn names_base(text: &[u8]) -> bool {
    NAMING.iter().any(|word| memmem::find(text, word).is_some())
}

/// Hands over every line that cannot be read, and what stands behind the last newline.
fn each_damaged(log: &dyn DiskFile, length: u64, mut take: impl FnMut(u64, &[u8])) -> io::Result<()> {
    let mut end = 0;
    read_pieces(log, 0..length, ALONE, |piece| {
        for line in piece.lines.iter().filter(|line| line.event.is_err()) {
            take(line.offset, piece.text(line));
        }
        end = piece.end.unwrap_or(end);
        io::Result::Ok(true)
    })?;
    let mut rest = Vec::new();
    let wanted = usize::try_from(length - end).unwrap_or(usize::MAX);
    read_upto(log, &mut rest, end, wanted.min(MAX_LINE_BYTES))?;
    if !rest.is_empty() {
        take(end, &rest);
    }
    Ok(())
}

/// The newest whole base of a store that ends before an event, with its name: a log that starts from it begins with the event
/// behind it.
///
/// # Errors
/// What the disk says.
pub(super) fn newest_base(
    disk: &dyn Disk,
    layout: &Layout,
    first: Option<u64>,
) -> io::Result<Option<(String, Arc<dyn DiskFile>)>> {
    let folder = layout.bases();
    if !is_folder(disk, &folder) {
        return Ok(None);
    }
    let mut found = Vec::new();
    for name in disk.list(&folder).naming(&folder)? {
        let digest = digest_in_base_name(&name).and_then(|digits| Hex::read(digits.as_bytes()));
        let (true, Some(digest)) = (is_unpacked_base(&name), digest) else {
            continue;
        };
        let Ok(file) = disk.open(&folder.join(&name), Access::Read) else {
            continue;
        };
        if let Some(header) = header_of(&*file).naming(&folder.join(&name))?
            && first.is_none_or(|first| header.seq.saturating_add(2) <= first)
        {
            found.push((header.seq, digest, name, file));
        }
    }
    found.sort_by_key(|(seq, ..)| *seq);
    let whole = found
        .into_iter()
        .rev()
        .find(|(_, digest, _, file)| chronolog::archive::file_digest(&**file).is_ok_and(|is| is == *digest));
    Ok(whole.map(|(_, _, name, file)| (format!("base/{name}"), file)))
}
