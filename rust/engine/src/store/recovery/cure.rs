//! Finds what of a damaged store can be proved, and what can not.
//!
//! Nothing is changed here: a cure is found first, and administered by [`super::repair`] if it is wanted.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use crate::options::Checking;
use chronolog::damage::{Damage, DamageKind};
use chronolog::disk::{Access, DiskFile, Identity};
use chronolog::error::{At, Error, Result};
use chronolog::hint::{Hint, hint_for, read_hint};
use chronolog::layout::LOG;
use chronolog::log::files::Scratch;
use chronolog::log::{Log, OpenLog, Site};
use chronolog::origin::{ALONE, Origin};
use chronolog::verify::{NoSink, Walk, finding};
use chronolog::wal::synced::Synced;
use chronomemory_state::state::State;

use super::heal::Gaps;
use super::losses::{Lost, MOST_TOLD};
use super::on_hold::ReadLog;
use super::parted::Parted;
use crate::store::files::held::Prefix;
use crate::store::files::proofs::{copies_of_logs, left_by_restores, other_logs, was_restored};
use crate::store::load::base::Proof;
use crate::store::load::examine::{Examined, Look, examine, look_beside, look_for_lost};
use crate::store::load::found::Traces;
use crate::store::load::loader::Loader;
use crate::store::load::unproven::{UNPROVEN, mark_all};
use crate::store::vectors::doubt;

/// A log as it was read.
pub(in crate::store) type CureSource = (Arc<dyn DiskFile>, Walk, Origin);

/// What a store will be made of.
pub(in crate::store) struct Cure {
    /// The log with its gaps filled; `None` if it had none.
    pub healed: Option<Scratch>,
    /// The log that the state was read from.
    pub source: CureSource,
    /// What is known.
    pub state: State,
    /// How many damaged places of the log came back.
    pub filled: u64,
    /// What stays lost.
    pub lost: Vec<String>,
    /// The ids that lost events seem to speak of.
    pub unsettled: Vec<String>,
    /// The ids of records that nothing proves.
    pub unproven: Vec<String>,
    /// The log is whole, and the state that it starts from is proved.
    pub is_whole: bool,
    /// The highest seq that was given out.
    pub last_seq: u64,
}

/// What is looked at to find out what can be proved: the files, and what is known of the log.
pub(in crate::store) struct CureSearch<'a> {
    /// Where the files are.
    pub site: &'a Arc<Site>,
    /// What was read of the log, and what was wrong with it.
    pub log: &'a Log,
    /// How many threads may be used.
    pub threads: usize,
}

