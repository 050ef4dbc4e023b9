//! The sink that takes what the files say into a state, and marks records that nothing proves.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use super::load_sealing::LoadSealer;
use super::scope_watch::ScopeWatch;
use crate::store::files::held::HeldFiles;
use crate::store::files::segments::{Resumed, SegmentFolder};
use chronolog::chain::BatchFate;
use chronolog::disk::{Disk, DiskFile, read_upto};
use chronolog::event::act::each_concerned;
use chronolog::event::faces::{ERASURES, VECTORS, face_of};
use chronolog::event::{IncomingEvents, Known, Op, stamp};
use chronolog::hint::{hint_for, read_hint};
use chronolog::json::{self, RecordSpans, Value};
use chronolog::layout::Layout;
use chronolog::log::Site;
use chronolog::memory::{self, Refused};
use chronolog::origin::origin_of;
use chronolog::verify::{HeldEvents, ScopeFinding, Sink, Walk};
use chronomemory_state::segment::Sealed;
use chronomemory_state::snapshot::{self, Contents, Moments, RecordSink};
use chronomemory_state::state::{State, parsed, unspelled};

/// Where to stop when the past is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// Behind the event with this seq.
    Seq(u64),
    /// Behind the last event up to this moment, in microseconds.
    Time(i64),
}

/// Gathers what a walk shows; without a state it only checks.
#[derive(Default)]
pub struct Loader<'a> {
    pub state: Option<State>,
    /// The base accounts for all events up to here.
    pub settled_until: Option<u64>,
    pub until: Option<Moment>,
    pub last_seq: u64,
    /// The moment of that event; `None` if it is that of a base.
    pub last_ts: Option<i64>,
    /// The latest moment that the base knows of, if there is one.
    pub base_ts: Option<i64>,
    holding: HeldEvents,
    satisfied: bool,
    /// Only what is said about embeddings is taken.
    only_vectors: bool,
    /// Checks the scopes of records, if wanted.
    watch: Option<ScopeWatch>,
    /// What a repair takes beyond that: the good events of broken batches that begin here.
    salvaged: Option<BTreeSet<u64>>,
    /// Something is lost before what comes next.
    is_behind_loss: bool,
    /// The ids of records that were patched behind a loss, and that nothing had made.
    unmade: BTreeSet<String>,
    /// The walk behind the segments that the state begins with.
    pub resumed: Option<Walk>,
    /// Seals what is loaded from the log; without it all stays in memory.
    pub(in crate::store) sealer: Option<LoadSealer<'a>>,
}

