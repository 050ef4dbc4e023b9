//! Reads one line of the log as an event, and proves that it is what was written.
//!
//! A line of our own form is proven by one scan and one hash. Any other line is parsed, written canonically and then
//! scanned like our own, so that there is one shape of event.

use super::erasure::{op_of, redacted};
use super::{HASH_PREFIX_BYTES, Op};
use crate::damage::DamageKind;
use crate::digest::{Hex, sha256, sha256_after_brace};
use crate::json::{self, EventSpans, Value};

/// The fields of an event, in the order of the canonical line.
pub const FIELDS: [&str; 8] = [
    "hash",
    "op",
    "prev_hash",
    "record",
    "record_id",
    "recursion_depth",
    "seq",
    "ts",
];

/// The hash that a line of our form names.
pub fn named_hash(line: &[u8]) -> Option<[u8; 32]> {
    let before = line.get(..HASH_PREFIX_BYTES)?;
    Hex::read_raw(before.strip_prefix(b"{\"hash\":\"")?.strip_suffix(b"\",")?)
}

/// An event that was read from a line. Its text is the line itself, or a canonical copy if the line was foreign.
#[derive(Debug)]
pub struct Event {
    /// What it does.
    pub op: Op,
    /// Where its fields lie in its text.
    pub spans: EventSpans,
    /// For `begin`: how many events follow in the batch.
    pub events: u32,
    /// Top-level fields that the hash does not cover.
    pub unknown_fields: bool,
    /// Such a field in a line of our own form, which no writer of ours puts there.
    pub injected: bool,
    /// What it said was erased: only its seq and its hash are left.
    pub redacted: bool,
    copy: Option<Box<[u8]>>,
}

/// Why a line is not an event.
#[derive(Debug)]
pub struct Fault {
    /// Which class of damage.
    pub kind: DamageKind,
    /// What exactly.
    pub reason: String,
    /// The seq that the line claims, where it could be read.
    pub seq: Option<u64>,
}

/// Whether a line's hash is computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Hash every line.
    Nothing,
    /// The bytes were verified before: form and links are checked, hashes are not.
    Hashes,
}

impl Event {
    /// Reads a line (without its newline). Errors: the class of damage and the reason.
    pub fn read(line: &[u8], trust: Trust) -> Result<Self, Fault> {
        match json::scan_event(line) {
            Some(spans)
                if trust == Trust::Hashes || sha256_after_brace(&line[HASH_PREFIX_BYTES..]).bytes() == &line[9..73] =>
            {
                Self::of_canonical(line, spans)
            }
            // Of our form with another hash: altered, unless it is the older dialect's.
            _ => read_foreign(line),
        }
    }

    /// Reads a line of which only seq and hash are left; such lines stand in archives that are named so, and nowhere else.
    pub fn read_redacted(line: &[u8]) -> Option<Self> {
        let (seq, hash) = redacted(line)?;
        let text = format!(
            "{{\"hash\":\"{}\",\"op\":\"\",\"prev_hash\":\"\",\"record\":{{}},\"record_id\":\"\",\"recursion_depth\":0,\"seq\":{seq},\"ts\":\"\"}}",
            hash.text()
        );
        let spans = json::scan_event(text.as_bytes())?;
        let event = Self::of_canonical(text.as_bytes(), spans).ok()?;
        Some(Self {
            redacted: true,
            copy: Some(text.into_bytes().into_boxed_slice()),
            ..event
        })
    }

    fn of_canonical(text: &[u8], spans: EventSpans) -> Result<Self, Fault> {
        let (word, record) = (spans.op.of(text), spans.record.of(text));
        let op = match Op::read(word) {
            Op::Other => op_of(word, spans.seq, spans.record_id.of(text), record),
            op => op,
        };
        let events = if op == Op::Begin {
            batch_size(record).map_err(|fault| Fault {
                seq: Some(spans.seq),
                ..fault
            })?
        } else {
            0
        };
        Ok(Self {
            op,
            spans,
            events,
            unknown_fields: false,
            injected: false,
            redacted: false,
            copy: None,
        })
    }

    /// Whether the line was of our own form.
    pub fn is_own_form(&self) -> bool {
        self.copy.is_none()
    }

    /// Whether a writer of ours spelled the line: of our own form, or with the three separators escaped in it.
    pub fn is_our_spelling(&self, line: &[u8]) -> bool {
        self.copy.as_deref().is_none_or(|text| {
            // The older dialect has hashes of another text.
            is_escaped(text, line) && sha256_after_brace(&text[HASH_PREFIX_BYTES..]).bytes() == &text[9..73]
        })
    }

    /// The canonical text: the line it was read from, unless that was foreign.
    pub fn text<'a>(&'a self, line: &'a [u8]) -> &'a [u8] {
        self.copy.as_deref().unwrap_or(line)
    }

    /// The event's hash.
    pub fn hash(&self, line: &[u8]) -> Hex {
        self.hash_and_raw(line).0
    }

    /// The same with the bytes that it stands for.
    pub fn hash_and_raw(&self, line: &[u8]) -> (Hex, [u8; 32]) {
        let raw = Hex::read_raw(&self.text(line)[9..73]).unwrap_or_default();
        (Hex::spell(&raw), raw)
    }

