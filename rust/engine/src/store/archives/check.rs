//! Checks that the archives are those that the log names, and lead to what it starts from.
//!
//! The retired logs are found from sentinel to sentinel and read from the oldest on: lines, trail, and the base behind each.
//! Findings begin with the newest log, and end with the first that is not the log that was retired.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;

use super::archive_index::{Mentions, is_forged};
use super::replay::{Observed, Replay, ReplayObserver};
use super::way::{End, Hop, PastLogs, fault_of};
use crate::store::files::proofs::listed;
use crate::store::vectors::is_of_this_file;
use chronolog::archive;
use chronolog::archive::damage_in;
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::Hex;
use chronolog::disk::{Disk, NamedFault, Naming, read_whole};
use chronolog::event::erasure::{Erasure, Replacement};
use chronolog::json::{self, Value};
use chronolog::layout::{
    ERASING, Layout, base_name, digest_in_base_name, index_name, is_archive_file, is_base_file, packed_base_name,
    short_digest_in_archive_name,
};
use chronolog::log::files::{is_ours, open_base};
use chronolog::origin::{Origin, Sentinel, TrailTold, WayBack, origin_of};
use chronolog::trail::Trail;
use chronolog::verify::{ErasureSeen, Sink, Walk, finding};
use chronolog::wal::reader::Reading;

/// What was found in the archives.
#[derive(Default)]
pub(in crate::store) struct Past {
    pub damage: Vec<Damage>,
    /// Indexes of archives that say something else than the archives.
    pub altered: Vec<Damage>,
    /// Files that an erasure took away and that are back.
    pub returned: Vec<Damage>,
    pub notes: Vec<String>,
}

/// The live log, as far as its past is concerned.
pub(in crate::store) struct LiveEnd<'a> {
    pub origin: &'a Origin,
    pub offset: u64,
    pub seq: Option<u64>,
    /// The events in it that tell of erasures; `None` if nobody looked for them.
    pub erasures: Option<Vec<ErasureSeen>>,
}

impl Past {
    /// Follows the archives back from a log, as far as they were kept; somebody may look on.
    pub fn follow(
        disk: &dyn Disk,
        layout: &Layout,
        live: LiveEnd<'_>,
        threads: usize,
        observer: Option<&dyn ReplayObserver>,
    ) -> io::Result<Self> {
        let hop = Hop::live(live.origin, live.offset, live.seq, live.erasures);
        let mut way = PastLogs::find(disk, layout, hop)?;
        let mut past = Self::default();
        let read = RetiredLogs::read(disk, layout, &mut way, threads, observer)?;
        if read.gave_up {
            let note = "bases not compared with the history before them: not enough memory";
            past.notes.push(note.to_owned());
        }
        past.tell(disk, layout, &way, read)?;
        past.tell_returned(disk, layout, &way);
        Ok(past)
    }

    fn tell(&mut self, disk: &dyn Disk, layout: &Layout, way: &PastLogs, read: RetiredLogs) -> io::Result<()> {
        let mut before: Vec<NamedByLogs> = vec![NamedByLogs::default(); way.hops.len()];
        for number in (1..way.hops.len()).rev() {
            let mut named = before[number].clone();
            named.take(&way.hops[number]);
            before[number - 1] = named;
        }
        for (number, (hop, beside)) in way.hops.iter().zip(read.beside).enumerate() {
            if let Some(wrong) = &hop.wrong {
                self.damage.push(wrong.clone());
                return Ok(());
            }
            if number > 0 {
                self.altered.extend(beside.altered);
                self.notes.extend(beside.note);
                self.tell_redacted(hop);
                let is_added_up =
                    is_compared(hop) && way.hops.get(number + 1).is_some_and(|older| older.wrong.is_none());
                self.earlier_base(disk, layout, hop, is_added_up)?;
            }
            self.tell_erasures(hop, &before[number], matches!(way.end, End::Beginning));
            self.tell_trail(way, number);
            if read.differing.contains(&number)
                && let Some(sha256) = hop.base.1
            {
                let reason = "it is not what the history before it adds up to";
                let there = open_base(disk, layout, &sha256).ok().flatten();
                let name = there.map_or_else(|| base_name(sha256.text()), |(name, _)| name);
                self.damage.push(finding(&name, DamageKind::BaseDiffers, reason));
            }
        }
        match &way.end {
            End::Beginning | End::Fault(_) => {}
            End::Note(note) => self.notes.push(note.clone()),
            End::Altered(damage) => self.damage.push(damage.clone()),
        }
        Ok(())
    }

