//! What does a log start from, and do the files still hold it?
//!
//! The state before the first event is in a base that the log names by its digest. A base that is not what the log says is
//! not believed: a copy with the right digest is, or what the archives before it add up to. Only if neither is there the
//! bytes are loaded as they are, and the report says that nothing proves them.

use std::io;

use crate::damage::{Damage, DamageKind, Tail};
use crate::digest::Hex;
use crate::disk::{Disk, DiskFile};
use crate::hint::first_line;
use crate::layout::{LOG, Layout, SNAPSHOT, base_name};
use crate::log::files::open_inside;
use crate::origin::{Beginning, Origin, Sentinel, foreign_traces};
use crate::snapshot;
use crate::verify::{BaseState, Report, Walk, finding};

use super::found::{Fit, Traces, mended_sentinel};
use super::loader::Loader;
use super::rebuild::rebuild;
use super::twin::with_snapshot;
use crate::store::files::proofs::copy_of_base;

/// Where the files are, and how they are read.
#[derive(Clone, Copy)]
pub(in crate::store) struct BasePlace<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The store's paths.
    pub layout: &'a Layout,
    /// How many threads read.
    pub threads: usize,
}

/// What stands behind the state that was loaded before the first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Proof {
    /// The log itself, or a digest that it names.
    Whole,
    /// Only that it fits: the line that names it is lost.
    Fits,
    /// Nothing: the bytes are not those that the log names, or there are none.
    Nothing,
}

/// What was found beside the log.
pub(in crate::store) struct Base {
    state: BaseState,
    /// What is wrong.
    pub damage: Vec<Damage>,
    /// Indexes that say something else than what they were made of.
    pub altered: Vec<Damage>,
    /// What is worth knowing.
    pub notes: Vec<String>,
    /// What stands behind what was loaded.
    pub proof: Proof,
    /// What to say of the log if nothing else is wrong with it.
    lost: Option<Damage>,
}

impl Default for Base {
    fn default() -> Self {
        Self {
            state: BaseState::None,
            damage: Vec::new(),
            altered: Vec::new(),
            notes: Vec::new(),
            proof: Proof::Whole,
            lost: None,
        }
    }
}

/// There was a log, and it is lost.
fn lost(traces: &Traces, how: &str) -> Damage {
    let reason = format!("{how}, but there was one: {}", traces.tell());
    finding(LOG, DamageKind::LogMissing, reason)
}

impl Base {
    /// Loads what a log starts from.
    ///
    /// # Errors
    /// What the disk says.
    pub fn load(
        &mut self,
        place: BasePlace<'_>,
        log: &dyn DiskFile,
        length: u64,
        beginning: &Beginning,
        synced: Option<u64>,
        loader: &mut Loader,
    ) -> io::Result<()> {
        match &beginning.origin {
            Origin::Ours(sentinel) => self.named(place, sentinel, loader),
            Origin::Foreign => self.foreign(place, log, length, synced, loader),
            Origin::Nothing if beginning.seq.is_some() && beginning.prev_hash.is_none() => Ok(()),
            Origin::Nothing => self.lost_beginning(place, log, length, beginning, loader),
        }
    }

    fn hurt(&mut self, state: BaseState, path: &str, kind: DamageKind, reason: impl Into<String>) {
        self.state = state;
        self.proof = Proof::Nothing;
        self.damage.push(finding(path, kind, reason));
    }

    fn named(&mut self, place: BasePlace<'_>, sentinel: &Sentinel, loader: &mut Loader) -> io::Result<()> {
        self.tell_repairs(sentinel);
        self.anchored(place, sentinel.base_sha256, BaseState::Anchored, loader)?;
        if self.proof == Proof::Nothing
            && loader.keeps()
            && let Some(archive) = rebuild(place.disk, place.layout, sentinel, place.threads, loader)?
        {
            self.proof = Proof::Whole;
            self.notes
                .push(format!("the state that the log starts from was rebuilt from {archive}"));
        } else if self.proof == Proof::Nothing
            && loader.keeps()
            && !self.load_twin(place, sentinel.base_sha256, loader)?
        {
            self.load_unproved(place, sentinel.base_sha256, loader)?;
        }
        Ok(())
    }

    /// The base as its snapshot helps to make it again; false if that does not give the bytes that the log names.
    fn load_twin(&mut self, place: BasePlace<'_>, sha256: Option<Hex>, loader: &mut Loader) -> io::Result<bool> {
        let Some(sha256) = sha256 else { return Ok(false) };
        let base = open_inside(place.disk, place.layout, &base_name(sha256.text()))?;
        let (Some(base), Some(snapshot)) = (base, open_inside(place.disk, place.layout, SNAPSHOT)?) else {
            return Ok(false);
        };
        let Some(twin) = with_snapshot(&*base, &*snapshot, &sha256)? else {
            return Ok(false);
        };
        loader.forget_base();
        let is_state = loader.take_base(&twin)?.header.is_ok();
        if is_state {
            self.proof = Proof::Whole;
            self.notes.push(format!(
                "the state that the log starts from was made again with {SNAPSHOT}"
            ));
        }
        Ok(is_state)
    }

