//! Scans the live log, the archives and the bases of a store for the records and lines that an erasure removes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::Arc;

use super::chosen::{Chosen, CurrentRecords, said_by, says_a_record};
use super::copies::CopyCheck;
use super::erase::Erase;
use crate::store::archives::replay::{Observed, Replay, ReplayObserver};
use crate::store::archives::way::{RetiredSegment, Start, pruned_until, segments};
use crate::store::files::proofs::past_files_beside;
use crate::store::turns::{StoreAccess, Turns};
use crate::store::upkeep::history_files::put_aside;
use chronolog::chain::BatchFate;
use chronolog::digest::Hex;
use chronolog::disk::{DiskFile, Identity};
use chronolog::error::{At, Error, Result};
use chronolog::event::erasure::write_redacted;
use chronolog::event::line::{Event, Trust};
use chronolog::event::tie::SaidRecord;
use chronolog::event::{IncomingEvents, Known, Op, salt};
use chronolog::hint::line_from;
use chronolog::json::RecordSpans;
use chronolog::layout::{base_name, packed_base_name};
use chronolog::log::files::open_base;
use chronolog::log::{Passed, Site};
use chronolog::memory::{self, Refused};
use chronolog::origin::Origin;
use chronolog::verify::{NoSink, Sink, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_state::snapshot::{self, Moments, RecordSink};
use chronomemory_state::state::{State, unspelled};

/// The lines and bases of the past that an erasure removes.
#[derive(Default)]
pub(in crate::store) struct FoundToErase {
    /// The lines of the retired logs, the oldest first.
    pub retired: Vec<LinesOfLog>,
    /// The bases that hold one of the records.
    pub bases: HashSet<Hex>,
}

impl FoundToErase {
    /// Whether an act is removed from these or from the live log: then only a replay tells what the other records are.
    pub fn has_acts(&self, live: &LinesOfLog) -> bool {
        self.retired.iter().chain([live]).any(|lines| lines.has_acts)
    }
}

/// The current records of a store, asked for one at a time.
pub(super) struct Asking<'a, T> {
    access: &'a StoreAccess<'a, T>,
    fault: RefCell<Option<Error>>,
}

impl<'a, T: Turns> Asking<'a, T> {
    pub fn of(access: &'a StoreAccess<'a, T>) -> Self {
        Self {
            access,
            fault: RefCell::default(),
        }
    }

    /// Fails if the store could not answer: then no answer counts.
    pub fn check(self) -> Result<()> {
        self.fault.into_inner().map_or(Ok(()), Err)
    }
}

impl<T: Turns> CurrentRecords for Asking<'_, T> {
    fn record(&self, id: &[u8]) -> Option<Vec<u8>> {
        let asked = self
            .access
            .look(|store| Ok(store.state.get(&unspelled(id)).map(Cow::into_owned)));
        asked.unwrap_or_else(|fault| {
            self.fault.borrow_mut().get_or_insert(fault);
            None
        })
    }
}

#[derive(Default)]
struct ScanResult {
    /// The records to erase; a scan adds those that belong to them.
    pub chosen: Chosen,
    /// The scan has added records: what was read before has to be read again.
    pub grew: bool,
    /// An event after the choice changes it: the choice has to be made again.
    pub is_upset: bool,
    /// The live log, once it was read.
    pub live: Option<LiveLines>,
    /// The archives that were read, by their digests.
    retired: HashMap<Hex, LinesOfLog>,
    /// The bases that were read, by their digests, and whether they hold one of the records.
    bases: HashMap<Hex, bool>,
    /// The lines found in the log that is being read, and whether it is a retired one.
    lines: LinesOfLog,
    is_past: bool,
}

impl ScanResult {
    /// Takes out what was found in these archives and bases.
    pub fn found(&mut self, segments: &[RetiredSegment], bases: &[Hex]) -> FoundToErase {
        let retired = |segment: &RetiredSegment| self.retired.remove(&segment.digest).unwrap_or_default();
        let retired = segments.iter().map(retired).collect();
        let holds = |base: &&Hex| self.bases.get(*base) == Some(&true);
        FoundToErase {
            retired,
            bases: bases.iter().filter(holds).copied().collect(),
        }
    }

