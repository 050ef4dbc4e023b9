//! Checks that the archives are those that the log names, and lead to what it starts from.
//!
//! The retired logs are found from sentinel to sentinel and read from the oldest on: lines, trail, and the base behind each.
//! Findings begin with the newest log, and end with the first that is not the log that was retired.

use std::collections::{HashMap, HashSet};
use std::io;

use super::archive_index::{Mentions, is_forged};
use super::replay::Replay;
use super::way::{End, Hop, PastLogs, begin_archive, fault_of};
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
    ERASING, LOG, Layout, base_name, digest_in_base_name, index_name, is_archive_file, is_base_file, packed_base_name,
    short_digest_in_archive_name,
};
use chronolog::log::files::{is_ours, open_base};
use chronolog::origin::{Beginning, Origin, Sentinel};
use chronolog::trail::{SentinelTrail, Trail};
use chronolog::verify::{ErasureSeen, Report, Sink, Walk, finding};
use chronolog::wal::reader::Reading;

/// Follows the archives back from a log, as far as they were kept. Its own erasures are `None` if they were not looked for.
pub(in crate::store) fn follow_archives(
    disk: &dyn Disk,
    layout: &Layout,
    beginning: &Beginning,
    erasures: Option<Vec<ErasureSeen>>,
    threads: usize,
    report: &mut Report,
) -> io::Result<()> {
    let mut live = Hop::new(LOG, 0, beginning);
    live.erasures = erasures;
    let mut way = PastLogs::find(disk, layout, live)?;
    if !read_retired(disk, layout, &mut way.hops, threads)? {
        let note = "bases not compared with the history before them: not enough memory";
        report.notes.push(note.to_owned());
    }
    Findings(report).tell(disk, layout, &way)?;
    if is_unfinished(disk, layout, way.hops.first().and_then(|hop| hop.base.0)) {
        let note = "erasure unfinished: the next process that may write completes it";
        report.notes.push(note.to_owned());
    } else {
        report.returned.extend(returned(disk, layout, &way));
    }
    Ok(())
}

/// What is found in the archives goes into a report.
struct Findings<'a>(&'a mut Report);

