//! What do the files say, taken together?

use std::io;

use crate::chain::Held;
use crate::damage::{Damage, DamageKind, Tail};
use crate::digest::Hex;
use crate::disk::{Access, Disk, DiskFile};
use crate::event::Known;
use crate::json;
use crate::layout::{Layout, SNAPSHOT, base_name};
use crate::options::Checking;
use crate::origin::{Hint, Origin, Sentinel, foreign_traces, hint_for, origin_of};
use crate::snapshot::{self, Contents};
use crate::state::State;
use crate::verify::{BaseState, Holding, Report, Sink, Walk, finding};
use crate::wal::reader::Reading;

/// Where to stop when the past is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// Behind the event with this seq.
    Seq(u64),
    /// Behind the last event up to this moment, in microseconds.
    Time(i64),
}

/// Gathers what a walk shows; without a state it only checks.
#[derive(Default)]
pub struct Loader {
    /// What is known so far.
    pub state: Option<State>,
    /// The base accounts for all events up to here.
    pub settled_until: Option<u64>,
    /// Where to stop.
    pub until: Option<Moment>,
    /// The last seq that was taken.
    pub last_seq: u64,
    holding: Holding,
    satisfied: bool,
}

impl Loader {
    /// Loads everything into a new state.
    pub fn loading() -> Self {
        Self {
            state: Some(State::default()),
            ..Self::default()
        }
    }

    /// Loads what comes behind a state.
    pub fn going_on(state: State) -> Self {
        Self {
            state: Some(state),
            ..Self::default()
        }
    }

    /// Loads up to a moment.
    pub fn up_to(moment: Moment) -> Self {
        Self {
            until: Some(moment),
            ..Self::loading()
        }
    }

    /// Checks everything and keeps nothing.
    pub fn checking() -> Self {
        Self::default()
    }

    fn take_base(&mut self, file: &dyn DiskFile) -> io::Result<Contents> {
        match &mut self.state {
            Some(state) => snapshot::read(file, &mut |record| state.load(record)),
            None => snapshot::read(file, &mut |record| {
                json::scan_record(record).is_some_and(|fields| fields.id.is_some_and(|id| id.start < id.end))
            }),
        }
    }

    fn forget_base(&mut self) {
        if let Some(state) = &mut self.state {
            *state = State::default();
        }
    }

    fn take(&mut self, known: Known<'_>, ts: i64) {
        let beyond = match self.until {
            None => false,
            Some(Moment::Seq(seq)) => known.seq > seq,
            Some(Moment::Time(micros)) => ts > micros,
        };
        if beyond {
            self.satisfied = true;
        }
        if self.satisfied {
            return;
        }
        self.last_seq = known.seq;
        if let Some(state) = &mut self.state {
            if self.settled_until.is_some_and(|seq| known.seq <= seq) {
                state.note(known);
            } else {
                state.apply(known);
            }
        }
    }
}

impl Sink for Loader {
    fn count(&mut self, known: Known<'_>, ts: i64) {
        self.take(known, ts);
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        if self.state.is_some() {
            self.holding.push(known, ts);
        }
    }

    fn settle(&mut self, held: Held) {
        let mut holding = std::mem::take(&mut self.holding);
        // A batch is one step: a moment inside it is the moment before it.
        let inside = matches!((self.until, holding.last_seq()), (Some(Moment::Seq(seq)), Some(last)) if last > seq);
        self.satisfied |= inside;
        if held == Held::Count && !inside {
            holding.release(|known, ts| self.take(known, ts));
        }
        holding.clear();
        self.holding = holding;
    }

    fn is_satisfied(&self) -> bool {
        self.satisfied
    }
}

/// What was found and how far it was read.
pub struct Examined {
    /// The walk, ready to go on from the committed end.
    pub walk: Walk,
    /// What is to be reported.
    pub report: Report,
    /// What the log starts from.
    pub origin: Origin,
    /// Whether the hint about the last sync speaks of this log.
    pub anchored: bool,
}