    fn look(&mut self, said: &SaidRecord<'_>, current: &dyn CurrentRecords) {
        self.grew |= self.chosen.look(said, current);
    }
}

/// A scan of a store. It observes a verification, and reads itself what that does not show.
pub(super) struct EraseScan<'a> {
    /// The log ended here when the records were chosen.
    chosen_at: u64,
    current: &'a dyn CurrentRecords,
    result: RefCell<ScanResult>,
}

impl<'a> EraseScan<'a> {
    /// Scans for records that were chosen when the log ended at a place.
    pub fn of(chosen: Chosen, chosen_at: u64, current: &'a dyn CurrentRecords) -> Self {
        Self {
            chosen_at,
            current,
            result: RefCell::new(ScanResult {
                chosen,
                ..ScanResult::default()
            }),
        }
    }

    pub fn chosen(self) -> Chosen {
        self.result.into_inner().chosen
    }

    fn result(self) -> ScanResult {
        self.result.into_inner()
    }

    /// Reads what was not read yet, until nothing is added to what is chosen.
    fn complete(
        &mut self,
        access: &StoreAccess<'_, impl Turns>,
        (site, threads): (&Site, usize),
        (segments, bases): (&[RetiredSegment], &[Hex]),
        live: (&dyn DiskFile, u64),
    ) -> Result<()> {
        loop {
            if self.result.get_mut().grew {
                let chosen = &mut self.result.get_mut().chosen;
                access.look(|store| {
                    chosen.know(&store.state);
                    Ok(())
                })?;
                let result = self.result.get_mut();
                result.grew = false;
                result.live = None;
            }
            self.read_rest((site, threads), (segments, bases), live)?;
            if !self.result.get_mut().grew {
                return Ok(());
            }
        }
    }

    fn read_rest(
        &self,
        (site, threads): (&Site, usize),
        (segments, bases): (&[RetiredSegment], &[Hex]),
        (log, end): (&dyn DiskFile, u64),
    ) -> Result<()> {
        let read = |log: &dyn DiskFile, end: u64| walk(log, end, threads, &mut Observed(&mut NoSink, self));
        if self.result.borrow().live.is_none() {
            self.begin();
            self.end(&read(log, end).at(site.log())?);
        }
        for segment in segments {
            if self.result.borrow().retired.contains_key(&segment.digest) {
                continue;
            }
            self.begin_retired();
            let (log, path) = (&*segment.archive.log, site.layout.inside(&segment.name));
            let walk = log.length().and_then(|length| read(log, length)).at(&path)?;
            self.end_retired(&segment.digest, walk.redacted.is_even());
            segment.archive.rest();
        }
        for sha256 in bases {
            if self.result.borrow().bases.contains_key(sha256) {
                continue;
            }
            let path = site.layout.base(sha256.text());
            if let Some((_, base)) = open_base(&*site.disk, &site.layout, sha256).at(&path)? {
                let mut records = BaseRecords {
                    scan: self,
                    holds: false,
                };
                // It was proved: its digest need not be looked at again, unless it is of another form.
                if !snapshot::read_undigested(&*base.log, &mut records).at(&path)? {
                    snapshot::read(&*base.log, &mut records).at(&path)?;
                }
                let holds = records.holds;
                self.result.borrow_mut().bases.insert(*sha256, holds);
            }
        }
        Ok(())
    }
}

