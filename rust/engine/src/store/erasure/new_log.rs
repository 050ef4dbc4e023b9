//! Writes the events with which the new log tells of an erasure, and says again what stays.

use crate::error::{Error, Result};
use crate::event::Op;
use crate::event::draft::{Draft, RecordChange};
use crate::json::{self, Value};
use crate::options::Options;
use crate::state::{State, spelled, unspelled};
use crate::wal::writer::{EventBody, Lines};

use super::chosen::Chosen;
use super::order::{Erase, Erased};
use super::rewrite::number;
use super::rows::MovedSpaces;
use crate::store::vectors::records::format::{group_space, space_name};
use crate::store::write::pending::changes;

pub(super) fn event_record(seq: u64, order: &Erase, lines: u64, span: Option<(u64, u64)>, told: &Erased) -> Vec<u8> {
    let text = |text: &str| Value::Str(text.to_owned());
    let data = Value::object([
        ("records", number((told.ids.len() + told.belonging.len()) as u64)),
        ("lines", number(lines)),
        ("unsalted", number(told.unsalted)),
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

/// The records that are there and go, in the order of their ids.
fn gone_of(present: &State, chosen: &Chosen) -> Vec<String> {
    let there = chosen.doomed.ids().filter(|id| present.slot_spelled(id).is_some());
    let mut ids: Vec<String> = there.map(unspelled).collect();
    ids.sort_unstable();
    ids
}

/// Says again what is to survive: present values that were asked for, what is left of records that repeated what went, groups of
/// embeddings without the rows that went, and other records that acts had changed which went.
pub(super) fn say_again(
    new: &mut Lines,
    (present, kept): (&State, Option<&State>),
    chosen: &Chosen,
    moved: &MovedSpaces,
    options: &Options,
    ts: &[u8],
) -> Result<u64> {
    let mut said: Vec<(String, Option<Vec<u8>>)> = Vec::new();
    let others = match kept {
        Some(kept) => present.differences(kept),
        None => gone_of(present, chosen),
    };
    let is_kept = |id: &[u8]| match kept {
        Some(kept) => kept.slot_spelled(id).is_some(),
        None => !chosen.doomed.has(id) && present.slot_spelled(id).is_some(),
    };
    for id in others {
        let name = spelled(&id);
        let space = group_space(&name).or_else(|| space_name(&name));
        if space.is_some_and(|space| moved.names.contains(space)) {
            continue;
        }
        let now = present.get(&id).map(|record| chosen.unlisted(&name, record));
        if !chosen.doomed.has(&name) || group_space(&name).is_some() || chosen.is_again(&name) {
            said.push((id, now));
        } else if let Some(left) = chosen.left_of(&name, present) {
            said.push((id, Some(left)));
        }
    }
    // Of a group that is gone there is nothing to take away.
    let is_told = |(draft, change): &(&Draft, &RecordChange)| change.op != Op::Patch || is_kept(draft.id(change));
    let rows: Vec<(&Draft, &RecordChange)> = changes(&moved.drafts).filter(is_told).collect();
    let lines = said.len() + rows.len();
    new.salts.draw_on(options.salts());
    new.salts.draw(lines).map_err(Error::randomness)?;
    let depth = options.recursion_depth;
    new.begin(lines, ts, depth);
    for (id, record) in &said {
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
