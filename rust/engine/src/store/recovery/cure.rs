//! Finds what of a damaged store can be proved, and what can not.
//!
//! Nothing is changed here; [`super::repair`] administers a cure.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::gaps::{Gaps, Lost, events};
use crate::options::Checking;
use crate::store::files::held::Prefix;
use crate::store::files::joined::JoinedFile;
use crate::store::files::proofs::{copies_of_logs, other_logs, parts_of, was_restored};
use crate::store::load::base::Proof;
use crate::store::load::examine::{Examined, Look, examine, look_beside, look_for_lost};
use crate::store::load::loader::{Loader, UNPROVEN, put_on_hold};
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::Hex;
use chronolog::disk::{Access, DiskFile, MemoryFile, UnexpectedEntry, read_upto};
use chronolog::error::{At, Error, Result};
use chronolog::event::faces::{VECTORS, face_of};
use chronolog::event::line::{Event, Trust};
use chronolog::hint::{Hint, Synced, hint_for, read_hint};
use chronolog::json::MAX_LINE_BYTES;
use chronolog::layout::{LOG, Layout, Shape, is_backup_folder, is_in_backup, is_quarantine_name};
use chronolog::log::files::{names_in, ours_in};
use chronolog::log::{Log, Site};
use chronolog::origin::{ALONE, Origin};
use chronolog::verify::{NoSink, Walk, finding};
use chronomemory_state::state::{State, having};

pub(in crate::store) type CureSource = (Arc<dyn DiskFile>, Walk, Origin);

pub(in crate::store) struct Cure {
    pub source: CureSource,
    pub state: State,
    pub filled: u64,
    pub lost: Vec<String>,
    /// The ids that lost events seem to speak of.
    pub unsettled: Vec<String>,
    pub unproven: Vec<String>,
    /// The log is whole, and the state that it starts from is proved.
    pub is_whole: bool,
    pub last_seq: u64,
}

/// What is looked at to find out what can be proved: the files, and what is known of the log.
pub(in crate::store) struct CureSearch<'a> {
    pub site: &'a Arc<Site>,
    /// What was read of the log, and what was wrong with it.
    pub log: &'a Log,
    pub threads: usize,
    /// An empty store will do: a copy is about to take its place.
    pub is_replaced_next: bool,
}

