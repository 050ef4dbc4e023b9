//! The forms in which a log describes an erasure.
//!
//! What is left of a line, the event, and what a sentinel says of replaced files: section 16 of `docs/format.md`.

use std::collections::HashMap;

use super::Op;
use crate::digest::Hex;
use crate::error::{Error, Result};
use crate::json::{self, Value};

/// More files are not replaced by one erasure.
pub const MOST_REPLACED: usize = 50_000;

/// The reason of an erasure or a pruning stays for ever: it is short.
const MOST_REASON: usize = 200;

/// The record id of an event without contents, which has a salt.
pub const MARK_ID: &[u8] = b"__mark__";

const BEFORE_SEQ: &[u8] = b"{\"erased\":";
const BEFORE_HASH: &[u8] = b",\"hash\":\"";
const BEHIND: &[u8] = b"\"}";

/// Refuses a reason that is too long to stay in the log, with `Argument`.
pub fn check_reason(reason: &str) -> Result<()> {
    match reason.chars().count() {
        length if length > MOST_REASON => Err(Error::must("reason", "have at most 200 characters", length)),
        _ => Ok(()),
    }
}

/// The seq and the hash that are left of a line; `None` for any other line.
pub fn redacted(line: &[u8]) -> Option<(u64, Hex)> {
    let rest = line.strip_prefix(BEFORE_SEQ)?.strip_suffix(BEHIND)?;
    let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
    let digits = rest.strip_suffix(BEFORE_HASH)?;
    let is_plain = digits == b"0" || (digits.first() != Some(&b'0') && digits.iter().all(u8::is_ascii_digit));
    let seq = std::str::from_utf8(digits)
        .ok()
        .filter(|_| is_plain)?
        .parse::<i64>()
        .ok()?;
    Some((u64::try_from(seq).ok()?, Hex::read(hash)?))
}

/// Writes what is left of a line, its newline included.
pub fn write_redacted(seq: u64, hash: &Hex, out: &mut Vec<u8>) {
    out.extend_from_slice(BEFORE_SEQ);
    out.extend_from_slice(seq.to_string().as_bytes());
    out.extend_from_slice(BEFORE_HASH);
    out.extend_from_slice(hash.bytes());
    out.extend_from_slice(BEHIND);
    out.push(b'\n');
}

fn count(value: Option<&Value>) -> Option<u64> {
    u64::try_from(value?.as_i64()?).ok()
}

/// The contents of an event about an erasure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// Its seq.
    pub seq: u64,
    /// Why it was done.
    pub reason: String,
    /// How many records were erased.
    pub records: u64,
    /// How many lines.
    pub lines: u64,
    /// How many of those had no salt.
    pub unsalted: u64,
    /// The history before it was not kept.
    pub is_dropped: bool,
}

/// The record of an event on behalf of the store itself, if it is of that kind and names its own seq.
fn own_record(word: &str, seq: u64, id: &[u8], record: &[u8]) -> Option<Value> {
    let name = format!("{word}:{seq}");
    if id != name.as_bytes() {
        return None;
    }
    let record = json::parse(record).ok()?;
    let is_named = record.get("id").and_then(Value::as_str) == Some(&name);
    let is_kind = record.get("kind").and_then(Value::as_str) == Some(word);
    let is_whole = record.get("data").and_then(Value::as_object).is_some() && record.get("label")?.as_str().is_some();
    (is_named && is_kind && is_whole).then_some(record)
}

impl Erasure {
    /// Reads it from an event with the op `erase`; `None` if that has another shape, and does nothing.
    pub fn read(seq: u64, id: &[u8], record: &[u8]) -> Option<Self> {
        let record = own_record("erasure", seq, id, record)?;
        let data = record.get("data")?;
        let number = |name: &str| count(data.get(name));
        let (first, last) = (data.get("first_seq"), data.get("last_seq"));
        let is_null = |value: Option<&Value>| value.is_none_or(Value::is_null);
        let is_ranged = (is_null(first) && is_null(last)) || (count(first).is_some() && count(last).is_some());
        let removed = data.get("removed").filter(|removed| removed.as_object().is_some())?;
        count(removed.get("backups")).and(count(removed.get("quarantine")))?;
        let is_dropped = match data.get("history")?.as_str()? {
            "redacted" => false,
            "dropped" => true,
            _ => return None,
        };
        is_ranged.then_some(Self {
            seq,
            reason: record.get("label")?.as_str()?.to_owned(),
            records: number("records")?,
            lines: number("lines")?,
            unsalted: number("unsalted")?,
            is_dropped,
        })
    }
}

/// What an op does that this version knows only in one shape.
pub fn op_of(word: &[u8], seq: u64, id: &[u8], record: &[u8]) -> Op {
    match word {
        b"erase" if Erasure::read(seq, id, record).is_some() => Op::Erase,
        b"prune" if Pruning::read(seq, id, record).is_some() => Op::Prune,
        _ => Op::Other,
    }
}

