//! Packs a log as an archive while it still grows.

use std::io;
use std::path::Path;
use std::sync::Arc;

use chronolog::archive::{FRAME_BYTES, Packer};
use chronolog::digest::{Hasher, Hex};
use chronolog::disk::{Disk, DiskFile, read_over};
use chronolog::error::{At, Result};
use chronolog::layout::{NEW_ARCHIVE, archive_name};
use chronolog::log::Site;
use chronolog::log::files::{PacedFile, Scratch};
use chronolog::ordered::in_order;

use crate::store::Progress;

/// An archive of a log, as far as it is packed.
pub(in crate::store) struct Packing {
    log: Arc<dyn DiskFile>,
    file: PacedFile,
    /// How much of the log is packed: whole frames.
    done: u64,
    hasher: Hasher,
    threads: usize,
}

/// One piece of the log and the frame it becomes.
#[derive(Default)]
struct FramePiece {
    packer: Option<Packer>,
    plain: Vec<u8>,
    frame: Vec<u8>,
}

impl Packing {
    /// An archive of nothing so far.
    pub fn start(disk: &dyn Disk, log: Arc<dyn DiskFile>, path: &Path, threads: usize) -> io::Result<Self> {
        Ok(Self {
            log,
            file: PacedFile::at(disk.create(path)?, 0),
            done: 0,
            hasher: Hasher::default(),
            threads,
        })
    }

    /// The log reads like this now, and as before as far as it is packed.
    pub fn read_from(&mut self, log: Arc<dyn DiskFile>) {
        self.log = log;
    }

    /// Packs all whole frames before a place in the log, and makes them durable.
    pub fn go_on(&mut self, until: u64, progress: Progress<'_>) -> io::Result<()> {
        let whole = until - until % FRAME_BYTES as u64;
        if whole > self.done {
            self.pack(whole, progress)?;
            self.file.sync()?;
        }
        Ok(())
    }

    /// Packs what is left up to the end of the log, and makes all of it durable; gives the digest.
    pub fn finish(mut self, end: u64) -> io::Result<Hex> {
        self.pack(end, &mut |_, _| {})?;
        self.file.sync()?;
        Ok(self.hasher.finish())
    }

    fn pack(&mut self, until: u64, progress: Progress<'_>) -> io::Result<()> {
        let start = self.done;
        let pieces = (until - start).div_ceil(FRAME_BYTES as u64);
        let log = Arc::clone(&self.log);
        let work = |index: u64, piece: &mut FramePiece| {
            let from = start + index * FRAME_BYTES as u64;
            let wanted = (until - from).min(FRAME_BYTES as u64) as usize;
            if read_over(&*log, &mut piece.plain, from, wanted)? < wanted {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let packer = match &mut piece.packer {
                Some(packer) => packer,
                none => none.insert(Packer::new()?),
            };
            packer.pack(&piece.plain, &mut piece.frame)
        };
        in_order(pieces, self.threads, work, |piece: &mut FramePiece| {
            self.hasher.update(&piece.frame);
            self.file.add(&piece.frame)?;
            self.done += piece.plain.len() as u64;
            progress(self.done, until);
            io::Result::Ok(true)
        })
    }
}

/// Packs a log as an archive; gives the name without the suffix of the file, and the digest.
pub(in crate::store) fn archive_of(
    site: &Site,
    (log, end): (Arc<dyn DiskFile>, u64),
    (first, last): (u64, u64),
    suffix: &str,
    threads: usize,
) -> Result<(String, Hex)> {
    let archives = site.layout.archives();
    site.make_folder(&archives, site.layout.folder())?;
    let scratch = Scratch::at(&site.disk, archives.join(NEW_ARCHIVE));
    let packing = Packing::start(&*site.disk, log, scratch.path(), threads);
    let digest = packing.and_then(|packing| packing.finish(end)).at(scratch.path())?;
    let name = archive_name(first, last, digest.text());
    scratch.name(&site.layout.inside(&format!("{name}{suffix}")))?;
    Ok((name, digest))
}
