//! Scans the live log, the archives and the bases of a store for the records and lines that an erasure removes.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use super::chosen::{Chosen, CurrentRecord, record_in, says_a_record};
use super::copies::CopyCheck;
use super::erase::Erase;
use crate::store::archives::way::{Hop, KeptLogs, pruned_until};
use crate::store::files::joined::JoinedFile;
use crate::store::files::proofs::past_files_beside;
use crate::store::turns::{StoreAccess, Turns};
use crate::store::upkeep::history_files::put_aside;
use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::error::{At, Error, Result};
use chronolog::event::erasure::write_redacted;
use chronolog::event::tie::SaidRecord;
use chronolog::event::{Known, Op, salt};
use chronolog::hint::line_from;
use chronolog::json::RecordSpans;
use chronolog::layout::{base_name, packed_base_name};
use chronolog::log::files::open_base;
use chronolog::log::{Passed, Site};
use chronolog::verify::{Sink, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_state::snapshot::{self, Moments, RecordSink};

/// Takes in every version of every record in a log or base: completes the choice and notes the lines that go.
struct Scan<'a> {
    chosen: &'a mut Chosen,
    current: CurrentRecord<'a>,
    lines: LinesOfLog,
    /// Records were added to the choice: what was read before has to be read again.
    grew: bool,
    /// A line goes that is neither of a requested record nor a group of rows.
    has_others: bool,
    /// The base that is read holds a chosen record.
    is_held: bool,
}

impl<'a> Scan<'a> {
    fn new(chosen: &'a mut Chosen, current: CurrentRecord<'a>) -> Self {
        Self {
            chosen,
            current,
            lines: LinesOfLog::default(),
            grew: false,
            has_others: false,
            is_held: false,
        }
    }

    /// Reads a trusted log to its end; gives the lines that go.
    fn log(&mut self, log: &dyn DiskFile, end: u64, threads: usize) -> io::Result<(LinesOfLog, Walk)> {
        let walk = walk(log, end, threads, self)?;
        let is_even = walk.redacted.is_even();
        let lines = std::mem::take(&mut self.lines);
        Ok((LinesOfLog { is_even, ..lines }, walk))
    }

    /// Whether a base holds one of the records; one that is not there holds none.
    fn base(&mut self, site: &Site, sha256: &Hex) -> Result<bool> {
        let path = site.layout.base(sha256.text());
        self.is_held = false;
        if let Some((_, base)) = open_base(&*site.disk, &site.layout, sha256).at(&path)? {
            // It was proved: its digest need not be computed again, unless it is of another form.
            if !snapshot::read_undigested(&*base.log, self).at(&path)? {
                snapshot::read(&*base.log, self).at(&path)?;
            }
        }
        Ok(self.is_held)
    }
}

impl Sink for Scan<'_> {
    fn count(&mut self, known: Known<'_>, _: i64) {
        if says_a_record(known.op) {
            let said = SaidRecord::of(known.id, known.record, known.fields);
            self.grew |= self.chosen.look(&said, self.current);
        }
        if self.chosen.doomed.takes(&known) {
            self.lines.take(&known);
            self.has_others |= !self.chosen.is_requested_or_group(known.id);
        }
    }

    fn minds_salt(&self, _: &[u8]) -> bool {
        false
    }
}

impl RecordSink for Scan<'_> {
    fn take(&mut self, record: &[u8], fields: RecordSpans, _: Option<Moments>) {
        if let Some(id) = fields.id.map(|id| id.of(record)) {
            self.grew |= self.chosen.look(&SaidRecord::of(id, record, fields), self.current);
            self.is_held |= self.chosen.doomed.has(id);
        }
    }

    fn start_over(&mut self) {
        self.is_held = false;
    }
}