impl ReplayObserver for EraseScan<'_> {
    fn begin(&self) {
        let mut result = self.result.borrow_mut();
        // A verification may read everything twice: what is chosen stays.
        *result = ScanResult {
            chosen: std::mem::take(&mut result.chosen),
            grew: result.grew,
            is_upset: result.is_upset,
            ..ScanResult::default()
        };
    }

    fn see(&self, known: &Known<'_>) {
        let result = &mut *self.result.borrow_mut();
        let is_later = !result.is_past && known.offset >= self.chosen_at;
        result.is_upset |= is_later && result.chosen.is_upset_by(known);
        if says_a_record(known.op) {
            result.look(&SaidRecord::of(known.id, known.record, known.fields), self.current);
        }
        if result.chosen.doomed.takes(known) {
            result.lines.take(known);
        }
    }

    fn end(&self, walk: &Walk) {
        let mut result = self.result.borrow_mut();
        let mut lines = std::mem::take(&mut result.lines);
        lines.hits.retain(|hit| hit.offset < walk.end);
        lines.is_even = walk.redacted.is_even();
        let walk = walk.clone();
        result.live = Some(LiveLines { lines, walk });
    }

    fn begin_retired(&self) {
        let mut result = self.result.borrow_mut();
        (result.is_past, result.lines) = (true, LinesOfLog::default());
    }

    fn end_retired(&self, digest: &Hex, is_even: bool) {
        let mut result = self.result.borrow_mut();
        let lines = std::mem::take(&mut result.lines);
        result.retired.insert(*digest, LinesOfLog { is_even, ..lines });
    }

    fn base(&self, sha256: &Hex, state: &State) {
        let result = &mut *self.result.borrow_mut();
        let mut holds = false;
        for row in (0..state.slots.len() as u32).filter_map(|slot| state.row(slot)) {
            if !row.id().is_empty() {
                result.look(&said_by(&row), self.current);
                holds |= result.chosen.doomed.has(row.id());
            }
        }
        result.bases.insert(*sha256, holds);
    }
}

struct BaseRecords<'a, 'b> {
    scan: &'a EraseScan<'b>,
    holds: bool,
}

impl RecordSink for BaseRecords<'_, '_> {
    fn take(&mut self, record: &[u8], fields: RecordSpans, _: Option<Moments>) {
        if let Some(id) = fields.id.map(|id| id.of(record)) {
            let mut result = self.scan.result.borrow_mut();
            result.look(&SaidRecord::of(id, record, fields), self.scan.current);
            self.holds |= result.chosen.doomed.has(id);
        }
    }

    fn start_over(&mut self) {
        self.holds = false;
    }
}

/// The records to erase as the current state tells them, and the log at that moment.
pub(super) struct ErasePlan {
    /// The order, with its condition resolved to ids.
    pub order: Erase,
    /// The records of the order, and those that belong to them.
    pub chosen: Chosen,
    pub log: Option<LogAhead>,
}

/// The live log at the moment of a plan.
pub(super) struct LogAhead {
    file: Arc<dyn DiskFile>,
    pub until: Passed,
    origin: Origin,
    pruned_until: u64,
}

impl ErasePlan {
    pub fn look(access: &StoreAccess<'_, impl Turns>, order: &Erase) -> Result<Self> {
        access.look(|store| {
            let order = order.now(store)?.into_owned();
            let mut chosen = Chosen::by(&order)?;
            chosen.know(&store.state);
            let log = store.log.open().map(|open| LogAhead {
                file: Arc::clone(&open.file),
                until: open.passing(),
                origin: open.origin.clone(),
                pruned_until: pruned_until(&store.state),
            });
            Ok(Self { order, chosen, log })
        })
    }
}

/// The records to erase, and the lines and bases that hold them.
pub(super) struct Surveyed {
    pub chosen: Chosen,
    /// The history is complete, so that it names every row that ever existed.
    is_told: bool,
    /// The retired logs, the oldest first, and what the live one starts from.
    pub segments: Vec<RetiredSegment>,
    pub start: Start,
    pub found: FoundToErase,
    pub live: LiveLines,
    pub log: Arc<dyn DiskFile>,
    /// The live log was scanned up to here.
    pub until: Passed,
}

