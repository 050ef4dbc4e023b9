//! Reads the retired logs from the oldest on, judges each, and compares its sum with the base behind it.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::Hex;
use chronolog::disk::{Disk, Naming};
use chronolog::layout::{Layout, index_name};
use chronolog::log::files::open_base;
use chronolog::origin::{Sentinel, TrailTold};
use chronolog::trail::Trail;
use chronolog::verify::{Sink, Walk, finding};
use chronolog::wal::reader::Reading;

use super::archive_index::{Mentions, is_forged};
use super::onlooker::{LookedOn, Onlooker};
use super::replay::Replay;
use super::way::{Hop, PastLogs, fault_of};

/// What came out of one archive beside its verdict.
#[derive(Default)]
pub(super) struct ArchiveNotes {
    /// Its index says something else.
    pub altered: Option<Damage>,
    /// That could not be found out.
    pub note: Option<String>,
}

/// What came out of reading all of them.
pub(super) struct RetiredLogs {
    /// The logs on the way whose bases are not what came before them.
    pub differing: BTreeSet<usize>,
    /// For each log on the way.
    pub beside: Vec<ArchiveNotes>,
    /// There was not enough memory to compare all bases.
    pub gave_up: bool,
}

impl RetiredLogs {
    /// Reads the archives from the oldest on; judges each and holds its sum against the base behind it.
    ///
    /// # Errors
    /// What keeps this process from reading on, and is no fault of an archive.
    pub fn read(
        disk: &dyn Disk,
        layout: &Layout,
        way: &mut PastLogs,
        threads: usize,
        onlooker: Option<&dyn Onlooker>,
    ) -> io::Result<Self> {
        ask_for_trails(&mut way.hops);
        let mut differing = BTreeSet::new();
        let mut beside: Vec<ArchiveNotes> = way.hops.iter().map(|_| ArchiveNotes::default()).collect();
        let mut replay = Replay::of(onlooker.and_then(|onlooker| onlooker.likeness()));
        let wanted = wanted_sums(disk, layout, &way.hops);
        for number in (1..way.hops.len()).rev() {
            let older = way.hops.get(number + 1).filter(|older| older.wrong.is_none());
            let trail = first_trail(&way.hops[number], older);
            let head = previous_head(&way.hops[number - 1]);
            let hop = &mut way.hops[number];
            hop.trail = trail;
            if wanted[number] {
                begin(disk, layout, hop, &mut replay);
            }
            let index = hop.archive.as_ref().map(|_| layout.history_index(&hop.name));
            let index = index.filter(|path| disk.exists(path));
            replay.mentions = index.as_ref().map(|_| Mentions::default());
            read_shown(hop, &head, threads, &mut replay, onlooker).naming(&layout.inside(&hop.name))?;
            if hop.wrong.is_some() {
                replay.state = None;
                replay.leave_segment();
                continue;
            }
            if let (Some(path), Some(mentions), Some((_, sha256))) = (index, replay.mentions.take(), &hop.archive) {
                beside[number] = compare_index(disk, &path, sha256, mentions);
            }
            replay.leave_segment();
            match held_against(disk, layout, &way.hops[number - 1], &mut replay) {
                Sum::Same(sha256) => {
                    if let (Some(onlooker), Some(state)) = (onlooker, &replay.state) {
                        onlooker.base(&sha256, state);
                    }
                }
                Sum::Untold => {}
                Sum::Other => {
                    differing.insert(number - 1);
                    replay.state = None;
                }
                Sum::Unasked => replay.state = None,
            }
        }
        Ok(Self {
            differing,
            beside,
            gave_up: replay.gave_up,
        })
    }
}

/// How the sum of a retired log stands to the base behind it.
enum Sum {
    /// They are the same: the base has this digest.
    Same(Hex),
    /// Nobody can tell that they differ.
    Untold,
    /// The base is another.
    Other,
    /// Nobody asks: the base counts as it is.
    Unasked,
}

/// Whether a log says in its sentinel that its base is what came before it. Before there were trails none did, and what a
/// repair made is its word.
pub(super) fn is_compared(hop: &Hop) -> bool {
    hop.sentinel.as_ref().is_some_and(|sentinel| {
        let told = &sentinel.told;
        !told.mended && (told.trail != TrailTold::Nothing || told.erasure.is_some())
    })
}

fn is_base_there(disk: &dyn Disk, layout: &Layout, hop: &Hop) -> bool {
    hop.base
        .1
        .is_some_and(|sha256| !matches!(open_base(disk, layout, &sha256), Ok(None)))
}

/// Which of the retired logs have to be added up: to take in events costs more than to judge their lines.
fn wanted_sums(disk: &dyn Disk, layout: &Layout, hops: &[Hop]) -> Vec<bool> {
    let mut wanted = vec![false; hops.len()];
    for number in 1..hops.len() {
        let behind = &hops[number - 1];
        wanted[number] = is_compared(behind) || (wanted[number - 1] && !is_base_there(disk, layout, behind));
    }
    wanted
}

fn previous_head(hop: &Hop) -> String {
    let head = hop
        .sentinel
        .as_ref()
        .map(|sentinel: &Sentinel| sentinel.previous_head.clone());
    head.unwrap_or_default()
}

