//! Commits changes: checks them, encodes them as lines, appends and syncs them, and applies them to the state.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;
use std::thread::Builder;

use super::claims::{Setting, check_claims, check_required, has_claims};
use crate::options::{Options, WriterTerms};
use crate::store::follow::LockPurpose;
use crate::store::history::lines::LiveLog;
use crate::store::vectors::changes::write::check_attachment;
use crate::store::vectors::{Attachment, DirtyRows};
use crate::store::{Embeddings, Store};
use chronolog::damage::DamageKind;
use chronolog::disk::Access;
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::{Draft, RecordChange};
use chronolog::event::line::{Event, Trust};
use chronolog::event::{IncomingEvents, Known, Op, stamp};
use chronolog::json::RecordSpans;
use chronolog::layout::{SNAPSHOT, base_name};
use chronolog::log::files::copy_file;
use chronolog::log::{Log, LogSync, Site};
use chronolog::origin::{ADOPT_ID, Origin};
use chronolog::verify::{BaseState, finding};
use chronolog::wal::writer::{ChainEnd, EventBody, Lines};
use chronomemory_state::index::MAX_INDEXES;
use chronomemory_state::snapshot;
use chronomemory_state::state::{Edition, State, Watermark};

/// Commits that wait for their common sync.
pub struct Group {
    outcomes: Vec<Result<Committed>>,
    syncing: Option<Syncing>,
    rushed: bool,
}

impl Group {
    /// Waits for the disk, if the mode asks for that.
    pub fn run(&self) -> Result<()> {
        self.syncing.as_ref().map_or(Ok(()), Syncing::run)
    }
}

impl Store {
    /// Writes a draft as one atomic batch. `now` is in microseconds since 1970.
    ///
    /// # Errors
    /// `Locked`, `Io`, `Poisoned`, `Closed`, `Invalid`, `TooLarge`, `Limit`; nothing is written then.
    pub fn commit(&mut self, draft: &Draft, now: i64) -> Result<Committed> {
        self.write_and_sync(now, |store| store.check_and_write(draft, now))
    }

    /// Writes under the lock, and syncs what may not wait any longer.
    pub(super) fn write_and_sync<T>(&mut self, now: i64, write: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.with_lock(now, |store| {
            let written = write(store)?;
            store.sync_if_due(now)?;
            Ok(written)
        })
    }

    /// Writes a draft in several parts that are one atomic batch, with the lines that were encoded ahead if they still fit. A sync that
    /// is due in mode `normal` is left to the caller, who can wait for it without the store.
    pub fn commit_parts(&mut self, parts: &[Arc<Draft>], ahead: EncodedAhead, now: i64) -> Result<Committed> {
        self.with_lock(now, |store| {
            let committed = store.write_parts(parts, Some(ahead), now)?;
            if store.options.syncs_every_commit() {
                store.sync_if_due(now)?;
            }
            Ok(committed)
        })
    }

    /// Under the lock: writes parts as one atomic batch, which the state sees later.
    pub(super) fn write_parts(
        &mut self,
        parts: &[Arc<Draft>],
        ahead: Option<EncodedAhead>,
        now: i64,
    ) -> Result<Committed> {
        let ahead = ahead.unwrap_or_else(|| encode_beside(self, parts, now));
        self.settle();
        let kept = match ahead.checked == Some(self.state.changes().watermark()) {
            true => None,
            false => check_parts(&self.state, parts)?,
        };
        let (parts, ahead) = match &kept {
            None => (parts, Some(ahead)),
            Some(kept) => (&kept[..], None),
        };
        let (committed, place) = self.put(parts, ahead, now)?;
        self.pending.take_in_later(&mut self.state, parts, place);
        self.write_due_snapshot();
        Ok(committed)
    }