/// What an erasure removes: the chosen records, and the lines and bases that hold them.
pub(super) struct ErasePlan {
    /// The order, with its condition resolved to ids.
    pub order: Erase,
    /// The records of the order, and those that belong to them.
    pub chosen: Chosen,
    /// The history is complete, so that it names every row that ever existed.
    is_told: bool,
    /// The live log and the retired ones, and the lines that go from each of these.
    pub logs: Arc<KeptLogs>,
    pub retired: Vec<LinesOfLog>,
    /// The bases that hold one of the records.
    pub bases: HashSet<Hex>,
    pub log: Arc<dyn DiskFile>,
    /// The live log was scanned up to here.
    pub until: Passed,
    pub live: LinesOfLog,
    pub walk: Walk,
}

impl ErasePlan {
    /// Chooses the records as the store has them now, and scans all of its files.
    pub fn find(access: &StoreAccess<'_, impl Turns>, (site, threads): (&Site, usize), order: &Erase) -> Result<Self> {
        let (order, mut chosen, log, until, origin, pruned) = access.look(|store| {
            let order = order.now(store)?.into_owned();
            let mut chosen = Chosen::by(&order)?;
            chosen.know(&store.state);
            let open = store.log.open().ok_or(Error::Closed)?;
            let (log, origin) = (Arc::clone(&open.file), open.origin.clone());
            Ok((order, chosen, log, open.passing(), origin, pruned_until(&store.state)))
        })?;
        let logs = KeptLogs::of(site, &origin, (&*log, until.end), pruned)?;
        let begins_with_nothing = logs.all().next().is_some_and(|first| first.base.1.is_none());
        let is_told = begins_with_nothing
            && logs.all().skip(1).all(|log| !log.is_base_declared())
            && logs.retired.iter().all(|log| log.bound == 0);
        let bases: Vec<Hex> = logs.all().filter_map(|log| log.base.1).collect();
        let fault = RefCell::new(None);
        let current = |id: &[u8]| {
            let asked = access.look(|store| Ok(record_in(&store.state, id)));
            asked.unwrap_or_else(|error| {
                fault.borrow_mut().get_or_insert(error);
                None
            })
        };
        let (live, walk, retired, bases) = loop {
            let mut scan = Scan::new(&mut chosen, &current);
            let (live, walk) = scan.log(&*log, until.end, threads).at(site.log())?;
            let mut retired = Vec::with_capacity(logs.retired.len());
            for Hop {
                archive, name, length, ..
            } in &logs.retired
            {
                let Some((archive, _)) = archive else { continue };
                let read = scan.log(&*archive.log, *length, threads);
                retired.push(read.at(&site.layout.inside(name))?.0);
                archive.rest();
            }
            let mut held = HashSet::new();
            for sha256 in &bases {
                if scan.base(site, sha256)? {
                    held.insert(*sha256);
                }
            }
            if !scan.grew {
                break (live, walk, retired, held);
            }
            access.look(|store| {
                chosen.know(&store.state);
                Ok(())
            })?;
        };
        fault.into_inner().map_or(Ok(()), Err)?;
        Ok(Self {
            order,
            chosen,
            is_told,
            logs: Arc::new(logs),
            retired,
            bases,
            log,
            until,
            live,
            walk,
        })
    }

    /// Scans what was appended up to a place; false if that changes the choice, or what may be redacted.
    pub fn follow(&mut self, end: u64) -> io::Result<bool> {
        let reading = Reading {
            trusted_until: end,
            threads: 1,
        };
        // No present record is needed: a choice that grows is made again.
        let mut scan = Scan::new(&mut self.chosen, &|_| None);
        let tail = self.walk.go(&*self.log, end, reading, &mut scan)?;
        let is_upset = scan.grew || scan.has_others || tail.is_some();
        let new = std::mem::take(&mut scan.lines);
        self.live.is_even = self.walk.redacted.is_even();
        let is_even = self.live.is_even || new.hits.is_empty();
        self.live.hits.extend(new.hits);
        self.live.has_acts |= new.has_acts;
        Ok(!is_upset && is_even)
    }

