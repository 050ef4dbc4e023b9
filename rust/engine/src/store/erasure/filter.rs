//! Leaves erased records and lines out of the files of a store, those of the past and those of the live log.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::chosen::{Chosen, record_in};
use super::erase::{Erase, Erased};
use super::scan::{DoomedLine, ErasePlan, LinesOfLog, Redacted, names_of_base, walk};
use crate::options::Options;
use crate::store::Store;
use crate::store::archives::replay::{Doomed, Replay};
use crate::store::archives::way::Hop;
use crate::store::upkeep::bases::archive_of;
use crate::store::upkeep::bases::write_base;
use crate::store::upkeep::compact::Filter;
use crate::store::upkeep::compact_rows::Moving;
use crate::store::vectors::records::format::{file_name, group_space, space_name};
use crate::store::vectors::records::index::RowIndex;
use crate::store::write::commit::changes;
use chronolog::digest::Hex;
use chronolog::disk::{Access, DiskFile};
use chronolog::error::{At, Error, Result};
use chronolog::event::Op;
use chronolog::event::draft::{Draft, RecordChange};
use chronolog::json::{RecordSpans, Value};
use chronolog::layout::{ERASED_SUFFIX, LOG};
use chronolog::log::files::open_base;
use chronolog::log::{Progress, Site};
use chronolog::memory::{Refused, gathered};
use chronolog::wal::reader::Reading;
use chronolog::wal::writer::{EventBody, Lines};
use chronomemory_state::snapshot::{self, Moments, RecordSink, Stamp};
use chronomemory_state::state::{Frozen, State, differences, spelled, unspelled};

/// What an erasure keeps, and what it has written of the past so far.
pub(in crate::store) struct EraseFilter<'a> {
    site: &'a Site,
    options: &'a Options,
    pub(super) plan: ErasePlan,
    /// Replays the history without erased lines, if an act is erased: otherwise the kept state is the current one without them.
    replay: Option<Replay>,
    /// The base of the logs so far is there.
    is_known: bool,
    is_begun: bool,
    /// The live log with the erased lines redacted, as far as it is archived.
    view: Redacted,
    /// The list `replaced` of the sentinel.
    pub replaced: Vec<Value>,
    /// How many archives and bases are rewritten or dropped.
    pub files: u64,
    /// The files to remove after the commit.
    pub remove: Vec<String>,
    /// The files that were written, to be removed if there is no commit.
    pub made: Vec<PathBuf>,
    /// What is known so far of the report.
    pub(super) erased: Erased,
    /// The seqs of the first and the last erased line.
    pub span: Option<(u64, u64)>,
}

struct KeptRecords<'a> {
    doomed: &'a Doomed,
    state: State,
}

impl RecordSink for KeptRecords<'_> {
    fn make_room(&mut self, bytes: usize) -> std::result::Result<(), Refused> {
        RecordSink::make_room(&mut self.state, bytes)
    }

    fn take(&mut self, record: &[u8], fields: RecordSpans, moments: Option<Moments>) {
        if fields.id.is_some_and(|id| !self.doomed.has(id.of(record))) {
            self.state.take(record, fields, moments);
        }
    }

    fn date(&mut self, id: &[u8], moments: Moments) {
        self.state.date(id, moments);
    }

    fn start_over(&mut self) {
        self.state.start_over();
    }
}

impl Filter for EraseFilter<'_> {
    fn freeze(&mut self, state: &mut State, since: Option<u64>) -> Result<Option<Frozen>> {
        if self.replay.is_some() {
            return Ok(None);
        }
        let gone = state.slots_named(self.plan.chosen.doomed.ids());
        let mut slots = match since {
            Some(since) => state.slots_since(since)?,
            None => gathered(0..state.slots.len() as u32)?,
        };
        slots.retain(|slot| gone.binary_search(slot).is_err());
        Ok(Some(state.freeze_those(slots.into_iter())?))
    }

    fn follow(&mut self, log: &dyn DiskFile, end: u64) -> Result<bool> {
        let path = self.site.log();
        let (mut walk, before) = (self.plan.walk.clone(), self.plan.live.hits.len());
        if !self.plan.follow(end).at(path)? {
            return Ok(false);
        }
        if let Some(replay) = &mut self.replay {
            let reading = Reading {
                trusted_until: end,
                threads: 1,
            };
            walk.go(log, end, reading, replay).at(path)?;
        }
        self.check_replay()?;
        let hits = self.plan.live.hits[before..].to_vec();
        self.count(LOG, &hits);
        Ok(true)
    }

    fn freeze_replayed(&mut self, since: Option<u64>) -> Result<Option<Frozen>> {
        let kept = self.replay.as_mut().and_then(|replay| replay.state.as_mut());
        Ok(match (kept, since) {
            (Some(kept), Some(since)) => Some(kept.freeze_those(kept.slots_since(since)?.into_iter())?),
            (Some(kept), None) => Some(kept.freeze()?),
            (None, _) => None,
        })
    }

    fn archived(&mut self, _: &Arc<dyn DiskFile>, end: u64) -> Result<(Arc<dyn DiskFile>, u64)> {
        self.view.go_on(end, &self.plan.live.hits).at(self.site.log())?;
        Ok(self.view.file())
    }
}