    fn tell_redacted(&mut self, hop: &Hop) {
        if hop.redacted.count == 0 {
            return;
        }
        let spelled = |&(first, last): &(u64, u64)| match first == last {
            true => format!("{first}"),
            false => format!("{first}-{last}"),
        };
        let seqs: Vec<String> = hop.redacted.ranges.iter().map(spelled).collect();
        let attested = if hop.redacted.is_steady() { "" } else { " (attested)" };
        self.notes.push(format!(
            "{} lines of {} were erased: seq {}{attested}",
            hop.redacted.count,
            hop.name,
            seqs.join(", ")
        ));
    }

    /// An erasure is told by a sentinel and the event behind it, together or not at all.
    fn tell_erasures(&mut self, hop: &Hop, before: &NamedByLogs, is_all_known: bool) {
        let Some(erasures) = &hop.erasures else {
            return;
        };
        let told = hop.sentinel.as_ref().filter(|sentinel| sentinel.told.erasure.is_some());
        let follows = erasures.first().filter(|seen| told.is_some() && seen.index == 1);
        if let Some(sentinel) = told
            && let Some(reason) = unbound(sentinel, follows.map(|seen| &seen.told), before, is_all_known)
        {
            self.at(hop, (hop.offset, hop.seq), DamageKind::EraseUnbound, reason);
        }
        for stray in erasures.iter().skip(usize::from(follows.is_some())) {
            let place = (stray.place.offset, Some(stray.told.seq));
            self.at(hop, place, DamageKind::EraseUnbound, "no sentinel tells of it");
        }
        if let Some(seen) = follows {
            let told = &seen.told;
            let history = if told.is_dropped {
                "history dropped"
            } else {
                "history redacted"
            };
            self.notes.push(format!(
                "erased at event {}, {}: {:?}: {} records, {} lines, {} of them without salt, {history}",
                told.seq, seen.ts, told.reason, told.records, told.lines, told.unsalted
            ));
        }
    }

    fn at(&mut self, hop: &Hop, (offset, seq): (u64, Option<u64>), kind: DamageKind, reason: &str) {
        self.damage.push(Damage {
            offset,
            seq,
            ..finding(&hop.name, kind, reason)
        });
    }

    fn tell_trail(&mut self, way: &PastLogs, number: usize) {
        let hop = &way.hops[number];
        let seq = hop.seq.unwrap_or(0);
        let (value, from) = match hop.sentinel.as_ref().map(|sentinel| sentinel.told.trail) {
            None | Some(TrailTold::Nothing) => return,
            Some(TrailTold::Malformed) => {
                return self.at(hop, (hop.offset, hop.seq), DamageKind::TrailBroken, "it is no trail");
            }
            Some(TrailTold::Known(value, from)) => (value, from),
        };
        let Some(older) = way.hops.get(number + 1) else {
            let note = format!("trail not compared: nothing is left of what came before event {seq}");
            return self.notes.push(note);
        };
        if older.wrong.is_some() {
            return;
        }
        let found = older.trail.as_ref().filter(|trail| trail.from == from);
        if has_start(way, number + 1, from) == Some(false) {
            self.at(
                hop,
                (hop.offset, hop.seq),
                DamageKind::TrailBroken,
                "it begins elsewhere",
            );
        } else if found.is_none() {
            self.notes
                .push(format!("trail not compared: its start, event {from}, is not there"));
        } else if found.is_some_and(|trail| trail.value() != value) {
            let reason = "it is not the trail of the log before";
            self.at(hop, (hop.offset, hop.seq), DamageKind::TrailBroken, reason);
        }
    }

