//! How does a damaged store become whole again, without hiding that it was not?
//!
//! First everything is brought back that something in the folder proves: lines by the hashes of their neighbours, the base
//! by a copy or by the archives before it. Then a new log begins that names the state and says what was found. If the old
//! log is whole again, it becomes an archive like any other, and history goes on; if not, it is set aside as it was, with
//! all that it stands on. What cannot be proved is named, by id where there is one.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::damage::{Damage, DamageKind};
use crate::disk::{Access, DiskFile};
use crate::error::{At, Error, Result};
use crate::event::stamp;
use crate::hint::read_hint;
use crate::json::Value;
use crate::layout::{LOG, NEW_ARCHIVE, archive_name};
use crate::options::Checking;
use crate::origin::{Origin, Repair};
use crate::state::State;
use crate::verify::Walk;

use super::base::Proof;
use super::care::{Alone, Scratch, Turns, take_care};
use super::compact::write_snapshot;
use super::heal::{Gaps, Lost};
use super::history_files::clear_out;
use super::load::{Examined, Look, examine, look_for_lost};
use super::loader::Loader;
use super::packing::Packing;
use super::retire::Retirement;
use super::unproven::{UNPROVEN, put_on_hold};
use super::{Log, Progress, Store};

/// How many findings the event names; the damaged log is kept whole.
const MOST_FINDINGS: usize = 100;

/// What a repair did.
#[derive(Clone, Debug)]
pub struct Repaired {
    /// What was wrong.
    pub damage: Vec<Damage>,
    /// Where the damaged files are kept, relative to the store's folder.
    pub kept: String,
    /// How many records the store has now.
    pub records: u64,
    /// How many damaged places of the log were brought back, proved by the chain.
    pub healed: u64,
    /// Whether the events before the repair are still part of the store's history.
    pub history_kept: bool,
    /// The ids of the records that are other now than before the repair.
    pub changed: Vec<String>,
    /// Events that could not be brought back.
    pub lost: Vec<String>,
    /// The ids of the records that a lost event spoke of: they are on hold.
    pub unsettled: Vec<String>,
    /// The ids of the records that come from bytes which nothing proves.
    pub unproven: Vec<String>,
}

/// What was done, and the files that may go because they are kept elsewhere.
type Treated = (Repaired, BTreeSet<String>);

/// A log as it was read.
type Source = (Arc<dyn DiskFile>, Walk, Origin);

/// What a store will be made of. Nothing is changed before it is complete.
struct Cure {
    /// The log with its gaps filled; `None` if it had none.
    healed: Option<Scratch>,
    /// The log that the state was read from.
    source: Source,
    state: State,
    filled: u64,
    lost: Vec<String>,
    unsettled: Vec<String>,
    unproven: Vec<String>,
    /// The log is whole, and the state that it starts from is proved.
    is_whole: bool,
    last_seq: u64,
}