    /// The hash it names as its predecessor's: 64 digits or nothing.
    pub fn prev_hash<'a>(&'a self, line: &'a [u8]) -> &'a [u8] {
        self.spans.prev_hash.of(self.text(line))
    }

    /// The canonical record.
    pub fn record<'a>(&'a self, line: &'a [u8]) -> &'a [u8] {
        self.spans.record.of(self.text(line))
    }

    /// The record's id as it is spelled between quotes in canonical JSON.
    pub fn record_id<'a>(&'a self, line: &'a [u8]) -> &'a [u8] {
        self.spans.record_id.of(self.text(line))
    }

    /// The moment it was written, as it is spelled.
    pub fn ts<'a>(&'a self, line: &'a [u8]) -> &'a [u8] {
        self.spans.ts.of(self.text(line))
    }
}

fn fault(kind: DamageKind, reason: impl Into<String>) -> Fault {
    Fault {
        kind,
        reason: reason.into(),
        seq: None,
    }
}

fn malformed(reason: impl Into<String>) -> Fault {
    fault(DamageKind::Malformed, reason)
}

fn batch_size(record: &[u8]) -> Result<u32, Fault> {
    let record = json::parse(record).map_err(|e| fault(DamageKind::Unreadable, e.to_string()))?;
    record
        .get("events")
        .and_then(Value::as_i64)
        .and_then(|n| u32::try_from(n).ok())
        .filter(|&n| n > 0)
        .ok_or_else(|| malformed("a begin without a count of events"))
}

fn read_foreign(line: &[u8]) -> Result<Event, Fault> {
    if line.len() > json::MAX_LINE_BYTES {
        return Err(fault(DamageKind::Unreadable, "a line over 16 MiB"));
    }
    let value = json::parse(line).map_err(|e| fault(DamageKind::Unreadable, e.to_string()))?;
    let Value::Object(all) = &value else {
        return Err(malformed("not an object"));
    };
    read_value(&value, all, line).map_err(|fault| Fault {
        seq: value
            .get("seq")
            .and_then(Value::as_i64)
            .and_then(|seq| u64::try_from(seq).ok()),
        ..fault
    })
}

fn read_value(value: &Value, all: &[(String, Value)], line: &[u8]) -> Result<Event, Fault> {
    let hash = check_fields(value)?;
    let known = all.iter().filter(|(key, _)| FIELDS.contains(&key.as_str()));
    let mut event = Value::Object(known.cloned().collect());
    let given = event.remove("hash").unwrap_or(Value::Null);
    let mut text = event.to_bytes();
    if sha256(&text) != hash {
        text.clear();
        json::write_value_spaced(&event, &mut text);
        if sha256(&text) != hash {
            return Err(fault(DamageKind::Altered, "the hash is not that of the payload"));
        }
    }
    let unknown_fields = all.len() > FIELDS.len();
    let injected = unknown_fields && is_own_form(value, line);
    event.set("hash", given);
    if event.get("record").is_some_and(Value::is_null) {
        event.set("record", Value::Object(Vec::new()));
    }
    let text = event.to_bytes();
    let spans = json::scan_event(&text).ok_or_else(|| malformed("the canonical line is over 16 MiB"))?;
    let mut event = Event::of_canonical(&text, spans)?;
    event.unknown_fields = unknown_fields;
    event.injected = injected;
    event.copy = Some(text.into_boxed_slice());
    Ok(event)
}

fn check_fields(event: &Value) -> Result<Hex, Fault> {
    let field = |name: &str| event.get(name).ok_or_else(|| malformed(format!("{name} is missing")));
    for name in FIELDS {
        field(name)?;
    }
    for name in ["op", "record_id", "ts"] {
        if field(name)?.as_str().is_none() {
            return Err(malformed(format!("{name} is not a string")));
        }
    }
    if field("seq")?.as_i64().is_none_or(|seq| seq < 0) {
        return Err(malformed("seq is not an integer from 0 to 2^63-1"));
    }
    if field("recursion_depth")?.as_i64().is_none() {
        return Err(malformed("recursion_depth is not a 64-bit integer"));
    }
    if !matches!(field("record")?, Value::Object(_) | Value::Null) {
        return Err(malformed("record is not an object"));
    }
    let digits = |name: &str| {
        field(name)?
            .as_str()
            .ok_or_else(|| malformed(format!("{name} is not a string")))
    };
    let prev = digits("prev_hash")?;
    if !prev.is_empty() && Hex::read(prev).is_none() {
        return Err(malformed("prev_hash is not 64 lower-case hexadecimal digits"));
    }
    let hash = digits("hash")?;
    let hash = Hex::read(hash).ok_or_else(|| malformed("hash is not 64 lower-case hexadecimal digits"))?;
    if field("op")?.as_str() == Some("begin") {
        batch_size(&field("record")?.to_bytes())?;
    }
    Ok(hash)
}

/// Byte for byte the canonical spelling of its own object, the three separators raw or escaped.
fn is_own_form(value: &Value, line: &[u8]) -> bool {
    let text = value.to_bytes();
    text == line || is_escaped(&text, line)
}

/// Whether a line is this text with the three separators escaped.
fn is_escaped(text: &[u8], line: &[u8]) -> bool {
    let mut escaped = Vec::with_capacity(line.len());
    json::escape_line_separators(text, &mut escaped) && escaped == line
}
