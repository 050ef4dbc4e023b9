//! Finds what a log starts from, by its first lines.

use std::io;

use crate::chain::BatchFate;
use crate::digest::Hex;
use crate::disk::DiskFile;
use crate::event::erasure::{ErasureTold, Replacements};
use crate::event::line::{Event, Trust};
use crate::event::{Known, Op};
use crate::hint::{Hint, line_from};
use crate::json::{self, Value};
use crate::layout::{ERASED_SUFFIX, archive_name, is_archive_name};
use crate::trail::SentinelTrail;
use crate::verify::{Sink, Walk};
use crate::wal::reader::Reading;

/// The record id of an adoption.
pub const ADOPT_ID: &[u8] = b"__adopt__";

/// Reading on one thread, believing nothing.
pub const ALONE: Reading = Reading::new(1);

/// A sentinel of ours: the history before the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentinel {
    /// The digest of the base; `None` if the sentinel has something else in its place, or if an erasure dropped the base.
    pub base_sha256: Option<Hex>,
    /// The last seq that the base contains.
    pub last_seq: u64,
    /// The hash of the last event of the retired segment.
    pub previous_head: String,
    /// The archive's name, if history was kept, and its digest.
    pub archive: Option<(String, String)>,
    /// Fields of version 2.
    pub told: Box<SentinelTold>,
    /// It was written by a repair or by an erasure: what is known of the log before it does not count behind it.
    pub repaired: bool,
    /// The repairs that this log, or one before it, came out of; oldest first.
    pub repairs: Vec<Repair>,
}

/// The files of a sentinel as it names them, whatever took their place since, and what was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentinelTold {
    /// The digest of the base, if it is one.
    pub base: Option<Hex>,
    /// That of the archive.
    pub archive: String,
    /// The first and the last seq of the retired segment, if both are known.
    pub span: Option<(u64, u64)>,
    /// How many lines are redacted of the archive that is in that place now.
    pub bound: u64,
    /// The erasure that wrote it.
    pub erasure: Option<ErasureTold>,
    /// The trail of the log before it.
    pub trail: SentinelTrail,
    /// It was written by a repair: the base is its word, and not what the history adds up to.
    pub mended: bool,
}

/// A repair in a sentinel, its own or an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The seq of its own sentinel.
    pub seq: u64,
    /// When it was.
    pub ts: String,
    /// How many things were wrong.
    pub findings: u64,
    /// How many of them could not be brought back, or stand on bytes that nothing proves.
    pub open: u64,
}

impl Repair {
    /// As in a sentinel.
    pub fn value(&self) -> Value {
        Value::object([
            ("findings", Value::from(self.findings)),
            ("open", Value::from(self.open)),
            ("seq", Value::from(self.seq)),
            ("ts", Value::Str(self.ts.clone())),
        ])
    }

    fn of(value: &Value) -> Option<Self> {
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        Some(Self {
            seq: number("seq")?,
            ts: value.get("ts").and_then(Value::as_str).unwrap_or_default().to_owned(),
            findings: number("findings")?,
            open: number("open").unwrap_or(0),
        })
    }

    /// As in a report.
    pub fn tell(&self) -> String {
        format!(
            "repaired at event {}, {}: {} findings, {} of them open",
            self.seq, self.ts, self.findings, self.open
        )
    }
}

/// The beginning of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The log holds everything.
    Nothing,
    /// A compaction of ours.
    Ours(Sentinel),
    /// A compaction of another tool: what it started from is in no log.
    Foreign,
}

impl Origin {
    /// Whether a retired log of ours comes before it.
    pub fn has_archive(&self) -> bool {
        matches!(self, Self::Ours(sentinel) if sentinel.archive.is_some())
    }
}

/// How a log begins.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// What it starts from.
    pub origin: Origin,
    /// The moment of its first event, in microseconds.
    pub ts: i64,
    /// The offset of its first event: not 0 if something else is before it.
    pub offset: u64,
    /// The seq of that event; `None` if there is no event.
    pub seq: Option<u64>,
    /// The hash that it gives as its predecessor's, if any.
    pub prev_hash: Option<Hex>,
}

impl Beginning {
    /// That of a log of which only the origin is known.
    pub fn unread(origin: Origin) -> Self {
        Self {
            origin,
            ts: i64::MIN,
            offset: 0,
            seq: None,
            prev_hash: None,
        }
    }
}