    /// Checks the base of an archived segment. It may be missing if the history before it adds up to it.
    fn earlier_base(&mut self, disk: &dyn Disk, layout: &Layout, hop: &Hop, is_added_up: bool) -> io::Result<()> {
        let (named, Some(sha256)) = hop.base else {
            return Ok(());
        };
        let plain = base_name(sha256.text());
        let (name, base) = match open_base(disk, layout, &sha256).map_err(|fault| NamedFault::apart(fault).1) {
            Err(fault) if is_of_this_file(&fault) => {
                let note = format!("history unavailable: {plain} cannot be read: {fault}");
                self.notes.push(note);
                return Ok(());
            }
            Err(fault) => return Err(fault).naming(&layout.inside(&plain)),
            Ok(None) if is_added_up => return Ok(()),
            Ok(None) => {
                self.notes.push(format!("history unavailable: {plain} is not there"));
                return Ok(());
            }
            Ok(Some(there)) => there,
        };
        let reason = match archive::file_digest(&*base.log) {
            Ok(found) if found == sha256 => None,
            Ok(_) => Some("it is not the base that an archived segment started from".to_owned()),
            Err(fault) => match damage_in(&fault) {
                Some(reason) => Some(reason),
                None => return Err(fault).naming(&layout.inside(&name)),
            },
        };
        if let Some(reason) = reason {
            self.damage.push(finding(&name, DamageKind::BaseAltered, reason));
        } else if named != Some(sha256) {
            let note = format!("attested: {name} was rewritten by an erasure, and only its word says how");
            self.notes.push(note);
        }
        Ok(())
    }

    fn tell_returned(&mut self, disk: &dyn Disk, layout: &Layout, way: &PastLogs) {
        if is_unfinished(disk, layout, way.hops.first().and_then(|hop| hop.base.0)) {
            let note = "erasure unfinished: whoever opens the store next with the right to write ends it";
            return self.notes.push(note.to_owned());
        }
        let mut told = FilesTold::default();
        for hop in &way.hops {
            hop.sentinel.iter().for_each(|sentinel| told.take(sentinel));
            told.name(&hop.name);
            told.name_base(hop.base.1);
        }
        self.returned.extend(told.returned(disk, layout));
    }
}

fn is_unfinished(disk: &dyn Disk, layout: &Layout, base: Option<Hex>) -> bool {
    let told = read_whole(disk, &layout.inside(ERASING)).ok().flatten();
    let told = told.and_then(|bytes| json::parse(&bytes).ok());
    let named = told.as_ref().and_then(|told| told.get("base")).and_then(Value::as_str);
    base.is_some_and(|base| named == Some(base.text()))
}

/// Whether a trail that ends with a log can begin at a seq; `None` if nobody can tell.
fn has_start(way: &PastLogs, number: usize, from: u64) -> Option<bool> {
    for hop in way.hops.get(number..).unwrap_or_default() {
        if let Some((_, own)) = hop.own_trail() {
            return Some(own == from);
        }
        if hop.seq == Some(from) {
            return Some(true);
        }
    }
    matches!(way.end, End::Beginning).then_some(false)
}

/// What logs name: how many lines of each archive are redacted, and which bases there are.
#[derive(Clone, Default)]
pub(super) struct NamedByLogs {
    archives: HashMap<Hex, u64>,
    bases: HashSet<Hex>,
}

impl NamedByLogs {
    /// Takes what a log names: its own files, and those that it put in the place of others.
    pub fn take(&mut self, hop: &Hop) {
        self.bases.extend(hop.base.0);
        let Some(sentinel) = &hop.sentinel else {
            return;
        };
        if let Some(digest) = Hex::read(sentinel.told.archive.as_bytes()) {
            let told = sentinel.told.erasure.as_ref();
            self.archives.insert(digest, told.map_or(0, |told| told.erased));
        }
        for one in sentinel.told.erasure.iter().flat_map(|told| &told.replaced) {
            match (one.new, one.erased) {
                (Some(new), Some(erased)) => {
                    self.archives.insert(new, erased);
                }
                (new, _) => self.bases.extend(new),
            }
        }
    }
}

