//! Packs a log as an archive in which some lines are erased.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::store::archives::packing::Packing;
use chronolog::digest::Hex;
use chronolog::disk::{DiskFile, Identity};
use chronolog::error::{At, Result};
use chronolog::event::erasure::write_redacted;
use chronolog::event::line::{Event, Trust};
use chronolog::event::salt;
use chronolog::hint::line_from;
use chronolog::layout::{ERASED_SUFFIX, NEW_ARCHIVE, archive_name};
use chronolog::log::Site;
use chronolog::log::files::Scratch;

/// A line that goes.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct DoomedLine {
    /// Where it begins.
    pub offset: u64,
    /// Its seq.
    pub seq: u64,
    /// Its hash.
    pub hash: Hex,
}

/// What stands in the place of a line that went.
#[derive(Clone)]
struct Cut {
    /// Where that begins, in the log as it reads then.
    at: u64,
    /// What is left of the line.
    left: Vec<u8>,
    /// Where the next line begins, in the log as it was.
    next: u64,
}

/// A log as it reads when only seq and hash are left of some lines. Nothing of it is in memory but that.
#[derive(Clone)]
pub(in crate::store) struct Redacted {
    log: Arc<dyn DiskFile>,
    /// How long it is then.
    pub length: u64,
    /// How many bytes less that is than it was, and how many more.
    taken: u64,
    left_over: u64,
    cuts: Arc<Vec<Cut>>,
}

impl Redacted {
    /// A log up to `end` without these lines, which stand in order.
    ///
    /// # Errors
    /// What the disk says; likewise below.
    pub fn of(log: &Arc<dyn DiskFile>, end: u64, hits: &[DoomedLine]) -> io::Result<Self> {
        let nothing = Self {
            log: Arc::clone(log),
            length: 0,
            taken: 0,
            left_over: 0,
            cuts: Arc::default(),
        };
        nothing.up_to(end, hits)
    }

    /// The same up to a later place, without these lines too, which stand behind the others.
    ///
    /// # Errors
    /// As `of`.
    pub fn up_to(&self, end: u64, hits: &[DoomedLine]) -> io::Result<Self> {
        let (log, mut taken, mut left_over) = (&self.log, self.taken, self.left_over);
        let mut cuts = Arc::clone(&self.cuts);
        for hit in hits {
            let length = line_from(&**log, hit.offset, end)?.len() as u64;
            let mut left = Vec::new();
            write_redacted(hit.seq, &hit.hash, &mut left);
            let at = hit.offset - taken + left_over;
            let next = end.min(hit.offset + length + 1);
            taken += next - hit.offset;
            left_over += left.len() as u64;
            Arc::make_mut(&mut cuts).push(Cut { at, left, next });
        }
        Ok(Self {
            log: Arc::clone(log),
            length: end - taken + left_over,
            taken,
            left_over,
            cuts,
        })
    }
}

impl DiskFile for Redacted {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let following = self.cuts.partition_point(|cut| cut.at <= offset);
        let until = self.cuts.get(following).map_or(self.length, |cut| cut.at);
        let room = usize::try_from(until.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = room.min(buffer.len());
        let Some(cut) = following.checked_sub(1).map(|before| &self.cuts[before]) else {
            return self.log.read_at(&mut buffer[..wanted], offset);
        };
        let inside = offset - cut.at;
        match cut.left.get(inside as usize..).filter(|left| !left.is_empty()) {
            Some(left) => {
                let some = left.len().min(wanted);
                buffer[..some].copy_from_slice(&left[..some]);
                Ok(some)
            }
            None => {
                let behind = inside - cut.left.len() as u64;
                self.log.read_at(&mut buffer[..wanted], cut.next + behind)
            }
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.log.identity()
    }
}

/// Packs a log up to `end` with only seq and hash left of some lines, which stand in order; gives where it lies, and the digest.
///
/// # Errors
/// `Io`.
pub(in crate::store) fn pack_without(
    site: &Site,
    (log, end): (&Arc<dyn DiskFile>, u64),
    hits: &[DoomedLine],
    (first, last): (u64, u64),
    threads: usize,
) -> Result<(PathBuf, Hex)> {
    let archives = site.layout.archives();
    site.make_folder(&archives, site.layout.folder())?;
    let scratch = Scratch::at(&site.disk, archives.join(NEW_ARCHIVE));
    let packed = Redacted::of(log, end, hits).and_then(|redacted| {
        let length = redacted.length;
        Packing::start(&*site.disk, Arc::new(redacted), scratch.path(), threads)?.finish(length)
    });
    let digest = packed.at(scratch.path())?;
    let path = site
        .layout
        .inside(&format!("{}{ERASED_SUFFIX}", archive_name(first, last, digest.text())));
    scratch.name(&path)?;
    Ok((path, digest))
}

/// How many of these lines have no salt.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn unsalted(log: &dyn DiskFile, end: u64, hits: &[DoomedLine]) -> io::Result<u64> {
    let mut found = 0;
    for hit in hits {
        let line = line_from(log, hit.offset, end)?;
        let is_salted = Event::read(&line, Trust::Hashes).is_ok_and(|event| salt::is_salted(event.record(&line)));
        found += u64::from(!is_salted);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronolog::disk::{Bytes, read_upto};

    /// Reads all of it in pieces of this size.
    fn text(log: &Redacted, piece: usize) -> Vec<u8> {
        let mut text = Vec::new();
        while read_upto(log, &mut text.clone(), text.len() as u64, 1).expect("read") > 0 {
            let at = text.len() as u64;
            read_upto(log, &mut text, at, piece).expect("read");
        }
        text
    }

    #[test]
    fn a_log_reads_with_what_is_left_of_its_lines() {
        let lines = ["first line\n", "x\n", "\n", "another that is long\n", "last\n"];
        let log: Arc<dyn DiskFile> = Arc::new(Bytes(lines.concat().into_bytes()));
        let hash = Hex::read(&[b'a'; 64]).expect("digits");
        let end = log.length().expect("a length");
        for going in 0_u32..1 << lines.len() {
            let (mut offset, mut hits, mut awaited) = (0, Vec::new(), Vec::new());
            for (seq, line) in lines.iter().enumerate() {
                if going & 1 << seq == 0 {
                    awaited.extend_from_slice(line.as_bytes());
                } else {
                    let seq = seq as u64;
                    hits.push(DoomedLine { offset, seq, hash });
                    write_redacted(seq, &hash, &mut awaited);
                }
                offset += line.len() as u64;
            }
            let redacted = Redacted::of(&log, end, &hits).expect("read");
            assert_eq!(redacted.length, awaited.len() as u64);
            for piece in [1, 2, 7, 50, 1000] {
                assert_eq!(text(&redacted, piece), awaited, "{going:b} {piece}");
            }
            let half = lines[..3].concat().len() as u64;
            let (before, behind) = hits.split_at(hits.partition_point(|hit| hit.offset < half));
            let grown = Redacted::of(&log, half, before).expect("read");
            assert!(awaited.starts_with(&text(&grown, 7)), "what was read before stays");
            let grown = grown.up_to(end, behind).expect("read");
            assert_eq!(text(&grown, 7), awaited, "{going:b} in two steps");
        }
    }
}