/// Finds out how a log begins.
pub fn beginning_of(log: &dyn DiskFile, length: u64) -> io::Result<Beginning> {
    let mut first = First::default();
    Walk::new(None).go(log, length, ALONE, &mut first)?;
    let Some((op, record, ts, offset, seq)) = first.found else {
        return Ok(Beginning::unread(Origin::Nothing));
    };
    let line = line_from(log, offset, length)?;
    let event = Event::read(&line, Trust::Hashes).ok();
    Ok(Beginning {
        origin: origin_by(op, &record),
        ts,
        offset,
        seq: Some(seq),
        prev_hash: event.and_then(|event| Hex::read(event.prev_hash(&line))),
    })
}

fn origin_by(op: Op, record: &[u8]) -> Origin {
    match op {
        Op::Compact => sentinel(record).map_or(Origin::Foreign, Origin::Ours),
        _ => Origin::Nothing,
    }
}

/// What a log starts from that begins with this line; `None` if that is no event.
pub fn origin_in(line: &[u8]) -> Option<Origin> {
    let event = Event::read(line, Trust::Nothing).ok()?;
    Some(origin_by(event.op, event.record(line)))
}

/// Finds out what a log starts from.
pub fn origin_of(log: &dyn DiskFile, length: u64) -> io::Result<Origin> {
    beginning_of(log, length).map(|beginning| beginning.origin)
}

fn sentinel(record: &[u8]) -> Option<Sentinel> {
    let record = json::parse(record).ok()?;
    let data = record.get("data")?;
    let last_seq = data.get("last_seq").and_then(Value::as_u64).unwrap_or(0);
    let told = data.get("repairs").and_then(Value::as_array);
    let mut repairs: Vec<Repair> = told.unwrap_or_default().iter().filter_map(Repair::of).collect();
    // Earlier versions noted a repair in its own log only.
    let erasure = ErasureTold::read(data);
    let findings = data.get("repaired");
    let mended = findings.is_some_and(|findings| !findings.as_array().is_some_and(<[Value]>::is_empty));
    if let (None, Some(findings)) = (told, findings.filter(|_| mended || erasure.is_none())) {
        repairs.push(Repair {
            seq: last_seq + 1,
            ts: String::new(),
            findings: findings.as_array().map_or(0, |findings| findings.len() as u64),
            open: 0,
        });
    }
    let text = |name: &str| data.get(name).and_then(Value::as_str);
    let base = data.get("base_sha256")?.as_str().and_then(Hex::read);
    let seq = |name: &str| u64::try_from(data.get(name)?.as_i64()?).ok();
    let bound = erasure.as_ref().map_or(0, |told| told.erased);
    Some(Sentinel {
        base_sha256: base,
        last_seq,
        previous_head: text("previous_head").unwrap_or_default().to_owned(),
        archive: data.get("archive").filter(|name| !name.is_null()).map(|name| {
            let digest = text("archive_sha256").unwrap_or_default();
            (file_of(name.as_str().unwrap_or_default(), bound), digest.to_owned())
        }),
        told: Box::new(SentinelTold {
            base,
            archive: text("archive_sha256").unwrap_or_default().to_owned(),
            span: seq("first_seq").zip(seq("last_seq")),
            bound,
            erasure,
            trail: SentinelTrail::read(data),
            mended,
        }),
        repaired: data.get("repaired").is_some(),
        repairs,
    })
}

/// The file of an archive that a sentinel calls so: one in which lines were erased has a longer name, and is packed.
fn file_of(name: &str, bound: u64) -> String {
    match bound {
        _ if name.ends_with(ERASED_SUFFIX) => String::new(),
        0 => name.to_owned(),
        _ if name.ends_with(".zst") => format!("{name}{ERASED_SUFFIX}"),
        _ => String::new(),
    }
}

impl Sentinel {
    /// Whether the base counts as it is, whatever the history before it adds up to: that of a repair or of version 1.
    pub fn is_base_declared(&self) -> bool {
        let told = &self.told;
        told.mended || (told.trail == SentinelTrail::Nothing && told.erasure.is_none())
    }

    /// The archive's name and digest, if the name is one that we could have given.
    pub fn safe_archive(&self) -> Option<(&str, &str)> {
        self.archive
            .as_ref()
            .map(|(name, digest)| (name.as_str(), digest.as_str()))
            .filter(|(name, _)| is_archive_name(name))
    }
}

#[derive(Default)]
struct First {
    found: Option<(Op, Vec<u8>, i64, u64, u64)>,
}

impl Sink for First {
    fn count(&mut self, known: Known<'_>, ts: i64) {
        self.found
            .get_or_insert_with(|| (known.op, known.record.to_vec(), ts, known.offset, known.seq));
    }

