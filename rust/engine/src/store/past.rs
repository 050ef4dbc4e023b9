//! What was said before?

use std::sync::Arc;

use crate::disk::read_upto;
use crate::error::{At, Error, Result};
use crate::event::act::each_subject;
use crate::event::line::{Event, Trust};
use crate::hint::line_from;
use crate::origin::{Origin, Sentinel};
use crate::state::spelled;

use super::Store;
use super::archive_faults::{OrDamage, archive_altered, not_kept};
use super::shelf::Volume;

/// How much is read at once when neighbouring events are asked for.
const WINDOW_BYTES: usize = 256 * 1024;

fn speaks_of(event: &Event, line: &[u8], id: &[u8]) -> bool {
    let mut is_one = false;
    each_subject(event.op, event.record_id(line), event.record(line), |subject| {
        is_one |= subject == id;
    });
    is_one
}

impl Store {
    /// The lines that speak of a record, oldest first: those of the archives that were kept, then those of the live log. The
    /// live log has an index in memory, each archive one beside it.
    ///
    /// # Errors
    /// `HistoryUnavailable` if an archive that was kept is not there, `Corrupted` if one is damaged, `Io`.
    pub fn history(&self, id: &str) -> Result<Vec<Vec<u8>>> {
        self.log.check_is_there()?;
        let spelled = spelled(id);
        let mut lines = Vec::new();
        for volume in self.volumes()?.iter().rev() {
            let places = volume.places(&*self.disk, &self.layout, self.options.threads, &spelled)?;
            for place in places {
                let line = line_from(&*volume.archive.log, place, volume.length).or_damage(&volume.name)?;
                match Event::read(&line, Trust::Nothing) {
                    // The hash of another id may be the same.
                    Ok(event) if !speaks_of(&event, &line, &spelled) => {}
                    Ok(_) => lines.push(line),
                    Err(fault) => return Err(archive_altered(&volume.name, fault.reason)),
                }
            }
            volume.archive.rest();
        }
        for index in self.state.history(id) {
            let line = self.line_at(index as usize)?;
            // An act may have touched a record of which it does not speak.
            if Event::read(&line, Trust::Hashes).is_ok_and(|event| speaks_of(&event, &line, &spelled)) {
                lines.push(line);
            }
        }
        Ok(lines)
    }

    /// The archives that were kept, newest first.
    fn volumes(&self) -> Result<Vec<Arc<Volume>>> {
        let mut found: Vec<Arc<Volume>> = Vec::new();
        let mut origin = self.log.open().map(|log| log.origin.clone());
        while let Some(Origin::Ours(sentinel)) = origin {
            let Some(volume) = self.volume_before(&sentinel)? else {
                match sentinel.archive {
                    // What nobody wanted to keep is not missed.
                    None => break,
                    Some(_) => return Err(not_kept(&sentinel)),
                }
            };
            origin = Some(volume.beginning.origin.clone());
            found.push(volume);
        }
        Ok(found)
    }

    /// The archive that a sentinel names; `None` if it was not kept or is not there. The digest also keeps an archive from
    /// leading back to itself.
    pub(super) fn volume_before(&self, sentinel: &Sentinel) -> Result<Option<Arc<Volume>>> {
        match sentinel.safe_archive() {
            Some((name, digest)) => self.shelf.volume(&*self.disk, &self.layout, name, digest),
            None => Ok(None),
        }
    }

    /// Every line of the live log whose seq is at least `from_seq`.
    ///
    /// # Errors
    /// `Io`.
    pub fn replay(&self, from_seq: u64) -> Result<Vec<Vec<u8>>> {
        self.log.check_is_there()?;
        let mut lines = Vec::new();
        for range in self.state.timeline().since(from_seq) {
            self.each_line(range, |line| lines.push(line.to_vec()))?;
        }
        Ok(lines)
    }

    fn line_at(&self, index: usize) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        self.each_line(index..index + 1, |line| found = line.to_vec())?;
        Ok(found)
    }

    /// Shows the lines of consecutive events, reading the log in large steps.
    pub(super) fn each_line(&self, range: std::ops::Range<usize>, mut show: impl FnMut(&[u8])) -> Result<()> {
        let Some(log) = self.log.open() else {
            return Ok(());
        };
        let path = self.layout.log().to_owned();
        let timeline = self.state.timeline();
        let end_of = |index: usize| timeline.offset(index + 1).unwrap_or(log.walk.end);
        let mut window: Vec<u8> = Vec::new();
        let mut window_start = 0;
        for index in range.clone() {
            let Some(start) = timeline.offset(index) else { break };
            let end = end_of(index);
            if start < window_start || end > window_start + window.len() as u64 {
                let far = end_of(range.end.saturating_sub(1).max(index)).min(start + WINDOW_BYTES as u64);
                window.clear();
                window_start = start;
                read_upto(&*log.file, &mut window, start, (far.max(end) - start) as usize).at(&path)?;
            }
            let from = (start - window_start) as usize;
            let Some(text) = window.get(from..(end - window_start) as usize) else {
                return Err(Error::io(&path, std::io::ErrorKind::UnexpectedEof.into()));
            };
            let line = memchr::memchr(b'\n', text).map_or(text, |newline| &text[..newline]);
            show(line.strip_suffix(b"\r").unwrap_or(line));
        }
        Ok(())
    }
}