    /// Writes a draft only if none of its records is there yet; `None` if one is.
    pub fn commit_new(&mut self, draft: &Draft, now: i64) -> Result<Option<Committed>> {
        self.write_and_sync(now, |store| {
            let mut ids = draft.changes().iter().map(|change| draft.id(change));
            if ids.any(|id| store.state.slots.of_spelled(id).is_some()) {
                return Ok(None);
            }
            store.check_and_write(draft, now).map(Some)
        })
    }

    /// Writes drafts as atomic batches under one lock; the caller runs their sync without the store, then [`Store::end_group`].
    pub fn start_group(&mut self, drafts: &[&Draft], now: i64) -> Result<Group> {
        let rushed = self.begin(LockPurpose::Write, now)?;
        let outcomes: Vec<Result<Committed>> = drafts.iter().map(|draft| self.check_and_write(draft, now)).collect();
        if !outcomes.iter().all(Result::is_ok) {
            self.log.lock.prepared = false;
        }
        Ok(Group {
            syncing: match self.options.syncs_every_commit() {
                true => self.start_sync(),
                false => None,
            },
            // A caller that gets an error ends no lease.
            rushed: rushed && outcomes.iter().any(Result::is_ok),
            outcomes,
        })
    }

    /// Writes on these terms until others are set.
    pub fn set_writer_options(&mut self, terms: WriterTerms) {
        self.options.recursion_depth = terms.recursion_depth;
        self.options.durability = terms.durability;
        self.options.lock_timeout = terms.lock_timeout;
        self.options.salt = terms.salt;
        self.log.set_writer_options(terms.durability, terms.lock_timeout);
    }

    /// Takes the outcome of the sync of a group, and lets go of the lock.
    pub fn end_group(&mut self, group: Group, synced: Result<()>, now: i64) -> Result<Vec<Result<Committed>>> {
        let syncing = group.syncing.as_ref();
        let outcome = syncing.map_or(Ok(()), |syncing| self.end_sync(syncing, synced));
        if outcome.is_err() {
            self.log.forget();
            self.log.lock.prepared = false;
        }
        self.log.release_or_lease(now, group.rushed && outcome.is_ok());
        outcome.map(|()| group.outcomes)
    }

    pub(in crate::store) fn check_and_write(&mut self, draft: &Draft, now: i64) -> Result<Committed> {
        self.settle();
        match check_parts(&self.state, &[draft])?.as_deref() {
            Some([kept]) => self.write(&[kept], now),
            _ => self.write(&[draft], now),
        }
    }
}

/// Checks a batch; gives other parts if records keep narrower scopes than given.
pub(in crate::store) fn check_parts(state: &State, parts: &[impl Borrow<Draft>]) -> Result<Option<Vec<Arc<Draft>>>> {
    check_required(state, parts)?;
    let kept = match has_claims(state, parts) {
        true => check_claims(state, parts)?,
        false => None,
    };
    match &kept {
        Some(kept) => check_patches(state, kept)?,
        None => check_patches(state, parts)?,
    }
    Ok(kept)
}

/// What a record may grow to by patches, with room for the rest of its line.
const PATCHED_LIMIT_BYTES: usize = chronolog::json::MAX_LINE_BYTES - 4096;

/// What a commit wrote.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The seq of the first change; a batch's `begin` is before it.
    pub first_seq: u64,
    /// The seq after the last change.
    pub next_seq: u64,
    /// The line of the last change, without its newline.
    pub last_line: Vec<u8>,
}

/// The memory that the state needs for a batch, with the line that opens it and one that adopts a base.
fn coming(parts: &[impl Borrow<Draft>]) -> IncomingEvents {
    let own = IncomingEvents {
        events: 2,
        ..IncomingEvents::default()
    };
    parts.iter().fold(own, |sum, part| sum.and(part.borrow().coming()))
}