impl Findings<'_> {
    fn tell(&mut self, disk: &dyn Disk, layout: &Layout, way: &PastLogs) -> io::Result<()> {
        for (number, hop) in way.hops.iter().enumerate() {
            if let Some(wrong) = &hop.wrong {
                self.0.damage.push(wrong.clone());
                return Ok(());
            }
            let older = &way.hops[number + 1..];
            if number > 0 {
                self.0.altered.extend(hop.altered_index.clone());
                self.0.notes.extend(hop.index_note.clone());
                self.tell_redacted(hop);
                let is_added_up = is_compared(hop) && older.first().is_some_and(|older| older.wrong.is_none());
                self.earlier_base(disk, layout, hop, is_added_up)?;
            }
            self.tell_erasures(hop, older, matches!(way.end, End::Beginning));
            self.tell_trail(way, number);
            if let Some(sha256) = hop.base.1.filter(|_| hop.differs) {
                let reason = "it is not what the history before it adds up to";
                let there = open_base(disk, layout, &sha256).ok().flatten();
                let name = there.map_or_else(|| base_name(sha256.text()), |(name, _)| name);
                self.0.damage.push(finding(&name, DamageKind::BaseDiffers, reason));
            }
        }
        match &way.end {
            End::Beginning | End::Fault(_) => {}
            End::Note(note) => self.0.notes.push(note.clone()),
            End::Altered(damage) => self.0.damage.push(damage.clone()),
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
        self.0.notes.push(format!(
            "{} lines of {} were erased: seq {}{attested}",
            hop.redacted.count,
            hop.name,
            seqs.join(", ")
        ));
    }

    /// An erasure is told by a sentinel and the event behind it, together or not at all.
    fn tell_erasures(&mut self, hop: &Hop, older: &[Hop], is_all_known: bool) {
        let Some(erasures) = &hop.erasures else {
            return;
        };
        let told = hop.sentinel.as_ref().filter(|sentinel| sentinel.told.erasure.is_some());
        let follows = erasures.first().filter(|seen| told.is_some() && seen.index == 1);
        if let Some(sentinel) = told
            && let Some(reason) = unbound(sentinel, follows.map(|seen| &seen.told), older, is_all_known)
        {
            self.at(hop, (hop.offset, hop.seq), DamageKind::EraseUnbound, reason);
        }
        for stray in erasures.iter().skip(usize::from(follows.is_some())) {
            let place = (stray.place.offset, Some(stray.told.seq));
            self.at(hop, place, DamageKind::EraseUnbound, "no sentinel tells of it");
        }
        if let Some(seen) = follows {
            let told = &seen.told;
            let history = match told.is_dropped {
                true => "history dropped",
                false => "history redacted",
            };
            self.0.notes.push(format!(
                "erased at event {}, {}: {:?}: {} records, {} lines, {} of them without salt, {history}",
                told.seq, seen.ts, told.reason, told.records, told.lines, told.unsalted
            ));
        }
    }

    fn at(&mut self, hop: &Hop, (offset, seq): (u64, Option<u64>), kind: DamageKind, reason: &str) {
        self.0.damage.push(Damage {
            offset,
            seq,
            ..finding(&hop.name, kind, reason)
        });
    }

    fn tell_trail(&mut self, way: &PastLogs, number: usize) {
        let hop = &way.hops[number];
        let seq = hop.seq.unwrap_or(0);
        let named = match hop.sentinel.as_ref().map(|sentinel| sentinel.told.trail) {
            None | Some(SentinelTrail::Nothing) => return,
            Some(SentinelTrail::Malformed) => {
                return self.at(hop, (hop.offset, hop.seq), DamageKind::TrailBroken, "it is no trail");
            }
            Some(SentinelTrail::Known(named)) => named,
        };
        let Some(older) = way.hops.get(number + 1) else {
            let note = format!("trail not compared: nothing is left of what came before event {seq}");
            return self.0.notes.push(note);
        };
        if older.wrong.is_some() {
            return;
        }
        let found = older.trail.as_ref().filter(|trail| trail.from == named.from);
        let reason = match found {
            _ if has_start(way, number + 1, named.from) == Some(false) => "it begins elsewhere",
            None => {
                let note = format!("trail not compared: its start, event {}, is not there", named.from);
                return self.0.notes.push(note);
            }
            Some(trail) if trail.value() != named.value => "it is not the trail of the log before",
            Some(_) => return,
        };
        self.at(hop, (hop.offset, hop.seq), DamageKind::TrailBroken, reason);
    }

    /// Checks the base of an archived segment. It may be missing if the history before it adds up to it.
    fn earlier_base(&mut self, disk: &dyn Disk, layout: &Layout, hop: &Hop, is_added_up: bool) -> io::Result<()> {
        let (named, Some(sha256)) = hop.base else {
            return Ok(());
        };
        let plain = base_name(sha256.text());
        let (name, base) = match open_base(disk, layout, &sha256).map_err(|fault| NamedFault::apart(fault).1) {
            Err(fault) if is_of_this_file(&fault) => {
                self.0
                    .notes
                    .push(format!("history unavailable: {plain} cannot be read: {fault}"));
                return Ok(());
            }
            Err(fault) => return Err(fault).naming(&layout.inside(&plain)),
            Ok(None) => {
                let note = format!("history unavailable: {plain} is not there");
                self.0.notes.extend((!is_added_up).then_some(note));
                return Ok(());
            }
            Ok(Some(there)) => there,
        };
        let reason = match archive::file_digest(&*base.log) {
            Ok(found) if found == sha256 => None,
            Ok(_) => Some("it is not the base that an archived segment started from".to_owned()),
            Err(fault) => Some(damage_in(&fault).map_or_else(|| Err(fault).naming(&layout.inside(&name)), Ok)?),
        };
        if let Some(reason) = reason {
            self.0.damage.push(finding(&name, DamageKind::BaseAltered, reason));
        } else if named != Some(sha256) {
            let note = format!("attested: {name} was rewritten by an erasure, and only its word says how");
            self.0.notes.push(note);
        }
        Ok(())
    }
}