impl Store {
    /// Makes a damaged store whole again. `None` if nothing is damaged. Where the state that the log starts from is altered
    /// and nothing proves what it was, `unproven` takes it as it is, marked.
    ///
    /// # Errors
    /// `Corrupted` if that would be needed and is not wanted; `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn repair(&mut self, unproven: bool, now: i64, progress: Progress<'_>) -> Result<Option<Repaired>> {
        repair(&Alone::with(self), unproven, &|| now, progress)
    }

    fn repair_now(&mut self, unproven: bool, now: i64, progress: Progress<'_>) -> Result<Option<Treated>> {
        self.with_lock_regardless(now, |store| {
            store.sync_log()?;
            let damage = Self::verify(&*store.disk, &store.layout, store.options.threads, progress)?.damage;
            store.reload(&mut |_, _| {})?;
            if damage.is_empty() {
                return Ok(None);
            }
            let is_of_rows = damage.iter().all(|damage| damage.kind.is_of_row());
            if is_of_rows {
                // The log is whole: what it says of rows may be trusted, and if they cannot be read nothing is changed.
                store.take_back_damaged(now)?;
                store.sync_log()?;
            }
            let cure = store.find_cure(unproven)?;
            let outcome = store.administer(cure, damage, now, progress);
            if outcome.is_err() {
                // The memory may be ahead of the files.
                store.log = None;
            }
            outcome.map(Some)
        })
    }

    /// Finds out what can be proved.
    fn find_cure(&mut self, unproven: bool) -> Result<Cure> {
        let path = self.layout.log().to_owned();
        let threads = self.options.threads;
        let Some(log) = &self.log else {
            return self.cure_without_log();
        };
        let mut gaps = Gaps::find(&*self.disk, &self.layout, &*log.file, threads).at(&path)?;
        gaps.fill(&*self.disk, &self.layout, threads).at(&path)?;
        let healed = match gaps.filled() {
            0 => None,
            _ => Some(gaps.write(&self.disk, &*log.file, &self.layout)?),
        };
        let file = match &healed {
            Some(scratch) => self.disk.open(scratch.path(), Access::Read).at(scratch.path())?,
            None => Arc::clone(&log.file),
        };
        let broken = self.broken_batches(&*file, &gaps)?;
        let mut loader = Loader::salvaging(broken);
        let found = self.examine_alone(&*file, &mut loader)?;
        if let (Proof::Nothing, false, Some(damage)) = (found.proof, unproven, first_beside_log(&found)) {
            return Err(Error::Corrupted(Box::new(damage.clone())));
        }
        let last_seq = loader.last_seq;
        let mut state = loader.state.unwrap_or_default();
        let (mut lost, unsettled) = put_lost_on_hold(&mut state, &gaps.lost());
        // Of a batch that was cut nobody can say which lines it had, nor of a log that is gone.
        let is_cut = |damage: &&Damage| matches!(damage.kind, DamageKind::LogMissing | DamageKind::BrokenBatch);
        lost.extend(found.report.damage.iter().filter(is_cut).map(ToString::to_string));
        let has_log_damage = found.report.damage.iter().any(|damage| damage.path == LOG);
        Ok(Cure {
            healed,
            filled: gaps.filled(),
            lost,
            unsettled,
            unproven: state.having(UNPROVEN),
            is_whole: !has_log_damage && found.proof == Proof::Whole,
            last_seq: self.highest_seq(
                found
                    .walk
                    .mark()
                    .last_seq
                    .max(found.walk.follower.claimed)
                    .max(last_seq),
            )?,
            source: (file, found.walk, found.origin),
            state,
        })
    }

    /// There is no log: what its base held is all that is left.
    fn cure_without_log(&self) -> Result<Cure> {
        let mut loader = Loader::loading();
        let path = self.layout.log();
        let report = look_for_lost(&*self.disk, &self.layout, self.options.threads, &mut loader).at(path)?;
        let lost = report
            .iter()
            .flat_map(|report| &report.damage)
            .map(ToString::to_string)
            .collect();
        let last_seq = self.highest_seq(loader.last_seq)?;
        // An empty file stands for the log that is gone.
        let archives = self.layout.archives();
        self.make_folder(&archives, self.layout.folder())?;
        let scratch = Scratch::at(&self.disk, self.layout.healed_draft());
        let file = self.disk.create(scratch.path()).at(scratch.path())?;
        Ok(Cure {
            healed: Some(scratch),
            source: (file, Walk::new(None), Origin::Nothing),
            state: loader.state.unwrap_or_default(),
            filled: 0,
            lost,
            unsettled: Vec::new(),
            unproven: Vec::new(),
            is_whole: false,
            last_seq,
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
            threads: self.options.threads,
            checking: Checking::Full,
            archives: false,
        };
        examine(&*self.disk, &self.layout, file, look, loader, &mut |_, _| {}).at(self.layout.log())
    }

    /// Seqs that were given out are not given out again.
    fn highest_seq(&self, known: u64) -> Result<u64> {
        let hint = read_hint(&*self.disk, &self.layout).at(&self.layout.synced())?;
        // A log that lost all of its events cannot say whether it is the one that the hint speaks of.
        let known_first = self.log.as_ref().and_then(|log| log.walk.mark().first);
        let is_of_this_log = |first| known_first.is_none_or(|known| known == first);
        let synced = hint
            .filter(|synced| is_of_this_log(synced.first))
            .map_or(0, |synced| synced.seq);
        Ok(known.max(synced))
    }

    /// Keeps what is damaged and begins a new log from what was found.
    fn administer(&mut self, mut cure: Cure, damage: Vec<Damage>, now: i64, progress: Progress<'_>) -> Result<Treated> {
        let aside = self.begin_aside("damaged", now)?;
        let mut replaced = BTreeSet::new();
        for name in damaged_files(&damage) {
            aside.keep(&*self.disk, &self.layout, &name)?;
        }
        aside.sync(&*self.disk)?;
        let (file, walk, origin) = cure.source;
        let is_whole = cure.is_whole && self.mend_history(&origin, &aside)?;
        if !is_whole {
            replaced.extend(self.keep_everything(&aside)?);
        }
        let changed = self.state.differences(&cure.state);
        self.state = cure.state;
        self.vectors = super::vectors::Vectors::default();
        self.shelf = super::shelf::Shelf::default();
        let archive = match is_whole {
            true => Some(self.archive_of(&file, &walk)?),
            false => None,
        };
        let history_kept = archive.is_some();
        let open = (cure.lost.len() + usize::from(!cure.unproven.is_empty())) as u64;
        let retirement = Retirement {
            label: format!("Repaired at seq={}", cure.last_seq),
            archive,
            more: told(&damage, aside.name(), &cure.lost, &cure.unsettled),
            repair: Some(Repair {
                seq: cure.last_seq + 1,
                ts: stamp::spell(now.max(walk.latest)),
                findings: damage.len() as u64,
                open,
            }),
        };
        self.take_over((file, walk, origin), cure.last_seq)?;
        let base = self.write_base(progress)?;
        self.retire(retirement, base, now)?;
        drop(cure.healed.take());
        if damage.iter().any(|damage| !damage.kind.is_of_row()) {
            self.take_back_rows(&damage, now)?;
        }
        let repaired = Repaired {
            damage,
            kept: aside.name().to_owned(),
            records: self.state.len() as u64,
            healed: cure.filled,
            history_kept,
            changed,
            lost: cure.lost,
            unsettled: cure.unsettled,
            unproven: cure.unproven,
        };
        Ok((repaired, replaced))
    }

    /// The log that is retired is the one that the state was read from.
    fn take_over(&mut self, (file, mut walk, origin): Source, last_seq: u64) -> Result<()> {
        let path = self.layout.log().to_owned();
        walk.follower.mark.last_seq = last_seq;
        self.log = Some(Log {
            identity: file.identity().at(&path)?,
            file,
            writable: false,
            walk,
            origin,
            anchored: false,
        });
        Ok(())
    }

    fn archive_of(&self, log: &Arc<dyn DiskFile>, walk: &Walk) -> Result<(String, String)> {
        let archives = self.layout.archives();
        self.make_folder(&archives, self.layout.folder())?;
        let scratch = Scratch::at(&self.disk, archives.join(NEW_ARCHIVE));
        let packing = Packing::start(&*self.disk, Arc::clone(log), scratch.path(), self.options.threads);
        let digest = packing
            .and_then(|packing| packing.finish(walk.end))
            .at(scratch.path())?;
        let mark = walk.mark();
        let name = archive_name(mark.first_seq.unwrap_or(0), mark.last_seq, digest.text());
        scratch.name(&self.layout.inside(&name))?;
        Ok((name, digest.text().to_owned()))
    }

    /// Rows that are not what the log says are taken back by events of the new log.
    fn take_back_rows(&mut self, damage: &[Damage], now: i64) -> Result<()> {
        // Damaged lines may have named rows: new ones come behind all that a file holds.
        self.report.damage = damage
            .iter()
            .filter(|damage| damage.kind != DamageKind::LogMissing)
            .cloned()
            .collect();
        let taken_back = self.take_back_damaged(now);
        self.report.damage.clear();
        taken_back?;
        self.sync_log()
    }
}