impl Loader<'_> {
    pub fn loading() -> Self {
        Self {
            state: Some(State::default()),
            ..Self::default()
        }
    }

    /// Begins with the segments of a log, if there are any.
    pub(in crate::store) fn resume(&mut self, held: &HeldFiles<'_>, layout: &Layout) -> io::Result<()> {
        let origin = origin_of(&*held.log, held.log.length()?)?;
        let synced = synced_until(&held.disk, layout, &*held.log)?;
        let folder = SegmentFolder {
            disk: &held.disk,
            layout,
            log: Arc::clone(&held.log),
            origin: &origin,
        };
        // A power failure may have torn what was not synced: it is read and checked.
        if let Some(resumed) = folder.open(synced.unwrap_or(0), synced) {
            self.go_on_from(resumed);
        }
        Ok(())
    }

    /// Begins with the largest of some segments of the live log that end before the moment at which this loader stops.
    pub(in crate::store) fn resume_before(&mut self, sealed: &Sealed, site: &Site) -> io::Result<()> {
        let log = sealed.sources().log();
        let synced = synced_until(&*site.disk, &site.layout, log)?;
        let ends_before = |walk: &Walk| match self.until {
            Some(Moment::Seq(seq)) => walk.mark().highest_seq <= seq,
            Some(Moment::Time(micros)) => walk.latest <= micros,
            None => true,
        };
        for count in (1..=sealed.segments().len()).rev() {
            let walk = Walk::resume(&sealed.segments()[count - 1].head().position, log, synced);
            if let (Some(walk), Some(first)) = (walk.filter(ends_before), sealed.part(0..count)) {
                let sealed = Arc::new(first);
                self.go_on_from(Resumed { sealed, walk });
                break;
            }
        }
        Ok(())
    }

    fn go_on_from(&mut self, resumed: Resumed) {
        self.last_seq = resumed.walk.mark().last_seq;
        self.last_ts = Some(resumed.walk.latest);
        self.state = Some(State::of_segments(resumed.sealed));
        self.resumed = Some(resumed.walk);
    }

    pub fn going_on(state: State) -> Self {
        Self {
            state: Some(state),
            ..Self::default()
        }
    }

    /// Loads everything that a repair can use: the good events of the batches too that begin at these places, and a base
    /// that nothing proves, marked.
    pub fn salvaging(batches: BTreeSet<u64>) -> Self {
        Self {
            salvaged: Some(batches),
            ..Self::loading()
        }
    }

    /// For a repair: takes the records of an unproven base, marked; gives whether it is a state.
    pub(in crate::store) fn take_unproved(&mut self, file: &dyn DiskFile) -> io::Result<bool> {
        self.forget_base();
        let Some(state) = &mut self.state else { return Ok(false) };
        // Other tools write a state as they like: line by line only what is no state as a whole is read.
        if let Ok(header) = snapshot::read(file, &mut Marking(state))?.header {
            self.last_seq = header.seq;
            return Ok(true);
        }
        *state = State::default();
        Ok(take_lines(file, &mut Marking(state))? > 0)
    }

    /// Checks everything and keeps what is said about embeddings, and of what was erased.
    pub fn checking_rows() -> Self {
        Self {
            only_vectors: true,
            ..Self::loading()
        }
    }

    /// Checks the scopes of records from here on.
    pub(super) fn watch_scopes(&mut self) {
        self.watch = Some(ScopeWatch::default());
    }

    pub(super) fn scope_findings(&self) -> Vec<ScopeFinding> {
        self.watch.as_ref().map(|watch| watch.found.clone()).unwrap_or_default()
    }

    /// The ids of the records of which there is nothing but what was changed in them.
    pub(in crate::store) fn take_unmade(&mut self) -> BTreeSet<String> {
        let mut unmade = std::mem::take(&mut self.unmade);
        unmade.retain(|id| self.state.as_ref().is_none_or(|state| state.get(id).is_none()));
        unmade
    }

    /// Whether an event changes a record whose first event is lost. Its scope is not known: the rest would be visible to all.
    fn lacks_its_record(&self, known: &Known<'_>) -> bool {
        let is_there = |state: &State| state.slots.of_spelled(known.id).is_some();
        self.is_behind_loss
            && known.op == Op::Patch
            && face_of(known.id) != Some(VECTORS)
            && !self.state.as_ref().is_some_and(is_there)
    }

    pub(in crate::store) fn is_salvaging(&self) -> bool {
        self.salvaged.is_some()
    }

    /// Whether what is taken in is kept.
    pub(in crate::store) fn keeps(&self) -> bool {
        self.state.is_some()
    }

    /// Forgets a base that was not what it should have been.
    pub(in crate::store) fn forget_base(&mut self) {
        let settled_until = self.settled_until;
        self.start_over();
        self.settled_until = settled_until;
    }

    /// Forgets what was taken in: it was not what it should have been.
    pub(in crate::store) fn start_over(&mut self) {
        if let Some(state) = &mut self.state {
            *state = State::default();
        }
        if let Some(sealer) = &mut self.sealer {
            sealer.start_over();
        }
        (self.settled_until, self.last_seq, self.satisfied) = (None, 0, false);
        self.is_behind_loss = false;
        self.unmade.clear();
        self.watch = self.watch.take().map(|_| ScopeWatch::default());
        self.holding.clear();
    }

    /// What comes next is in another log: the records stay, the places of their events mean nothing there.
    pub(in crate::store) fn leave_segment(&mut self) {
        if let Some(state) = &mut self.state {
            state.forget_events();
        }
        self.settled_until = None;
    }

    fn is_wanted(&self, known: &Known<'_>) -> bool {
        self.state.is_some() && (!self.only_vectors || is_checked(known.id))
    }

    pub(in crate::store) fn take_base(&mut self, file: &dyn DiskFile) -> io::Result<Contents> {
        let contents = match &mut self.state {
            Some(state) => {
                let mut sink = BaseSink {
                    state,
                    only_vectors: self.only_vectors,
                    watch: self.watch.as_mut(),
                    sealer: &mut self.sealer,
                };
                snapshot::read(file, &mut sink)
            }
            None => snapshot::read(file, &mut snapshot::NoRecordSink),
        }?;
        if let Ok(header) = &contents.header {
            self.last_seq = header.seq;
            self.base_ts = stamp::read(header.ts.as_bytes());
        }
        Ok(contents)
    }

    fn take(&mut self, known: Known<'_>, ts: i64) {
        let beyond = match self.until {
            None => false,
            Some(Moment::Seq(seq)) => known.seq > seq,
            Some(Moment::Time(micros)) => ts > micros,
        };
        if beyond {
            self.satisfied = true;
        }
        if self.satisfied {
            return;
        }
        (self.last_seq, self.last_ts) = (known.seq, Some(ts));
        if !self.is_wanted(&known) {
            return;
        }
        self.keep(known, ts);
    }

    fn keep(&mut self, known: Known<'_>, ts: i64) {
        if self.lacks_its_record(&known) {
            self.unmade.insert(unspelled(known.id));
            if let Some(state) = &mut self.state {
                state.pass_over(known);
            }
            return;
        }
        if let Some(state) = &mut self.state {
            state.take_in(known, ts, self.settled_until);
        }
    }
}

