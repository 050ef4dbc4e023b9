//! Loads the base that a log starts from, rebuilds one from archives, and reports one that is damaged or not named.
//!
//! The state before the first event is in a base that the log names by its digest. Opening a store reads that file and no
//! other: if its digest is wrong, nothing of it is loaded, and the report says so. A repair looks for a copy with the right
//! digest, and for what the archives before it add up to.

use std::io;
use std::sync::Arc;

use super::found::{Left, Traces, newest_base};
use super::loader::Loader;
use crate::store::files::proofs::{copy_of_base, own_base, proved_archive, proved_base};
use chronolog::archive::{Archive, damage_in};
use chronolog::damage::{Damage, DamageKind, Tail};
use chronolog::digest::Hex;
use chronolog::disk::{Bytes, Disk, DiskFile, Naming, read_whole};
use chronolog::event::mend::{Budget, mend_bytes};
use chronolog::hint::{Hint, first_line};
use chronolog::layout::{LOG, Layout, SNAPSHOT, base_name};
use chronolog::log::files::{open_base, open_inside};
use chronolog::origin::{Adoption, Beginning, ForeignTraces, Origin, Sentinel, WayBack, foreign_traces, origin_of};
use chronolog::verify::{BaseState, Report, Walk, finding};
use chronolog::wal::reader::Reading;
use chronomemory_state::snapshot;

/// So much may be hashed in search of the byte that a base has lost.
const MENDING_BLOCKS: u64 = 20_000_000;

/// What proves the state that was loaded before the first event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) enum Proof {
    /// The log itself, or a digest that it names.
    #[default]
    Whole,
    /// Nothing: the bytes are not those that the log names, or there are none.
    Nothing,
}

/// What was found beside the log.
#[derive(Default)]
pub(in crate::store) struct Base {
    /// What is known of the report so far.
    pub report: Report,
    pub proof: Proof,
    /// Damage of the log that counts if no line of it is damaged.
    pub lost: Option<Damage>,
    /// What came before the first line is not known, and nothing in the folder shows it.
    pub unknown: Option<String>,
}

impl Base {
    fn hurt(&mut self, state: BaseState, path: &str, kind: DamageKind, reason: impl Into<String>) {
        self.report.base = state;
        self.proof = Proof::Nothing;
        self.report.damage.push(finding(path, kind, reason));
    }

    fn named(&mut self, place: BasePlace<'_>, sentinel: &Sentinel, loader: &mut Loader<'_>) -> io::Result<()> {
        self.tell_repairs(sentinel);
        if place.way.is_some() && loader.keeps() && self.is_left_out(place, sentinel)? {
            // Most bases of the past are not kept, because the history before them adds up to them.
            if rebuild(place, sentinel, loader)?.is_some() {
                self.report.base = BaseState::Anchored;
                return Ok(());
            }
        }
        self.anchored(place, sentinel.base_sha256, BaseState::Anchored, loader)?;
        if self.proof == Proof::Nothing
            && is_searched(place, loader)
            && let Some(archive) = rebuild(place, sentinel, loader)?
        {
            self.proof = Proof::Whole;
            self.report
                .notes
                .push(format!("the state that the log starts from was rebuilt from {archive}"));
        }
        self.load_unproved(place, sentinel.base_sha256, loader)
    }

    fn is_left_out(&self, place: BasePlace<'_>, sentinel: &Sentinel) -> io::Result<bool> {
        match &sentinel.base_sha256 {
            Some(sha256) => Ok(open_base(place.disk, place.layout, sha256)?.is_none()),
            None => Ok(sentinel.told.base.is_some()),
        }
    }

    /// For a repair with `unproven`: loads an altered base, marked. Opening a store loads nothing of it.
    fn load_unproved(&mut self, place: BasePlace<'_>, sha256: Option<Hex>, loader: &mut Loader<'_>) -> io::Result<()> {
        if self.proof != Proof::Nothing || !loader.is_salvaging() {
            return Ok(());
        }
        let name = sha256.map_or_else(|| SNAPSHOT.to_owned(), |sha256| base_name(sha256.text()));
        let Some(file) = open_inside(place.disk, place.layout, &name)? else {
            return Ok(());
        };
        match loader.take_unproved(&*file).naming(&place.layout.inside(&name))? {
            true => self
                .report
                .notes
                .push(format!("nothing proves what {name} says: it is loaded as it is")),
            false => loader.forget_base(),
        }
        Ok(())
    }

    /// For a log whose base is in segments.
    pub fn resume(&mut self, sentinel: &Sentinel) {
        self.tell_repairs(sentinel);
        self.report.base = BaseState::Anchored;
    }

