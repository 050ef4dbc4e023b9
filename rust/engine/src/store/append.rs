//! How do lines reach the disk, and what if they do not?

use std::io;

use crate::digest::Hex;
use crate::disk::Access;
use crate::error::{At, Error, Result};
use crate::hint::write_hint;
use crate::layout::is_draft;
use crate::log::OpenLog;
use crate::log::files::remove_ours;
use crate::origin::Origin;
use crate::verify::Walk;
use crate::wal::synced::Synced;
use crate::wal::writer::Lines;

use super::Store;

impl Store {
    /// Puts lines behind the log, creating it if there is none; says where they begin.
    pub(super) fn append(&mut self, lines: &Lines, now: i64) -> Result<u64> {
        if i64::try_from(lines.link.next_seq).is_err() {
            return Err(Error::Unsupported {
                what: "the last seq of the log is the largest there can be".to_owned(),
            });
        }
        // A log without a single line is as good as none.
        let born = self
            .log
            .as_ref()
            .is_none_or(|log| log.walk.mark().events == 0 && self.report.damage.is_empty());
        if born {
            self.check_absent()?;
            self.create_log(lines)?;
            self.advance(lines, now);
            return Ok(0);
        }
        self.make_ready()?;
        self.end_last_line()?;
        let base = self.write_behind(&lines.bytes)?;
        self.advance(lines, now);
        self.unsynced.written += lines.bytes.len() as u64;
        self.unsynced.since.get_or_insert(now);
        self.unsynced.last = Some(now);
        Ok(base)
    }

    /// A damaged last line without a newline stays as it is, but nothing may be glued to it.
    fn end_last_line(&mut self) -> Result<()> {
        if self.log.as_ref().is_some_and(|log| log.walk.unterminated) {
            self.write_behind(b"\n")?;
            if let Some(log) = &mut self.log {
                log.walk.end += 1;
                log.walk.unterminated = false;
            }
        }
        Ok(())
    }

    /// One write of all lines; what cannot be written whole is taken back.
    fn write_behind(&mut self, bytes: &[u8]) -> Result<u64> {
        let Some(log) = &self.log else {
            return Err(Error::Closed);
        };
        let base = log.walk.end;
        match log.file.write_at(bytes, base) {
            Ok(()) => Ok(base),
            Err(fault) => Err(self.undo_write(base, fault)),
        }
    }

    /// Cuts off what a failed write left behind.
    fn undo_write(&mut self, base: u64, fault: io::Error) -> Error {
        let undone = self.log.as_ref().map_or(Ok(()), |log| log.file.truncate(base));
        if let Err(worse) = undone {
            self.poison(&format!("a failed write could not be undone: {worse}"));
        }
        Error::io(self.layout.log(), fault)
    }

    fn advance(&mut self, lines: &Lines, now: i64) {
        let count = lines.starts.len() as u64;
        if let Some(log) = &mut self.log {
            let mark = &mut log.walk.follower.mark;
            mark.head = lines.link.head;
            mark.first = mark.first.or_else(|| lines.bytes.get(9..73).and_then(Hex::read));
            mark.first_seq.get_or_insert(lines.link.next_seq - count);
            mark.last_seq = lines.link.next_seq - 1;
            mark.events += count;
            log.walk.latest = log.walk.latest.max(now);
            log.walk.lines += count;
            log.walk.end += lines.bytes.len() as u64;
            let mark = &mut log.walk.follower.mark;
            (mark.end, mark.gap) = (log.walk.end, false);
            self.own_end = log.walk.end;
        }
    }

    /// INVARIANT: a log that holds anything is never replaced by a new one.
    fn check_absent(&self) -> Result<()> {
        let path = self.layout.log();
        match (&self.log, self.disk.status(path)) {
            (Some(_), _) => Ok(()),
            (None, Err(fault)) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
            (None, Err(fault)) => Err(Error::io(path, fault)),
            (None, Ok(_)) => Err(Error::io(
                path,
                io::Error::other("the log must be read before it is written"),
            )),
        }
    }

    /// A log is born complete: written elsewhere, synced, and only then given its name.
    fn create_log(&mut self, lines: &Lines) -> Result<()> {
        let path = self.layout.log().to_owned();
        self.replace_log(&lines.bytes)?;
        let file = self.disk.open(&path, Access::Write).at(&path)?;
        // The hint comes second: without its log it would tell of one that was lost. Should it fail, the next append tries
        // again before it writes.
        let is_told = self.tell_birth(lines).is_ok();
        let born = OpenLog::writing(file, Walk::new(None), Origin::Nothing).at(&path)?;
        self.log = Some(born.anchored(is_told));
        Ok(())
    }

    /// Says durably how far a log reaches that was just born.
    fn tell_birth(&self, lines: &Lines) -> Result<()> {
        let first = lines.bytes.get(9..73).and_then(Hex::read);
        if let (Some(first), Some(head)) = (first, lines.link.head) {
            let reached = Synced {
                offset: lines.bytes.len() as u64,
                seq: lines.link.next_seq - 1,
                first,
                head,
            };
            let hint = self.layout.synced();
            write_hint(&*self.disk, &self.layout, &reached)?.sync().at(&hint)?;
            self.disk.sync_dir(self.layout.folder()).at(self.layout.folder())?;
        }
        Ok(())
    }

    /// Gives the log new contents, as a whole or not at all.
    pub(super) fn replace_log(&mut self, bytes: &[u8]) -> Result<()> {
        let (draft, path, folder) = (
            self.layout.log_draft(),
            self.layout.log(),
            self.layout.folder().to_owned(),
        );
        let file = self.disk.create(&draft).at(&draft)?;
        file.write_at(bytes, 0).at(&draft)?;
        file.sync().at(&draft)?;
        self.disk.rename(&draft, path).at(path)?;
        self.disk.sync_dir(&folder).at(&folder)
    }

    /// Before the first append: a handle that writes, and a hint that tells a torn write from damage.
    pub(super) fn make_ready(&mut self) -> Result<()> {
        let path = self.layout.log().to_owned();
        let Some(log) = &mut self.log else {
            return Err(Error::Closed);
        };
        if !log.writable {
            // What an interrupted replacement left behind. A snapshot that another process is writing goes too: it is written
            // again.
            remove_ours(&*self.disk, self.layout.folder(), is_draft)?;
            let file = self.disk.open(&path, Access::Write).at(&path)?;
            if file.identity().at(&path)? != log.identity {
                return Err(Error::io(
                    &path,
                    std::io::Error::other("the log was replaced while it was locked"),
                ));
            }
            log.file = file;
            log.writable = true;
        }
        if log.anchored {
            return Ok(());
        }
        self.sync_log()?;
        if self.reached().is_none() {
            // The log ends with damage, or is nothing else: there is no event at its end that a hint could name.
            return Ok(());
        }
        let hint = self.layout.synced();
        let file = self.disk.open(&hint, Access::Write).at(&hint)?;
        file.sync().at(&hint)?;
        self.disk.sync_dir(self.layout.folder()).at(self.layout.folder())?;
        if let Some(log) = &mut self.log {
            log.anchored = true;
        }
        Ok(())
    }
}
