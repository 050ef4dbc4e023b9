//! Walks a log from its first line to its committed end, for loading and verification alike.
//!
//! It follows the chain, checks what the log says about its base and its archives, and shows a [`Sink`] every event
//! that counts.

mod position;

use std::io;
use std::ops::Range;

use crate::chain::{BatchFate, ChainMark, Follower, LinePlace};
use crate::damage::{Damage, DamageKind, Tail};
use crate::digest::Hex;
use crate::disk::DiskFile;
use crate::event::act::{beyond, is_of_one};
use crate::event::erasure::Erasure;
use crate::event::line::{Event, Fault};
use crate::event::{IncomingEvents, Known, Op, salt, stamp};
use crate::json::RecordSpans;
use crate::memory::{self, Refused};
use crate::trail::{Trail, TrailEnd};
use crate::wal::reader::{Reading, read_pieces};

/// Where the state begins that a log changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BaseState {
    /// The log starts from nothing.
    #[default]
    None,
    /// A base of ours, named and hashed in the log.
    Anchored,
    /// Another tool's snapshot, adopted: hashed in the log.
    Adopted,
    /// Another tool's snapshot, which nothing proves.
    Unanchored,
    /// The base is not there.
    Missing,
    /// The base is not the one that the log names.
    Damaged,
}

impl BaseState {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Anchored => "anchored",
            Self::Adopted => "adopted",
            Self::Unanchored => "unanchored",
            Self::Missing => "missing",
            Self::Damaged => "damaged",
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many events the live log holds.
    pub events: u64,
    /// Its first seq.
    pub first_seq: Option<u64>,
    /// Its last seq.
    pub last_seq: u64,
    /// The hash of its last event.
    pub head: Option<Hex>,
    /// The trail up to that.
    pub trail: Option<TrailEnd>,
    /// Lines proven by the scan.
    pub fast_lines: u64,
    /// Lines that had to be parsed.
    pub slow_lines: u64,
    /// Lines that are empty.
    pub blank_lines: u64,
    /// The length of the log.
    pub bytes: u64,
    /// Up to here the log counts.
    pub committed_end: u64,
    /// What the log starts from.
    pub base: BaseState,
    /// All damage, in order.
    pub damage: Vec<Damage>,
    /// Indexes that are not what the log would make of them: derived, so no damage, but they may have hidden something.
    pub altered: Vec<Damage>,
    /// Files that an erasure took away and that are back: the chain is none the worse, but what was erased can be read.
    pub returned: Vec<Damage>,
    /// What follows the committed end.
    pub tail: Option<Tail>,
    /// What is worth knowing but not damage.
    pub notes: Vec<String>,
    /// The log ends before the last known sync: how that is said in the notes.
    pub cut: Option<String>,
    /// `synced` is damaged, so a log that was cut at its end looks whole.
    pub is_hint_damaged: bool,
    /// Records with a malformed or changed scope. It is no damage: the log counts as it is.
    pub scopes: Vec<ScopeFinding>,
}

