//! Writes the events with which the new log tells of an erasure, and says again what stays.

use crate::options::Options;
use chronolog::error::{Error, Result};
use chronolog::event::Op;
use chronolog::event::draft::{Draft, RecordChange};
use chronolog::json::{self, Value};
use chronolog::wal::writer::{EventBody, Lines};
use chronomemory_state::snapshot::Stamp;
use chronomemory_state::state::{State, spelled, unspelled};

use super::chosen::Chosen;
use super::order::{Erase, Erased};
use super::rewrite::number;
use super::rows::MovedSpaces;
use crate::store::vectors::records::format::{group_space, space_name};
use crate::store::write::pending::changes;

/// Of more records the event of an erasure does not note when they were made: it is one line.
const MOST_NOTED: usize = 200_000;

/// Records that are written again behind the event of an erasure: those that named erased records come first, then those that
/// were asked for, groups of embeddings last.
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
    (lines, span): (u64, Option<(u64, u64)>),
    told: &Erased,
    restated: &Restated,
) -> Vec<u8> {
    let text = |text: &str| Value::Str(text.to_owned());
    let data = Value::object([
        ("records", number((told.ids.len() + told.belonging.len()) as u64)),
        ("lines", number(lines)),
        ("unsalted", number(told.unsalted)),
        ("kept", number(restated.named as u64)),
        ("again", number(restated.again as u64)),
        ("made", Value::Array(restated.made.iter().map(Stamp::value).collect())),
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

impl Restated {
    /// What survives: present values that were asked for, records that named erased ones without those names, and other records
    /// that were changed by erased acts.
    pub fn of((present, kept): (&State, Option<&State>), chosen: &Chosen, moved: &MovedSpaces) -> Self {
        let others = match kept {
            Some(kept) => present.differences(kept),
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
                let now = present.get(&id).map(<[u8]>::to_vec);
                records.push((id, now));
            } else if let Some(left) = chosen.left_of(&name, present) {
                records.push((id, Some(left)));
            }
        }
        let is_named = |id: &str| chosen.doomed.has(&spelled(id));
        let rank = |id: &str| match group_space(&spelled(id)).is_some() {
            true => 3,
            false if !is_named(id) => 2,
            false => u8::from(chosen.is_again(&spelled(id))),
        };
        records.sort_by_key(|(id, _)| rank(id));
        let count = |wanted: u8| records.iter().filter(|(id, _)| rank(id) == wanted).count();
        let named = count(0);
        let made = |(id, _): &(String, Option<Vec<u8>>)| present.created(id);
        Self {
            named,
            again: count(1),
            made: records[..named.min(MOST_NOTED)].iter().map(made).collect(),
            records,
        }
    }
}

/// Writes records again, and groups of embeddings without the erased rows.
pub(super) fn say_again(
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