impl<'a> EraseFilter<'a> {
    /// Rewrites the files of the past, the oldest first, or only counts. No log names the new files yet.
    pub(super) fn of_past(
        (site, options): (&'a Site, &'a Options),
        plan: ErasePlan,
        progress: Progress<'_>,
    ) -> Result<Self> {
        let doomed = plan.has_acts().then(|| Arc::new(plan.chosen.doomed.clone()));
        let mut filter = Self {
            site,
            options,
            replay: doomed.map(|doomed| Replay::without(&doomed)),
            is_known: false,
            is_begun: false,
            view: Redacted::nothing_of(&plan.log),
            plan,
            replaced: Vec::new(),
            files: 0,
            remove: Vec::new(),
            made: Vec::new(),
            erased: Erased::default(),
            span: None,
        };
        let logs = Arc::clone(&filter.plan.logs);
        let retired = std::mem::take(&mut filter.plan.retired);
        for (done, (log, lines)) in (1..).zip(logs.retired.iter().zip(&retired)) {
            filter.retired(log, lines)?;
            progress(done, retired.len() as u64 + 1);
        }
        let log = Arc::clone(&filter.plan.log);
        let live = std::mem::take(&mut filter.plan.live);
        filter.take_in(&logs.live, (&*log, filter.plan.until.end), &live)?;
        filter.plan.live = live;
        filter.plan.retired = retired;
        Ok(filter)
    }

    /// Nothing of the past is written: files and lines are only counted.
    fn is_dry(&self) -> bool {
        self.plan.order.dry_run || self.plan.order.drop_history
    }

    fn retired(&mut self, retired: &Hop, lines: &LinesOfLog) -> Result<()> {
        let Some((archive, digest)) = &retired.archive else {
            return Ok(());
        };
        let path = self.site.layout.inside(&retired.name);
        self.take_in(retired, (&*archive.log, retired.length), lines)?;
        if let Some(replay) = &mut self.replay {
            replay.leave_segment();
        }
        let hits = &lines.hits;
        self.files += u64::from(!hits.is_empty());
        if !hits.is_empty() && !self.is_dry() {
            let mut redacted = Redacted::nothing_of(&archive.log);
            redacted.go_on(retired.length, hits).at(&path)?;
            let (log, threads) = (redacted.file(), self.options.threads);
            let span = retired.span.unwrap_or_default();
            let (name, new) = archive_of(self.site, log, span, ERASED_SUFFIX, threads)?;
            self.made
                .push(self.site.layout.inside(&format!("{name}{ERASED_SUFFIX}")));
            let erased = retired.bound + hits.len() as u64;
            self.replaced.push(Value::object([
                ("old", text(digest)),
                ("new", text(&new)),
                ("erased", Value::from(erased)),
            ]));
            self.remove.push(retired.name.clone());
        }
        archive.rest();
        Ok(())
    }

    /// Fails with `Busy` if the base of the log is not there, so that the kept records are unknown.
    pub fn check(&self) -> Result<()> {
        let is_known = match &self.replay {
            Some(replay) => replay.state.is_some(),
            None => self.is_known,
        };
        let why_not = || Error::busy("nothing is erased while the base of the log is missing");
        is_known.then_some(()).ok_or_else(why_not)
    }

    /// What is kept adds up to this; `None` if that is what is there without the records.
    pub fn sum(&mut self) -> Option<State> {
        let mut replay = self.replay.take()?;
        replay.leave_segment();
        replay.state
    }