impl Report {
    /// Whether nothing was modified, deleted, inserted or reordered.
    pub fn valid(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Takes the events that count.
pub trait Sink {
    /// Reserves memory for events before the first is shown. Errors: `Refused`: nothing is shown then.
    fn make_room(&mut self, _: IncomingEvents) -> Result<(), Refused> {
        memory::check()
    }
    /// An event that counts at once.
    fn count(&mut self, known: Known<'_>, ts: i64);
    /// An event that counts once its batch is whole. A sink that looks at single lines need not tell it from others.
    fn hold(&mut self, known: Known<'_>, ts: i64) {
        self.count(known, ts);
    }
    /// What becomes of those held.
    fn settle(&mut self, _held: BatchFate) {}
    /// Something is lost before the next event; called before each event behind the loss.
    fn note_loss(&mut self) {}
    /// A line behind event `seq` cannot be read, or is missing if there are no bytes of it.
    fn note_lost_line(&mut self, _line: &[u8], _seq: u64) {}
    /// Whether the record of this id is shown without its salt; not needed by a sink that does not keep it.
    fn minds_salt(&self, _id: &[u8]) -> bool {
        true
    }
    /// Whether there is no need to go on.
    fn is_satisfied(&self) -> bool {
        false
    }
    /// The walk stands behind a piece of the log, all of which was shown.
    fn checkpoint(&mut self, _walk: &Walk) {}
}

/// Shows events to a function once they count: those of a batch when it is whole.
pub struct Counted<F> {
    see: F,
    held: HeldEvents,
}

impl<F: FnMut(Known<'_>)> Counted<F> {
    /// Shows them to this function.
    pub fn by(see: F) -> Self {
        let held = HeldEvents::default();
        Self { see, held }
    }
}

impl<F: FnMut(Known<'_>)> Sink for Counted<F> {
    fn count(&mut self, known: Known<'_>, _: i64) {
        (self.see)(known);
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        self.held.push(known, ts);
    }

    fn settle(&mut self, fate: BatchFate) {
        if fate == BatchFate::Count {
            self.held.release(|known, _| (self.see)(known));
        }
        self.held.clear();
    }
}

/// Takes events and ignores them.
pub struct NoSink;

impl Sink for NoSink {
    fn count(&mut self, _: Known<'_>, _: i64) {}
}

/// How far a walk has come.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// The chain.
    pub follower: Follower,
    /// Behind the last line that counts.
    pub end: u64,
    /// How many physical lines lie before it.
    pub lines: u64,
    /// The latest moment any event names, in microseconds.
    pub latest: i64,
    /// Lines proven by the scan.
    pub fast_lines: u64,
    /// Lines that had to be parsed.
    pub slow_lines: u64,
    /// Where lines are empty.
    pub blank_lines: Vec<u64>,
    /// Lines with fields that the hash does not cover, the first of them with its line number.
    pub unknown_fields: Option<(u64, u64)>,
    /// What is left of lines that were erased.
    pub redacted: RedactedLines,
    /// The events about erasures.
    pub erasures: Vec<ErasureSeen>,
    /// The record of the last line, without its salt.
    unsalted: Vec<u8>,
    /// Up to here the log was whole once.
    promised: u64,
    /// The last line has no newline and is damage, not a tail: the next writer must end it first.
    pub unterminated: bool,
    last_stamp: Vec<u8>,
}

impl Walk {
    /// At the beginning of a log.
    pub fn new(synced: Option<u64>) -> Self {
        Self {
            follower: Follower::new(synced),
            latest: i64::MIN,
            ..Self::default()
        }
    }

    /// Takes the word of a hint that the log was whole up to some place.
    #[must_use]
    pub fn promised(self, until: Option<u64>) -> Self {
        Self {
            promised: until.unwrap_or(0),
            ..self
        }
    }

    /// Follows the chain of hashes alone too, from the first event on.
    #[must_use]
    pub fn with_trail(mut self) -> Self {
        self.follower.has_trail = true;
        self
    }

    /// The trail up to the committed end.
    pub fn trail(&self) -> Option<TrailEnd> {
        self.follower.trail.as_ref().map(Trail::end)
    }

    /// How far the chain has come.
    pub fn mark(&self) -> &ChainMark {
        &self.follower.mark
    }

    /// Goes on to `until`, the length of the log. Says why the log does not count to its end, if it does not.
    pub fn go(
        &mut self,
        file: &dyn DiskFile,
        until: u64,
        reading: Reading,
        sink: &mut dyn Sink,
    ) -> io::Result<Option<Tail>> {
        self.go_with_progress(file, until, reading, sink, &mut |_, _| {})
    }

    /// As [`Walk::go`], and reports how far it has come.
    pub fn go_with_progress(
        &mut self,
        file: &dyn DiskFile,
        until: u64,
        reading: Reading,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(u64, u64),
    ) -> io::Result<Option<Tail>> {
        let range: Range<u64> = self.end..until;
        let mut ended = false;
        read_pieces(file, range, reading, |piece| {
            sink.make_room(piece.coming())?;
            for line in &piece.lines {
                let text = piece.text(line);
                let place = LinePlace {
                    offset: line.offset,
                    line: self.lines + line.number + 1,
                };
                let (found, last_seq) = (self.follower.damage.len(), self.follower.mark.last_seq);
                let Some(step) = self.follower.follow(place, text, &line.event) else {
                    self.blank_lines.extend_from_slice(&piece.blank);
                    sink.settle(BatchFate::Cut);
                    ended = true;
                    return io::Result::Ok(false);
                };
                sink.settle_if(step.before);
                match &line.event {
                    Err(_) => sink.note_lost_line(text, last_seq),
                    Ok(event) => {
                        let is_unlinked = |damage: &Damage| damage.kind == DamageKind::Unlinked;
                        if self.follower.damage[found..].iter().any(is_unlinked) {
                            sink.note_lost_line(b"", last_seq);
                        }
                        self.show(event, text, place, step.counts, sink);
                    }
                }
                sink.settle_if(step.after);
                if sink.is_satisfied() {
                    return Ok(false);
                }
            }
            self.lines += piece.physical;
            self.blank_lines.extend_from_slice(&piece.blank);
            if let Some(end) = piece.end {
                self.end = end;
            }
            sink.checkpoint(self);
            progress(self.end, until);
            Ok(true)
        })?;
        let tail = |offset: u64, reason: &str| {
            Some(Tail {
                offset,
                length: until - offset,
                reason: reason.to_owned(),
                events: 0,
            })
        };
        if !ended && !sink.is_satisfied() && self.end < until && self.end < self.promised {
            self.lost_its_end(until, sink);
        }
        let open = if ended {
            None
        } else {
            self.follower.settle(self.promised)
        };
        if open.is_none() && !sink.is_satisfied() {
            // A broken batch at the end stays one, whatever comes behind it.
            sink.settle(BatchFate::Drop);
        }
        let cut = match self.follower.tail {
            Some(place) => Some((place, "bytes after the last sync that are not whole")),
            None => open.map(|place| (place, "half a batch")),
        };
        if let Some((place, reason)) = cut {
            sink.settle(BatchFate::Cut);
            self.end = place.offset;
            self.lines = place.line - 1;
            self.blank_lines.retain(|&offset| offset < place.offset);
            return Ok(tail(place.offset, reason));
        }
        Ok(if self.end < until && !sink.is_satisfied() {
            tail(self.end, "a line that does not end")
        } else {
            None
        })
    }

    /// The last line was whole once: its end was cut or overwritten.
    fn lost_its_end(&mut self, until: u64, sink: &mut dyn Sink) {
        let place = LinePlace {
            offset: self.end,
            line: self.lines + 1,
        };
        let fault = Fault {
            kind: DamageKind::Unreadable,
            reason: "a line that was synced has lost its end".to_owned(),
            seq: None,
        };
        let last_seq = self.follower.mark.last_seq;
        if let Some(step) = self.follower.follow(place, b"", &Err(fault)) {
            sink.settle_if(step.before);
            sink.note_lost_line(b"", last_seq);
            sink.settle_if(step.after);
        }
        self.lines += 1;
        self.end = until;
        self.unterminated = true;
    }

    fn show(&mut self, event: &Event, line: &[u8], place: LinePlace, counts: bool, sink: &mut dyn Sink) {
        if event.is_own_form() {
            self.fast_lines += 1;
        } else {
            self.slow_lines += 1;
        }
        if event.unknown_fields && !event.injected {
            let (_, count) = self.unknown_fields.get_or_insert((place.line, 0));
            *count += 1;
        }
        let ts = event.ts(line);
        // Events of one batch share their moment: one comparison instead of one reading.
        if ts != self.last_stamp {
            self.last_stamp.clear();
            self.last_stamp.extend_from_slice(ts);
            if let Some(micros) = stamp::read(ts) {
                self.latest = self.latest.max(micros);
            }
        }
        let index = self.follower.mark.events - 1;
        self.redacted.pass(place, event.spans.seq, index, event.redacted);
        let mut known = Known {
            op: event.op,
            id: event.record_id(line),
            record: event.record(line),
            fields: event.spans.fields,
            hash: &event.text(line)[9..73],
            offset: place.offset,
            seq: event.spans.seq,
        };
        if known.op == Op::Erase
            && let Some(told) = Erasure::read(known.seq, known.id, known.record)
        {
            let ts = String::from_utf8_lossy(ts).into_owned();
            self.erasures.push(ErasureSeen { index, place, ts, told });
        }
        if (is_of_one(known.op) || known.op == Op::Act) && sink.minds_salt(known.id) {
            known.record = salt::without_in(known.record, &mut self.unsalted);
        }
        if !self.follower.damage.is_empty() {
            sink.note_loss();
        }
        if counts {
            sink.count(known, self.latest);
        } else {
            sink.hold(known, self.latest);
        }
    }

    /// The events about erasures before the committed end.
    pub fn told_erasures(&self) -> impl Iterator<Item = &ErasureSeen> {
        self.erasures.iter().filter(|seen| seen.place.offset < self.end)
    }
}

impl dyn Sink + '_ {
    fn settle_if(&mut self, held: BatchFate) {
        if held != BatchFate::Stay {
            self.settle(held);
        }
    }
}

/// Notes a finding that is not in a line.
pub fn finding(path: &str, kind: DamageKind, reason: impl Into<String>) -> Damage {
    Damage {
        path: path.to_owned(),
        offset: 0,
        line: 0,
        seq: None,
        kind,
        reason: reason.into(),
        id: None,
    }
}

/// What is wrong with the scope of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeFault {
    /// It is none: only everyone sees the record.
    Malformed,
    /// It is another one than before.
    Changed,
}

impl ScopeFault {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Malformed => "malformed-scope",
            Self::Changed => "scope-changed",
        }
    }
}