impl CureSearch<'_> {
    /// Finds out what can be proved.
    ///
    /// # Errors
    /// `Corrupted` if part of it could only be believed, and that is not wanted; `Io`.
    pub fn find(&self, unproven: bool) -> Result<Cure> {
        let hint = read_hint(&*self.site.disk, &self.site.layout).at(&self.site.layout.synced())?;
        let is_lost = self.log.check_is_there().is_err();
        if let Some(log) = self.log.open().filter(|_| !is_lost)
            && self.holds_event(log, hint).at(self.site.layout.log())?
        {
            return self.cure_of(Arc::clone(&log.file), hint, unproven);
        }
        match (self.copy_of_lost_log(hint)?, self.log.open()) {
            (Some((copy, true)), _) => self.cure_of(copy, hint, unproven),
            // It began alike, but nothing tells whether it went on alike.
            (Some((copy, false)), _) if unproven => {
                let mut cure = self.cure_of(copy, hint, unproven)?;
                mark_all(&mut cure.state)?;
                cure.unproven = cure.state.having(UNPROVEN);
                cure.lost
                    .extend(self.log.report().damage.iter().map(ToString::to_string));
                cure.is_whole = false;
                Ok(cure)
            }
            (Some(_), _) => self.refuse_unproven(),
            (None, Some(log)) if !is_lost => self.cure_of(Arc::clone(&log.file), hint, unproven),
            _ => self.cure_without_log(hint, unproven),
        }
    }

    fn cure_of(&self, log: Arc<dyn DiskFile>, hint: Option<Synced>, unproven: bool) -> Result<Cure> {
        let path = self.site.layout.log().to_owned();
        let (log, gaps) = self.gaps_of(log, hint).at(&path)?;
        let healed = match gaps.are_changed() {
            false => None,
            true => Some(gaps.write(&self.site.disk, &*log, &self.site.layout)?),
        };
        let file = match &healed {
            Some(scratch) => self.site.disk.open(scratch.path(), Access::Read).at(scratch.path())?,
            None => log,
        };
        let broken = self.broken_batches(&*file, &gaps)?;
        let mut loader = Loader::salvaging(broken);
        let found = self.examine_alone(&*file, &mut loader)?;
        if found.proof == Proof::Nothing && !unproven {
            let beside = found.report.damage.iter().find(|damage| damage.path != LOG).cloned();
            let unnamed = || {
                let reason = "the line that names it is lost, and nothing proves which one it was";
                finding("base", DamageKind::BaseMissing, reason)
            };
            return Err(Error::Corrupted(Box::new(beside.unwrap_or_else(unnamed))));
        }
        let reached = loader.last_seq;
        let dropped = std::mem::take(&mut loader.dropped);
        let unmade = loader.take_unmade();
        let mut state = loader.state.unwrap_or_default();
        let mut gone = gaps.lost();
        for event in gone.iter_mut().filter(|event| event.is_of_embeddings) {
            let named = doubt(&state, &event.ids, &event.gone_rows);
            let all: Vec<String> = named.into_iter().chain(event.doubt.take()).collect();
            event.doubt = (!all.is_empty()).then(|| all.join("; "));
        }
        let mut reading = ReadLog {
            file: &*file,
            end: found.walk.end,
            state: &mut state,
            unmade: &unmade,
            held: BTreeSet::new(),
            doubts: Vec::new(),
        };
        reading.hold_lost(&mut gone).at(&path)?;
        reading.hold_dropped(&dropped).at(&path)?;
        reading.hold_derived().at(&path)?;
        let unsettled = reading.held;
        let mut lost: Vec<String> = gone.iter().map(Lost::tell).collect();
        lost.extend(unmade.iter().map(|id| {
            format!("{id:?}: the event that made it is lost, and what was changed in it later is not applied")
        }));
        // Of a batch that was cut nobody can say which lines it had, nor of a log that is gone; and what nothing proves may
        // have lost anything.
        let is_open = |damage: &&Damage| {
            damage.kind == DamageKind::BrokenBatch || found.proof == Proof::Nothing && damage.path != LOG
        };
        let spoken_of = |damage: &Damage| told_of(damage, &found.report.damage, &dropped);
        lost.extend(found.report.damage.iter().filter(is_open).map(spoken_of));
        let mark = found.walk.mark();
        let last_seq = mark
            .last_seq
            .max(found.walk.follower.claimed)
            .max(reached)
            .max(gaps.highest_seq);
        let is_headless = !matches!(found.origin, Origin::Ours(_) | Origin::Foreign) && gaps.lose_the_first();
        let first = mark.first.filter(|_| !is_headless);
        let (last_seq, is_cut) = end_by(hint, first, last_seq);
        lost.extend(is_cut);
        lost.extend(gaps.replaced_end.map(|synced| {
            let seq = synced.seq;
            format!("event {seq} is lost as it was synced: the log holds others in its place")
        }));
        lost.extend(found.unknown);
        let has_log_damage = found.report.damage.iter().any(|damage| damage.path == LOG);
        Ok(Cure {
            healed,
            filled: gaps.filled(),
            is_whole: !has_log_damage && found.proof == Proof::Whole,
            lost,
            unsettled: unsettled.into_iter().collect(),
            unproven: state.having(UNPROVEN),
            last_seq,
            source: (file, found.walk, found.origin),
            state,
        })
    }

    /// The gaps of a log, mended; with the log in which whole events stand on lines of their own, if some had grown together
    /// with others, or had lost their newline at its end.
    fn gaps_of(&self, log: Arc<dyn DiskFile>, hint: Option<Synced>) -> io::Result<(Arc<dyn DiskFile>, Gaps)> {
        let mut gaps = self.gaps_in(&*log)?;
        let Some(parted) = self.parted(&log, &gaps, hint)? else {
            gaps.mend();
            return Ok((log, gaps));
        };
        let parted = Arc::new(parted);
        let mut gaps = self.gaps_in(&*parted)?;
        gaps.parted = Some(Arc::clone(&parted));
        gaps.mend();
        Ok((parted, gaps))
    }

    fn gaps_in(&self, log: &dyn DiskFile) -> io::Result<Gaps> {
        Gaps::find(&*self.site.disk, &self.site.layout, log, self.threads)
    }

    fn parted(&self, log: &Arc<dyn DiskFile>, gaps: &Gaps, hint: Option<Synced>) -> io::Result<Option<Parted>> {
        let is_damaged = self.log.report().damage.iter().any(|damage| damage.path == LOG);
        Parted::of(log, &gaps.torn(is_damaged), hint.map(|hint| hint.head))
    }

    /// Whether a log holds an event, be it in a line with others.
    fn holds_event(&self, log: &OpenLog, hint: Option<Synced>) -> io::Result<bool> {
        let is_read = log.walk.mark().events > 0;
        Ok(is_read || self.parted(&log.file, &self.gaps_in(&*log.file)?, hint)?.is_some())
    }

    /// The log is lost, but another folder may hold it: a backup, or what was set aside. The one is taken that the hint
    /// about the last sync knows; says whether it holds all of what was synced.
    fn copy_of_lost_log(&self, hint: Option<Synced>) -> Result<Option<(Arc<dyn DiskFile>, bool)>> {
        let path = self.site.layout.log();
        let Some(hint) = hint else {
            return self.newest_copy();
        };
        // What a restore set aside was left: a copy that was not is more likely to be the one that went on.
        let left = left_by_restores(&*self.site.disk, &self.site.layout);
        let left = left
            .iter()
            .filter_map(|folder| self.site.disk.status(folder.log()).ok());
        let left: Vec<Identity> = left.map(|status| status.identity).collect();
        let is_restored = was_restored(&*self.site.disk, &self.site.layout);
        let (mut best, mut best_rank) = (None, None);
        for copy in other_logs(&*self.site.disk, &self.site.layout).at(path)? {
            let length = copy.length().at(path)?;
            let mut walk = Walk::new(None);
            let tail = walk.go(&*copy, length, ALONE, &mut NoSink, &mut |_, _| {}).at(path)?;
            let is_whole = tail.is_none() && walk.follower.damage.is_empty();
            if !is_whole || walk.mark().first != Some(hint.first) {
                continue;
            }
            let holds_all = matches!(hint_for(Some(hint), &*copy, length).at(path)?, Hint::Synced(_));
            let was_left = left.contains(&copy.identity().at(path)?);
            let rank = Some((holds_all, !was_left, walk.mark().last_seq));
            if best_rank < rank {
                // What came behind that event before somebody went back is not what came behind it since.
                let copy = match is_restored && holds_all {
                    true => Arc::new(Prefix::of(copy, hint.offset)),
                    false => copy,
                };
                (best, best_rank) = (Some((copy, holds_all)), rank);
            }
        }
        Ok(best)
    }

    /// Where nothing is left of a log but copies, the one that goes on longest: nothing tells whether it went on further.
    fn newest_copy(&self) -> Result<Option<(Arc<dyn DiskFile>, bool)>> {
        let path = self.site.layout.log();
        let traces = Traces::look(&*self.site.disk, &self.site.layout).at(path)?;
        if traces.is_none_or(|traces| traces.has_remains()) {
            return Ok(None);
        }
        let mut best: Option<(u64, Arc<dyn DiskFile>)> = None;
        for copy in copies_of_logs(&*self.site.disk, &self.site.layout) {
            let log = self.site.disk.open(copy.log(), Access::Read).at(copy.log())?;
            let length = log.length().at(path)?;
            let mut walk = Walk::new(None);
            walk.go(&*log, length, ALONE, &mut NoSink, &mut |_, _| {}).at(path)?;
            let last_seq = walk.mark().last_seq;
            if best.as_ref().is_none_or(|(known, _)| *known < last_seq) {
                best = Some((last_seq, log));
            }
        }
        Ok(best.map(|(_, log)| (log, false)))
    }

    fn refuse_unproven(&self) -> Result<Cure> {
        let lost = finding(
            LOG,
            DamageKind::LogMissing,
            "no copy of it holds the event that was synced last",
        );
        Err(Error::Corrupted(Box::new(self.missing().cloned().unwrap_or(lost))))
    }

    /// What the report says of a log that is missing.
    fn missing(&self) -> Option<&Damage> {
        let damage = &self.log.report().damage;
        damage.iter().find(|damage| damage.kind == DamageKind::LogMissing)
    }

    /// There is no log anywhere: what its base held is all that is left.
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
        let report = report.as_ref().unwrap_or(self.log.report());
        let mut state = loader.state.take().unwrap_or_default();
        // A log of one sentinel held nothing that its base does not.
        let is_all = !state.is_empty() && hint.is_some_and(|hint| hint.seq <= loader.last_seq + 1);
        if let Some(damage) = self
            .missing()
            .or(report.damage.first())
            .filter(|_| !is_all && !unproven)
        {
            return Err(Error::Corrupted(Box::new(damage.clone())));
        }
        if !is_all {
            mark_all(&mut state)?;
        }
        // An empty file stands for the log that is gone.
        let archives = self.site.layout.archives();
        self.site.make_folder(&archives, self.site.layout.folder())?;
        let scratch = Scratch::at(&self.site.disk, self.site.layout.healed_draft());
        let file = self.site.disk.create(scratch.path()).at(scratch.path())?;
        Ok(Cure {
            healed: Some(scratch),
            source: (file, Walk::new(None), Origin::Nothing),
            filled: 0,
            lost: report.damage.iter().map(ToString::to_string).collect(),
            unsettled: Vec::new(),
            unproven: state.having(UNPROVEN),
            is_whole: false,
            last_seq: end_by(hint, None, loader.last_seq).0,
            state,
        })
    }

    /// Where the batches begin that are damaged although they were whole once: their good events are proved.
    fn broken_batches(&self, file: &dyn DiskFile, gaps: &Gaps) -> Result<BTreeSet<u64>> {
        let found = self.examine_alone(file, &mut Loader::checking())?;
        let (doubtful, promised) = (gaps.doubtful(), gaps.healed_promise());
        let is_linked = |(begin, last): &&(u64, u64)| !doubtful.iter().any(|place| (begin..=last).contains(&place));
        let linked = found
            .walk
            .follower
            .scarred
            .iter()
            .filter(is_linked)
            .map(|(begin, _)| *begin);
        let broken = found
            .report
            .damage
            .iter()
            .filter(|damage| damage.kind == DamageKind::BrokenBatch);
        let synced = broken.map(|damage| damage.offset).filter(|begin| *begin < promised);
        Ok(linked.chain(synced).collect())
    }

    fn examine_alone(&self, file: &dyn DiskFile, loader: &mut Loader) -> Result<Examined> {
        let look = Look {
            threads: self.threads,
            checking: Checking::Full,
            archives: false,
            is_past: false,
            way: None,
            onlooker: None,
        };
        examine(&*self.site.disk, &self.site.layout, file, look, loader, &mut |_, _| {}).at(self.site.layout.log())
    }
}

