//! Scans the live log, the archives and the bases of a store for the records and lines that an erasure removes.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::error::{At, Error, Result};
use chronolog::event::Known;
use chronolog::event::tie::SaidRecord;
use chronolog::json::RecordSpans;
use chronolog::layout::{base_name, packed_base_name};
use chronolog::log::files::open_base;
use chronolog::log::{Passed, Site};
use chronolog::origin::Origin;
use chronolog::verify::{NoSink, Walk};
use chronomemory_state::snapshot::{self, Moments, RecordSink};
use chronomemory_state::state::{Likeness, State, unspelled};

use super::chosen::{Chosen, CurrentRecords, said_by, says_a_record};
use super::copies::CopyCheck;
use super::order::Erase;
use super::redact::{LinesOfLog, LiveLines, walk};
use crate::store::archives::replay::{Observed, ReplayObserver};
use crate::store::archives::way::{RetiredSegment, Start, pruned_until, segments};
use crate::store::files::proofs::past_files_beside;
use crate::store::turns::{StoreAccess, Turns};
use crate::store::upkeep::history_files::put_aside;

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
    /// Asks the store.
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
            .look(|store| Ok(store.state.get(&unspelled(id)).map(<[u8]>::to_vec)));
        asked.unwrap_or_else(|fault| {
            self.fault.borrow_mut().get_or_insert(fault);
            None
        })
    }
}

/// What a scan has found so far.
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

    /// Looks at a version of a record.
    fn look(&mut self, said: &SaidRecord<'_>, current: &dyn CurrentRecords) {
        self.grew |= self.chosen.look(said, current);
    }
}

/// A scan of a store. It observes a verification, and reads itself what that does not show.
pub(super) struct EraseScan<'a> {
    /// The log ended here when the records were chosen.
    chosen_at: u64,
    current: &'a dyn CurrentRecords,
    likeness: Option<Arc<Likeness>>,
    result: RefCell<ScanResult>,
}

impl<'a> EraseScan<'a> {
    /// Scans for records that were chosen when the log ended at a place. The store probably holds records like these.
    pub fn of(chosen: Chosen, chosen_at: u64, current: &'a dyn CurrentRecords, likeness: Option<Likeness>) -> Self {
        Self {
            chosen_at,
            current,
            likeness: likeness.map(Arc::new),
            result: RefCell::new(ScanResult {
                chosen,
                ..ScanResult::default()
            }),
        }
    }

    /// What was chosen.
    pub fn chosen(self) -> Chosen {
        self.result.into_inner().chosen
    }

    /// What was found.
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
    fn likeness(&self) -> Option<Arc<Likeness>> {
        self.likeness.clone()
    }

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
        for row in (0..state.slot_count() as u32).filter_map(|slot| state.row(slot)) {
            if !row.id.is_empty() {
                result.look(&said_by(&row), self.current);
                holds |= result.chosen.doomed.has(row.id);
            }
        }
        result.bases.insert(*sha256, holds);
    }
}

/// Shows a scan the records of a base.
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
    /// Chooses from the current state.
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

    /// The possible names of the bases that the logs start from.
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