impl Surveyed {
    /// Completes a scan of what was chosen; `None` if events since then change the choice.
    pub fn of(
        access: &StoreAccess<'_, impl Turns>,
        (site, threads): (&Site, usize),
        mut scan: EraseScan<'_>,
        log: LogAhead,
    ) -> Result<Option<Self>> {
        let live = (&*log.file, log.until.end);
        let (segments, start) = segments(&*site.disk, &site.layout, &log.origin, live, log.pruned_until)?;
        let starts = || segments.iter().map(|segment| &segment.start).chain([&start]);
        let begins_with_nothing = starts().next().is_some_and(|start| start.base.is_none());
        let is_told = begins_with_nothing
            && starts().skip(1).all(|start| !start.is_word)
            && segments.iter().all(|segment| segment.redacted == 0);
        let bases: Vec<Hex> = starts().filter_map(|start| start.base).collect();
        scan.complete(access, (site, threads), (&segments, &bases), live)?;
        let mut result = scan.result();
        let found = result.found(&segments, &bases);
        let Some(live) = result.live.filter(|_| !result.is_upset) else {
            return Ok(None);
        };
        let mut until = log.until;
        (until.end, until.head) = (live.walk.end, live.walk.mark().head);
        Ok(Some(Self {
            chosen: result.chosen,
            is_told,
            segments,
            start,
            found,
            live,
            log: log.file,
            until,
        }))
    }

    /// Moves bases and archives that no log names to quarantine, which is searched later.
    pub fn put_unnamed_aside(&self, access: &StoreAccess<'_, impl Turns>, site: &Site) -> Result<()> {
        let archives = self.segments.iter().map(|segment| segment.name.clone());
        let named: BTreeSet<String> = archives.chain(self.bases()).collect();
        for name in past_files_beside(site, &named)? {
            access.locked(|store, now| put_aside(&store.site, &store.site.layout.inside(&name), now))?;
        }
        Ok(())
    }

    fn bases(&self) -> impl Iterator<Item = String> {
        let starts = self.segments.iter().map(|segment| &segment.start).chain([&self.start]);
        let bases = starts.filter_map(|start| start.base);
        bases.flat_map(|base| names_of_base(&base))
    }

    /// The number of erased lines in the live log.
    pub fn live_hits(&self) -> u64 {
        self.live.lines.hits.len() as u64
    }

    /// What a copy must be free of.
    pub fn copy_check<'a>(&'a self, (site, threads): (&'a Site, usize), order: &Erase) -> CopyCheck<'a> {
        CopyCheck {
            spaces: Some(&self.chosen.spaces).filter(|_| self.is_told),
            drops_history: order.drop_history,
            ..CopyCheck::of(site, threads, &self.chosen)
        }
    }

    /// The archives and bases, which are removed if no history is kept.
    pub fn past_files(&self, site: &Site) -> Vec<String> {
        let is_there = |name: &String| site.disk.exists(&site.layout.inside(name));
        let archives = self.segments.iter().map(|segment| segment.name.clone());
        archives.chain(self.bases().filter(is_there)).collect()
    }
}

/// The names of a base: plain, packed, or both after an interrupted compaction.
pub(super) fn names_of_base(sha256: &Hex) -> [String; 2] {
    [base_name(sha256.text()), packed_base_name(sha256.text())]
}

/// A line that goes.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct DoomedLine {
    pub offset: u64,
    pub seq: u64,
    pub hash: Hex,
}

/// What stands in the place of a line that went.
#[derive(Clone)]
struct Cut {
    /// Where that begins, in the log as it reads then.
    at: u64,
    left: Vec<u8>,
    /// Where the next line begins, in the log as it was.
    next: u64,
}

/// A log as it reads when only seq and hash are left of some lines. Nothing of it is in memory but that.
#[derive(Clone)]
pub(in crate::store) struct Redacted {
    log: Arc<dyn DiskFile>,
    pub length: u64,
    /// How many bytes less that is than it was, and how many more.
    taken: u64,
    left_over: u64,
    cuts: Arc<Vec<Cut>>,
}

impl Redacted {
    pub fn nothing_of(log: &Arc<dyn DiskFile>) -> Self {
        Self {
            log: Arc::clone(log),
            length: 0,
            taken: 0,
            left_over: 0,
            cuts: Arc::default(),
        }
    }