/// How far a log is known to be on disk.
fn synced_until(disk: &dyn Disk, layout: &Layout, log: &dyn DiskFile) -> io::Result<Option<u64>> {
    Ok(hint_for(read_hint(disk, layout)?, log, log.length()?)?.synced())
}

/// Whether a record is kept where everything is only checked: those about embeddings and erasures.
fn is_checked(id: &[u8]) -> bool {
    matches!(face_of(id), Some(VECTORS | ERASURES))
}

/// Takes the records of a base, all or only those that are checked, shows all of them to the watch, and seals what it takes.
struct BaseSink<'a, 'd> {
    state: &'a mut State,
    only_vectors: bool,
    watch: Option<&'a mut ScopeWatch>,
    sealer: &'a mut Option<LoadSealer<'d>>,
}

impl RecordSink for BaseSink<'_, '_> {
    fn make_room(&mut self, bytes: usize) -> Result<(), Refused> {
        if let Some(watch) = &mut self.watch {
            watch.make_room(1)?;
        }
        if let Some(sealer) = self.sealer {
            sealer.expect(bytes);
            if sealer.seal_if_due(self.state, &Walk::new(None)).is_err() {
                *self.sealer = None;
            }
        }
        RecordSink::make_room(self.state, bytes)
    }

    fn take(&mut self, record: &[u8], fields: RecordSpans, moments: Option<Moments>) {
        let id = fields.id.map(|span| span.of(record));
        if let (Some(watch), Some(id)) = (&mut self.watch, id) {
            watch.base(id, record);
        }
        if !self.only_vectors || is_checked(id.unwrap_or_default()) {
            self.state.take(record, fields, moments);
        }
    }

    fn date(&mut self, id: &[u8], moments: Moments) {
        self.state.date(id, moments);
    }

    fn start_over(&mut self) {
        if let Some(watch) = &mut self.watch {
            **watch = ScopeWatch::default();
        }
        if let Some(sealer) = self.sealer {
            sealer.start_over();
        }
        self.state.start_over();
    }
}

impl Sink for Loader<'_> {
    fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        self.holding.make_room(coming)?;
        // Those that are held may be taken in together with these.
        let all = coming.and(self.holding.kept());
        if let Some(watch) = &mut self.watch {
            watch.make_room(all.events)?;
        }
        let Some(state) = &mut self.state else {
            return memory::check();
        };
        if let Some(sealer) = &mut self.sealer {
            sealer.expect(coming.bytes);
        }
        state.make_room(all)
    }

    fn count(&mut self, known: Known<'_>, ts: i64) {
        if let Some(watch) = &mut self.watch {
            watch.count(&known);
        }
        self.take(known, ts);
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        if self.watch.is_some() || self.is_wanted(&known) {
            self.holding.push(known, ts);
        }
    }

    fn settle(&mut self, held: BatchFate) {
        let mut holding = std::mem::take(&mut self.holding);
        // A batch is one step: a moment inside it is the moment before it.
        let inside = matches!((self.until, holding.last_seq()), (Some(Moment::Seq(seq)), Some(last)) if last > seq);
        self.satisfied |= inside;
        let is_salvaged =
            |salvaged: &BTreeSet<u64>| holding.first_offset().is_some_and(|begin| salvaged.contains(&begin));
        let counts = held == BatchFate::Count || self.salvaged.as_ref().is_some_and(is_salvaged);
        if counts && !inside {
            holding.release(|known, ts| self.count(known, ts));
        } else if let (Some(state), BatchFate::Drop) = (&mut self.state, held) {
            holding.release(|known, _| match known.op {
                Op::Act => each_concerned(known.op, known.id, known.record, |id| state.slots.doubt(id)),
                _ => state.slots.doubt(known.id),
            });
        }
        holding.clear();
        self.holding = holding;
    }

    fn note_loss(&mut self) {
        self.is_behind_loss = true;
    }

    fn note_lost_line(&mut self, line: &[u8], seq: u64) {
        if let Some(state) = &mut self.state {
            state.note_lost_line(line, seq);
        }
    }

    fn minds_salt(&self, id: &[u8]) -> bool {
        !self.only_vectors || is_checked(id)
    }

    fn is_satisfied(&self) -> bool {
        self.satisfied
    }

    fn checkpoint(&mut self, walk: &Walk) {
        if let (Some(sealer), Some(state)) = (&mut self.sealer, &mut self.state)
            && sealer.seal_if_due(state, walk).is_err()
        {
            // The rest stays in memory.
            self.sealer = None;
        }
    }
}