    /// Whether an act is removed: then only a replay tells what the other records are.
    pub fn has_acts(&self) -> bool {
        self.retired.iter().chain([&self.live]).any(|lines| lines.has_acts)
    }

    /// Moves bases and archives that no log names to quarantine, which is searched later.
    pub fn put_unnamed_aside(&self, access: &StoreAccess<'_, impl Turns>, site: &Site) -> Result<()> {
        let named: BTreeSet<String> = self.archives().chain(self.bases()).collect();
        for name in past_files_beside(site, &named)? {
            access.locked(|store, now| put_aside(&store.site, &store.site.layout.inside(&name), now))?;
        }
        Ok(())
    }

    fn archives(&self) -> impl Iterator<Item = String> {
        self.logs.retired.iter().map(|log| log.name.clone())
    }

    fn bases(&self) -> impl Iterator<Item = String> {
        let bases = self.logs.all().filter_map(|log| log.base.1);
        bases.flat_map(|base| names_of_base(&base))
    }

    /// The archives and bases, which are removed if no history is kept.
    pub fn past_files(&self, site: &Site) -> Vec<String> {
        let is_there = |name: &String| site.disk.exists(&site.layout.inside(name));
        self.archives().chain(self.bases().filter(is_there)).collect()
    }

    /// What a copy must be free of.
    pub fn copy_check<'a>(&'a self, site: &'a Site, threads: usize) -> CopyCheck<'a> {
        CopyCheck {
            spaces: Some(&self.chosen.spaces).filter(|_| self.is_told),
            drops_history: self.order.drop_history,
            ..CopyCheck::of(site, threads, &self.chosen)
        }
    }
}

/// The names of a base: plain, packed, or both after an interrupted compaction.
pub(super) fn names_of_base(sha256: &Hex) -> [String; 2] {
    [base_name(sha256.text()), packed_base_name(sha256.text())]
}

/// A line that goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct DoomedLine {
    pub offset: u64,
    pub seq: u64,
    pub hash: Hex,
    pub is_salted: bool,
}

/// A log in which only seq and hash are left of some lines.
pub(super) struct Redacted {
    log: Arc<dyn DiskFile>,
    /// The log was taken in up to here, and so many lines of it were redacted.
    until: u64,
    known: usize,
    view: JoinedFile,
}

impl Redacted {
    pub fn nothing_of(log: &Arc<dyn DiskFile>) -> Self {
        Self {
            log: Arc::clone(log),
            until: 0,
            known: 0,
            view: JoinedFile::in_place_of(log),
        }
    }

    /// Goes on to a later place, with all lines that go up to there, in order: those before it are known already.
    pub fn go_on(&mut self, end: u64, hits: &[DoomedLine]) -> io::Result<()> {
        for hit in &hits[self.known..] {
            self.view.add(&self.log, self.until..hit.offset);
            let length = line_from(&*self.log, hit.offset, end)?.len() as u64;
            let mut left = Vec::new();
            write_redacted(hit.seq, &hit.hash, &mut left);
            self.view.add_bytes(left);
            self.until = end.min(hit.offset + length + 1);
        }
        self.known = hits.len();
        self.view.add(&self.log, self.until..end);
        self.until = end;
        Ok(())
    }

    /// What it reads like now, and how long that is.
    pub fn file(&self) -> (Arc<dyn DiskFile>, u64) {
        (Arc::new(self.view.clone()), self.view.length)
    }
}

/// The lines of one log that are erased.
#[derive(Debug, Default)]
pub(super) struct LinesOfLog {
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
                is_salted: salt::range_in(known.record).is_some(),
            });
        }
    }
}

/// Reads a trusted log to its end.
pub(in crate::store) fn walk(log: &dyn DiskFile, end: u64, threads: usize, sink: &mut dyn Sink) -> io::Result<Walk> {
    let reading = Reading {
        trusted_until: end,
        threads,
    };
    let mut walk = Walk::new(None);
    walk.go(log, end, reading, sink)?;
    Ok(walk)
}
