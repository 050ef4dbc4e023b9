//! Finds what was erased here and would come back with a copy.
//!
//! What was erased since is erased in the copy too, or the copy is refused, or comes back as it is if the caller wants that.
//! An event behind the copy records it, so that the next restore still knows of the erasures.

use crate::options::{Checking, Options};
use chronolog::disk::Disk;
use chronolog::error::{At, Error, Result};
use chronolog::event::erasure::Erasure;
use chronolog::event::faces::ERASURES;
use chronolog::event::{Op, stamp};
use chronolog::json::{self, Value};
use chronolog::layout::Layout;
use chronolog::verify::Report;
use chronolog::wal::writer::{ChainEnd, EventBody, Lines};
use chronomemory_state::state::{State, spelled};
use std::borrow::Cow;

use crate::store::load::examine::{Look, look_twice};
use crate::store::load::loader::Loader;

/// What begins the id of the event that tells what came back, in the face that says what was erased.
const RETURNED: &str = "erasure:returned:";
/// And of the one that tells of erasures that a copy was without, and what they erased is not in it.
const UPHELD: &str = "erasure:upheld:";

const KINDS: &[&[u8]] = &[b"erasure", b"returned", b"upheld"];

const MOST_REASON: usize = 200;

/// An erasure that a store knows of.
#[derive(Clone, Debug)]
pub(in crate::store) struct KnownErasure {
    record: Vec<u8>,
    told: Erasure,
    /// It is an event of this log; else of one that a copy took the place of.
    is_own: bool,
    /// The erasures of another log in whose place it stands.
    stands_for: Vec<Vec<u8>>,
}

impl KnownErasure {
    pub fn read(id: &str, record: &[u8]) -> Option<Self> {
        let seq = id.strip_prefix("erasure:")?.parse().ok()?;
        Some(Self {
            told: Erasure::read(seq, id.as_bytes(), record)?,
            record: record.to_vec(),
            is_own: true,
            stands_for: Vec::new(),
        })
    }
}

fn records_of(state: &State) -> impl Iterator<Item = (String, Cow<'_, [u8]>)> {
    let slots = state.of_face(ERASURES, Some(KINDS));
    slots.map(|slot| {
        let id = String::from_utf8_lossy(&state.slots.id(slot)).into_owned();
        (id, state.slots.record(slot))
    })
}

pub(in crate::store) fn erasures_of(state: &State) -> Vec<KnownErasure> {
    let records = records_of(state);
    records
        .filter_map(|(id, record)| KnownErasure::read(&id, &record))
        .collect()
}

/// The erasures of other logs that a record names, and the seq of the one that repeats them here.
fn upheld_in(record: &[u8]) -> (Vec<KnownErasure>, Option<u64>) {
    let record = json::parse(record).unwrap_or(Value::Null);
    let data = record.get("data");
    let listed = data.and_then(|data| data.get("erasures")?.as_array());
    let others = listed.unwrap_or_default().iter().filter_map(|value| {
        let bytes = value.to_bytes();
        let known = KnownErasure::read(value.get("id")?.as_str()?, &bytes)?;
        Some(KnownErasure { is_own: false, ..known })
    });
    (others.collect(), data.and_then(|data| data.get("by")?.as_u64()))
}

/// The same, and those of logs that a copy took the place of.
pub(in crate::store) fn known_erasures(state: &State) -> Vec<KnownErasure> {
    let mut known = erasures_of(state);
    for (_, record) in records_of(state).filter(|(id, _)| id.starts_with(UPHELD)) {
        let (others, by) = upheld_in(&record);
        if let Some(one) = known.iter_mut().find(|one| one.is_own && Some(one.told.seq) == by) {
            // One that says the same at the same place is no other.
            let others = others.iter().filter(|other| other.record != one.record);
            one.stands_for = others.map(|other| other.record.clone()).collect();
        }
        for other in others {
            if known.iter().all(|one| one.record != other.record) {
                known.push(other);
            }
        }
    }
    known
}

/// Adds those that only the history tells of: a compaction by a process of version 1 drops the record.
pub(in crate::store) fn add_forgotten(known: &mut Vec<KnownErasure>, told: Vec<KnownErasure>) {
    for one in told {
        if known.iter().all(|other| other.record != one.record) {
            known.push(one);
        }
    }
}

#[derive(Debug, Default)]
pub(in crate::store) struct Returning {
    erasures: Vec<KnownErasure>,
    /// How many lines all erasures of this log erased, those too that the copy knows of.
    pub lines_here: u64,
    latest: i64,
}

impl Returning {
    /// Those of the known erasures that a copy knows nothing of.
    pub fn find(disk: &dyn Disk, source: &Layout, mut known: Vec<KnownErasure>, threads: usize) -> Result<Self> {
        if known.is_empty() {
            return Ok(Self::default());
        }
        let look = Look::at_log(threads, Checking::Quick);
        let seen = look_twice(disk, source, look, |_| Loader::checking_rows(), &mut |_, _| {}).at(source.log())?;
        let copy = seen.as_ref().and_then(|seen| seen.taker.state.as_ref());
        let copy = copy.map(known_erasures).unwrap_or_default();
        let has = |record: &[u8]| copy.iter().any(|one| one.record == record);
        let own = known.iter().filter(|one| one.is_own);
        let lines_here = own.map(|one| one.told.lines).sum();
        known.retain(|one| {
            let is_as_good = !one.stands_for.is_empty() && one.stands_for.iter().all(|record| has(record));
            !has(&one.record) && !is_as_good
        });
        Ok(Self {
            erasures: known,
            lines_here,
            latest: seen.map_or(0, |seen| seen.found.walk.latest),
        })
    }

