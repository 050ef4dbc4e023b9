//! Finds the way back from a log through its archives and bases, and the archives that were pruned.

use std::io;

use crate::store::vectors::is_of_this_file;
use chronolog::archive::{self, Archive, damage_in};
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::Hex;
use chronolog::disk::{Disk, DiskFile, Naming};
use chronolog::error::{At, Error, Result, is_of_process};
use chronolog::event::erasure::Pruning;
use chronolog::event::faces::ERASURES;
use chronolog::hint::Hint;
use chronolog::layout::{LOG, Layout, last_seq_in_archive_name};
use chronolog::log::Site;
use chronolog::origin::{Beginning, Origin, Sentinel, WayBack, beginning_of, foreign_traces};
use chronolog::trail::{Trail, TrailEnd};
use chronolog::verify::{ErasureSeen, RedactedLines, finding};
use chronomemory_state::state::State;

/// One log on the way back: the live one, or one that was retired.
#[derive(Default)]
pub(in crate::store) struct Hop {
    pub name: String,
    /// What it starts from, as erasures since made it.
    pub sentinel: Option<Sentinel>,
    /// The place, seq and moment of its first event.
    pub offset: u64,
    pub seq: Option<u64>,
    pub began: i64,
    pub length: u64,
    /// The archive and its digest, if that was checked; `None` for the live log.
    pub archive: Option<(Archive, Hex)>,
    /// Its digest, its first and last seq, and its last seq alone, as the sentinel that retired it says.
    pub digest: String,
    pub span: Option<(u64, u64)>,
    pub last_seq: u64,
    /// How many of its lines must be redacted.
    pub bound: u64,
    /// The base that it starts from, as its own lines name it, and the one that stands in the place of that.
    pub base: (Option<Hex>, Option<Hex>),
    /// Another tool compacted it: the adopted base accounts for its events up to here.
    pub adopted: Option<u64>,
    /// What it starts from is in no log that was kept.
    pub is_foreign: bool,
    /// From which seq on a later sentinel names its trail.
    pub trail_from: Option<u64>,
    /// Its trail, if the start of that is known.
    pub trail: Option<Trail>,
    /// The events in it that record erasures; `None` if they were not looked for.
    pub erasures: Option<Vec<ErasureSeen>>,
    pub redacted: RedactedLines,
    /// Why it is not the log that was retired.
    pub wrong: Option<Damage>,
    /// The history up to it does not add up to its base.
    pub differs: bool,
    pub altered_index: Option<Damage>,
    pub index_note: Option<String>,
}

pub(in crate::store) enum End {
    /// At the first event of all, or at another tool's compaction.
    Beginning,
    /// Before it, for a reason that is no damage.
    Note(String),
    /// At an archive that is not the one that was retired.
    Altered(Damage),
    /// At an archive that this process could not read just now: that says nothing of the archive.
    Fault(io::Error),
}

pub(in crate::store) struct PastLogs {
    pub hops: Vec<Hop>,
    pub end: End,
}

/// An archive that was opened: with its digest if that was checked, its length and its beginning.
pub(in crate::store) type OpenedArchive = (Option<(Archive, Hex)>, u64, Beginning);

pub(in crate::store) type OpenArchive<'a> = &'a mut dyn FnMut(&str, &str) -> std::result::Result<OpenedArchive, End>;

pub(in crate::store) fn altered(name: &str, reason: impl Into<String>) -> End {
    End::Altered(finding(name, DamageKind::ArchiveAltered, reason))
}

/// An archive that cannot be read. Where it only may not be, or is no file, it is as good as not there.
fn unread(name: &str, fault: io::Error) -> End {
    if let Some(reason) = damage_in(&fault) {
        return altered(name, reason);
    }
    if is_of_process(&fault) {
        End::Fault(fault)
    } else if fault.kind() == io::ErrorKind::NotFound {
        End::Note(format!("history unavailable: {name} is not there"))
    } else if is_of_this_file(&fault) {
        End::Note(format!("history unavailable: {name} cannot be read: {fault}"))
    } else {
        altered(name, format!("it cannot be read: {fault}"))
    }
}