impl CureSearch<'_> {
    /// Finds what can be proved. Errors: `Corrupted` if part of it is unproven and that is not wanted; `Io`.
    pub fn find(&self, unproven: bool) -> Result<Cure> {
        let hint = read_hint(&*self.site.disk, &self.site.layout).at(&self.site.layout.synced())?;
        let open = self.log.open().filter(|_| self.log.check_is_there().is_ok());
        if let Some(log) = open.filter(|log| log.walk.mark().events > 0) {
            return self.cure_of(Arc::clone(&log.file), hint, unproven);
        }
        match self
            .copy_of_lost_log(hint)?
            .or_else(|| open.map(|log| Arc::clone(&log.file)))
        {
            Some(log) => self.cure_of(log, hint, unproven),
            None => self.cure_without_log(hint, unproven),
        }
    }

    fn cure_of(&self, log: Arc<dyn DiskFile>, hint: Option<Synced>, unproven: bool) -> Result<Cure> {
        let path = self.site.layout.log().to_owned();
        let is_damaged = self.log.report.damage.iter().any(|damage| damage.path == LOG);
        let is_ended = is_damaged && lacks_newline(&*log).at(&path)?;
        let log = match is_ended {
            true => {
                let mut ended = JoinedFile::in_place_of(&log);
                ended.add(&log, 0..log.length().at(&path)?);
                ended.add_bytes(b"\n".to_vec());
                Arc::new(ended) as Arc<dyn DiskFile>
            }
            false => log,
        };
        let mut gaps = Gaps::find(&*self.site.disk, &self.site.layout, &*log, self.threads).at(&path)?;
        gaps.mend();
        let file = match gaps.are_changed() {
            true => Arc::new(gaps.healed(&log)) as Arc<dyn DiskFile>,
            false => log,
        };
        let broken = self.broken_batches(&*file, &gaps)?;
        let mut loader = Loader::salvaging(broken);
        let found = self.examine_alone(&*file, &mut loader)?;
        if found.proof == Proof::Nothing && !unproven {
            let reason = "the line that names it is lost, and nothing proves which one it was";
            let beside = found.report.damage.iter().find(|damage| damage.path != LOG).cloned();
            let beside = beside.unwrap_or_else(|| finding("base", DamageKind::BaseMissing, reason));
            return Err(Error::Corrupted(Box::new(beside)));
        }
        let reached = loader.last_seq;
        let unmade = loader.take_unmade();
        let mut state = loader.state.unwrap_or_default();
        let unsettled = hold_named(&mut state);
        let gone = gaps.lost();
        let mut lost: Vec<String> = gone.iter().map(|lost| lost.text.clone()).collect();
        lost.extend(unmade.iter().map(|id| {
            format!("{id:?}: the event that made it is lost, and what was changed in it later is not applied")
        }));
        // How many lines a cut batch, a missing log or an unproven base lost is not known.
        let is_open = |damage: &&Damage| {
            damage.kind == DamageKind::BrokenBatch || found.proof == Proof::Nothing && damage.path != LOG
        };
        lost.extend(found.report.damage.iter().filter(is_open).map(ToString::to_string));
        let mark = found.walk.mark();
        let last_seq = mark
            .last_seq
            .max(found.walk.follower.claimed)
            .max(reached)
            .max(gaps.highest_seq);
        let is_headless = !matches!(found.origin, Origin::Ours(_) | Origin::Foreign) && gaps.lose_the_first();
        let first = mark.first.filter(|_| !is_headless);
        let (last_seq, is_cut) = end_by(hint, first, last_seq);
        let is_before = |lost: &Lost| lost.seqs.is_none_or(|(_, last)| last < last_seq);
        lost.extend(is_cut.filter(|_| gone.iter().all(is_before)));
        lost.extend(gaps.replaced_end.map(|synced| {
            let seq = synced.seq;
            format!("event {seq} is lost as it was synced: the log holds others in its place")
        }));
        lost.extend(found.unknown);
        let has_log_damage = found.report.damage.iter().any(|damage| damage.path == LOG);
        Ok(Cure {
            filled: gaps.filled() + u64::from(is_ended),
            is_whole: !has_log_damage && found.proof == Proof::Whole,
            lost,
            unsettled,
            unproven: having(&state, UNPROVEN),
            last_seq,
            source: (file, found.walk, found.origin),
            state,
        })
    }

    /// The longest whole copy of a lost log that holds the event of the last sync.
    fn copy_of_lost_log(&self, hint: Option<Synced>) -> Result<Option<Arc<dyn DiskFile>>> {
        let path = self.site.layout.log();
        let Some(hint) = hint else { return Ok(None) };
        let is_restored = was_restored(&*self.site.disk, &self.site.layout);
        let mut best: Option<(u64, Arc<dyn DiskFile>)> = None;
        for copy in other_logs(&*self.site.disk, &self.site.layout).at(path)? {
            let length = copy.length().at(path)?;
            let mut walk = Walk::new(None);
            let tail = walk.go(&*copy, length, ALONE, &mut NoSink).at(path)?;
            let is_whole = tail.is_none() && walk.follower.damage.is_empty();
            let holds_all = matches!(hint_for(Some(hint), &*copy, length).at(path)?, Hint::Synced(_));
            let last_seq = walk.mark().last_seq;
            if !is_whole || !holds_all || best.as_ref().is_some_and(|(known, _)| *known >= last_seq) {
                continue;
            }
            // What came behind that event before a restore is not what came behind it since.
            let copy = match is_restored {
                true => Arc::new(Prefix::of(copy, hint.offset)),
                false => copy,
            };
            best = Some((last_seq, copy));
        }
        Ok(best.map(|(_, copy)| copy))
    }

    /// Without any log a base is all that is left, unless there is none and a copy can be restored instead.
    fn cure_without_log(&self, hint: Option<Synced>, unproven: bool) -> Result<Cure> {
        let mut loader = Loader::salvaging(BTreeSet::new());
        let path = self.site.layout.log();
        let (disk, layout) = (&*self.site.disk, &self.site.layout);
        let report = match self.log.open() {
            // It was replaced, and is as good as not there.
            Some(log) if log.mark().events > 0 => look_beside(disk, layout, self.threads, &mut loader).at(path)?,
            Some(log) => Some(self.examine_alone(&*log.file, &mut loader)?.report),
            None => look_for_lost(disk, layout, self.threads, &mut loader).at(path)?,
        };
        let report = report.as_ref().unwrap_or(&self.log.report);
        let state = loader.state.take().unwrap_or_default();
        let is_copied = || state.is_empty() && !self.is_replaced_next && copies_of_logs(disk, layout).next().is_some();
        let mut missing = self.log.report.damage.iter();
        let missing = missing.find(|damage| damage.kind == DamageKind::LogMissing);
        if let Some(damage) = missing.or(report.damage.first())
            && (!unproven || is_copied())
        {
            return Err(Error::Corrupted(Box::new(damage.clone())));
        }
        Ok(Cure {
            // An empty file takes the place of the lost log.
            source: (Arc::new(MemoryFile::default()), Walk::new(None), Origin::Nothing),
            filled: 0,
            lost: report.damage.iter().map(ToString::to_string).collect(),
            unsettled: Vec::new(),
            unproven: having(&state, UNPROVEN),
            is_whole: false,
            last_seq: end_by(hint, None, loader.last_seq).0,
            state,
        })
    }

    /// Where the batches begin that are damaged although they were whole once: their good events are proved.
    fn broken_batches(&self, file: &dyn DiskFile, gaps: &Gaps) -> Result<BTreeSet<u64>> {
        let found = self.examine_alone(file, &mut Loader::default())?;
        let (doubtful, promised) = (gaps.doubtful(), gaps.healed_promise());
        let is_linked = |(begin, last): &&(u64, u64)| !doubtful.iter().any(|place| (begin..=last).contains(&place));
        let scarred = found.walk.follower.scarred.iter();
        let linked = scarred.filter(is_linked).map(|(begin, _)| *begin);
        let synced = broken_batches(&found.report.damage).filter(|begin| *begin < promised);
        Ok(linked.chain(synced).collect())
    }

    fn examine_alone(&self, file: &dyn DiskFile, loader: &mut Loader<'_>) -> Result<Examined> {
        let look = Look::at_log(self.threads, Checking::Full);
        examine(&*self.site.disk, &self.site.layout, file, look, loader, &mut |_, _| {}).at(self.site.layout.log())
    }
}