/// A record whose scope is not what our writers would have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeFinding {
    /// What is wrong.
    pub fault: ScopeFault,
    /// Its id.
    pub id: String,
    /// The event; `None` for a record of the base.
    pub seq: Option<u64>,
}

/// An event about an erasure.
#[derive(Clone, Debug)]
pub struct ErasureSeen {
    /// Which event of its log it is, counted from 0.
    pub index: u64,
    /// The place of its line.
    pub place: LinePlace,
    /// Its moment, as it is spelled.
    pub ts: String,
    /// The erasure.
    pub told: Erasure,
}

/// What is left of lines that were erased.
#[derive(Clone, Debug, Default)]
pub struct RedactedLines {
    /// How many there are.
    pub count: u64,
    /// The place of the first one.
    pub first: Option<LinePlace>,
    /// Their seqs, as ranges.
    pub ranges: Vec<(u64, u64)>,
    /// The seqs of them less their places, wherever that is another than before.
    steps: Vec<(LinePlace, i128)>,
    /// The same of the other lines; `None` before the first.
    step: Option<i128>,
    /// That is not the same for all of those: other tools' seqs may jump.
    is_jumping: bool,
}

impl RedactedLines {
    /// Looks at the next line of a log.
    #[inline]
    pub fn pass(&mut self, place: LinePlace, seq: u64, index: u64, is_redacted: bool) {
        let step = i128::from(seq) - i128::from(index);
        if !is_redacted {
            self.is_jumping |= self.step.is_some_and(|before| before != step);
            self.step = Some(step);
            return;
        }
        self.count += 1;
        self.first.get_or_insert(place);
        match self.ranges.last_mut() {
            Some((_, last)) if *last + 1 == seq => *last = seq,
            _ => self.ranges.push((seq, seq)),
        }
        if self.steps.last().is_none_or(|(_, before)| *before != step) {
            self.steps.push((place, step));
        }
    }