/// What is wrong with an archive, where reading it failed. Errors: The fault itself, if it says nothing of the archive.
pub(super) fn fault_of(name: &str, fault: io::Error) -> io::Result<Damage> {
    let told = format!("it cannot be read: {fault}");
    match unread(name, fault) {
        End::Altered(damage) => Ok(damage),
        End::Fault(fault) => Err(fault),
        End::Beginning | End::Note(_) => Ok(finding(name, DamageKind::ArchiveAltered, told)),
    }
}

impl Hop {
    pub fn new(name: &str, length: u64, beginning: &Beginning) -> Self {
        let sentinel = match &beginning.origin {
            Origin::Ours(sentinel) => Some(sentinel.clone()),
            _ => None,
        };
        let base = sentinel
            .as_ref()
            .map(|sentinel| (sentinel.told.base, sentinel.base_sha256));
        Self {
            name: name.to_owned(),
            base: base.unwrap_or_default(),
            sentinel,
            offset: beginning.offset,
            seq: beginning.seq,
            began: beginning.ts,
            length,
            is_foreign: beginning.origin == Origin::Foreign,
            ..Self::default()
        }
    }

    /// The live log as far as only its origin matters.
    pub fn live(origin: &Origin) -> Self {
        Self::new(LOG, 0, &Beginning::unread(origin.clone()))
    }

    /// The trail of the log before it, as its sentinel names it.
    pub fn own_trail(&self) -> Option<TrailEnd> {
        self.sentinel.as_ref()?.told.trail.known()
    }

    /// Whether its base counts as it is: what came before need not add up to it.
    pub fn is_base_declared(&self) -> bool {
        self.sentinel.as_ref().is_none_or(Sentinel::is_base_declared)
    }

    pub fn starts_from_nothing(&self) -> bool {
        self.offset == 0 && self.sentinel.is_none() && !self.is_foreign
    }
}

impl PastLogs {
    /// Goes back from sentinel to sentinel, as far as archives have the digests that are named.
    pub fn find(disk: &dyn Disk, layout: &Layout, live: Hop) -> io::Result<Self> {
        Self::find_with(layout, live, &mut |name, digest| {
            let read = |fault: io::Error| unread(name, fault);
            let archive = archive::open(disk, &layout.inside(name)).map_err(read)?;
            let found = archive::file_digest(&*archive.packed).map_err(read)?;
            if found.text() != digest {
                return Err(altered(name, format!("its SHA-256 is {}", found.text())));
            }
            let (length, beginning) = begin_archive(&archive).map_err(read)?;
            Ok((Some((archive, found)), length, beginning))
        })
    }

    /// The same with archives that another function opens.
    pub fn find_with(layout: &Layout, live: Hop, open: OpenArchive<'_>) -> io::Result<Self> {
        let (mut hops, mut way) = (vec![live], WayBack::default());
        let end = loop {
            let Some(sentinel) = hops.last().and_then(|hop: &Hop| hop.sentinel.clone()) else {
                break End::Beginning;
            };
            way.pass(&sentinel);
            match step(&sentinel, &way, open) {
                Ok(hop) if hops.iter().any(|other| other.name == hop.name) => {
                    break altered(&hop.name, "it leads in a circle");
                }
                Ok(hop) => hops.push(hop),
                Err(End::Fault(fault)) => return Err(fault).naming(&layout.archives()),
                Err(end) => break end,
            }
        };
        Ok(Self { hops, end })
    }
}

pub(in crate::store) fn begin_archive(archive: &Archive) -> io::Result<(u64, Beginning)> {
    let length = archive.log.length()?;
    Ok((length, beginning_of(&*archive.log, length)?))
}