    fn is_satisfied(&self) -> bool {
        self.found.is_some()
    }
}

/// An anchor that was put into a log which another tool had compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// The digest of the adopted snapshot.
    pub base_sha256: Hex,
    /// The last event that it contains.
    pub seq: u64,
}

/// What a log that another tool compacted contains about its base.
#[derive(Debug, Default)]
pub struct ForeignTraces {
    /// The adoption, if it took place.
    pub adoption: Option<Adoption>,
    /// The hashes of the events at the seq in question.
    pub hashes: Vec<Vec<u8>>,
    seq: u64,
    /// The same, each with the place of its line.
    seen: Vec<(u64, Vec<u8>)>,
    held: Option<Adoption>,
}

/// Looks through a log for an adoption, and for the event at the snapshot's `seq`.
pub fn foreign_traces(log: &dyn DiskFile, length: u64, seq: u64, hint: Hint) -> io::Result<ForeignTraces> {
    let mut traces = ForeignTraces {
        seq,
        ..ForeignTraces::default()
    };
    let mut walk = Walk::new(hint.synced()).promised(hint.promised());
    walk.go(log, length, ALONE, &mut traces)?;
    // Lines behind the committed end do not count.
    traces.seen.retain(|(offset, _)| *offset < walk.end);
    traces.hashes = traces.seen.drain(..).map(|(_, hash)| hash).collect();
    Ok(traces)
}

impl Sink for ForeignTraces {
    fn count(&mut self, known: Known<'_>, _: i64) {
        self.look_at_hash(known);
        if self.adoption.is_none() {
            self.adoption = adoption(known);
        }
    }

    fn hold(&mut self, known: Known<'_>, _: i64) {
        self.look_at_hash(known);
        if self.held.is_none() {
            self.held = adoption(known);
        }
    }

    fn settle(&mut self, held: BatchFate) {
        let adoption = self.held.take();
        if held == BatchFate::Count && self.adoption.is_none() {
            self.adoption = adoption;
        }
    }
}

impl ForeignTraces {
    fn look_at_hash(&mut self, known: Known<'_>) {
        if known.seq == self.seq {
            self.seen.push((known.offset, known.hash.to_vec()));
        }
    }
}

fn adoption(known: Known<'_>) -> Option<Adoption> {
    if known.op != Op::Adopt || known.id != ADOPT_ID {
        return None;
    }
    let record = json::parse(known.record).ok()?;
    record.get("last_hash")?.as_str()?;
    Some(Adoption {
        base_sha256: Hex::read(record.get("base_sha256")?.as_str()?)?,
        seq: u64::try_from(record.get("seq")?.as_i64()?).ok()?,
    })
}

/// The way back from the newest sentinel: an erasure further on put other files in the place of those that earlier ones name.
#[derive(Clone, Debug, Default)]
pub struct WayBack(Replacements);

impl WayBack {
    /// The sentinel of the segment that `after` retired, as erasures since made it.
    #[must_use]
    pub fn back(&mut self, after: &Sentinel, mut earlier: Sentinel) -> Sentinel {
        self.pass(after);
        self.resolve(&mut earlier);
        earlier
    }

    /// Goes past a sentinel.
    pub fn pass(&mut self, after: &Sentinel) {
        if let Some(told) = &after.told.erasure {
            self.0.take(told);
        }
    }

    /// Lets a sentinel name the files that stand in the place of those that it names.
    pub fn resolve(&self, sentinel: &mut Sentinel) {
        sentinel.base_sha256 = sentinel.told.base.and_then(|sha256| self.0.base(sha256));
        let replaced = self.0.archive(&sentinel.told.archive);
        if let (Some((name, digest)), Some((new, erased))) = (&mut sentinel.archive, replaced) {
            *name = match sentinel.told.span.filter(|_| is_archive_name(name)) {
                Some((first, last)) => archive_name(first, last, new.text()) + ERASED_SUFFIX,
                None => String::new(),
            };
            new.text().clone_into(digest);
            sentinel.told.bound = erased;
        }
    }

    /// The same of a whole beginning.
    pub fn resolve_origin(&self, origin: &mut Origin) {
        if let Origin::Ours(sentinel) = origin {
            self.resolve(sentinel);
        }
    }

    /// The base in the place of one that was adopted; `None` if there is none.
    pub fn base(&self, sha256: Hex) -> Option<Hex> {
        self.0.base(sha256)
    }
}