/// What is wrong with the sentinel of an erasure and the event behind it, given what the logs before it name.
pub(super) fn unbound(
    sentinel: &Sentinel,
    event: Option<&Erasure>,
    before: &NamedByLogs,
    is_all_known: bool,
) -> Option<&'static str> {
    let told = sentinel.told.erasure.as_ref()?;
    if !told.is_sound {
        return Some("erased and replaced are not as they should be");
    }
    let Some(event) = event else {
        return Some("no erase event follows the sentinel");
    };
    let (mut olds, mut news) = (HashSet::new(), HashSet::new());
    let is_first = |one: &Replacement| {
        olds.insert(one.old) && one.new.is_none_or(|new| news.insert(new)) && Some(one.old) != one.new
    };
    if !told.replaced.iter().all(is_first) {
        return Some("a file is replaced twice, by one that replaces another, or by itself");
    }
    let is_dropped = sentinel.archive.is_none();
    if is_dropped != event.is_dropped || is_dropped && (told.erased > 0 || !told.replaced.is_empty()) {
        return Some("what became of the history is not what the event says");
    }
    let mut lines = told.erased;
    let mut is_more = true;
    for one in &told.replaced {
        let was = match one.erased {
            Some(_) => before.archives.get(&one.old).copied(),
            None => before.bases.contains(&one.old).then_some(0),
        };
        let Some(was) = was else {
            return is_all_known.then_some("a file is replaced that nothing names");
        };
        if let Some(now) = one.erased {
            is_more &= now > was;
            lines = lines.saturating_add(now.saturating_sub(was));
        }
    }
    if !is_more {
        return Some("a file was replaced in which nothing was erased");
    }
    (!is_dropped && event.lines != lines).then_some("the event counts other lines than were erased")
}

const SHORT_DIGITS: usize = 16;

/// What logs say of files: those that erasures took away, and those that lie on the way.
#[derive(Default)]
pub(super) struct FilesTold {
    olds: BTreeSet<String>,
    /// The names of the latter, from the store's folder on.
    named: BTreeSet<String>,
}

impl FilesTold {
    /// What a sentinel says. Its own files must be those that count now.
    pub fn take(&mut self, sentinel: &Sentinel) {
        let replaced = sentinel.told.erasure.iter().flat_map(|told| &told.replaced);
        self.olds.extend(replaced.map(|one| one.old.text().to_owned()));
        self.name_base(sentinel.base_sha256);
    }

    /// A base lies on the way, packed or not.
    pub fn name_base(&mut self, sha256: Option<Hex>) {
        let names = sha256.map(|sha256| [base_name(sha256.text()), packed_base_name(sha256.text())]);
        self.named.extend(names.into_iter().flatten());
    }

    /// A file lies on the way.
    pub fn name(&mut self, name: &str) {
        self.named.insert(name.to_owned());
    }

    /// The files of erased content that are there.
    pub fn returned(&self, disk: &dyn Disk, layout: &Layout) -> Vec<Damage> {
        if self.olds.is_empty() {
            return Vec::new();
        }
        let short: BTreeSet<&str> = self.olds.iter().filter_map(|old| old.get(..SHORT_DIGITS)).collect();
        let mut found: Vec<String> = Vec::new();
        for name in listed(disk, &layout.bases(), is_base_file) {
            if digest_in_base_name(&name).is_some_and(|digest| self.olds.contains(digest)) {
                found.push(format!("base/{name}"));
            }
        }
        for name in listed(disk, &layout.archives(), is_archive_file) {
            if short_digest_in_archive_name(&name).is_some_and(|digest| short.contains(digest)) {
                found.push(format!("archive/{name}"));
            }
        }
        found.retain(|name| !self.named.contains(name) && is_ours(disk, &layout.inside(name)));
        let reason = "an erasure took it away, and it is back";
        let told = found.iter();
        told.map(|name| finding(name, DamageKind::ErasedReturned, reason))
            .collect()
    }
}