    /// Goes on to a later place, with all lines that go up to there, in order: those before it are known already.
    pub fn go_on(&mut self, end: u64, hits: &[DoomedLine]) -> io::Result<()> {
        let known = self.cuts.len();
        for hit in &hits[known..] {
            let length = line_from(&*self.log, hit.offset, end)?.len() as u64;
            let mut left = Vec::new();
            write_redacted(hit.seq, &hit.hash, &mut left);
            let at = hit.offset - self.taken + self.left_over;
            let next = end.min(hit.offset + length + 1);
            self.taken += next - hit.offset;
            self.left_over += left.len() as u64;
            Arc::make_mut(&mut self.cuts).push(Cut { at, left, next });
        }
        self.length = end - self.taken + self.left_over;
        Ok(())
    }
}

impl DiskFile for Redacted {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let following = self.cuts.partition_point(|cut| cut.at <= offset);
        let until = self.cuts.get(following).map_or(self.length, |cut| cut.at);
        let room = usize::try_from(until.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = room.min(buffer.len());
        let Some(cut) = following.checked_sub(1).map(|before| &self.cuts[before]) else {
            return self.log.read_at(&mut buffer[..wanted], offset);
        };
        let inside = offset - cut.at;
        match cut.left.get(inside as usize..).filter(|left| !left.is_empty()) {
            Some(left) => {
                let some = left.len().min(wanted);
                buffer[..some].copy_from_slice(&left[..some]);
                Ok(some)
            }
            None => {
                let behind = inside - cut.left.len() as u64;
                self.log.read_at(&mut buffer[..wanted], cut.next + behind)
            }
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.log.identity()
    }
}

/// How many of these lines have no salt.
pub(in crate::store) fn unsalted(log: &dyn DiskFile, end: u64, hits: &[DoomedLine]) -> io::Result<u64> {
    let mut found = 0;
    for hit in hits {
        let line = line_from(log, hit.offset, end)?;
        let is_salted = Event::read(&line, Trust::Hashes).is_ok_and(|event| salt::is_salted(event.record(&line)));
        found += u64::from(!is_salted);
    }
    Ok(found)
}

/// The lines of one log that are erased.
#[derive(Debug, Default)]
pub(in crate::store) struct LinesOfLog {
    pub hits: Vec<DoomedLine>,
    /// One of them is an act, which changed other records too.
    pub has_acts: bool,
    /// Each line of the log has the seq of its place.
    pub is_even: bool,
}

impl LinesOfLog {
    pub fn take(&mut self, known: &Known<'_>) {
        if let Some(hash) = Hex::read(known.hash) {
            self.has_acts |= known.op == Op::Act;
            self.hits.push(DoomedLine {
                offset: known.offset,
                seq: known.seq,
                hash,
            });
        }
    }
}

/// The live log as far as it was scanned.
pub(in crate::store) struct LiveLines {
    pub lines: LinesOfLog,
    pub walk: Walk,
}

impl LiveLines {
    /// Scans what was appended up to a place, and replays what is kept; true if the erasure has to begin again.
    pub fn go_on(
        &mut self,
        log: &dyn DiskFile,
        end: u64,
        chosen: &mut Chosen,
        replay: Option<&mut Replay>,
    ) -> io::Result<bool> {
        let before = self.lines.hits.len();
        let mut rest = Rest {
            chosen,
            lines: &mut self.lines,
            replay,
            is_upset: false,
        };
        let reading = Reading {
            trusted_until: end,
            threads: 1,
        };
        let tail = self.walk.go(log, end, reading, &mut rest)?;
        let is_upset = rest.is_upset || tail.is_some();
        self.lines.is_even = self.walk.redacted.is_even();
        // Which lines may go where seqs jump is a question to all of them.
        Ok(is_upset || (self.lines.hits.len() > before && !self.lines.is_even))
    }
}

struct Rest<'a> {
    chosen: &'a mut Chosen,
    lines: &'a mut LinesOfLog,
    replay: Option<&'a mut Replay>,
    is_upset: bool,
}