/// How the files are looked at.
#[derive(Clone, Copy)]
pub struct Look {
    /// How many threads read.
    pub threads: usize,
    /// Which hashes are computed again.
    pub checking: Checking,
    /// Whether the archives are read too.
    pub archives: bool,
}

/// Looks at a log and at all that it names.
///
/// # Errors
/// What the disk says. Damage is no error: it is in the report.
pub fn examine(
    disk: &dyn Disk,
    layout: &Layout,
    log: &dyn DiskFile,
    look: Look,
    loader: &mut Loader,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Examined> {
    let length = log.length()?;
    let hint = hint_for(disk, layout, log, length)?;
    let synced = match hint {
        Hint::Synced(offset) => Some(offset),
        _ => None,
    };
    let origin = origin_of(log, length)?;
    let mut base = Base::default();
    match &origin {
        Origin::Nothing => {}
        Origin::Ours(sentinel) => base.anchored(disk, layout, sentinel.base_sha256, BaseState::Anchored, loader)?,
        Origin::Foreign => base.foreign(disk, layout, log, length, synced, loader)?,
    }
    let mut walk = Walk::new(synced);
    let reading = Reading {
        trusted_until: if look.checking == Checking::Quick { synced.unwrap_or(0) } else { 0 },
        threads: look.threads,
    };
    let tail = walk.go(log, length, reading, loader, progress)?;
    if let (true, Origin::Ours(sentinel)) = (look.archives, &origin) {
        base.archives(disk, layout, sentinel)?;
    }
    if let Hint::Shorter(lost) = hint {
        base.notes.push(format!(
            "the log ends before the last known sync: it had {} bytes and seq {} then",
            lost.offset, lost.seq
        ));
    }
    Ok(Examined {
        report: base.report(&walk, tail, length),
        anchored: synced.is_some(),
        walk,
        origin,
    })
}

/// What was found beside the log.
struct Base {
    state: BaseState,
    damage: Vec<Damage>,
    notes: Vec<String>,
}

impl Default for Base {
    fn default() -> Self {
        Self {
            state: BaseState::None,
            damage: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl Base {
    fn hurt(&mut self, state: BaseState, path: &str, kind: DamageKind, reason: impl Into<String>) {
        self.state = state;
        self.damage.push(finding(path, kind, reason));
    }

    fn anchored(
        &mut self,
        disk: &dyn Disk,
        layout: &Layout,
        sha256: Hex,
        good: BaseState,
        loader: &mut Loader,
    ) -> io::Result<()> {
        let name = base_name(sha256.text());
        let Some(file) = open(disk, layout, &name)? else {
            self.hurt(BaseState::Missing, &name, DamageKind::BaseMissing, "the base that the log names is not there");
            return Ok(());
        };
        let contents = loader.take_base(&*file)?;
        if contents.sha256 != sha256 {
            let reason = format!("its SHA-256 is {}", contents.sha256.text());
            self.hurt(BaseState::Damaged, &name, DamageKind::BaseAltered, reason);
        } else if let Err(reason) = contents.header {
            self.hurt(BaseState::Damaged, &name, DamageKind::BaseAltered, reason);
        } else {
            self.state = good;
        }
        Ok(())
    }

    fn foreign(
        &mut self,
        disk: &dyn Disk,
        layout: &Layout,
        log: &dyn DiskFile,
        length: u64,
        synced: Option<u64>,
        loader: &mut Loader,
    ) -> io::Result<()> {
        let snapshot = open(disk, layout, SNAPSHOT)?;
        let header = match &snapshot {
            Some(file) => snapshot::read(&**file, &mut |_| true)?.header,
            None => Err("another tool compacted the log, and its snapshot is not there".to_owned()),
        };
        let seq = header.as_ref().map_or(u64::MAX, |header| header.seq);
        let traces = foreign_traces(log, length, seq, synced)?;
        if let Some(adoption) = traces.adoption {
            loader.settled_until = Some(adoption.seq);
            return self.anchored(disk, layout, adoption.base_sha256, BaseState::Adopted, loader);
        }
        let header = match header {
            Ok(header) => header,
            Err(reason) => {
                self.hurt(BaseState::Missing, SNAPSHOT, DamageKind::BaseMissing, reason);
                return Ok(());
            }
        };
        if traces.hash_at.is_some_and(|hash| hash != header.last_hash.as_bytes()) {
            let reason = format!("its last_hash is not the hash of event {seq} in the log");
            self.hurt(BaseState::Damaged, SNAPSHOT, DamageKind::SnapshotRefused, reason);
            return Ok(());
        }
        if let Some(file) = snapshot {
            if loader.take_base(&*file)?.header.is_err() {
                loader.forget_base();
            }
        }
        loader.settled_until = Some(seq);
        self.state = BaseState::Unanchored;
        self.notes.push("the base is not anchored: another tool compacted this log and left no digest".to_owned());
        Ok(())
    }

    fn archives(&mut self, disk: &dyn Disk, layout: &Layout, sentinel: &Sentinel) -> io::Result<()> {
        let mut sentinel = sentinel.clone();
        while sentinel.archive.is_some() {
            let Some((name, digest)) = sentinel.safe_archive() else {
                let name = sentinel.archive.map(|(name, _)| name).unwrap_or_default();
                self.damage.push(finding(&name, DamageKind::ArchiveAltered, "not the name of an archive"));
                return Ok(());
            };
            let Some(file) = open(disk, layout, name)? else {
                self.notes.push(format!("history unavailable: {name} is not there"));
                return Ok(());
            };
            let contents = snapshot::digest(&*file)?;
            if contents.text() != digest {
                let reason = format!("its SHA-256 is {}", contents.text());
                self.damage.push(finding(name, DamageKind::ArchiveAltered, reason));
                return Ok(());
            }
            let length = file.length()?;
            let mut walk = Walk::new(None);
            let tail = walk.go(&*file, length, crate::origin::ALONE, &mut Loader::checking(), &mut |_, _| {})?;
            if let Some(first) = walk.follower.damage.first() {
                let inside = Damage {
                    path: name.to_owned(),
                    kind: DamageKind::ArchiveAltered,
                    ..first.clone()
                };
                self.damage.push(inside);
            } else if tail.is_some() || walk.mark().head.is_none_or(|head| head.text() != sentinel.previous_head) {
                let reason = "it does not end with the event that the log names";
                self.damage.push(finding(name, DamageKind::ArchiveAltered, reason));
            }
            match origin_of(&*file, length)? {
                Origin::Ours(earlier) => sentinel = earlier,
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn report(mut self, walk: &Walk, tail: Option<Tail>, length: u64) -> Report {
        let mark = walk.mark();
        if let Some((line, count)) = walk.unknown_fields {
            self.notes.push(format!("{count} lines have fields that the hash does not cover, the first is line {line}"));
        }
        if walk.blank_lines > 0 {
            self.notes.push(format!("{} blank lines", walk.blank_lines));
        }
        let mut damage = walk.follower.damage.clone();
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
            blank_lines: walk.blank_lines,
            bytes: length,
            committed_end: walk.end,
            base: self.state,
            damage,
            tail,
            notes: self.notes,
        }
    }
}

/// The report on a store without a log.
pub fn nothing() -> Report {
    Base::default().report(&Walk::new(None), None, 0)
}

fn open(disk: &dyn Disk, layout: &Layout, name: &str) -> io::Result<Option<std::sync::Arc<dyn DiskFile>>> {
    match disk.open(&layout.inside(name), Access::Read) {
        Ok(file) => Ok(Some(file)),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}