/// A log that was cut at a line is whole as far as it goes: that more was there is told by the hint about the last sync.
pub(in crate::store) fn lost_end(log: &Log) -> Option<Damage> {
    let reason = log.report.cut.as_ref()?;
    Some(Damage {
        offset: log.report.bytes,
        ..finding(LOG, DamageKind::LogMissing, reason.as_str())
    })
}

/// The last seq that was given out, and what to say if the log does not reach it: seqs are not given out again.
fn end_by(hint: Option<Synced>, first: Option<Hex>, known: u64) -> (u64, Option<String>) {
    // A log that lost its first event cannot say whether it is the one that the hint speaks of.
    let hint = hint.filter(|hint| first.is_none_or(|first| first == hint.first));
    match hint {
        Some(Synced { seq, .. }) if seq > known => {
            let lost = events(known + 1, seq);
            let text = format!("{lost} lost: the log ends at event {known}, and was synced up to event {seq}");
            (seq, Some(text))
        }
        _ => (known, None),
    }
}

/// Whether a log ends with a whole event that has lost its newline.
fn lacks_newline(log: &dyn DiskFile) -> io::Result<bool> {
    let length = log.length()?;
    let mut text = Vec::new();
    let wanted = length.min(MAX_LINE_BYTES as u64 + 1);
    read_upto(log, &mut text, length - wanted, wanted as usize)?;
    let line = text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(Event::read(line, Trust::Nothing).is_ok_and(|event| !event.injected))
}

/// Puts the records on hold that a lost event names for certain, but for embeddings; gives their ids.
fn hold_named(state: &mut State) -> Vec<String> {
    let mut ids = state.slots.named_by_lost_events();
    ids.retain(|id| face_of(id.as_bytes()) != Some(VECTORS));
    ids.retain(|id| put_on_hold(state, id, "an event about it is lost"));
    ids.sort();
    ids
}

fn broken_batches(damage: &[Damage]) -> impl Iterator<Item = u64> {
    let broken = damage.iter().filter(|damage| damage.kind == DamageKind::BrokenBatch);
    broken.map(|damage| damage.offset)
}

/// Refuses if a copy, or what was set aside, cannot be looked into. Errors: `Io`, which names it.
pub(super) fn check_copies_can_be_read(site: &Site) -> Result<()> {
    let kept: [(PathBuf, Shape); 2] = [
        (site.layout.backups(), is_backup_folder),
        (site.layout.quarantine(), is_quarantine_name),
    ];
    for (folder, is_named_so) in kept {
        for name in ours_in(&*site.disk, &folder, is_named_so)? {
            let path = folder.join(&name);
            if names_in(&*site.disk, &path)?.is_none() {
                check_file(site, &path)?;
            }
            let parts = parts_of(&Layout::of_folder(path.clone())).map(|(part, is_named_so, _)| (part, is_named_so));
            let folders = parts.into_iter().chain([(path, is_in_backup as Shape)]);
            for (folder, is_named_so) in folders {
                for name in ours_in(&*site.disk, &folder, is_named_so)? {
                    check_file(site, &folder.join(name))?;
                }
            }
        }
    }
    Ok(())
}

fn check_file(site: &Site, path: &Path) -> Result<()> {
    match site.disk.open(path, Access::Read) {
        // It was removed meanwhile, or is no copy.
        Err(fault) if fault.kind() != io::ErrorKind::NotFound && UnexpectedEntry::in_error(&fault).is_none() => {
            Err(fault).at(path)
        }
        _ => Ok(()),
    }
}