fn step(sentinel: &Sentinel, way: &WayBack, open: OpenArchive<'_>) -> std::result::Result<Hop, End> {
    if sentinel.archive.is_none() {
        let note = "history unavailable: a compaction did not keep it";
        return Err(End::Note(note.to_owned()));
    }
    let Some((name, digest)) = sentinel.safe_archive() else {
        return Err(altered("archive", "the log names no archive of ours"));
    };
    let (archive, length, mut beginning) = open(name, digest)?;
    way.resolve_origin(&mut beginning.origin);
    let mut hop = Hop::new(name, length, &beginning);
    digest.clone_into(&mut hop.digest);
    (hop.span, hop.last_seq, hop.bound) = (sentinel.told.span, sentinel.last_seq, sentinel.told.bound);
    if let Some((archive, _)) = archive.as_ref().filter(|_| hop.is_foreign) {
        let traces = foreign_traces(&*archive.log, length, u64::MAX, Hint::None);
        let adoption = traces.map_err(|fault| unread(name, fault))?.adoption;
        let adopted = adoption.as_ref().map(|adoption| adoption.base_sha256);
        hop.base = (adopted, adopted.and_then(|sha256| way.base(sha256)));
        hop.adopted = adoption.map(|adoption| adoption.seq);
    }
    hop.archive = archive;
    Ok(hop)
}

/// The live log, and the kept logs before it, the oldest first.
pub(in crate::store) struct KeptLogs {
    pub live: Hop,
    pub retired: Vec<Hop>,
}

impl KeptLogs {
    /// Follows the archives back from the live log. Errors: `Busy` for a hole, `Corrupted`, `Io`.
    pub fn of(site: &Site, origin: &Origin, (log, end): (&dyn DiskFile, u64), pruned_until: u64) -> Result<Self> {
        let (disk, layout) = (&*site.disk, &site.layout);
        let way = PastLogs::find(disk, layout, Hop::live(origin)).at(&layout.archives())?;
        match &way.end {
            End::Altered(damage) => return Err(Error::Corrupted(Box::new(damage.clone()))),
            End::Note(note) if way.hops.last().is_some_and(|hop| names_archive(hop, pruned_until)) => {
                return Err(Error::busy(format!(
                    "nothing is erased from a history with a hole in it: {note}"
                )));
            }
            _ => {}
        }
        let mut hops = way.hops.into_iter();
        let mut live = hops.next().ok_or(Error::Closed)?;
        if live.is_foreign {
            let traces = foreign_traces(log, end, u64::MAX, Hint::None).at(layout.log())?;
            live.base.1 = traces.adoption.as_ref().map(|adoption| adoption.base_sha256);
            live.adopted = traces.adoption.map(|adoption| adoption.seq);
        }
        let mut retired: Vec<Hop> = hops.collect();
        retired.reverse();
        Ok(Self { live, retired })
    }

    /// All of them, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = &Hop> {
        self.retired.iter().chain([&self.live])
    }
}

/// Whether a log names an archive that was not pruned.
fn names_archive(hop: &Hop, pruned_until: u64) -> bool {
    hop.sentinel
        .as_ref()
        .is_some_and(|sentinel| sentinel.archive.is_some() && sentinel.last_seq > pruned_until)
}

/// What a state says of archives that were pruned, in the order of the events.
pub(in crate::store) fn prunings_of(state: &State) -> Vec<Pruning> {
    let slots = state.of_face(ERASURES, Some(&[b"pruned"]));
    let found = slots.filter_map(|slot| {
        let id = state.slots.id(slot);
        let seq = std::str::from_utf8(&id).ok()?.strip_prefix("pruned:")?.parse().ok()?;
        Pruning::read(seq, &id, &state.slots.record(slot))
    });
    found.collect()
}

/// Up to which event archives were pruned; 0 if none was.
pub(in crate::store) fn pruned_until(state: &State) -> u64 {
    let last = prunings_of(state).into_iter().map(|told| told.last_seq);
    last.max().unwrap_or(0)
}

/// Says in a report which archives were pruned, instead of that they are missing.
pub(in crate::store) fn tell_pruned(state: &State, notes: &mut Vec<String>) {
    let (prunings, until) = (prunings_of(state), pruned_until(state));
    let is_pruned = |note: &String| {
        let name = note.strip_prefix("history unavailable: archive/");
        let name = name.and_then(|rest| rest.strip_suffix(" is not there"));
        name.and_then(last_seq_in_archive_name)
            .is_some_and(|last| last <= until)
    };
    notes.retain(|note| !is_pruned(note));
    notes.extend(prunings.iter().map(|told| {
        format!(
            "pruned at event {}: {:?}: {} archives, up to event {}",
            told.seq, told.reason, told.archives, told.last_seq
        )
    }));
}
