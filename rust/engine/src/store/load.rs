//! What do the files say, taken together?

use std::io;
use std::sync::Arc;

use crate::damage::{Damage, DamageKind, Tail};
use crate::digest::Hex;
use crate::disk::{Access, Disk, DiskFile};
use crate::layout::{Layout, SNAPSHOT, base_name};
use crate::options::Checking;
use crate::origin::{Hint, Origin, foreign_traces, hint_for, origin_of, read_hint};
use crate::snapshot;
use crate::verify::{BaseState, Report, Walk, finding};
use crate::wal::reader::Reading;

use super::archives::Past;
use super::held::{Held, Need};
use super::loader::Loader;

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
    /// How far the log was synced, if that is known.
    pub synced: Option<u64>,
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
    let hint = hint_for(read_hint(disk, layout)?, log, length)?;
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
    let mut walk = Walk::new(synced).promised(hint.promised());
    let reading = Reading {
        trusted_until: if look.checking == Checking::Quick {
            synced.unwrap_or(0)
        } else {
            0
        },
        threads: look.threads,
    };
    let tail = walk.go(log, length, reading, loader, progress)?;
    if let (true, Origin::Ours(sentinel)) = (look.archives, &origin) {
        let past = Past::follow(disk, layout, sentinel, look.threads)?;
        base.damage.extend(past.damage);
        base.altered.extend(past.altered);
        base.notes.extend(past.notes);
    }
    if let Hint::Contradicted(lost) = hint
        && lost.offset > length
    {
        base.notes.push(format!(
            "the log ends before the last known sync: it had {} bytes and seq {} then",
            lost.offset, lost.seq
        ));
    }
    Ok(Examined {
        report: base.report(&walk, tail, length),
        anchored: synced.is_some(),
        synced,
        walk,
        origin,
    })
}

/// An open log with all that was found and taken in.
pub struct Seen {
    /// The log.
    pub file: Arc<dyn DiskFile>,
    /// What was found.
    pub found: Examined,
    /// What was taken in.
    pub taker: Loader,
}

/// How often files that others keep changing are looked at.
const MOST_LOOKS: usize = 4;

/// Opens the log and looks at all files; damage is believed only if a second look finds the same, for others may have
/// swapped a file between two reads. `None` if there is no log.
///
/// # Errors
/// What the disk says.
pub fn look_twice(
    disk: &dyn Disk,
    layout: &Layout,
    look: Look,
    loader: impl Fn() -> Loader,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Option<Seen>> {
    let mut believed: Option<Vec<Damage>> = None;
    let mut looks = 0;
    loop {
        // The base that a log starts from is there as long as the log is: they are opened together.
        let Some(held) = Held::gather(disk, layout, Need::State)? else {
            return Ok(None);
        };
        let mut taker = loader();
        let found = examine(&held, layout, &*held.log, look, &mut taker, progress)?;
        let damage = &found.report.damage;
        looks += 1;
        if damage.is_empty() || believed.as_ref() == Some(damage) || looks == MOST_LOOKS {
            let file = held.log;
            return Ok(Some(Seen { file, found, taker }));
        }
        believed = Some(damage.clone());
    }
}

/// What was found beside the log.
struct Base {
    state: BaseState,
    damage: Vec<Damage>,
    altered: Vec<Damage>,
    notes: Vec<String>,
}

impl Default for Base {
    fn default() -> Self {
        Self {
            state: BaseState::None,
            damage: Vec::new(),
            altered: Vec::new(),
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
        let Some(file) = open(disk, layout, &name)? else {
            self.hurt(
                BaseState::Missing,
                &name,
                DamageKind::BaseMissing,
                "the base that the log names is not there",
            );
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
            Some(file) => snapshot::read(&**file, &mut snapshot::Nobody)?.header,
            None => Err("another tool compacted the log, and its snapshot is not there".to_owned()),
        };
        let seq = header.as_ref().map_or(u64::MAX, |header| header.seq);
        let traces = foreign_traces(log, length, seq, synced)?;
        if let Some(adoption) = traces.adoption {
            loader.settled_until = Some(adoption.seq);
            return self.anchored(disk, layout, Some(adoption.base_sha256), BaseState::Adopted, loader);
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

    fn report(mut self, walk: &Walk, tail: Option<Tail>, length: u64) -> Report {
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
        }
    }
}

/// Up to which seq another tool's base accounts for the events of a log.
///
/// # Errors
/// What the disk says.
pub fn settled_seq(disk: &dyn Disk, layout: &Layout, log: &dyn DiskFile, length: u64) -> io::Result<u64> {
    let mut loader = Loader::checking();
    Base::default().foreign(disk, layout, log, length, None, &mut loader)?;
    Ok(loader.settled_until.unwrap_or(0))
}

/// The report on a store without a log.
pub fn nothing() -> Report {
    Base::default().report(&Walk::new(None), None, 0)
}

/// A file of the store; `None` if it is not there.
pub(super) fn open(disk: &dyn Disk, layout: &Layout, name: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
    match disk.open(&layout.inside(name), Access::Read) {
        Ok(file) => Ok(Some(file)),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}