/// A log that was cut at a line is whole as far as it goes: that more was there is told by the hint about the last sync.
pub(in crate::store) fn lost_end(log: &Log) -> Option<Damage> {
    let offset = log.report().bytes;
    let reason = log.report().cut.as_ref()?;
    Some(Damage {
        offset,
        ..finding(LOG, DamageKind::LogMissing, reason.as_str())
    })
}

/// The last seq that was given out, and what to say if the log does not reach it: seqs are not given out again.
fn end_by(hint: Option<Synced>, first: Option<chronolog::digest::Hex>, known: u64) -> (u64, Option<String>) {
    // A log that lost its first event cannot say whether it is the one that the hint speaks of.
    let hint = hint.filter(|hint| first.is_none_or(|first| first == hint.first));
    match hint {
        Some(hint) if hint.seq > known => {
            let told = format!("the log ends at event {known}, and was synced up to event {}", hint.seq);
            (hint.seq, Some(told))
        }
        _ => (known, None),
    }
}

/// A damage with the records that a batch speaks of which does not count.
fn told_of(damage: &Damage, all: &[Damage], dropped: &[(u64, String)]) -> String {
    let mut said = damage.to_string();
    if damage.kind == DamageKind::BrokenBatch {
        let later = all.iter().filter(|other| other.kind == DamageKind::BrokenBatch);
        let later = later.map(|other| other.offset).filter(|offset| *offset > damage.offset);
        let end = later.min().unwrap_or(u64::MAX);
        // Behind the begin, which is no record.
        let inside = damage.offset + 1..end;
        let of_batch = dropped.iter().filter(|(offset, _)| inside.contains(offset));
        let count = of_batch.clone().count();
        let ids: Vec<String> = of_batch.take(MOST_TOLD).map(|(_, id)| format!("{id:?}")).collect();
        if !ids.is_empty() {
            said += &format!("; it speaks of {}", ids.join(", "));
        }
        if count > MOST_TOLD {
            said += &format!(" and {} more", count - MOST_TOLD);
        }
    }
    said
}