/// A patch needs a record to change, and the result must fit into a line.
fn check_patches(state: &State, parts: &[impl Borrow<Draft>]) -> Result<()> {
    if !parts.iter().any(|part| part.borrow().has_patches()) {
        return Ok(());
    }
    let mut born = std::collections::HashMap::new();
    for (draft, change) in changes(parts) {
        let (id, record) = (draft.id(change), draft.record(change));
        match change.op {
            Op::Upsert => {
                born.insert(id, record.len());
            }
            Op::Patch => {
                let shown = || String::from_utf8_lossy(id).into_owned();
                let held = || Some(state.slots.record(state.slots.of_spelled(id)?).len());
                let known = born.get(id).copied().or_else(held);
                let Some(length) = known else {
                    return Err(Error::invalid(
                        "id",
                        format!("there is no record \"{}\" to patch", shown()),
                    ));
                };
                if length + record.len() + id.len() > PATCHED_LIMIT_BYTES {
                    return Err(Error::too_large(
                        "patch",
                        format!("\"{}\" would outgrow 16 MiB", shown()),
                    ));
                }
                born.insert(id, length + record.len());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Encodes a batch while another thread applies the one before.
fn encode_beside(store: &mut Store, parts: &[Arc<Draft>], now: i64) -> EncodedAhead {
    let moment = now.max(store.log.latest());
    let mut ahead = EncodedAhead::begin(&mut store.log, &store.options, None, count(parts), moment);
    let is_worth_it = store.options.threads > 1 && store.pending.is_large();
    std::thread::scope(|scope| {
        // Without a thread it is applied afterwards.
        _ = is_worth_it.then(|| Builder::new().spawn_scoped(scope, || store.settle()));
        parts.iter().for_each(|part| ahead.add(part));
    });
    ahead
}

impl Store {
    /// Gives a foreign base its anchor, if it has none yet.
    pub(in crate::store) fn anchor(&mut self, now: i64) -> Result<()> {
        match self.log.report.base {
            BaseState::Unanchored => self.write(&[], now).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Under the lock: appends the parts as one batch and applies it.
    pub(in crate::store) fn write(&mut self, parts: &[&Draft], now: i64) -> Result<Committed> {
        let (committed, place) = self.put(parts, None, now)?;
        take_in(&mut self.state, parts, &place);
        self.write_due_snapshot();
        Ok(committed)
    }

    /// Under the lock: appends an event of the store itself; `record` is made of its id.
    pub(in crate::store) fn write_own(
        &mut self,
        op: Op,
        word: &str,
        record: impl FnOnce(&str) -> Vec<u8>,
        now: i64,
    ) -> Result<u64> {
        self.log.check_end_is_known()?;
        self.anchor(now)?;
        let micros = now.max(self.log.latest());
        let (ts, depth) = (self.log.stamp(micros), self.options.recursion_depth);
        let mut lines = self.log.fresh_lines(None);
        let seq = lines.link.next_seq;
        let id = format!("{word}:{seq}");
        let record = record(&id);
        lines.push(EventBody {
            op,
            id: id.as_bytes(),
            record: &record,
            ts: &ts,
            depth,
        });
        self.settle();
        self.state.make_room(IncomingEvents::one(0))?;
        // What is written was decided by what the state said.
        self.state.slots.check()?;
        let offset = self.on_log(|log, rows| log.append(&lines, now, rows))?;
        let known = Known {
            op,
            id: id.as_bytes(),
            record: &record,
            fields: chronolog::json::scan_record(&record).unwrap_or_default(),
            hash: b"",
            offset,
            seq,
        };
        self.state.apply(known, micros, false);
        self.log.keep_memory(lines);
        Ok(seq)
    }

    /// Writes a snapshot that is due, unless a worker does.
    fn write_due_snapshot(&mut self) {
        if self.snapshots.is_due(&self.log) && !self.options.attended {
            self.write_wanted_snapshot();
        }
    }

    /// Appends a batch; gives what was written, and its place for the state.
    fn put(
        &mut self,
        parts: &[impl Borrow<Draft>],
        ahead: Option<EncodedAhead>,
        now: i64,
    ) -> Result<(Committed, WrittenAt)> {
        if count(parts) > 0 {
            self.log.check_end_is_known()?;
        }
        let coming = coming(parts);
        let adoption = adopt(&self.site, self.log.report.base)?;
        let adopts = adoption.is_some();
        let fits = |ahead: &EncodedAhead| !adopts && ahead.fits(self.log.link(), self.log.latest(), count(parts));
        let EncodedAhead {
            mut lines, now: micros, ..
        } = match ahead.filter(fits) {
            Some(ahead) => ahead,
            None => {
                let micros = now.max(self.log.latest());
                let mut batch = EncodedAhead::begin(&mut self.log, &self.options, adoption, count(parts), micros);
                parts.iter().try_for_each(|part| batch.encode(part.borrow()))?;
                batch
            }
        };
        // Whatever the state will need is had before anything is written.
        self.settle();
        self.state.make_room(coming)?;
        self.state.slots.check()?;
        let base = self.on_log(|log, rows| log.append(&lines, now, rows))?;
        if adopts {
            self.log.report.base = BaseState::Adopted;
        }
        let next_seq = lines.link.next_seq;
        let last = lines.starts.len().checked_sub(1);
        let committed = Committed {
            first_seq: next_seq - count(parts) as u64,
            next_seq,
            last_line: last.map(|last| lines.line(last).to_vec()).unwrap_or_default(),
        };
        let place = WrittenAt {
            base,
            starts: std::mem::take(&mut lines.starts),
            next_seq,
            micros,
        };
        self.log.keep_memory(lines);
        Ok((committed, place))
    }
}

/// Before the first write to a log of another tool: makes its snapshot a base; gives the record of the adoption.
fn adopt(site: &Site, base: BaseState) -> Result<Option<String>> {
    if base != BaseState::Unanchored {
        return Ok(None);
    }
    let path = site.layout.snapshot();
    let file = site.disk.open(&path, Access::Read).at(&path)?;
    let contents = snapshot::read(&*file, &mut snapshot::NoRecordSink).at(&path)?;
    let header = contents.header.map_err(|reason| {
        // It was read when the store was opened, and was changed since.
        let damage = finding(SNAPSHOT, DamageKind::SnapshotRefused, reason);
        Error::Corrupted(Box::new(damage))
    })?;
    let sha256 = contents.sha256;
    let bases = site.layout.bases();
    site.make_folder(&bases, site.layout.folder())?;
    copy_file(&*site.disk, &path, &site.layout.inside(&base_name(sha256.text())), None)?;
    site.disk.sync_dir(&bases).at(&bases)?;
    let mut record = format!("{{\"base_sha256\":\"{}\",\"last_hash\":", sha256.text()).into_bytes();
    chronolog::json::write_string(&header.last_hash, &mut record);
    record.extend_from_slice(format!(",\"seq\":{}}}", header.seq).as_bytes());
    Ok(Some(String::from_utf8_lossy(&record).into_owned()))
}

/// Lines encoded ahead of the commit.
pub struct EncodedAhead {
    lines: Lines,
    from: ChainEnd,
    /// The moment in them.
    now: i64,
    ts: [u8; stamp::STAMP_BYTES],
    depth: i64,
    /// How many changes the batch will have, and how many have come.
    promised: usize,
    come: usize,
    /// The edition of the state on which the batch was checked.
    pub(in crate::store) checked: Option<Watermark>,
}

impl EncodedAhead {
    /// Begins to encode a batch of so many changes behind a log, with the record of an adoption before them.
    pub(in crate::store) fn begin(
        log: &mut Log,
        options: &Options,
        adoption: Option<String>,
        changes: usize,
        now: i64,
    ) -> Self {
        let (from, depth, ts) = (log.link(), options.recursion_depth, stamp::digits(now));
        let mut lines = log.fresh_lines(options.salts());
        if let Some(record) = adoption {
            lines.push(EventBody {
                op: Op::Adopt,
                id: ADOPT_ID,
                record: record.as_bytes(),
                ts: &ts,
                depth,
            });
        }
        lines.begin(changes, &ts, depth);
        Self {
            lines,
            from,
            now,
            ts,
            depth,
            promised: changes,
            come: 0,
            checked: None,
        }
    }

    /// Encodes the next part. If that fails the lines do not fit, and encoding them again reports why.
    pub fn add(&mut self, part: &Draft) {
        let _ = self.encode(part);
    }

    fn encode(&mut self, part: &Draft) -> Result<()> {
        let coming = part.coming();
        self.lines.make_room(coming)?;
        self.lines.salts.draw(coming.events).map_err(Error::randomness)?;
        self.lines.add(part, &self.ts, self.depth);
        self.come += part.changes().len();
        Ok(())
    }

    /// Whether a batch of so many changes would have these lines now.
    fn fits(&self, link: ChainEnd, latest: i64, changes: usize) -> bool {
        self.from == link && self.now >= latest && self.promised == changes && self.come == changes
    }
}

/// What is written as one atomic batch.
#[derive(Clone, Copy, Debug)]
pub struct AtomicBatch<'a> {
    /// The changes.
    pub draft: &'a Draft,
    /// Embeddings, of records that are there or come with the changes.
    pub attachments: &'a [Attachment<'a>],
    /// Where the log ended when it was read, and the ids that were.
    pub unless_changed: Option<(&'a Bookmark, &'a [String])>,
    /// When it happened, if that is before now, in microseconds since 1970: a replayed run writes the same bytes.
    pub at: Option<i64>,
}

/// What was written, and what the writer saw before and after it.
#[derive(Debug)]
pub struct WrittenBatch {
    /// The events.
    pub committed: Committed,
    /// With everything that others wrote before.
    pub before: Edition,
    /// With this and nothing else.
    pub after: Edition,
}

impl Store {
    /// Where the log ends now; what is read afterwards is at least as new.
    pub fn bookmark(&self) -> Bookmark {
        Bookmark {
            head: self.head(),
            end: self.log.open().map_or(0, |log| log.walk.end),
        }
    }

    /// Writes changes and embeddings as one atomic batch. `None`, and nothing written, if a record that was read has changed
    /// since its bookmark, or that cannot be known.
    pub fn commit_change(&mut self, change: &AtomicBatch<'_>, now: i64) -> Result<Option<WrittenBatch>> {
        for attachment in change.attachments {
            check_attachment(attachment)?;
        }
        self.write_and_sync(now, |store| {
            // A writer that has read nothing conflicts with nothing.
            if let Some((since, read)) = change.unless_changed.filter(|(_, read)| !read.is_empty()) {
                let Some(first) = first_behind(store.live(), since)? else {
                    return Ok(None);
                };
                if read.iter().any(|id| store.state.is_spoken_of_from(id, first)) {
                    return Ok(None);
                }
            }
            store.settle();
            let kept = check_parts(&store.state, &[change.draft])?;
            let draft = kept.as_ref().map_or(change.draft, |kept| &kept[0]);
            let writer = &change.draft.author.writer;
            let before = store.state.edition(writer);
            // A stamp that is ahead would stand in all events to come.
            let stamped = change.at.map_or(now, |at| at.min(now));
            let committed = match change.attachments {
                [] => store.write(&[draft], stamped)?,
                attachments => store.write_with(draft, attachments, stamped)?,
            };
            Ok(Some(WrittenBatch {
                committed,
                before,
                after: store.state.edition(writer),
            }))
        })
    }
}

/// Where a log ended when it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bookmark {
    /// The hash of the last event, or nothing.
    pub head: String,
    /// The place behind it.
    pub end: u64,
}

/// The first event of the live log behind a bookmark; `None` if the log was replaced or compacted since.
pub(in crate::store) fn first_behind(live: LiveLog<'_>, since: &Bookmark) -> Result<Option<u32>> {
    let Some(log) = live.open else {
        return Ok((since.head.is_empty()).then_some(0));
    };
    let timeline = live.state.timeline();
    if log.walk.mark().head.is_some_and(|head| head.text() == since.head) {
        return Ok(Some(timeline.len() as u32));
    }
    match &log.origin {
        // A log that begins with a compaction began before its first event.
        Origin::Ours(_) | Origin::Foreign if since.head.is_empty() => return Ok(None),
        // What the compaction started from is what was read. A repair may have started from less.
        Origin::Ours(sentinel) if !sentinel.repaired && sentinel.previous_head == since.head => {
            return Ok(Some(0));
        }
        _ => {}
    }
    let next = timeline.index_from(since.end);
    if timeline.offset(next as usize) != Some(since.end) {
        return Ok(None);
    }
    let mut goes_on = false;
    live.each_line(next as usize..next as usize + 1, |line| {
        let event = Event::read(line, Trust::Hashes);
        goes_on = event.is_ok_and(|event| event.prev_hash(line) == since.head.as_bytes());
    })?;
    Ok(goes_on.then_some(next))
}

impl Store {
    /// Writes a draft of changed embeddings or spaces, if it is not empty; gives what the caller made besides.
    pub fn change_embeddings<T>(
        &mut self,
        now: i64,
        make: impl FnOnce(&Embeddings<'_>) -> Result<(Draft, T)>,
    ) -> Result<T> {
        write_drafted(self, now, |store| make(&store.embeddings()))
    }

    /// Sets a setting, or takes it back; returns whether that changed anything.
    ///
    /// # Errors
    /// `Limit` if there are too many indexes; `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn set(&mut self, setting: &Setting, is_wanted: bool, now: i64) -> Result<bool> {
        write_drafted(self, now, |store| {
            if setting.is_of(store)? == is_wanted {
                return Ok((Draft::default(), false));
            }
            let is_index = is_wanted && matches!(setting, Setting::Index(_));
            if is_index && Setting::indexes(store)?.len() >= MAX_INDEXES {
                return Err(Error::limit(format!("there are {MAX_INDEXES} indexes already")));
            }
            Ok((setting.draft(is_wanted, store.options.recursion_depth)?, true))
        })
    }
}

/// Writes what is drafted on the newest state, unless it is empty; gives what was made beside it.
fn write_drafted<T>(store: &mut Store, now: i64, make: impl FnOnce(&Store) -> Result<(Draft, T)>) -> Result<T> {
    store.write_and_sync(now, |store| {
        store.settle();
        let (draft, made) = make(store)?;
        if !draft.is_empty() {
            store.write(&[&draft], now)?;
        }
        Ok(made)
    })
}

/// A sync that runs while others go on writing.
pub struct Syncing {
    log: LogSync,
    rows: Option<DirtyRows>,
}

impl Syncing {
    /// The log that is synced.
    pub fn path(&self) -> &Path {
        &self.log.path
    }

    /// Waits until the disk has everything that was written before; [`Store::end_sync`] takes the result.
    pub fn run(&self) -> Result<()> {
        // What the log names must be there when the log is.
        self.rows.as_ref().map_or(Ok(()), DirtyRows::sync)?;
        self.log.run()
    }
}

impl Store {
    /// Makes everything written so far durable.
    pub fn sync(&mut self) -> Result<()> {
        self.check_open()?;
        self.log.check_poison()?;
        match self.start_sync() {
            None => Ok(()),
            Some(syncing) => {
                let outcome = syncing.run();
                self.end_sync(&syncing, outcome)
            }
        }
    }

    /// Begins a sync that can run without the store; `None` if there is nothing to do.
    pub fn start_sync(&self) -> Option<Syncing> {
        let log = self.log.start_sync()?;
        let rows = self.vectors.dirty_rows(&self.state);
        Some(Syncing { log, rows })
    }

    /// Takes the outcome of a sync: a failure poisons the store, success is noted in the hint.
    pub fn end_sync(&mut self, syncing: &Syncing, outcome: Result<()>) -> Result<()> {
        self.log.end_sync(&syncing.log, outcome)?;
        if let Some(rows) = &syncing.rows {
            self.vectors.on_disk.note(rows);
        }
        Ok(())
    }

    /// Under the lock, after a write: syncs what may not wait any longer.
    pub(in crate::store) fn sync_if_due(&mut self, now: i64) -> Result<()> {
        if !self.log.is_sync_due(now) {
            return Ok(());
        }
        // If that fails the bytes are in the file but not durable: the memory must not rely on them.
        self.on_log(Log::sync).inspect_err(|_| self.log.forget())
    }
}

/// A larger batch is applied at once, so that no reader waits for it.
const LATER_LINES: usize = 16 * 1024;
/// A batch of so many lines is worth a thread that applies it.
const WORTH_LINES: usize = 500;

/// The batch that was written last and is not applied to the state yet.
#[derive(Default)]
pub(in crate::store) struct Pending {
    /// It is applied before the state is read.
    batch: Option<(Vec<Arc<Draft>>, WrittenAt)>,
}

impl Pending {
    /// Applies a batch to the state, now or later.
    pub fn take_in_later(&mut self, state: &mut State, parts: &[Arc<Draft>], place: WrittenAt) {
        // INVARIANT: batches are applied in their order.
        self.settle(state);
        match place.starts.len() <= LATER_LINES {
            true => self.batch = Some((parts.to_vec(), place)),
            false => take_in(state, parts, &place),
        }
    }

    pub fn is_settled(&self) -> bool {
        self.batch.is_none()
    }

    /// Whether the waiting batch is worth a thread.
    pub fn is_large(&self) -> bool {
        let lines = self.batch.as_ref().map_or(0, |(_, place)| place.starts.len());
        lines >= WORTH_LINES
    }

    /// Applies the waiting batch.
    pub fn settle(&mut self, state: &mut State) {
        if let Some((parts, place)) = self.batch.take() {
            take_in(state, &parts, &place);
        }
    }
}

/// An event that changes no record: for the state it only has a place.
pub(in crate::store) fn system_event(offset: u64, seq: u64) -> Known<'static> {
    Known {
        op: Op::Other,
        id: b"",
        record: b"{}",
        fields: RecordSpans::default(),
        hash: b"",
        offset,
        seq,
    }
}

/// The place of a batch in the log.
pub(in crate::store) struct WrittenAt {
    base: u64,
    /// Where each line begins, from `base` on.
    starts: Vec<usize>,
    next_seq: u64,
    micros: i64,
}

fn take_in(state: &mut State, parts: &[impl Borrow<Draft>], place: &WrittenAt) {
    let WrittenAt {
        base, starts, micros, ..
    } = place;
    let (system, written) = starts.split_at(starts.len() - count(parts));
    let mut seq = place.next_seq - starts.len() as u64;
    for start in system {
        state.note(system_event(base + *start as u64, seq), *micros);
        seq += 1;
    }
    for ((draft, change), start) in changes(parts).zip(written) {
        let known = Known {
            op: change.op,
            id: draft.id(change),
            record: draft.record(change),
            fields: change.fields,
            hash: b"",
            offset: base + *start as u64,
            seq,
        };
        state.apply(known, *micros, change.is_plain);
        seq += 1;
    }
}

pub(super) fn count(parts: &[impl Borrow<Draft>]) -> usize {
    parts.iter().map(|part| part.borrow().changes().len()).sum()
}

/// The changes of all parts, each with the draft that holds it.
pub(in crate::store) fn changes(parts: &[impl Borrow<Draft>]) -> impl Iterator<Item = (&Draft, &RecordChange)> {
    let drafts = parts.iter().map(Borrow::borrow);
    drafts.flat_map(|draft: &Draft| draft.changes().iter().map(move |change| (draft, change)))
}