    /// Nothing proves what the base holds. What it says is loaded all the same, and said to be unproved.
    fn load_unproved(&mut self, place: BasePlace<'_>, sha256: Option<Hex>, loader: &mut Loader) -> io::Result<()> {
        let name = sha256.map(|sha256| base_name(sha256.text()));
        let file = name
            .as_ref()
            .map(|name| open_inside(place.disk, place.layout, name))
            .transpose()?
            .flatten();
        if let (Some(file), Some(name)) = (file, name)
            && loader.take_unproved(&*file)?
        {
            self.notes
                .push(format!("nothing proves what {name} says: it is loaded as it is"));
            return Ok(());
        }
        loader.forget_base();
        if loader.is_salvaging()
            && let Some(file) = open_inside(place.disk, place.layout, SNAPSHOT)?
            && loader.take_unproved(&*file)?
        {
            self.notes.push(format!(
                "nothing proves what {SNAPSHOT} says: it is loaded instead of the base"
            ));
        }
        Ok(())
    }

    /// A store that was repaired says so for ever.
    fn tell_repairs(&mut self, sentinel: &Sentinel) {
        self.notes.extend(sentinel.repairs.iter().map(|repair| repair.tell()));
    }

    fn anchored(
        &mut self,
        place: BasePlace<'_>,
        sha256: Option<Hex>,
        good: BaseState,
        loader: &mut Loader,
    ) -> io::Result<()> {
        let Some(sha256) = sha256 else {
            self.hurt(
                BaseState::Missing,
                "base",
                DamageKind::BaseMissing,
                "the log names no base",
            );
            return Ok(());
        };
        let name = base_name(sha256.text());
        if let Some(file) = open_inside(place.disk, place.layout, &name)? {
            let contents = loader.take_base(&*file)?;
            let reason = match contents.header {
                _ if contents.sha256 != sha256 => format!("its SHA-256 is {}", contents.sha256.text()),
                Err(reason) => reason,
                Ok(_) => {
                    self.state = good;
                    return Ok(());
                }
            };
            self.hurt(BaseState::Damaged, &name, DamageKind::BaseAltered, reason);
        } else {
            let reason = "the base that the log names is not there";
            self.hurt(BaseState::Missing, &name, DamageKind::BaseMissing, reason);
        }
        if !loader.keeps() {
            return Ok(());
        }
        loader.forget_base();
        if let Some((copy, file)) = copy_of_base(place.disk, place.layout, &sha256)
            && loader.take_base(&*file)?.header.is_ok()
        {
            self.proof = Proof::Whole;
            self.notes
                .push(format!("the state that the log starts from was read from {copy}"));
        }
        Ok(())
    }

    /// The first line cannot be read, or there is none.
    fn lost_beginning(
        &mut self,
        place: BasePlace<'_>,
        log: &dyn DiskFile,
        length: u64,
        beginning: &Beginning,
        loader: &mut Loader,
    ) -> io::Result<()> {
        let line = first_line(log, length)?;
        let traces = Traces::look(place.disk, place.layout)?;
        // Only a log that was compacted has a first line that names something.
        if let Some(line) = line.as_ref().filter(|_| traces.as_ref().is_some_and(Traces::has_bases))
            && let Some(sentinel) = mended_sentinel(line, beginning, traces.as_ref())
        {
            self.notes
                .push("what the first line said was found again by its hash".to_owned());
            // The state is loaded, the verdict is on the lines as they are: what a lost line named is no finding.
            let mut named = Self::default();
            named.named(place, &sentinel, loader)?;
            self.proof = named.proof;
            self.notes.extend(named.notes);
            return Ok(());
        }
        let Some(traces) = traces else {
            return Ok(());
        };
        if line.is_none() && beginning.seq.is_none() {
            self.lost = Some(lost(&traces, "it is empty"));
            return self.load_left(place, &traces, loader);
        }
        let first_event = beginning.seq.map(|seq| (beginning.offset, seq));
        let fit = Fit::of_log(log, first_event, traces.synced.as_ref())?;
        self.load_fitting(place, &traces, fit, loader)
    }

    /// There is no log, or nothing in it, and something shows that there was one.
    pub fn lost_log(
        &mut self,
        place: BasePlace<'_>,
        traces: &Traces,
        loader: &mut Loader,
        how: &str,
    ) -> io::Result<()> {
        self.damage.push(lost(traces, how));
        self.load_left(place, traces, loader)
    }

    /// Loads what a lost log started from.
    fn load_left(&mut self, place: BasePlace<'_>, traces: &Traces, loader: &mut Loader) -> io::Result<()> {
        // The hint may speak of the log before the last compaction.
        let fit = traces
            .synced
            .map_or(Fit::Any, |synced| Fit::Before(synced.seq.saturating_add(1)));
        self.load_fitting(place, traces, fit, loader)
    }