/// The same for whoever opens a store: only the first lines of archives are read, as far back as they lead.
pub(in crate::store) fn returned_at(disk: &dyn Disk, layout: &Layout, origin: &Origin) -> Vec<Damage> {
    let Origin::Ours(newest) = origin else {
        return Vec::new();
    };
    if disk.exists(&layout.inside(ERASING)) {
        return Vec::new();
    }
    let (mut told, mut way, mut sentinel) = (FilesTold::default(), WayBack::default(), newest.clone());
    loop {
        told.take(&sentinel);
        let Some((name, _)) = sentinel.safe_archive() else {
            break;
        };
        told.name(name);
        let earlier = archive::open(disk, &layout.inside(name))
            .and_then(|archive| origin_of(&*archive.log, archive.log.length()?));
        match earlier {
            Ok(Origin::Ours(earlier)) if earlier.last_seq < sentinel.last_seq => {
                sentinel = way.back(&sentinel, earlier);
            }
            // What cannot be followed is for whoever verifies.
            _ => break,
        }
    }
    told.returned(disk, layout)
}

/// What came out of one archive beside its verdict.
#[derive(Default)]
pub(super) struct ArchiveNotes {
    pub altered: Option<Damage>,
    /// That could not be found out.
    pub note: Option<String>,
}

/// What came out of reading all of them.
pub(super) struct RetiredLogs {
    /// The logs on the way whose bases are not what came before them.
    pub differing: BTreeSet<usize>,
    pub beside: Vec<ArchiveNotes>,
    /// There was not enough memory to compare all bases.
    pub gave_up: bool,
}

impl RetiredLogs {
    /// Reads the archives, the oldest first, and compares what each adds up to with the next base.
    pub fn read(
        disk: &dyn Disk,
        layout: &Layout,
        way: &mut PastLogs,
        threads: usize,
        observer: Option<&dyn ReplayObserver>,
    ) -> io::Result<Self> {
        ask_for_trails(&mut way.hops);
        let mut differing = BTreeSet::new();
        let mut beside: Vec<ArchiveNotes> = way.hops.iter().map(|_| ArchiveNotes::default()).collect();
        let mut replay = Replay::default();
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
            read_shown(hop, &head, threads, &mut replay, observer).naming(&layout.inside(&hop.name))?;
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
                    if let (Some(observer), Some(state)) = (observer, &replay.state) {
                        observer.base(&sha256, state);
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

/// Whether the sentinel says that the base is what came before it; that of a repair or of version 1 does not.
pub(super) fn is_compared(hop: &Hop) -> bool {
    hop.sentinel
        .as_ref()
        .is_some_and(|sentinel| !sentinel.is_base_declared())
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
    observer: Option<&dyn ReplayObserver>,
) -> io::Result<()> {
    let Some(observer) = observer else {
        return read_log(hop, head, threads, replay);
    };
    observer.begin_retired();
    read_log(hop, head, threads, &mut Observed(replay, observer))?;
    if let Some((_, digest)) = hop.archive.as_ref().filter(|_| hop.wrong.is_none()) {
        observer.end_retired(digest, hop.redacted.is_even());
    }
    Ok(())
}

fn read_log(hop: &mut Hop, head: &str, threads: usize, sink: &mut dyn Sink) -> io::Result<()> {
    let Some((archive, _)) = &hop.archive else {
        return Ok(());
    };
    let mut walk = Walk::new(None);
    walk.follower.trail = hop.trail.take();
    let log = &*archive.log;
    let went = log
        .length()
        .and_then(|length| walk.go(log, length, Reading::new(threads), sink));
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