    /// Every report on a store names its repairs.
    fn tell_repairs(&mut self, sentinel: &Sentinel) {
        self.report
            .notes
            .extend(sentinel.repairs.iter().map(|repair| repair.tell()));
    }

    fn anchored(
        &mut self,
        place: BasePlace<'_>,
        sha256: Option<Hex>,
        good: BaseState,
        loader: &mut Loader<'_>,
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
        let there = match place.way {
            // Only a base of the past may be packed.
            Some(_) => open_base(place.disk, place.layout, &sha256)?.map(|(name, base)| (name, base.log)),
            None => {
                let name = base_name(sha256.text());
                open_inside(place.disk, place.layout, &name)?.map(|file| (name, file))
            }
        };
        if let Some((name, file)) = there {
            let reason = match loader.take_base(&*file) {
                Ok(contents) if contents.sha256 != sha256 => format!("its SHA-256 is {}", contents.sha256.text()),
                Ok(contents) => match contents.header {
                    Err(reason) => reason,
                    Ok(_) => {
                        self.report.base = good;
                        return Ok(());
                    }
                },
                Err(fault) => match damage_in(&fault) {
                    Some(reason) => reason,
                    None => return Err(fault).naming(&place.layout.inside(&name)),
                },
            };
            self.hurt(BaseState::Damaged, &name, DamageKind::BaseAltered, reason);
        } else {
            let (name, reason) = (base_name(sha256.text()), "the base that the log names is not there");
            self.hurt(BaseState::Missing, &name, DamageKind::BaseMissing, reason);
        }
        loader.forget_base();
        if !is_searched(place, loader) {
            return Ok(());
        }
        let found = copy_of_base(place.disk, place.layout, &sha256).or_else(|| mended_base(place, &sha256));
        if let Some((name, file)) = found
            && loader
                .take_base(&*file)
                .naming(&place.layout.inside(&name))?
                .header
                .is_ok()
        {
            self.proof = Proof::Whole;
            self.report
                .notes
                .push(format!("the state that the log starts from was read from {name}"));
        }
        Ok(())
    }

    /// Loads what another tool's compaction left.
    pub fn foreign(&mut self, place: BasePlace<'_>, first_seq: Option<u64>, loader: &mut Loader<'_>) -> io::Result<()> {
        let snapshot = open_inside(place.disk, place.layout, SNAPSHOT)?;
        let header = match &snapshot {
            Some(file) => {
                let read = snapshot::read(&**file, &mut snapshot::NoRecordSink);
                read.naming(&place.layout.snapshot())?.header
            }
            None => Err("another tool compacted the log, and its snapshot is not there".to_owned()),
        };
        let seq = header.as_ref().map_or(u64::MAX, |header| header.seq);
        let traces = place.traces(seq, place.hint)?;
        if let Some(adoption) = &traces.adoption {
            return self.adopted(place, adoption, loader);
        }
        if let Some((name, file)) = unadopted_base(place, first_seq, snapshot.as_deref())? {
            let reason = format!("the line that adopts {name} is lost");
            self.hurt(BaseState::Missing, "base", DamageKind::BaseMissing, reason);
            if loader.is_salvaging() {
                loader.take_unproved(&*file).naming(&place.layout.inside(&name))?;
            }
            return Ok(());
        }
        let header = match header {
            Ok(header) => header,
            Err(reason) => {
                self.hurt(BaseState::Missing, SNAPSHOT, DamageKind::BaseMissing, reason);
                return self.load_unproved(place, None, loader);
            }
        };
        if !traces.hashes.is_empty() && !traces.hashes.iter().any(|hash| hash == header.last_hash.as_bytes()) {
            let reason = format!("its last_hash is not the hash of event {seq} in the log");
            self.hurt(BaseState::Damaged, SNAPSHOT, DamageKind::SnapshotRefused, reason);
            return self.load_unproved(place, None, loader);
        }
        if let Some(file) = snapshot {
            loader.take_base(&*file).naming(&place.layout.snapshot())?;
        }
        loader.settled_until = Some(seq);
        self.report.base = BaseState::Unanchored;
        self.report
            .notes
            .push("the base is not anchored: another tool compacted this log and left no digest".to_owned());
        Ok(())
    }