    fn check_replay(&self) -> Result<()> {
        match self.replay.as_ref().is_some_and(|replay| replay.gave_up) {
            true => Err(Error::from(Refused)),
            false => Ok(()),
        }
    }

    fn take_in(&mut self, hop: &Hop, (log, end): (&dyn DiskFile, u64), lines: &LinesOfLog) -> Result<()> {
        self.begin(hop)?;
        let name = &hop.name;
        if !lines.is_even && !lines.hits.is_empty() && !self.plan.order.drop_history {
            return Err(Error::busy(format!(
                "the seqs in {name} jump, and what would be left of it need not show that: a verifier could take the erased \
                 lines for forged ones. Give history=\"drop\", which keeps no archive"
            )));
        }
        if let Some(replay) = &mut self.replay {
            replay.settled_until = hop.adopted;
            walk(log, end, self.options.threads, replay).at(&self.site.layout.inside(name))?;
        }
        self.check_replay()?;
        self.count(name, &lines.hits);
        Ok(())
    }

    fn count(&mut self, name: &str, hits: &[DoomedLine]) {
        let erased = &mut self.erased;
        erased.lines += hits.len() as u64;
        erased.unsalted += hits.iter().filter(|hit| !hit.is_salted).count() as u64;
        for hit in hits {
            let (first, last) = self.span.unwrap_or((hit.seq, hit.seq));
            self.span = Some((first.min(hit.seq), last.max(hit.seq)));
        }
        match erased.by_log.last_mut().filter(|(last, _)| last == name) {
            Some((_, count)) => *count += hits.len() as u64,
            None if hits.is_empty() => {}
            None => erased.by_log.push((name.to_owned(), hits.len() as u64)),
        }
    }

    /// Handles the base of a log: the first base and a declared one are filtered; any other stays, or goes if it differs.
    fn begin(&mut self, log: &Hop) -> Result<()> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let Some(sha256) = log.base.1 else {
            if is_first {
                self.begin_from(State::default());
            }
            return Ok(());
        };
        let path = self.site.layout.base(sha256.text());
        let Some((_, base)) = open_base(&*self.site.disk, &self.site.layout, &sha256).at(&path)? else {
            return Ok(());
        };
        let file = base.log;
        // Where the base before is gone nothing adds up to this one: it counts as it is.
        if is_first || log.is_base_declared() || !self.is_known {
            return self.begin_with(&*file, &sha256);
        }
        // A base that was proved is what the logs before it add up to: only one that holds some of the records is another now.
        let stays = match &mut self.replay {
            Some(replay) => replay.is_like(&*file, &sha256) == Some(true),
            None => !self.plan.bases.contains(&sha256),
        };
        if !stays {
            self.replace_base(&sha256, Value::Null);
        }
        Ok(())
    }

    fn replace_base(&mut self, old: &Hex, new: Value) {
        self.files += 1;
        self.replaced.push(Value::object([("old", text(old)), ("new", new)]));
        self.remove.extend(names_of_base(old));
    }

    fn begin_from(&mut self, state: State) {
        self.is_known = true;
        if let Some(replay) = &mut self.replay {
            replay.state = Some(state);
        }
    }

    /// The next log starts from what a base holds, as far as that is kept.
    fn begin_with(&mut self, file: &dyn DiskFile, sha256: &Hex) -> Result<()> {
        if !self.plan.bases.contains(sha256) {
            self.is_known = true;
            if let Some(replay) = &mut self.replay {
                replay.begin_with(file, sha256);
                self.is_known = replay.state.is_some();
            }
            return Ok(());
        }
        if self.is_dry() && self.replay.is_none() {
            self.is_known = true;
            self.replace_base(sha256, Value::Null);
            return Ok(());
        }
        let path = self.site.layout.base(sha256.text());
        let mut kept = KeptRecords {
            doomed: &self.plan.chosen.doomed,
            state: State::default(),
        };
        let contents = snapshot::read(file, &mut kept).at(&path)?;
        let unreadable = |reason: String| Error::io(&path, io::Error::new(io::ErrorKind::InvalidData, reason));
        let header = contents.header.map_err(unreadable)?;
        let mut state = kept.state;
        let mut new = Value::Null;
        if !self.is_dry() {
            let digest = write_base(self.site, &header, &mut state, self.options.salts(), &mut |_, _| {})?;
            self.made.push(self.site.layout.base(digest.text()));
            new = text(&digest);
        }
        self.replace_base(sha256, new);
        self.begin_from(state);
        Ok(())
    }
}