    fn load_fitting(&mut self, place: BasePlace<'_>, traces: &Traces, fit: Fit, loader: &mut Loader) -> io::Result<()> {
        if !loader.keeps() {
            return Ok(());
        }
        let Some(found) = traces.load_base(place.disk, place.layout, fit, loader)? else {
            return Ok(());
        };
        let name = &found.name;
        let mut again = Loader::loading();
        let rebuilt = match &found.before {
            Some(before) => rebuild(place.disk, place.layout, before, place.threads, &mut again)?,
            None => None,
        };
        match rebuilt {
            Some(archive) => {
                // The archive is a chain: where base and archive differ, it is right.
                let is_same = loader.is_partial() || loader.agrees_with(&again);
                if !is_same {
                    loader.replace_state(again);
                }
                self.proof = Proof::Fits;
                self.notes.push(format!(
                    "the line that names the base is lost: {name} fits {}, {archive}, and is loaded",
                    if is_same {
                        "the archive before it"
                    } else {
                        "no archive as the base of"
                    }
                ));
            }
            None => {
                self.proof = Proof::Nothing;
                if loader.is_salvaging() {
                    loader.take_unproved(&*found.file)?;
                }
                self.notes.push(format!(
                    "the line that names the base is lost: {name} fits and is loaded, but nothing proves that it is the one"
                ));
            }
        }
        Ok(())
    }

    /// Loads what another tool's compaction left.
    ///
    /// # Errors
    /// What the disk says.
    pub fn foreign(
        &mut self,
        place: BasePlace<'_>,
        log: &dyn DiskFile,
        length: u64,
        synced: Option<u64>,
        loader: &mut Loader,
    ) -> io::Result<()> {
        let snapshot = open_inside(place.disk, place.layout, SNAPSHOT)?;
        let header = match &snapshot {
            Some(file) => snapshot::read(&**file, &mut snapshot::Nobody)?.header,
            None => Err("another tool compacted the log, and its snapshot is not there".to_owned()),
        };
        let seq = header.as_ref().map_or(u64::MAX, |header| header.seq);
        let traces = foreign_traces(log, length, seq, synced)?;
        if let Some(adoption) = traces.adoption {
            loader.settled_until = Some(adoption.seq);
            self.anchored(place, Some(adoption.base_sha256), BaseState::Adopted, loader)?;
            loader.settled_until = Some(adoption.seq);
            if self.proof == Proof::Nothing && loader.keeps() {
                self.load_unproved(place, Some(adoption.base_sha256), loader)?;
                loader.settled_until = Some(adoption.seq);
            }
            return Ok(());
        }
        let header = match header {
            Ok(header) => header,
            Err(reason) => {
                self.hurt(BaseState::Missing, SNAPSHOT, DamageKind::BaseMissing, reason);
                return Ok(());
            }
        };
        if !traces.hashes.is_empty() && !traces.hashes.iter().any(|hash| hash == header.last_hash.as_bytes()) {
            let reason = format!("its last_hash is not the hash of event {seq} in the log");
            self.hurt(BaseState::Damaged, SNAPSHOT, DamageKind::SnapshotRefused, reason);
            return Ok(());
        }
        if let Some(file) = snapshot {
            loader.take_base(&*file)?;
        }
        loader.settled_until = Some(seq);
        self.state = BaseState::Unanchored;
        self.notes
            .push("the base is not anchored: another tool compacted this log and left no digest".to_owned());
        Ok(())
    }

    /// All that is to be reported.
    pub fn report(mut self, walk: &Walk, tail: Option<Tail>, length: u64) -> Report {
        let mark = walk.mark();
        if let Some((line, count)) = walk.unknown_fields {
            self.notes.push(format!(
                "{count} lines have fields that the hash does not cover, the first is line {line}"
            ));
        }
        let blank_lines = walk.blank_lines.len() as u64;
        if let Some(first) = walk.blank_lines.first() {
            self.notes
                .push(format!("{blank_lines} blank lines, the first at byte {first}"));
        }
        let mut damage = walk.follower.damage.clone();
        if damage.is_empty() {
            damage.extend(self.lost.take());
        }
        // A broken batch is found at its end but begins before the lines inside it.
        damage.sort_by_key(|damage| damage.offset);
        damage.extend(self.damage);
        Report {
            events: mark.events,
            first_seq: mark.first_seq,
            last_seq: mark.last_seq,
            head: mark.head,
            fast_lines: walk.fast_lines,
            slow_lines: walk.slow_lines,
            blank_lines,
            bytes: length,
            committed_end: walk.end,
            base: self.state,
            damage,
            altered: self.altered,
            tail,
            notes: self.notes,
            cut: None,
        }
    }
}
