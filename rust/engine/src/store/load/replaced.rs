//! Is the log one that another took the place of, so that the newer one is missing?
//!
//! A log proves itself, and one that was replaced is as whole as it ever was. But a compaction leaves a base of what it
//! retired, and a restore keeps the log that it replaced; and the hint about the last sync knows which log was the last one.

use std::io;

use crate::digest::Hex;
use crate::disk::{Access, Disk, DiskFile, read_over};
use crate::event::line::{Event, Trust};
use crate::hint::{Hint, first_line};
use crate::layout::{Layout, digest_in_base_name, is_base_file};
use crate::log::files::is_folder;
use crate::origin::{ALONE, Beginning, Origin};
use crate::snapshot;
use crate::wal::reader::read_pieces;
use crate::wal::synced::Synced;

use super::found::header_of;
use crate::store::files::proofs::{backup_folders, is_left_hint, left_by_restores, shown};

/// So much is compared at a time.
const PIECE_BYTES: u64 = 1024 * 1024;

/// A log that the hint about the last sync does not fit.
pub(super) struct Unfit<'a> {
    pub disk: &'a dyn Disk,
    pub layout: &'a Layout,
    pub log: &'a dyn DiskFile,
    pub length: u64,
    pub beginning: &'a Beginning,
}

impl Unfit<'_> {
    /// What shows that another log took its place; `None` if nothing does.
    ///
    /// # Errors
    /// What the disk says of the log.
    pub fn was_replaced(&self, known: Option<Synced>, hint: Hint) -> io::Result<Option<String>> {
        let Some(known) = known.filter(|_| !matches!(hint, Hint::Synced(_))) else {
            return Ok(None);
        };
        if is_left_hint(self.disk, self.layout, &known) {
            return Ok(None);
        }
        let by = match self.set_aside_as()? {
            Some(folder) => Some(format!("it is the one that a restore set aside in {folder}")),
            None if hint == Hint::None => self
                .retired_by(&known)?
                .map(|base| format!("{base} holds what a later one started from")),
            None => None,
        };
        Ok(by.map(|by| {
            format!(
                "{by}, and the one that was synced up to event {} is not there",
                known.seq
            )
        }))
    }

    /// The folder of the log that a restore set aside, if this is that one, to the last byte, and no backup holds it too:
    /// that could be the one that came in its place.
    fn set_aside_as(&self) -> io::Result<Option<String>> {
        for folder in left_by_restores(self.disk, self.layout) {
            if self.is_beginning_of(&folder, true)? {
                let backups = backup_folders(self.disk, self.layout);
                for backup in &backups {
                    if self.is_beginning_of(backup, false)? {
                        return Ok(None);
                    }
                }
                return Ok(Some(shown(self.layout, folder.folder())));
            }
        }
        Ok(None)
    }

    /// Whether the log of a copy begins with all of this one; or is the same.
    fn is_beginning_of(&self, copy: &Layout, is_all: bool) -> io::Result<bool> {
        let Ok(other) = self.disk.open(copy.log(), Access::Read) else {
            return Ok(false);
        };
        let length = other.length()?;
        if length < self.length || is_all && length != self.length {
            return Ok(false);
        }
        let (mut here, mut there, mut at) = (Vec::new(), Vec::new(), 0);
        while at < self.length {
            let piece = (self.length - at).min(PIECE_BYTES);
            read_over(self.log, &mut here, at, piece as usize)?;
            read_over(&*other, &mut there, at, piece as usize)?;
            if here != there {
                return Ok(false);
            }
            at += piece;
        }
        Ok(true)
    }

    /// The base of a later log: it ends with the first event of this one, or with one behind it. What an interrupted compaction
    /// leaves does so too, but then the hint speaks of this log.
    fn retired_by(&self, known: &Synced) -> io::Result<Option<String>> {
        let begins = first_line(self.log, self.length)?.is_some_and(|line| {
            Event::read(&line, Trust::Nothing).is_ok_and(|event| event.prev_hash(&line).is_empty())
        });
        let (Some(first), true) = (self.beginning.seq, begins && self.beginning.origin != Origin::Foreign) else {
            return Ok(None);
        };
        let bases = self.layout.bases();
        if !is_folder(self.disk, &bases) {
            return Ok(None);
        }
        let mut names = self.disk.list(&bases).unwrap_or_default();
        names.retain(|name| is_base_file(name));
        let found = names.into_iter().find_map(|name| {
            let file = self.disk.open(&bases.join(&name), Access::Read).ok()?;
            let header = header_of(&*file).ok().flatten()?;
            let is_whole =
                || snapshot::digest(&*file).is_ok_and(|found| digest_in_base_name(&name) == Some(found.text()));
            (header.seq >= first && is_whole()).then(|| format!("base/{name}"))
        });
        match found {
            Some(_) if self.holds(&known.first)? => Ok(None),
            found => Ok(found),
        }
    }

    /// Whether a line has this hash: then the log is there, and another line stands before its first.
    fn holds(&self, hash: &Hex) -> io::Result<bool> {
        let mut is_there = false;
        read_pieces(self.log, 0..self.length, ALONE, |piece| {
            is_there = piece
                .lines
                .iter()
                .any(|line| matches!(&line.event, Ok(event) if event.hash(piece.text(line)) == *hash));
            io::Result::Ok(!is_there)
        })?;
        Ok(is_there)
    }
}
