//! What is asked of an erasure, and what does the new log say of it?

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::event::Op;
use crate::json::{self, Value};
use crate::options::Options;
use crate::state::{State, spelled};
use crate::wal::writer::{EventBody, Lines};

use super::rewrite::number;
use super::survey::shown;
use crate::store::archives::doomed::Doomed;

/// What is to be erased, and how.
#[derive(Clone, Debug, Default)]
pub struct Erase {
    /// Records by their ids.
    pub ids: Vec<String>,
    /// Every record that carries the names of this scope, or ever did; as canonical JSON.
    pub scope: Option<Vec<u8>>,
    /// Why; it stays in the log.
    pub reason: String,
    /// The history of all records goes, not only that of those.
    pub drop_history: bool,
    /// Those of the records whose present value is said again.
    pub again: Vec<String>,
    /// Nothing is written: only what would be done is told.
    pub dry_run: bool,
}

/// What was erased, or would be.
#[derive(Clone, Debug, Default)]
pub struct Erased {
    /// The seq of the event that tells of it; `None` if nothing was found, or nothing was done.
    pub seq: Option<u64>,
    /// The records.
    pub ids: Vec<String>,
    /// How many lines.
    pub lines: u64,
    /// How many of those had no salt: who can guess the whole text can confirm it.
    pub unsalted: u64,
    /// How many lines of each log.
    pub by_log: Vec<(String, u64)>,
    /// How many files of the past were replaced or dropped.
    pub replaced: u64,
    /// Records that were said again: those asked for, and others that events had changed which went.
    pub again: u64,
    /// Copies that went.
    pub backups: Vec<String>,
    /// What was quarantined and went.
    pub quarantine: Vec<String>,
}

/// The records, for whoever asked.
pub(super) fn told_ids(state: &State, doomed: &Doomed, order: &Erase) -> Vec<String> {
    let mut found: BTreeSet<String> = order.ids.iter().cloned().collect();
    found.extend(state.in_order().filter_map(|record| {
        let id = json::scan_record(record)?.id?;
        doomed.has(id.of(record)).then(|| shown(id.of(record)))
    }));
    found.retain(|id| !id.starts_with("vector:"));
    found.into_iter().collect()
}

pub(super) fn event_record(
    seq: u64,
    order: &Erase,
    records: u64,
    lines: u64,
    unsalted: u64,
    span: Option<(u64, u64)>,
    told: &Erased,
) -> Vec<u8> {
    let text = |text: &str| Value::Str(text.to_owned());
    let data = Value::object([
        ("records", number(records)),
        ("lines", number(lines)),
        ("unsalted", number(unsalted)),
        ("first_seq", span.map_or(Value::Null, |span| number(span.0))),
        ("last_seq", span.map_or(Value::Null, |span| number(span.1))),
        ("history", text(if order.drop_history { "dropped" } else { "redacted" })),
        (
            "removed",
            Value::object([
                ("backups", number(told.backups.len() as u64)),
                ("quarantine", number(told.quarantine.len() as u64)),
            ]),
        ),
    ]);
    let record = Value::object([
        ("id", Value::Str(format!("erasure:{seq}"))),
        ("kind", text("erasure")),
        ("label", text(&order.reason)),
        ("data", data),
    ]);
    let mut bytes = Vec::new();
    json::write_value(&record, &mut bytes);
    bytes
}

/// Says again what is to survive: present values that were asked for, groups of embeddings without the rows that went, and
/// other records that acts had changed which went.
pub(super) fn say_again(
    new: &mut Lines,
    present: &State,
    kept: &State,
    doomed: &Doomed,
    order: &Erase,
    options: &Options,
    ts: &[u8],
) -> Result<u64> {
    let is_wanted = |id: &String| {
        let spelled = spelled(id);
        !doomed.has(&spelled) || id.starts_with("vector:") || order.again.contains(id)
    };
    let said: Vec<String> = present.differences(kept).into_iter().filter(is_wanted).collect();
    new.salts.draw_on(options.salts());
    new.salts.draw(said.len()).map_err(Error::randomness)?;
    let depth = options.recursion_depth;
    new.begin(said.len(), ts, depth);
    for id in &said {
        let gone = format!(
            "{{\"id\":\"{}\",\"status\":\"tombstone\"}}",
            String::from_utf8_lossy(&spelled(id))
        );
        let (op, record) = match present.get(id) {
            Some(record) => (Op::Upsert, record),
            None => (Op::Delete, gone.as_bytes()),
        };
        new.push(EventBody {
            op,
            id: &spelled(id),
            record,
            ts,
            depth,
        });
    }
    Ok(said.len() as u64)
}