fn is_unfinished(disk: &dyn Disk, layout: &Layout, base: Option<Hex>) -> bool {
    let told = read_whole(disk, &layout.inside(ERASING)).ok().flatten();
    let told = told.and_then(|bytes| json::parse(&bytes).ok());
    let named = told.as_ref().and_then(|told| told.get("base")).and_then(Value::as_str);
    base.is_some_and(|base| named == Some(base.text()))
}

/// Whether a trail that ends with a log can begin at a seq; `None` if that is not known.
fn has_start(way: &PastLogs, number: usize, from: u64) -> Option<bool> {
    for hop in way.hops.get(number..).unwrap_or_default() {
        if let Some(own) = hop.own_trail() {
            return Some(own.from == from);
        }
        if hop.seq == Some(from) {
            return Some(true);
        }
    }
    matches!(way.end, End::Beginning).then_some(false)
}

/// What logs name: how many lines of each archive are redacted, and which bases there are.
fn named_by(logs: &[Hop]) -> (HashMap<Hex, u64>, HashSet<Hex>) {
    let (mut archives, mut bases) = (HashMap::new(), HashSet::new());
    for hop in logs.iter().rev() {
        bases.extend(hop.base.0);
        let Some(told) = hop.sentinel.as_ref().map(|sentinel| &sentinel.told) else {
            continue;
        };
        if let Some(digest) = Hex::read(told.archive.as_bytes()) {
            archives.insert(digest, told.erasure.as_ref().map_or(0, |told| told.erased));
        }
        for one in told.erasure.iter().flat_map(|told| &told.replaced) {
            match (one.new, one.erased) {
                (Some(new), Some(erased)) => _ = archives.insert(new, erased),
                (new, _) => bases.extend(new),
            }
        }
    }
    (archives, bases)
}