    /// The seqs of the other lines tell what those of the erased ones were.
    pub fn is_steady(&self) -> bool {
        !self.is_jumping
    }

    /// Whether each line has the seq of its place, erased or not.
    pub fn is_even(&self) -> bool {
        self.is_steady() && self.stray().is_none()
    }

    /// The place of the first one whose seq does not fit.
    pub fn stray(&self) -> Option<LinePlace> {
        let step = self.step.or(self.steps.first().map(|(_, step)| *step))?;
        let mut others = self.steps.iter().filter(|(_, other)| *other != step);
        others.next().filter(|_| self.is_steady()).map(|(place, _)| *place)
    }
}

/// Events kept until their batch is whole.
#[derive(Debug, Default)]
pub struct HeldEvents {
    text: Vec<u8>,
    items: Vec<Item>,
    /// No event that was announced is longer.
    longest: usize,
    /// What they ask for beyond what their lines do.
    beyond: IncomingEvents,
}

#[derive(Debug)]
struct Item {
    op: Op,
    id: Range<usize>,
    record: Range<usize>,
    fields: RecordSpans,
    offset: u64,
    seq: u64,
    ts: i64,
}

impl HeldEvents {
    /// Asks for the memory that some events need, should they be kept.
    pub fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        self.text.try_reserve(coming.bytes)?;
        self.items.try_reserve(coming.events)?;
        self.longest = self.longest.max(coming.longest);
        Ok(())
    }

    /// What is kept.
    pub fn kept(&self) -> IncomingEvents {
        IncomingEvents {
            events: self.items.len(),
            bytes: self.text.len(),
            longest: self.longest,
            further: 0,
        }
        .and(self.beyond)
    }

    /// Keeps a copy of an event.
    pub fn push(&mut self, known: Known<'_>, ts: i64) {
        let mut keep = |bytes: &[u8]| {
            let start = self.text.len();
            self.text.extend_from_slice(bytes);
            start..self.text.len()
        };
        let (id, record) = (keep(known.id), keep(known.record));
        self.beyond = self.beyond.and(beyond(known.op, known.id, known.record));
        self.items.push(Item {
            op: known.op,
            id,
            record,
            fields: known.fields,
            offset: known.offset,
            seq: known.seq,
            ts,
        });
    }

    /// Gives the events back in order and is empty again.
    pub fn release(&mut self, mut each: impl FnMut(Known<'_>, i64)) {
        for item in self.items.drain(..) {
            let known = Known {
                op: item.op,
                id: &self.text[item.id],
                record: &self.text[item.record],
                fields: item.fields,
                hash: b"",
                offset: item.offset,
                seq: item.seq,
            };
            each(known, item.ts);
        }
        self.clear();
    }

    /// The seq of the last event held.
    pub fn last_seq(&self) -> Option<u64> {
        self.items.last().map(|item| item.seq)
    }

    /// Where the first event held begins.
    pub fn first_offset(&self) -> Option<u64> {
        self.items.first().map(|item| item.offset)
    }

    /// Forgets the events.
    pub fn clear(&mut self) {
        self.items.clear();
        self.text.clear();
        self.beyond = IncomingEvents::default();
    }
}
