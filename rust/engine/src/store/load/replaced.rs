//! Notices a log that another one took the place of, so that the newer one is missing.
//!
//! A log proves itself, and one that was replaced is as whole as it ever was. But a compaction leaves a base of what it
//! retired, and a restore keeps the log that it replaced; and the hint about the last sync knows which log was the last one.

use std::io;

use chronolog::digest::Hex;
use chronolog::disk::{Access, Disk, DiskFile, is_same};
use chronolog::event::line::{Event, Trust};
use chronolog::hint::{Hint, Synced, first_line, read_hint};
use chronolog::layout::{Layout, digest_in_base_name, is_unpacked_base};
use chronolog::origin::{ALONE, Beginning, Origin};
use chronolog::wal::reader::read_pieces;
use chronomemory_state::snapshot;

use super::found::our_names;
use crate::store::files::proofs::{backup_folders, copies_of_logs, left_by_restores, shown};

/// A log that the hint about the last sync may not fit.
pub(super) struct Unfit<'a> {
    pub disk: &'a dyn Disk,
    pub layout: &'a Layout,
    pub log: &'a dyn DiskFile,
    pub length: u64,
    pub beginning: &'a Beginning,
}

impl Unfit<'_> {
    /// What shows that another log took its place; `None` if nothing does.
    pub fn was_replaced(&self, known: Option<Synced>, hint: Hint) -> io::Result<Option<String>> {
        let Some(known) = known else { return Ok(None) };
        let by = match hint {
            // A log that goes on has other lines than those that were left.
            Hint::Synced(offset) if offset < self.length => self.set_aside_as(&known, offset, false)?,
            Hint::Contradicted(_) => self.set_aside_as(&known, 0, true)?.filter(|_| !self.is_backed_up()),
            Hint::None if self.begins_otherwise(&known)? => match self.set_aside_as(&known, 0, false)? {
                None if !self.comes_after(&known) => self.retired_by()?.or_else(|| self.kept_as()),
                by => by,
            },
            _ => None,
        };
        Ok(by.map(|by| {
            format!(
                "{by}, and the one that was synced up to event {} is not there",
                known.seq
            )
        }))
    }

    /// Whether it begins where the log of the hint ended: a compaction was killed before it wrote the new hint.
    fn comes_after(&self, known: &Synced) -> bool {
        matches!(&self.beginning.origin, Origin::Ours(sentinel) if sentinel.previous_head == known.head.text())
    }

    /// The log that a restore set aside and that holds the bytes of this one from a place on, or is as long too. One beside which
    /// the same hint lies may be that of a restore that was killed before it swapped the logs; and one that went on behind its
    /// own hint is another name of the log.
    fn set_aside_as(&self, known: &Synced, from: u64, is_all: bool) -> io::Result<Option<String>> {
        for folder in left_by_restores(self.disk, self.layout) {
            let own = read_hint(self.disk, &folder).ok().flatten();
            let ends = |own: &Synced| self.disk.status(folder.log()).is_ok_and(|log| log.length == own.offset);
            if own.is_some_and(|own| own != *known && ends(&own)) && self.is_part_of(&folder, from, is_all)? {
                let folder = shown(self.layout, folder.folder());
                return Ok(Some(format!("it is the one that a restore set aside in {folder}")));
            }
        }
        Ok(None)
    }

    /// Whether a backup begins with all of it: that could be the one that came back.
    fn is_backed_up(&self) -> bool {
        let backups = backup_folders(self.disk, self.layout);
        backups
            .iter()
            .any(|backup| self.is_part_of(backup, 0, false).unwrap_or(false))
    }

    /// A copy that begins with all of it. It was made of an earlier log then, for the hint speaks of one that began otherwise.
    fn kept_as(&self) -> Option<String> {
        let copy =
            copies_of_logs(self.disk, self.layout).find(|copy| self.is_part_of(copy, 0, false).unwrap_or(false))?;
        Some(format!("{} holds it as it was once", shown(self.layout, copy.folder())))
    }

    /// Whether the log of a copy has the bytes of this one, from a place on; and is as long, if that is asked.
    fn is_part_of(&self, copy: &Layout, from: u64, is_all: bool) -> io::Result<bool> {
        let Ok(other) = self.disk.open(copy.log(), Access::Read) else {
            return Ok(false);
        };
        let length = other.length()?;
        if length < self.length || is_all && length != self.length {
            return Ok(false);
        }
        is_same((self.log, from), (&*other, from), self.length - from)
    }

    /// Whether its first line is the first event of a log, and not of the one that the hint speaks of, which is not there either
    /// behind another line.
    fn begins_otherwise(&self, known: &Synced) -> io::Result<bool> {
        let begins = first_line(self.log, self.length)?.is_some_and(|line| {
            Event::read(&line, Trust::Nothing).is_ok_and(|event| event.prev_hash(&line).is_empty())
        });
        Ok(begins && !self.holds(&known.first)?)
    }

    /// The base of a later log: it ends with the first event of this one, or with one behind it. What an interrupted compaction
    /// leaves does so too, but then the hint speaks of this log.
    fn retired_by(&self) -> io::Result<Option<String>> {
        let Some(first) = self.beginning.seq.filter(|_| self.beginning.origin != Origin::Foreign) else {
            return Ok(None);
        };
        let bases = self.layout.bases();
        let names = our_names(self.disk, &bases, is_unpacked_base).unwrap_or_default();
        Ok(names.into_iter().find_map(|name| {
            let file = self.disk.open(&bases.join(&name), Access::Read).ok()?;
            let found = snapshot::read(&*file, &mut snapshot::NoRecordSink).ok()?;
            let is_named_so = digest_in_base_name(&name) == Some(found.sha256.text());
            let is_later = found.header.is_ok_and(|header| header.seq >= first);
            (is_later && is_named_so).then(|| format!("base/{name} holds what a later one started from"))
        }))
    }

    /// Whether a line has this hash: then the log is there, with another line before its first.
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