/// What is wrong with the sentinel of an erasure and the event behind it, given what the logs before it name.
fn unbound(sentinel: &Sentinel, event: Option<&Erasure>, older: &[Hop], is_all_known: bool) -> Option<&'static str> {
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
    let (archives, bases) = named_by(older);
    let (mut lines, mut is_more) = (told.erased, true);
    for one in &told.replaced {
        let was = match one.erased {
            Some(_) => archives.get(&one.old).copied(),
            None => bases.contains(&one.old).then_some(0),
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

/// The digits of a digest in the names of bases and of archives.
const FULL_DIGITS: usize = 64;
const SHORT_DIGITS: usize = 16;

/// The files of erased content that are there: erasures replaced them, and no log names them.
fn returned(disk: &dyn Disk, layout: &Layout, way: &PastLogs) -> Vec<Damage> {
    let told = way
        .hops
        .iter()
        .filter_map(|hop| hop.sentinel.as_ref()?.told.erasure.as_ref());
    let olds: Vec<&Hex> = told.flat_map(|told| &told.replaced).map(|one| &one.old).collect();
    if olds.is_empty() {
        return Vec::new();
    }
    let is_old = |digest: Option<&str>, digits: usize| {
        digest.is_some_and(|digest| olds.iter().any(|old| old.text().get(..digits) == Some(digest)))
    };
    let bases = listed(disk, &layout.bases(), is_base_file).into_iter();
    let bases = bases.filter(|name| is_old(digest_in_base_name(name), FULL_DIGITS));
    let archives = listed(disk, &layout.archives(), is_archive_file).into_iter();
    let archives = archives.filter(|name| is_old(short_digest_in_archive_name(name), SHORT_DIGITS));
    let is_named = |name: &str| {
        let is_base = |sha256: Hex| name == base_name(sha256.text()) || name == packed_base_name(sha256.text());
        way.hops
            .iter()
            .any(|hop| hop.name == name || hop.base.1.is_some_and(is_base))
    };
    let found = bases.map(|name| format!("base/{name}"));
    let found = found.chain(archives.map(|name| format!("archive/{name}")));
    let reason = "an erasure took it away, and it is back";
    found
        .filter(|name| !is_named(name) && is_ours(disk, &layout.inside(name)))
        .map(|name| finding(&name, DamageKind::ErasedReturned, reason))
        .collect()
}

/// The same for an opening: only the first lines of archives are read, as far back as they lead.
pub(in crate::store) fn returned_at(disk: &dyn Disk, layout: &Layout, origin: &Origin) -> Vec<Damage> {
    if disk.exists(&layout.inside(ERASING)) {
        return Vec::new();
    }
    let way = PastLogs::find_with(layout, Hop::live(origin), &mut |name, _| {
        let begun = archive::open(disk, &layout.inside(name)).and_then(|archive| begin_archive(&archive));
        // What cannot be followed is for `verify`.
        let (length, beginning) = begun.map_err(|fault| End::Note(fault.to_string()))?;
        Ok((None, length, beginning))
    });
    way.map_or_else(|_| Vec::new(), |way| returned(disk, layout, &way))
}

/// Reads the archives, the oldest first, and compares each with the next base; false if there was not enough memory.
fn read_retired(disk: &dyn Disk, layout: &Layout, hops: &mut [Hop], threads: usize) -> io::Result<bool> {
    ask_for_trails(hops);
    let mut replay = Replay::default();
    for number in (1..hops.len()).rev() {
        let older = hops.get(number + 1).filter(|older| older.wrong.is_none());
        let trail = first_trail(&hops[number], older);
        let head = hops[number - 1]
            .sentinel
            .as_ref()
            .map(|sentinel| sentinel.previous_head.clone());
        let hop = &mut hops[number];
        hop.trail = trail;
        begin(disk, layout, hop, &mut replay);
        let index = hop.archive.as_ref().map(|_| layout.history_index(&hop.name));
        let index = index.filter(|path| disk.exists(path));
        replay.mentions = index.as_ref().map(|_| Mentions::default());
        read_log(hop, &head.unwrap_or_default(), threads, &mut replay).naming(&layout.inside(&hop.name))?;
        if hop.wrong.is_some() {
            replay.state = None;
            replay.leave_segment();
            continue;
        }
        if let (Some(path), Some(mentions), Some((_, sha256))) = (index, replay.mentions.take(), &hop.archive) {
            // The digest of an index is its own, so a forged one is only found by comparison.
            let name = index_name(&path);
            match is_forged(disk, &path, sha256, mentions) {
                Ok(false) => {}
                Ok(true) => {
                    let reason = "it does not say which events of the archive speak of which record";
                    hop.altered_index = Some(finding(&name, DamageKind::IndexAltered, reason));
                }
                Err(fault) => hop.index_note = Some(format!("index not compared: {name}: {fault}")),
            }
        }
        replay.leave_segment();
        compare(disk, layout, &mut hops[number - 1], &mut replay);
    }
    Ok(!replay.gave_up)
}

/// Whether the sentinel says that the base is what came before it; that of a repair or of version 1 does not.
fn is_compared(hop: &Hop) -> bool {
    !hop.is_base_declared()
}

/// From where on the trail of each log is asked for, by the sentinel behind it or a later one.
fn ask_for_trails(hops: &mut [Hop]) {
    let mut wanted = None;
    for (number, hop) in hops.iter_mut().enumerate() {
        let own = hop.own_trail().map(|own| own.from);
        if number > 0 {
            hop.trail_from = own.or(wanted);
        }
        wanted = own.or(wanted.filter(|from| Some(*from) != hop.seq));
    }
}

fn first_trail(hop: &Hop, older: Option<&Hop>) -> Option<Trail> {
    if let Some(own) = hop.own_trail() {
        return Some(Trail::after(own.value.raw(), own.from));
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

/// Compares the base of a log with what came before it. Where they differ the next log starts from something unknown.
fn compare(disk: &dyn Disk, layout: &Layout, hop: &mut Hop, replay: &mut Replay) {
    let Some(sha256) = hop.base.1.filter(|_| replay.state.is_some()) else {
        return;
    };
    let base = open_base(disk, layout, &sha256);
    if is_compared(hop) {
        let base = base.ok().flatten();
        hop.differs = base.and_then(|(_, base)| replay.is_like(&*base.log, &sha256)) == Some(false);
    } else {
        let is_mended = hop.sentinel.as_ref().is_some_and(|sentinel| sentinel.told.mended);
        if is_mended || !matches!(base, Ok(None)) {
            replay.state = None;
        }
    }
    if hop.differs {
        replay.state = None;
    }
}