/// What the oldest archives of a log became: removed, on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// The seq of the event.
    pub seq: u64,
    /// Why.
    pub reason: String,
    /// How many archives went.
    pub archives: u64,
    /// The last event in them.
    pub last_seq: u64,
}

impl Pruning {
    /// Reads it from an event with the op `prune`; `None` if that has another shape, and does nothing.
    pub fn read(seq: u64, id: &[u8], record: &[u8]) -> Option<Self> {
        let record = own_record("pruned", seq, id, record)?;
        let number = |name: &str| count(record.get("data").and_then(|data| data.get(name)));
        Some(Self {
            seq,
            reason: record.get("label")?.as_str()?.to_owned(),
            archives: number("archives")?,
            last_seq: number("last_seq")?,
        })
    }
}

/// A file that an erasure put another in the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The digest of the file that is gone.
    pub old: Hex,
    /// That of the file in its place; `None` if there is none.
    pub new: Option<Hex>,
    /// How many lines of it are redacted, if it is an archive.
    pub erased: Option<u64>,
}

impl Replacement {
    fn of(value: &Value) -> Option<Self> {
        let digest = |value: &Value| value.as_str().and_then(Hex::read);
        let old = digest(value.get("old")?)?;
        let erased = value.get("erased");
        let new = match value.get("new")? {
            Value::Null if erased.is_none() => None,
            new => Some(digest(new)?),
        };
        // Only an archive has redacted lines.
        let lines = count(erased).filter(|&number| number > 0);
        (erased.is_some() == lines.is_some()).then_some(Self {
            old,
            new,
            erased: lines,
        })
    }
}

/// What a sentinel says of an erasure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErasureTold {
    /// How many lines of the archive that it names are redacted.
    pub erased: u64,
    /// The files that were replaced.
    pub replaced: Vec<Replacement>,
    /// It says it as it should.
    pub is_sound: bool,
}

impl ErasureTold {
    /// Reads it from the data of a sentinel; `None` if that does not tell of one.
    pub fn read(data: &Value) -> Option<Self> {
        let (erased, replaced) = (data.get("erased"), data.get("replaced"));
        if erased.is_none() && replaced.is_none() {
            return None;
        }
        let listed = replaced.and_then(Value::as_array);
        let listed = listed.filter(|list| list.len() <= MOST_REPLACED);
        let listed: Option<Vec<Replacement>> = listed.and_then(|list| list.iter().map(Replacement::of).collect());
        Some(Self {
            is_sound: count(erased).is_some() && listed.is_some(),
            erased: count(erased).unwrap_or(0),
            replaced: listed.unwrap_or_default(),
        })
    }
}

/// Which files stand in the place of which: by erasures further on.
#[derive(Clone, Debug, Default)]
pub struct Replacements {
    archives: HashMap<Hex, (Hex, u64)>,
    bases: HashMap<Hex, Option<Hex>>,
}

impl Replacements {
    /// Takes what a sentinel says; those further on must have been taken before.
    pub fn take(&mut self, told: &ErasureTold) {
        for one in &told.replaced {
            match (one.new, one.erased) {
                (Some(new), Some(erased)) => {
                    let now = self.archives.get(&new).copied().unwrap_or((new, erased));
                    self.archives.insert(one.old, now);
                }
                (new, _) => {
                    let now = new.and_then(|new| self.bases.get(&new).copied().unwrap_or(Some(new)));
                    self.bases.insert(one.old, now);
                }
            }
        }
    }

    /// The archive in the place of one with this digest, and how many of its lines are redacted; `None` if it is as it was.
    pub fn archive(&self, digest: &str) -> Option<(Hex, u64)> {
        self.archives.get(&Hex::read(digest)?).copied()
    }

    /// The base in the place of one with this digest; `None` if none is.
    pub fn base(&self, digest: Hex) -> Option<Hex> {
        self.bases.get(&digest).copied().unwrap_or(Some(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redacted_line_has_one_spelling() {
        let hash = Hex::spell(&[0xab; 32]);
        let line = format!(r#"{{"erased":17,"hash":"{}"}}"#, hash.text());
        for seq in [0, 17, i64::MAX as u64] {
            let mut written = Vec::new();
            write_redacted(seq, &hash, &mut written);
            assert_eq!(
                written,
                format!("{}\n", line.replace("17", &seq.to_string())).into_bytes()
            );
            assert_eq!(redacted(written.trim_ascii_end()), Some((seq, hash)));
        }
        for (from, to) in [
            ("17", "017"),
            ("17", "-17"),
            ("17", "+17"),
            ("17", ""),
            ("17", "9223372036854775808"),
            (",", ", "),
            ("}", ",\"x\":1}"),
            ("}", "}\r"),
            ("ab", "AB"),
            ("erased", "Erased"),
        ] {
            assert_eq!(redacted(line.replace(from, to).as_bytes()), None, "{from} -> {to}");
        }
    }
}