/// The field of `data` that marks a record from bytes that nothing proves.
pub(in crate::store) const UNPROVEN: &str = "@unproven";
/// The field of `data` that marks a record of which a later event is lost.
pub(in crate::store) const UNSETTLED: &str = "@unsettled";
/// The status of a plain record that is put on hold.
const UNSETTLED_STATUS: &str = "unsettled";
/// What a mark adds to a record, and more.
const MOST_MARK_BYTES: usize = 256;
const MOST_BYTES: usize = json::MAX_LINE_BYTES + 2;

pub(in crate::store) struct Marking<'a>(pub &'a mut State);

impl RecordSink for Marking<'_> {
    fn make_room(&mut self, bytes: usize) -> Result<(), Refused> {
        RecordSink::make_room(self.0, bytes + MOST_MARK_BYTES)
    }

    fn take(&mut self, record: &[u8], fields: RecordSpans, moments: Option<Moments>) {
        let id = fields.id.map(|span| span.of(record)).unwrap_or_default();
        // What is said about embeddings is checked row by row.
        if face_of(id) == Some(VECTORS) {
            self.0.take(record, fields, moments);
            return;
        }
        let reason = Value::Str("a repair took it from a base that is not the one the log names".to_owned());
        put_marked(self.0, parsed(record), UNPROVEN, reason, moments);
    }

    fn date(&mut self, id: &[u8], moments: Moments) {
        self.0.date(id, moments);
    }

    fn start_over(&mut self) {
        self.0.start_over();
    }
}

fn put_marked(state: &mut State, mut record: Value, mark: &str, reason: Value, moments: Option<Moments>) {
    let mut data = match record.remove("data") {
        Some(data @ Value::Object(_)) => data,
        _ => Value::Object(Vec::new()),
    };
    data.set(mark, reason);
    record.set("data", data);
    let text = record.to_bytes();
    if let Some(fields) = json::scan_record(&text) {
        state.take(&text, fields, moments);
    }
}

/// Puts a record on hold; false if there is no such record.
pub(in crate::store) fn put_on_hold(state: &mut State, id: &str, reason: &str) -> bool {
    let Some(mut record) = state.get(id).map(|record| parsed(&record)) else {
        return false;
    };
    let status = record.get("status").and_then(Value::as_str);
    // What it was before it was on hold for the first time is what counts.
    let earlier = record
        .get("data")
        .and_then(|data| data.get(UNSETTLED)?.get("status")?.as_str());
    let was = earlier.or(status).unwrap_or("active").to_owned();
    let mark = Value::object([("reason", Value::Str(reason.to_owned())), ("status", Value::Str(was))]);
    // The faces know only their own statuses.
    if face_of(id.as_bytes()).is_none() {
        record.set("status", Value::Str(UNSETTLED_STATUS.to_owned()));
    }
    put_marked(state, record, UNSETTLED, mark, None);
    true
}

/// Takes every line of a base that is a record, and skips the rest; gives how many there were.
pub(in crate::store) fn take_lines(file: &dyn DiskFile, taker: &mut dyn RecordSink) -> io::Result<u64> {
    let length = file.length()?;
    let (mut offset, mut taken) = (0, 0);
    let mut buffer = Vec::new();
    while offset < length || !buffer.is_empty() {
        let got = read_upto(file, &mut buffer, offset, 1024 * 1024)?;
        offset += got as u64;
        let whole = if got == 0 {
            buffer.len()
        } else {
            memchr::memrchr(b'\n', &buffer).map_or(0, |newline| newline + 1)
        };
        for line in buffer[..whole].split(|byte| *byte == b'\n') {
            let record = line.strip_suffix(b",").unwrap_or(line);
            if let Some(fields) = json::scan_record(record).filter(|fields| fields.id.is_some()) {
                taker.make_room(record.len())?;
                taker.take(record, fields, None);
                taken += 1;
            }
        }
        buffer.drain(..whole);
        if buffer.len() > MOST_BYTES {
            buffer.clear();
        }
    }
    Ok(taken)
}