    /// Loads what a line of the log adopted.
    fn adopted(&mut self, place: BasePlace<'_>, adoption: &Adoption, loader: &mut Loader<'_>) -> io::Result<()> {
        // It stays when a base is forgotten.
        loader.settled_until = Some(adoption.seq);
        let now = |way: &WayBack| way.base(adoption.base_sha256);
        let sha256 = place.way.map_or(Some(adoption.base_sha256), now);
        self.anchored(place, sha256, BaseState::Adopted, loader)?;
        self.load_unproved(place, sha256, loader)
    }

    pub fn report(mut self, walk: &Walk, tail: Option<Tail>, length: u64) -> Report {
        let mark = walk.mark();
        if let Some((line, count)) = walk.unknown_fields {
            self.report.notes.push(format!(
                "{count} lines have fields that the hash does not cover, the first is line {line}"
            ));
        }
        let blank_lines = walk.blank_lines.len() as u64;
        if let Some(first) = walk.blank_lines.first() {
            self.report
                .notes
                .push(format!("{blank_lines} blank lines, the first at byte {first}"));
        }
        let mut damage = walk.follower.damage.clone();
        if damage.is_empty() {
            damage.extend(self.lost.take());
        }
        // A broken batch is found at its end but begins before the lines inside it.
        damage.sort_by_key(|damage| damage.offset);
        damage.append(&mut self.report.damage);
        Report {
            events: mark.events,
            first_seq: mark.first_seq,
            last_seq: mark.last_seq,
            head: mark.head,
            trail: walk.trail(),
            fast_lines: walk.fast_lines,
            slow_lines: walk.slow_lines,
            blank_lines,
            bytes: length,
            committed_end: walk.end,
            damage,
            tail,
            ..self.report
        }
    }
}

/// Whether a base is looked for elsewhere: by a repair, and in the past, where most bases are not kept.
fn is_searched(place: BasePlace<'_>, loader: &Loader) -> bool {
    loader.is_salvaging() || place.way.is_some() && loader.keeps()
}

/// The base that a line adopted which is lost: it ends where the log begins, and is not what the snapshot holds now. An adoption
/// that was interrupted before its line leaves the same bytes in both places.
fn unadopted_base(
    place: BasePlace<'_>,
    first_seq: Option<u64>,
    snapshot: Option<&dyn DiskFile>,
) -> io::Result<Option<(String, Arc<dyn DiskFile>)>> {
    let Some((name, file)) = newest_base(place.disk, place.layout, first_seq.map(|seq| seq.saturating_add(1)))? else {
        return Ok(None);
    };
    let sha256 = chronolog::archive::file_digest(&*file)?;
    let is_same = snapshot.is_some_and(|held| chronolog::archive::file_digest(held).is_ok_and(|found| found == sha256));
    Ok((!is_same).then_some((name, file)))
}

/// A small base of which one byte was altered, as its digest proves that it was.
fn mended_base(place: BasePlace<'_>, sha256: &Hex) -> Option<(String, Arc<dyn DiskFile>)> {
    let name = base_name(sha256.text());
    let bytes = read_whole(place.disk, &place.layout.inside(&name)).ok().flatten()?;
    let mended = mend_bytes(&bytes, sha256, &mut Budget::of(MENDING_BLOCKS))?;
    Some((name, Arc::new(Bytes(mended))))
}

fn lost(traces: &Traces, how: &str) -> Damage {
    let reason = format!("{how}, but there was one: {}", traces.tell());
    finding(LOG, DamageKind::LogMissing, reason)
}

impl Base {
    pub fn load(&mut self, place: BasePlace<'_>, beginning: &Beginning, loader: &mut Loader<'_>) -> io::Result<()> {
        match &beginning.origin {
            Origin::Ours(sentinel) => self.named(place, sentinel, loader),
            Origin::Foreign => self.foreign(place, beginning.seq, loader),
            Origin::Nothing if beginning.seq.is_some() && beginning.prev_hash.is_none() => Ok(()),
            Origin::Nothing => self.lost_beginning(place, beginning, loader),
        }
    }