/// From where on the trail of each log is asked for, by the sentinel behind it or a later one.
fn ask_for_trails(hops: &mut [Hop]) {
    let mut wanted = None;
    for (number, hop) in hops.iter_mut().enumerate() {
        let own = hop.own_trail().map(|(_, from)| from);
        if number > 0 {
            hop.trail_from = own.or(wanted);
        }
        wanted = own.or(wanted.filter(|from| Some(*from) != hop.seq));
    }
}

/// The trail of a log before its first event, if that is known.
fn first_trail(hop: &Hop, older: Option<&Hop>) -> Option<Trail> {
    if let Some((value, from)) = hop.own_trail() {
        return Some(Trail::after(value.raw(), from));
    }
    let from = hop.trail_from?;
    if hop.seq == Some(from) {
        return Some(Trail::new(from));
    }
    let before = older?.trail.as_ref().filter(|trail| trail.from == from)?;
    Some(Trail::after(before.value().raw(), from))
}

/// Sees to it that what a retired log starts from is known, if it can be had.
fn begin(disk: &dyn Disk, layout: &Layout, hop: &Hop, replay: &mut Replay) {
    if hop.sentinel.is_none() && !hop.is_foreign {
        replay.begin();
        return;
    }
    if hop.is_foreign {
        replay.state = None;
        replay.settled_until = hop.adopted;
    }
    if replay.state.is_none()
        && let Some(sha256) = hop.base.1
        && let Ok(Some((_, base))) = open_base(disk, layout, &sha256)
    {
        replay.begin_with(&*base.log, &sha256);
        base.rest();
    }
}

/// Reads a retired log while somebody looks on, perhaps.
fn read_shown(
    hop: &mut Hop,
    head: &str,
    threads: usize,
    replay: &mut Replay,
    onlooker: Option<&dyn Onlooker>,
) -> io::Result<()> {
    let Some(onlooker) = onlooker else {
        return read_log(hop, head, threads, replay);
    };
    onlooker.begin_retired();
    read_log(hop, head, threads, &mut LookedOn(replay, onlooker))?;
    if let Some((_, digest)) = hop.archive.as_ref().filter(|_| hop.wrong.is_none()) {
        onlooker.end_retired(digest, hop.redacted.is_even());
    }
    Ok(())
}

/// Reads a retired log and says what is wrong with it.
fn read_log(hop: &mut Hop, head: &str, threads: usize, sink: &mut dyn Sink) -> io::Result<()> {
    let Some((archive, _)) = &hop.archive else {
        return Ok(());
    };
    let mut walk = Walk::new(None);
    walk.follower.trail = hop.trail.take();
    let reading = Reading {
        trusted_until: 0,
        threads,
    };
    let log = &*archive.log;
    let went = log
        .length()
        .and_then(|length| walk.go(log, length, reading, sink, &mut |_, _| {}));
    archive.rest();
    hop.trail = walk.follower.trail.take();
    let found = |offset: u64, line: u64, reason: &str| Damage {
        offset,
        line,
        ..finding(&hop.name, DamageKind::ArchiveAltered, reason)
    };
    let damage = walk.follower.damage.iter().min_by_key(|damage| damage.offset);
    hop.wrong = if let Err(fault) = went {
        Some(fault_of(&hop.name, fault)?)
    } else if let Some(first) = damage {
        Some(Damage {
            path: hop.name.clone(),
            kind: DamageKind::ArchiveAltered,
            ..first.clone()
        })
    } else if walk.mark().head.is_none_or(|found| found.text() != head) {
        Some(found(0, 0, "it does not end with the event that the log names"))
    } else if walk.redacted.count != hop.bound {
        let (offset, line) = walk.redacted.first.map_or((0, 0), |place| (place.offset, place.line));
        Some(found(offset, line, "other lines of it are erased than the log says"))
    } else {
        let stray = walk.redacted.stray();
        stray.map(|place| found(place.offset, place.line, "an erased line has the seq of another place"))
    };
    hop.erasures = Some(walk.told_erasures().cloned().collect());
    hop.redacted = walk.redacted;
    Ok(())
}

/// Holds the base that a log starts from against what came before it.
fn held_against(disk: &dyn Disk, layout: &Layout, hop: &Hop, replay: &mut Replay) -> Sum {
    let Some(sha256) = hop.base.1.filter(|_| replay.state.is_some()) else {
        return Sum::Untold;
    };
    if !is_compared(hop) {
        let is_mended = hop.sentinel.as_ref().is_some_and(|sentinel| sentinel.told.mended);
        return match is_mended || is_base_there(disk, layout, hop) {
            true => Sum::Unasked,
            false => Sum::Untold,
        };
    }
    let base = open_base(disk, layout, &sha256).ok().flatten();
    match base.and_then(|(_, base)| replay.is_like(&*base.log, &sha256)) {
        Some(false) => Sum::Other,
        Some(true) => Sum::Same(sha256),
        None => Sum::Untold,
    }
}

/// An index is believed by its own digest, which whoever forges one computes too.
fn compare_index(disk: &dyn Disk, path: &Path, sha256: &Hex, mentions: Mentions) -> ArchiveNotes {
    let name = index_name(path);
    let mut beside = ArchiveNotes::default();
    match is_forged(disk, path, sha256, mentions) {
        Ok(false) => {}
        Ok(true) => {
            let reason = "it does not say which events of the archive speak of which record";
            beside.altered = Some(finding(&name, DamageKind::IndexAltered, reason));
        }
        Err(fault) => beside.note = Some(format!("index not compared: {name}: {fault}")),
    }
    beside
}