fn text(digest: &Hex) -> Value {
    Value::Str(digest.text().to_owned())
}

/// Of more records the event of an erasure does not note when they were made: it is one line.
const MOST_NOTED: usize = 200_000;

/// Records written again behind the event: those that named erased ones, requested ones, then groups of rows.
pub(super) struct Restated {
    records: Vec<(String, Option<Vec<u8>>)>,
    named: usize,
    again: usize,
    /// Of those that come first, the events that made them.
    made: Vec<Stamp>,
}

pub(super) fn event_record(
    seq: u64,
    order: &Erase,
    span: Option<(u64, u64)>,
    erased: &Erased,
    restated: &Restated,
) -> Vec<u8> {
    let text = |text: &str| Value::Str(text.to_owned());
    let data = Value::object([
        (
            "records",
            Value::from((erased.ids.len() + erased.belonging.len()) as u64),
        ),
        ("lines", Value::from(erased.lines)),
        ("unsalted", Value::from(erased.unsalted)),
        ("kept", Value::from(restated.named as u64)),
        ("again", Value::from(restated.again as u64)),
        ("made", Value::Array(restated.made.iter().map(Stamp::value).collect())),
        ("first_seq", span.map_or(Value::Null, |span| Value::from(span.0))),
        ("last_seq", span.map_or(Value::Null, |span| Value::from(span.1))),
        ("history", text(if order.drop_history { "dropped" } else { "redacted" })),
        (
            "removed",
            Value::object([
                ("backups", Value::from(erased.backups.len() as u64)),
                ("quarantine", Value::from(erased.quarantine.len() as u64)),
            ]),
        ),
    ]);
    let record = Value::object([
        ("id", Value::Str(format!("erasure:{seq}"))),
        ("kind", text("erasure")),
        ("label", text(&order.reason)),
        ("data", data),
    ]);
    record.to_bytes()
}

fn gone_of(present: &State, chosen: &Chosen) -> Vec<String> {
    let there = chosen.doomed.ids().filter(|id| present.slots.of_spelled(id).is_some());
    let mut ids: Vec<String> = there.map(unspelled).collect();
    ids.sort_unstable();
    ids
}

impl Restated {
    /// What is written again: requested values, records without erased references, and records that erased acts changed.
    pub fn of((present, kept): (&State, Option<&State>), chosen: &Chosen, moved: &MovedSpaces) -> Self {
        let others = match kept {
            Some(kept) => differences(present, kept),
            None => gone_of(present, chosen),
        };
        let mut records = Vec::new();
        for id in others {
            let name = spelled(&id);
            let space = group_space(&name).or_else(|| space_name(&name));
            if space.is_some_and(|space| moved.names.contains(space)) {
                continue;
            }
            if !chosen.doomed.has(&name) || group_space(&name).is_some() {
                let now = present.get(&id).map(Cow::into_owned);
                records.push((id, now));
            } else if let Some(left) = chosen.left_of(&name, &|id| record_in(present, id)) {
                records.push((id, Some(left)));
            }
        }
        let rank = |id: &str| match group_space(&spelled(id)).is_some() {
            true => 2,
            false => u8::from(chosen.is_again(&spelled(id))),
        };
        records.sort_by_key(|(id, _)| rank(id));
        let count = |wanted: u8| records.iter().filter(|(id, _)| rank(id) == wanted).count();
        let named = count(0);
        let made_at = |slot| present.slots.moments(slot).created;
        let made = |(id, _): &(String, Option<Vec<u8>>)| present.slots.of_id(id).map_or(Stamp::UNKNOWN, made_at);
        Self {
            named,
            again: count(1),
            made: records[..named.min(MOST_NOTED)].iter().map(made).collect(),
            records,
        }
    }
}