    /// The first line cannot be read, or there is none.
    fn lost_beginning(
        &mut self,
        place: BasePlace<'_>,
        beginning: &Beginning,
        loader: &mut Loader<'_>,
    ) -> io::Result<()> {
        let line = first_line(place.log, place.length)?;
        let traces = Traces::look(place.disk, place.layout)?;
        if line.is_none() && beginning.seq.is_none() {
            let Some(traces) = traces else {
                return self.only_snapshot(place, loader);
            };
            self.lost = Some(lost(&traces, "it is empty"));
            return self.load_newest(place, &Left::of_nothing(), loader);
        }
        if let Some(adoption) = place.traces(u64::MAX, Hint::None)?.adoption {
            return self.adopted(place, &adoption, loader);
        }
        let left = Left::of_log(place.log, place.length, beginning)?;
        let has_past = |traces: &Traces| traces.has_bases() || !traces.archives.is_empty();
        // Nothing was compacted before its first event, and the line that names the base is an event too.
        let is_late = left.first.is_none_or(|first| first > 2);
        if left.seems_compacted || is_late && traces.as_ref().is_some_and(has_past) {
            let reason = "the line that names the base is lost";
            self.hurt(BaseState::Missing, "base", DamageKind::BaseMissing, reason);
            return self.load_newest(place, &left, loader);
        }
        let unaccounted = left.unaccounted();
        if unaccounted.is_none() && left.first.is_some() {
            return Ok(());
        }
        if load_snapshot(place, &left, loader)? {
            let reason =
                "the lines are lost that tell what the log starts from: it fits, but nothing proves what it says";
            self.hurt(BaseState::Missing, SNAPSHOT, DamageKind::BaseMissing, reason);
        } else if let Some(first) = unaccounted {
            let unknown = format!("it is not known what came before event {first}: the first lines are lost");
            self.report.notes.push(unknown.clone());
            self.unknown = Some(unknown);
        }
        Ok(())
    }

    /// The log holds bytes and no line, and nothing else shows that there was one: but a snapshot is made of events.
    fn only_snapshot(&mut self, place: BasePlace<'_>, loader: &mut Loader<'_>) -> io::Result<()> {
        if place.length == 0 || !load_snapshot(place, &Left::of_nothing(), loader)? {
            return Ok(());
        }
        self.proof = Proof::Nothing;
        let reason = format!("it holds no whole line, but there were some: {SNAPSHOT} was made of them");
        self.lost = Some(finding(LOG, DamageKind::LogMissing, reason));
        Ok(())
    }

    /// There is no log, and something shows that there was one.
    pub(super) fn lost_log(
        &mut self,
        place: BasePlace<'_>,
        traces: &Traces,
        loader: &mut Loader<'_>,
    ) -> io::Result<()> {
        self.report.damage.push(lost(traces, "it is not there"));
        self.load_newest(place, &Left::of_nothing(), loader)
    }

    /// For a repair: loads the newest base that the log may have started from, or the snapshot, without proof.
    fn load_newest(&mut self, place: BasePlace<'_>, left: &Left, loader: &mut Loader<'_>) -> io::Result<()> {
        self.proof = Proof::Nothing;
        if !loader.is_salvaging() {
            return Ok(());
        }
        let name = match newest_base(place.disk, place.layout, left.first)? {
            Some((name, file)) => {
                loader.take_unproved(&*file).naming(&place.layout.inside(&name))?;
                name
            }
            None if load_snapshot(place, left, loader)? => SNAPSHOT.to_owned(),
            None => return Ok(()),
        };
        self.report.notes.push(format!(
            "{name} is loaded, but nothing proves that the log starts from it"
        ));
        Ok(())
    }
}

/// Whether the snapshot may hold what a log started from: it was made before the first line, or the log holds the event that it
/// ends with. A repair loads it.
fn load_snapshot(place: BasePlace<'_>, left: &Left, loader: &mut Loader<'_>) -> io::Result<bool> {
    let Some(file) = open_inside(place.disk, place.layout, SNAPSHOT)? else {
        return Ok(false);
    };
    let path = place.layout.snapshot();
    let read = snapshot::read(&*file, &mut snapshot::NoRecordSink).naming(&path)?;
    let Ok(header) = read.header else {
        return Ok(false);
    };
    // A log of which nothing can be read may have held all that is in the snapshot.
    if left.first.is_none() && !left.seems_compacted && header.seq <= left.lines {
        return Ok(false);
    }
    let hashes = place.traces(header.seq, Hint::None)?.hashes;
    let is_before = left.first.is_none_or(|first| header.seq < first);
    if !is_before && !hashes.iter().any(|hash| hash == header.last_hash.as_bytes()) {
        return Ok(false);
    }
    if loader.is_salvaging() {
        loader.take_unproved(&*file).naming(&path)?;
    }
    Ok(true)
}

/// A log, and where its base is looked for.
#[derive(Clone, Copy)]
pub(in crate::store) struct BasePlace<'a> {
    pub disk: &'a dyn Disk,
    pub layout: &'a Layout,
    pub threads: usize,
    pub log: &'a dyn DiskFile,
    pub length: u64,
    pub hint: Hint,
    /// The way back to the log, if it is one of the past.
    pub way: Option<&'a WayBack>,
}