/// The files that findings speak of, the log among them; rows are taken back one by one.
fn damaged_files(damage: &[Damage]) -> BTreeSet<String> {
    let of_files = damage.iter().filter(|damage| !damage.kind.is_of_row());
    of_files.map(|damage| damage.path.clone()).collect()
}

fn first_beside_log(found: &Examined) -> Option<&Damage> {
    found.report.damage.iter().find(|damage| damage.path != LOG)
}

/// Puts records on hold that a lost event seems to speak of, unless a later event has written them anew.
fn put_lost_on_hold(state: &mut State, lost: &[Lost]) -> (Vec<String>, Vec<String>) {
    let mut unsettled = BTreeSet::new();
    for event in lost {
        let Some(id) = &event.id else { continue };
        let last = state.history(id).last().copied();
        let last = last.and_then(|index| state.timeline().offset(index as usize));
        if last.is_none_or(|offset| offset < event.healed_offset) && put_on_hold(state, id, &event.tell()) {
            unsettled.insert(id.clone());
        }
    }
    (lost.iter().map(Lost::tell).collect(), unsettled.into_iter().collect())
}

/// What the sentinel says of a repair.
fn told(damage: &[Damage], kept: &str, lost: &[String], unsettled: &[String]) -> Vec<(String, Value)> {
    let texts = |all: Vec<String>| {
        let more = all.len().saturating_sub(MOST_FINDINGS);
        let mut some: Vec<Value> = all.into_iter().take(MOST_FINDINGS).map(Value::Str).collect();
        if more > 0 {
            some.push(Value::Str(format!("and {more} more")));
        }
        Value::Array(some)
    };
    vec![
        (
            "repaired".to_owned(),
            texts(damage.iter().map(ToString::to_string).collect()),
        ),
        ("kept".to_owned(), Value::Str(kept.to_owned())),
        ("lost".to_owned(), texts(lost.to_vec())),
        ("unsettled".to_owned(), texts(unsettled.to_vec())),
    ]
}

/// Makes a store whole again that others use. They wait: what is damaged should not be built upon meanwhile.
///
/// # Errors
/// As [`Store::repair`].
pub fn repair(
    turns: &impl Turns,
    unproven: bool,
    now: &dyn Fn() -> i64,
    progress: Progress<'_>,
) -> Result<Option<Repaired>> {
    let _care = take_care(turns, now())?;
    // An index that hides something is believed by its own digest; to make all of them again costs little.
    turns.turn(|store| store.drop_indexes())?;
    let Some((repaired, replaced)) = turns.turn(|store| store.repair_now(unproven, now(), progress))? else {
        return Ok(None);
    };
    write_snapshot(turns)?;
    clear_out(turns, &replaced, now())?;
    Ok(Some(repaired))
}