/// Writes records again, and groups of embeddings without the erased rows.
pub(super) fn rewrite_kept(
    new: &mut Lines,
    restated: &Restated,
    is_kept: impl Fn(&[u8]) -> bool,
    moved: &MovedSpaces,
    options: &Options,
    ts: &[u8],
) -> Result<u64> {
    let said = &restated.records;
    // Of a group that is gone there is nothing to take away.
    let is_told = |(draft, change): &(&Draft, &RecordChange)| change.op != Op::Patch || is_kept(draft.id(change));
    let rows: Vec<(&Draft, &RecordChange)> = changes(&moved.drafts).filter(is_told).collect();
    let lines = said.len() + rows.len();
    new.salts.draw_on(options.salts());
    new.salts.draw(lines).map_err(Error::randomness)?;
    let depth = options.recursion_depth;
    new.begin(lines, ts, depth);
    for (id, record) in said {
        let id = spelled(id);
        let gone = format!(
            "{{\"id\":\"{}\",\"status\":\"tombstone\"}}",
            String::from_utf8_lossy(&id)
        );
        let (op, record) = match record {
            Some(record) => (Op::Upsert, &record[..]),
            None => (Op::Delete, gone.as_bytes()),
        };
        new.push(EventBody {
            op,
            id: &id,
            record,
            ts,
            depth,
        });
    }
    // Behind the records that they are of.
    for (draft, change) in rows {
        new.push(EventBody {
            op: change.op,
            id: draft.id(change),
            record: draft.record(change),
            ts,
            depth,
        });
    }
    Ok(lines as u64)
}

/// Spaces that have moved once the new log says so.
#[derive(Default)]
pub(super) struct MovedSpaces {
    pub names: BTreeSet<String>,
    pub drafts: Vec<Draft>,
    /// The files that are left behind, from the store's folder on.
    pub files: Vec<String>,
}

/// Removes the rows of erased records from the files of a store.
pub(super) struct RowRemoval<'a> {
    store: &'a Store,
    chosen: &'a Chosen,
}

impl<'a> RowRemoval<'a> {
    /// Removes the rows of the chosen records.
    pub fn of(store: &'a Store, chosen: &'a Chosen) -> Self {
        Self { store, chosen }
    }

    /// Whether a row is kept: not of a record that goes, or of one that stays if it is its embedding now.
    fn stays(&self, index: &RowIndex, row: u32) -> bool {
        let owner = index.owner_of(row).map(|owner| self.store.state.slots.id(owner));
        owner.is_none_or(|id| !self.chosen.doomed.has(&id) || (self.chosen.stays(&id) && index.is_living(row)))
    }

    /// Whether a file has rows that go, or rows that no group names: the line that named them was lost, so their owners are unknown.
    fn must_move(&self, index: &RowIndex) -> Result<bool> {
        if (0..index.rows).any(|row| !self.stays(index, row) || index.owner_of(row).is_none()) {
            return Ok(true);
        }
        let site = &self.store.site;
        let path = site.layout.rows(&index.bound.name, index.bound.generation);
        if !site.disk.exists(&path) {
            return Ok(false);
        }
        let length = site.disk.open(&path, Access::Read).and_then(|file| file.length());
        Ok(length.at(&path)? > u64::from(index.rows) * index.bound.stride())
    }

    fn start_one(&self, index: &RowIndex) -> Result<Option<Moving>> {
        let stays = |row: u32| self.stays(index, row);
        let start = || Moving::start(&self.store.site, false, index, &[], stays);
        self.must_move(index)?.then(start).transpose()
    }

    /// Under the lock: the spaces that have to move, with the rows that stay.
    pub fn start(&self) -> Result<Vec<Moving>> {
        let known = self.store.vectors.known(&self.store.state);
        let moving = known.spaces.spaces.values().map(|index| self.start_one(index));
        moving.filter_map(Result::transpose).collect()
    }

    /// Under the lock: the rows that stay have left every file that holds others. Most were copied before.
    pub fn end(&self, moving: Vec<Moving>) -> Result<MovedSpaces> {
        let (state, depth) = (&self.store.state, self.store.options.recursion_depth);
        let mut moved = MovedSpaces::default();
        let mut moving: BTreeMap<String, Moving> = moving
            .into_iter()
            .map(|space| (space.name().to_owned(), space))
            .collect();
        for index in self.store.vectors.known(state).spaces.spaces.values() {
            let stays = |row: u32| self.stays(index, row);
            let end = |space: Moving| space.end(state, index, depth, stays);
            let mut draft = moving.remove(&index.bound.name).map(end).transpose()?.flatten();
            if draft.is_none() {
                // It is not the space that was copied, or it was not known that it has to move.
                draft = self.start_one(index)?.map(end).transpose()?.flatten();
            }
            if let Some(draft) = draft {
                moved.names.insert(index.bound.name.clone());
                moved.drafts.push(draft);
                moved.files.push(format!("vectors/{}", file_name(&index.bound)));
            }
        }
        Ok(moved)
    }
}