    pub fn is_nothing(&self) -> bool {
        self.erasures.is_empty()
    }

    pub fn own(&self) -> impl Iterator<Item = &Erasure> {
        self.erasures.iter().filter(|one| one.is_own).map(|one| &one.told)
    }

    pub fn are_own(&self) -> bool {
        self.erasures.iter().all(|one| one.is_own)
    }

    /// Those that stand in the place of no other.
    fn first(&self) -> impl Iterator<Item = &KnownErasure> {
        self.erasures.iter().filter(|one| one.stands_for.is_empty())
    }

    pub fn reason(&self) -> String {
        let mut reasons: Vec<&str> = Vec::new();
        for one in &self.erasures {
            if !reasons.contains(&&*one.told.reason) {
                reasons.push(&one.told.reason);
            }
        }
        reasons.join("; ").chars().take(MOST_REASON).collect()
    }

    /// Why the copy cannot be brought back without what was erased since.
    pub fn refused(&self, source: &Layout, why: &str) -> Error {
        let named = self
            .first()
            .map(|KnownErasure { told, .. }| format!("event {} ({:?}, {} lines)", told.seq, told.reason, told.lines));
        let named: Vec<String> = named.collect();
        Error::Refused {
            path: source.folder().display().to_string(),
            reason: format!(
                "it is without what was erased since: {}; and it cannot be erased in it: {why}",
                named.join(", ")
            ),
            instead: "Take a copy that was made after the erasure. restore(bring_back=True) brings back what was \
                      erased, and says so for ever; erase it again then."
                .to_owned(),
        }
    }

    /// The line behind the last one of the copy that tells what came back.
    pub fn returned(&self, copy: &Report, options: &Options, now: i64) -> Result<Vec<u8>> {
        let lines: u64 = self.first().map(|one| one.told.lines).sum();
        let data = Value::object([
            ("erasures", Value::from(self.first().count() as u64)),
            ("lines", Value::from(lines)),
        ]);
        let label = "A copy was brought back without what was erased since";
        self.line((RETURNED, "returned", label), data, copy, options, now)
    }

    /// The line behind the copy that names the erasures it lacked; the event `by` of the copy tells what was erased.
    pub fn upheld(&self, by: Option<u64>, copy: &Report, options: &Options, now: i64) -> Result<Vec<u8>> {
        let records = self.first().filter_map(|one| json::parse(&one.record).ok());
        let data = Value::object([
            ("by", by.map_or(Value::Null, Value::from)),
            ("erasures", Value::Array(records.collect())),
        ]);
        let label = "What was erased since this copy was made stays erased";
        self.line((UPHELD, "upheld", label), data, copy, options, now)
    }

    fn line(
        &self,
        (prefix, kind, label): (&str, &str, &str),
        data: Value,
        copy: &Report,
        options: &Options,
        now: i64,
    ) -> Result<Vec<u8>> {
        if self.erasures.is_empty() {
            return Ok(Vec::new());
        }
        let next_seq = copy.last_seq + 1;
        let id = format!("{prefix}{next_seq}");
        let record = Value::object([
            ("id", Value::Str(id.clone())),
            ("kind", Value::Str(kind.to_owned())),
            ("label", Value::Str(label.to_owned())),
            ("data", data),
        ]);
        let bytes = record.to_bytes();
        let mut new = Lines::after(ChainEnd {
            head: copy.head,
            next_seq,
        });
        new.salts.draw_on(options.salts());
        new.salts.draw(1).map_err(Error::randomness)?;
        new.push(EventBody {
            op: Op::Upsert,
            id: &spelled(&id),
            record: &bytes,
            ts: &stamp::digits(now.max(self.latest)),
            depth: options.recursion_depth,
        });
        Ok(new.bytes)
    }
}

/// What a state says of erasures whose own events are not kept any more, and of what was brought back.
pub(super) fn notes_of(state: &State, told: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    for (id, record) in records_of(state) {
        if let Some(seq) = id.strip_prefix(RETURNED) {
            let data = json::parse(&record).ok();
            let number = |name: &str| data.as_ref().and_then(|record| record.get("data")?.get(name)?.as_i64());
            notes.push(format!(
                "brought back at event {seq}: a copy without {} erasures, of {} lines",
                number("erasures").unwrap_or(0),
                number("lines").unwrap_or(0)
            ));
        } else if let Some(seq) = id.strip_prefix(UPHELD) {
            for KnownErasure { told, .. } in upheld_in(&record).0 {
                let (at, reason, lines) = (told.seq, told.reason, told.lines);
                notes.push(format!(
                    "upheld at event {seq}: a copy from before an erasure was brought back without what that erased: event {at} \
                     of the log before it, {reason:?}: {lines} lines"
                ));
            }
        }
    }
    for KnownErasure { told: one, .. } in erasures_of(state) {
        let (seq, reason, records, lines) = (one.seq, one.reason, one.records, one.lines);
        let start = format!("erased at event {seq},");
        if !told.iter().any(|note| note.starts_with(&start)) {
            notes.push(format!(
                "erased at event {seq}: {reason:?}: {records} records, {lines} lines; the log that tells of it was not kept"
            ));
        }
    }
    notes
}
