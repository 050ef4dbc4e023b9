//! Finds the earlier events of a record, in the live log and in archives.

use std::sync::Arc;

use chronolog::error::Result;
use chronolog::event::act::each_subject;
use chronolog::event::line::{Event, Trust};
use chronolog::hint::line_from;
use chronolog::log::{Log, Site};
use chronolog::origin::{Origin, Sentinel, WayBack};
use chronomemory_state::state::{State, spelled};

use crate::store::archives::archive_index::{ArchiveCache, IndexedArchive};
use crate::store::archives::faults::{OrDamage, archive_altered, not_kept};
use crate::store::archives::pruned::pruned_until;
use crate::store::live_log::LiveLog;

fn speaks_of(event: &Event, line: &[u8], id: &[u8]) -> bool {
    let mut is_one = false;
    each_subject(event.op, event.record_id(line), event.record(line), |subject| {
        is_one |= subject == id;
    });
    is_one
}

/// What the archive starts from that a sentinel leads back to, as erasures since made it.
pub(super) fn one_back(way: &mut WayBack, sentinel: &Sentinel, indexed: &IndexedArchive) -> Result<Origin> {
    Ok(match indexed.beginning.origin.clone() {
        // A segment begins where the one before it ends.
        Origin::Ours(earlier) if earlier.last_seq >= sentinel.last_seq => {
            return Err(archive_altered(&indexed.name, "it leads in a circle".to_owned()));
        }
        Origin::Ours(earlier) => Origin::Ours(way.back(sentinel, earlier)),
        other => {
            way.pass(sentinel);
            other
        }
    })
}

/// The past of a log: its live lines and its archives.
pub(in crate::store) struct History<'a> {
    /// Where the files are.
    pub site: &'a Site,
    /// The log that is live.
    pub log: &'a Log,
    /// What it says now, and the places of its events.
    pub state: &'a State,
    /// The archives that were asked so far.
    pub archives: &'a ArchiveCache,
    /// How many threads may be used.
    pub threads: usize,
}

impl<'a> History<'a> {
    /// The live log beside its state.
    pub(in crate::store) fn live(&self) -> LiveLog<'a> {
        LiveLog {
            site: self.site,
            open: self.log.open(),
            state: self.state,
        }
    }

    /// The lines that speak of a record, oldest first: those of the archives that were kept, then those of the live log. The
    /// live log has an index in memory, each archive one beside it.
    ///
    /// # Errors
    /// `HistoryUnavailable` if an archive that was kept is not there, `Corrupted` if one is damaged, `Io`.
    pub fn of_record(&self, id: &str) -> Result<Vec<Vec<u8>>> {
        self.log.check_is_there()?;
        let mut lines = Vec::new();
        let spelled = spelled(id);
        for indexed in self.indexed_archives()?.iter().rev() {
            let places = indexed.places(&*self.site.disk, &self.site.layout, self.threads, &spelled)?;
            for place in places {
                let line = line_from(&*indexed.archive.log, place, indexed.length).or_damage(&indexed.name)?;
                match Event::read(&line, Trust::Nothing) {
                    // The hash of another id may be the same.
                    Ok(event) if !speaks_of(&event, &line, &spelled) => {}
                    Ok(_) => lines.push(line),
                    Err(fault) => return Err(archive_altered(&indexed.name, fault.reason)),
                }
            }
            indexed.archive.rest();
        }
        for index in self.state.history(id) {
            let line = self.live().line_at(index as usize)?;
            // An act may have touched a record of which it does not speak.
            if Event::read(&line, Trust::Hashes).is_ok_and(|event| speaks_of(&event, &line, &spelled)) {
                lines.push(line);
            }
        }
        Ok(lines)
    }

    /// The archives that were kept, newest first.
    fn indexed_archives(&self) -> Result<Vec<Arc<IndexedArchive>>> {
        let mut found: Vec<Arc<IndexedArchive>> = Vec::new();
        let mut origin = self.log.open().map(|log| log.origin.clone());
        let mut way = WayBack::default();
        while let Some(Origin::Ours(sentinel)) = origin {
            let Some(indexed) = self.indexed_before(&sentinel)? else {
                match sentinel.archive {
                    // What nobody wanted to keep is not missed.
                    None => break,
                    Some(_) if sentinel.last_seq <= pruned_until(self.state) => break,
                    Some(_) => return Err(not_kept(&sentinel)),
                }
            };
            origin = Some(one_back(&mut way, &sentinel, &indexed)?);
            found.push(indexed);
        }
        Ok(found)
    }

    /// The archive that a sentinel names; `None` if it was not kept or is not there.
    pub(in crate::store) fn indexed_before(&self, sentinel: &Sentinel) -> Result<Option<Arc<IndexedArchive>>> {
        match sentinel.safe_archive() {
            Some((name, digest)) => self.archives.find(&*self.site.disk, &self.site.layout, name, digest),
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
            self.live().each_line(range, |line| lines.push(line.to_vec()))?;
        }
        Ok(lines)
    }
}
