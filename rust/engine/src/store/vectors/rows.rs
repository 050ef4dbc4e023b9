//! How do rows reach their file?
//!
//! Some are hashed while others are written, and of a large attachment the first are on disk before the last are written.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::attach::Attachment;
use super::words::{Bound, GROUP_ROWS};
use crate::digest::{Hex, sha256};
use crate::disk::{Access, DiskFile};
use crate::error::{At, Error, Result};
use crate::ordered::in_order;
use crate::store::Store;

/// The bits of a float32 that are all set if it is not finite.
const EXPONENT: u32 = 0x7f80_0000;
/// A large attachment is synced each time so much was written, while more is written: nobody has to wait for all of it at
/// the end.
const AHEAD_BYTES: u64 = 64 * 1024 * 1024;

/// Some rows as they lie on disk.
#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    digests: Vec<Hex>,
    /// The first row that is not finite.
    odd: Option<usize>,
}

/// A sync that runs while more is written: one at a time.
#[derive(Default)]
struct Ahead {
    runs: AtomicBool,
    failed: Mutex<Option<io::Error>>,
}

impl Ahead {
    /// Whether none is running; then one is from now on.
    fn begin(&self) -> bool {
        !self.runs.swap(true, Ordering::Relaxed)
    }

    fn end(&self, outcome: io::Result<()>) {
        if let Err(fault) = outcome {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
        }
        self.runs.store(false, Ordering::Relaxed);
    }

    fn outcome(self) -> io::Result<()> {
        let failed = self.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), Err)
    }
}

impl Store {
    /// Puts rows behind those that the log names, hashing some while others are written.
    pub(super) fn write_rows(&mut self, bound: &Bound, first: u32, attachment: &Attachment<'_>) -> Result<Vec<Hex>> {
        let file = self.rows_file(bound)?;
        let path = self.layout.rows(&bound.name, bound.generation);
        let (dim, each) = (bound.dim, GROUP_ROWS * bound.dim);
        let mut digests = Vec::with_capacity(attachment.ids.len());
        let mut offset = u64::from(first) * bound.stride();
        let work = |index: u64, piece: &mut Piece| {
            let start = index as usize * each;
            let floats = &attachment.rows[start..attachment.rows.len().min(start + each)];
            // From here on only this copy counts, whatever becomes of the caller's memory.
            piece.bytes.clear();
            if cfg!(target_endian = "little") {
                piece.bytes.extend_from_slice(bytemuck::cast_slice(floats));
            } else {
                piece.bytes.extend(floats.iter().flat_map(|value| value.to_le_bytes()));
            }
            let odd = floats.chunks_exact(dim).position(|row| !is_finite(row));
            piece.odd = odd.map(|row| index as usize * GROUP_ROWS + row);
            piece.digests.clear();
            piece.digests.extend(piece.bytes.chunks_exact(4 * dim).map(sha256));
            Ok(())
        };
        let pieces = attachment.ids.len().div_ceil(GROUP_ROWS) as u64;
        let (ahead, mut odd) = (Ahead::default(), None);
        std::thread::scope(|scope| {
            let mut unsynced = 0;
            in_order(pieces, self.options.threads, work, |piece: &mut Piece| {
                odd = piece.odd;
                if odd.is_some() {
                    return Ok::<bool, io::Error>(false);
                }
                file.write_at(&piece.bytes, offset)?;
                offset += piece.bytes.len() as u64;
                unsynced += piece.bytes.len() as u64;
                if unsynced >= AHEAD_BYTES && ahead.begin() {
                    unsynced = 0;
                    let sync = || ahead.end(file.sync());
                    if std::thread::Builder::new().spawn_scoped(scope, sync).is_err() {
                        ahead.end(Ok(()));
                    }
                }
                digests.extend_from_slice(&piece.digests);
                Ok(true)
            })
        })
        .at(&path)?;
        self.hear(ahead.outcome(), &path)?;
        if let Some(row) = odd {
            return Err(not_finite(&attachment.ids[row]));
        }
        if self.syncs_every_commit() {
            self.hear(file.sync(), &path)?;
        }
        Ok(digests)
    }

    /// After a sync of rows that failed nobody may rely on the disk.
    fn hear(&mut self, outcome: io::Result<()>, path: &Path) -> Result<()> {
        if let Err(fault) = &outcome {
            self.poison(&fault.to_string());
        }
        outcome.at(path)
    }

    /// The file of a space's rows, to be written; its name is durable.
    pub(super) fn rows_file(&self, bound: &Bound) -> Result<Arc<dyn DiskFile>> {
        let path = self.layout.rows(&bound.name, bound.generation);
        match self.disk.open(&path, Access::Write) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                let folder = self.layout.vectors();
                self.make_folder(&folder, self.layout.folder())?;
                let file = self.disk.create(&path).at(&path)?;
                self.disk.sync_dir(&folder).at(&folder)?;
                Ok(file)
            }
            opened => opened.at(&path),
        }
    }
}

/// Whether every component is a number.
pub fn is_finite(row: &[f32]) -> bool {
    // The largest exponent decides, and integers are compared many at a time.
    let exponents = row.iter().map(|value| value.to_bits() & EXPONENT);
    exponents.fold(0, u32::max) != EXPONENT
}

/// A vector that is refused.
pub fn not_finite(id: &str) -> Error {
    Error::invalid("vector", format!("the vector of {id:?} is not finite"))
}