impl Rest<'_> {
    fn see(&mut self, known: &Known<'_>) {
        self.is_upset |= self.chosen.is_upset_by(known);
        if self.chosen.doomed.takes(known) {
            self.lines.take(known);
            self.chosen.saw([known.id.to_vec()].into());
        }
    }
}

impl Sink for Rest<'_> {
    fn make_room(&mut self, coming: IncomingEvents) -> std::result::Result<(), Refused> {
        match &mut self.replay {
            Some(replay) => replay.make_room(coming),
            None => memory::check(),
        }
    }

    fn count(&mut self, known: Known<'_>, ts: i64) {
        self.see(&known);
        if let Some(replay) = &mut self.replay {
            replay.count(known, ts);
        }
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        self.see(&known);
        if let Some(replay) = &mut self.replay {
            replay.hold(known, ts);
        }
    }

    fn settle(&mut self, held: BatchFate) {
        if let Some(replay) = &mut self.replay {
            replay.settle(held);
        }
    }
}

/// Reads a trusted log to its end.
pub(in crate::store) fn walk(log: &dyn DiskFile, end: u64, threads: usize, sink: &mut dyn Sink) -> io::Result<Walk> {
    walk_without(log, end, threads, HashSet::new(), sink)
}

/// The same, as if the lines at some places were erased.
pub(super) fn walk_without(
    log: &dyn DiskFile,
    end: u64,
    threads: usize,
    going: HashSet<u64>,
    sink: &mut dyn Sink,
) -> io::Result<Walk> {
    let reading = Reading {
        trusted_until: end,
        threads,
    };
    let mut walk = Walk::new(None);
    walk.redacted.going = going;
    walk.go(log, end, reading, sink)?;
    Ok(walk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronolog::disk::{Bytes, read_upto};

    /// Reads all of it in pieces of this size.
    fn text(log: &Redacted, piece: usize) -> Vec<u8> {
        let mut text = Vec::new();
        while read_upto(log, &mut text.clone(), text.len() as u64, 1).expect("read") > 0 {
            let at = text.len() as u64;
            read_upto(log, &mut text, at, piece).expect("read");
        }
        text
    }

    #[test]
    fn a_log_reads_with_what_is_left_of_its_lines() {
        let lines = ["first line\n", "x\n", "\n", "another that is long\n", "last\n"];
        let log: Arc<dyn DiskFile> = Arc::new(Bytes(lines.concat().into_bytes()));
        let hash = Hex::read(&[b'a'; 64]).expect("digits");
        let end = log.length().expect("a length");
        for going in 0_u32..1 << lines.len() {
            let (mut offset, mut hits, mut awaited) = (0, Vec::new(), Vec::new());
            for (seq, line) in lines.iter().enumerate() {
                if going & 1 << seq == 0 {
                    awaited.extend_from_slice(line.as_bytes());
                } else {
                    let seq = seq as u64;
                    hits.push(DoomedLine { offset, seq, hash });
                    write_redacted(seq, &hash, &mut awaited);
                }
                offset += line.len() as u64;
            }
            let mut redacted = Redacted::nothing_of(&log);
            redacted.go_on(end, &hits).expect("read");
            assert_eq!(redacted.length, awaited.len() as u64);
            for piece in [1, 2, 7, 50, 1000] {
                assert_eq!(text(&redacted, piece), awaited, "{going:b} {piece}");
            }
            let half = lines[..3].concat().len() as u64;
            let before = hits.partition_point(|hit| hit.offset < half);
            let mut grown = Redacted::nothing_of(&log);
            grown.go_on(half, &hits[..before]).expect("read");
            assert!(awaited.starts_with(&text(&grown, 7)), "what was read before stays");
            grown.go_on(end, &hits).expect("read");
            assert_eq!(text(&grown, 7), awaited, "{going:b} in two steps");
        }
    }
}