impl BasePlace<'_> {
    fn traces(&self, seq: u64, hint: Hint) -> io::Result<ForeignTraces> {
        foreign_traces(self.log, self.length, seq, hint)
    }
}

/// One retired log, and how it must end.
struct RebuildSegment {
    archive: Archive,
    head: String,
    /// The base that it starts from accounts for its events up to here.
    settled_until: Option<u64>,
}

/// Loads the state before the log of this sentinel without its base; `None` if the archives do not reach back far enough.
pub(in crate::store) fn rebuild(
    place: BasePlace<'_>,
    sentinel: &Sentinel,
    loader: &mut Loader<'_>,
) -> io::Result<Option<String>> {
    let rebuilt = match try_rebuild(place, sentinel, loader) {
        // A retired log may be damaged so that it cannot be unpacked.
        Err(fault) if damage_in(&fault).is_some() => None,
        rebuilt => rebuilt?,
    };
    if rebuilt.is_none() {
        loader.start_over();
    }
    Ok(rebuilt)
}

fn try_rebuild(place: BasePlace<'_>, sentinel: &Sentinel, loader: &mut Loader<'_>) -> io::Result<Option<String>> {
    let Some((name, _)) = sentinel.safe_archive() else {
        return Ok(None);
    };
    let name = name.to_owned();
    // Copies elsewhere are looked for only if what lies at its own place does not reach back far enough: it takes long.
    let found = match segments_before(place, sentinel.clone(), own_base)? {
        Some(found) => Some(found),
        None => segments_before(place, sentinel.clone(), proved_base)?,
    };
    let Some((segments, base)) = found else {
        return Ok(None);
    };
    loader.start_over();
    // Its events lie in several logs.
    loader.sealer = None;
    if let Some(file) = base
        && loader.take_base(&*file)?.header.is_err()
    {
        return Ok(None);
    }
    for segment in segments.iter().rev() {
        loader.settled_until = segment.settled_until;
        let log = &*segment.archive.log;
        let mut walk = Walk::new(None);
        walk.go(log, log.length()?, Reading::new(place.threads), loader)?;
        let is_whole =
            walk.follower.damage.is_empty() && walk.mark().head.is_some_and(|head| head.text() == segment.head);
        if !is_whole {
            return Ok(None);
        }
        loader.leave_segment();
    }
    Ok(Some(name))
}

/// Retired logs, newest first, and the base that the last of them starts from, if it needs one.
type Beginnings = (Vec<RebuildSegment>, Option<Arc<dyn DiskFile>>);

/// The retired logs back to one whose own base `find` finds, and that base; `None` if there is none.
fn segments_before(
    BasePlace { disk, layout, way, .. }: BasePlace<'_>,
    mut sentinel: Sentinel,
    find: impl Fn(&dyn Disk, &Layout, &Hex) -> Option<Arc<dyn DiskFile>>,
) -> io::Result<Option<Beginnings>> {
    let mut segments: Vec<RebuildSegment> = Vec::new();
    let mut way = way.cloned().unwrap_or_default();
    loop {
        let found = sentinel
            .safe_archive()
            .and_then(|(name, digest)| proved_archive(disk, layout, name, digest));
        let Some(archive) = found else {
            return Ok(None);
        };
        let length = archive.log.length()?;
        let origin = origin_of(&*archive.log, length)?;
        let mut segment = RebuildSegment {
            head: sentinel.previous_head.clone(),
            archive,
            settled_until: None,
        };
        match origin {
            Origin::Nothing => {
                segments.push(segment);
                return Ok(Some((segments, None)));
            }
            Origin::Foreign => {
                let adoption = foreign_traces(&*segment.archive.log, length, u64::MAX, Hint::None)?.adoption;
                let Some(adoption) = adoption else {
                    return Ok(None);
                };
                way.pass(&sentinel);
                segment.settled_until = Some(adoption.seq);
                segments.push(segment);
                let base = way.base(adoption.base_sha256);
                let base = base.and_then(|sha256| find(disk, layout, &sha256));
                return Ok(base.map(|base| (segments, Some(base))));
            }
            Origin::Ours(earlier) => {
                // A segment begins where the one before it ends: whatever leads elsewhere leads nowhere.
                if earlier.last_seq >= sentinel.last_seq {
                    return Ok(None);
                }
                let earlier = way.back(&sentinel, earlier);
                segments.push(segment);
                let base = earlier.base_sha256.and_then(|sha256| find(disk, layout, &sha256));
                if base.is_some() {
                    return Ok(Some((segments, base)));
                }
                sentinel = earlier;
            }
        }
    }
}
