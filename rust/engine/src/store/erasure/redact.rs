//! How does a log become an archive in which some lines are erased?

use std::io;
use std::sync::Arc;

use crate::archive::{FRAME_BYTES, Packer};
use crate::digest::{Hasher, Hex};
use crate::disk::{DiskFile, read_upto};
use crate::error::{At, Result};
use crate::event::erasure::write_redacted;
use crate::layout::{ERASED_SUFFIX, NEW_ARCHIVE, archive_name};
use crate::log::Site;
use crate::log::files::Scratch;

/// A line that goes.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Hit {
    /// Where it begins.
    pub offset: u64,
    /// Its seq.
    pub seq: u64,
    /// Its hash.
    pub hash: Hex,
}

/// Packs what it is given, frame by frame.
struct Frames {
    packer: Packer,
    plain: Vec<u8>,
    frame: Vec<u8>,
    file: Arc<dyn DiskFile>,
    written: u64,
    hasher: Hasher,
}

impl Frames {
    fn add(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = FRAME_BYTES - self.plain.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.plain.extend_from_slice(now);
            bytes = later;
            if self.plain.len() == FRAME_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.packer.pack(&self.plain, &mut self.frame)?;
        self.hasher.update(&self.frame);
        self.file.write_at(&self.frame, self.written)?;
        self.written += self.frame.len() as u64;
        self.plain.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<Hex> {
        if !self.plain.is_empty() || self.written == 0 {
            self.flush()?;
        }
        self.file.sync()?;
        Ok(self.hasher.finish())
    }
}

/// Packs a log up to `end` with only seq and hash left of some lines, which stand in order; gives the name that a sentinel
/// writes, and the digest.
///
/// # Errors
/// `Io`.
pub(in crate::store) fn pack_without(
    site: &Site,
    log: &dyn DiskFile,
    end: u64,
    hits: &[Hit],
    (first, last): (u64, u64),
) -> Result<(String, Hex)> {
    let archives = site.layout.archives();
    site.make_folder(&archives, site.layout.folder())?;
    let scratch = Scratch::at(&site.disk, archives.join(NEW_ARCHIVE));
    let digest = copy_without(site, log, end, hits, &scratch).at(scratch.path())?;
    let name = archive_name(first, last, digest.text());
    let file = match hits.is_empty() {
        true => name.clone(),
        false => format!("{name}{ERASED_SUFFIX}"),
    };
    scratch.name(&site.layout.inside(&file))?;
    Ok((name, digest))
}

fn copy_without(site: &Site, log: &dyn DiskFile, end: u64, hits: &[Hit], scratch: &Scratch) -> io::Result<Hex> {
    let mut frames = Frames {
        packer: Packer::new()?,
        plain: Vec::with_capacity(FRAME_BYTES),
        frame: Vec::new(),
        file: site.disk.create(scratch.path())?,
        written: 0,
        hasher: Hasher::default(),
    };
    let (mut at, mut buffer) = (0, Vec::new());
    // A line that goes may be longer than what is read at a time: it is passed over up to its end.
    let mut passing = false;
    let mut next = hits.iter().peekable();
    while at < end {
        buffer.clear();
        let wanted = (end - at).min(FRAME_BYTES as u64) as usize;
        if read_upto(log, &mut buffer, at, wanted)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut from = 0;
        while from < buffer.len() {
            if passing {
                let length = memchr::memchr(b'\n', &buffer[from..]);
                from = length.map_or(buffer.len(), |length| from + length + 1);
                passing = length.is_none();
                continue;
            }
            let hit = next
                .peek()
                .map(|hit| hit.offset)
                .filter(|offset| *offset < at + buffer.len() as u64);
            let until = hit.map_or(buffer.len(), |offset| (offset - at) as usize);
            frames.add(&buffer[from..until])?;
            from = until;
            if hit.is_some()
                && let Some(hit) = next.next()
            {
                let mut left = Vec::new();
                write_redacted(hit.seq, &hit.hash, &mut left);
                frames.add(&left)?;
                passing = true;
            }
        }
        at += buffer.len() as u64;
    }
    frames.finish()
}
