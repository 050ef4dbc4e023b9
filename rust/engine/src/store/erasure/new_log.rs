//! Writes the new log of an erasure: the event that tells of it, records that are kept, and embeddings without the erased rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::chosen::Chosen;
use super::order::{Erase, Erased};
use crate::options::Options;
use crate::store::Store;
use crate::store::upkeep::compact_rows::Moving;
use crate::store::vectors::Vectors;
use crate::store::vectors::records::format::{file_name, group_space, space_name};
use crate::store::vectors::records::index::RowIndex;
use crate::store::write::pending::changes;
use chronolog::disk::Access;
use chronolog::error::{At, Error, Result};
use chronolog::event::Op;
use chronolog::event::draft::{Draft, RecordChange};
use chronolog::json::Value;
use chronolog::log::Site;
use chronolog::wal::writer::{EventBody, Lines};
use chronomemory_state::snapshot::Stamp;
use chronomemory_state::state::{State, spelled, unspelled};

/// Of more records the event of an erasure does not note when they were made: it is one line.
const MOST_NOTED: usize = 200_000;

/// Records written again behind the event: those that named erased ones, requested ones, then groups of rows.
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
        ("records", Value::from((told.ids.len() + told.belonging.len()) as u64)),
        ("lines", Value::from(lines)),
        ("unsalted", Value::from(told.unsalted)),
        ("kept", Value::from(restated.named as u64)),
        ("again", Value::from(restated.again as u64)),
        ("made", Value::Array(restated.made.iter().map(Stamp::value).collect())),
        ("first_seq", span.map_or(Value::Null, |span| Value::from(span.0))),
        ("last_seq", span.map_or(Value::Null, |span| Value::from(span.1))),
        ("history", text(if order.drop_history { "dropped" } else { "redacted" })),
        (
            "removed",
            Value::object([
                ("backups", Value::from(told.backups.len() as u64)),
                ("quarantine", Value::from(told.quarantine.len() as u64)),
            ]),
        ),
    ]);
    let record = Value::object([
        ("id", Value::Str(format!("erasure:{seq}"))),
        ("kind", text("erasure")),
        ("label", text(&order.reason)),
        ("data", data),
    ]);
    record.to_bytes()
}

/// The records that are there and go, in the order of their ids.
fn gone_of(present: &State, chosen: &Chosen) -> Vec<String> {
    let there = chosen.doomed.ids().filter(|id| present.slot_spelled(id).is_some());
    let mut ids: Vec<String> = there.map(unspelled).collect();
    ids.sort_unstable();
    ids
}

impl Restated {
    /// What is written again: requested values, records without erased references, and records that erased acts changed.
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
        let rank = |id: &str| match group_space(&spelled(id)).is_some() {
            true => 2,
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
pub(super) fn rewrite_kept(
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

/// Spaces that have moved once the new log says so.
#[derive(Default)]
pub(super) struct MovedSpaces {
    pub names: BTreeSet<String>,
    pub drafts: Vec<Draft>,
    /// The files that are left behind, from the store's folder on.
    pub files: Vec<String>,
}

/// Removes the rows of erased records from the files of a store.
pub(super) struct RowRemoval<'a> {
    site: &'a Arc<Site>,
    state: &'a State,
    vectors: &'a Vectors,
    chosen: &'a Chosen,
    depth: i64,
}

impl<'a> RowRemoval<'a> {
    /// Removes the rows of the chosen records.
    pub fn of(store: &'a Store, chosen: &'a Chosen) -> Self {
        Self {
            site: &store.site,
            state: &store.state,
            vectors: &store.vectors,
            chosen,
            depth: store.options.recursion_depth,
        }
    }

    /// Whether a row is of a record that goes; that of one that stays goes too unless it is its embedding now.
    fn is_row_of(&self, index: &RowIndex, row: u32) -> bool {
        let owner = index.owner_of(row).map(|owner| self.state.spelled_id(owner));
        owner.is_some_and(|id| self.chosen.doomed.has(id) && !(self.chosen.stays(id) && index.is_living(row)))
    }

    /// Whether a file has rows that no group names: the line that named them was lost, so nobody knows whose they are.
    fn has_nobodys_rows(&self, index: &RowIndex) -> Result<bool> {
        if (0..index.rows).any(|row| index.owner_of(row).is_none()) {
            return Ok(true);
        }
        let path = self.site.layout.rows(&index.bound.name, index.bound.generation);
        if !self.site.disk.exists(&path) {
            return Ok(false);
        }
        let length = self.site.disk.open(&path, Access::Read).and_then(|file| file.length());
        Ok(length.at(&path)? > u64::from(index.rows) * index.bound.stride())
    }

    fn must_move(&self, index: &RowIndex) -> Result<bool> {
        Ok((0..index.rows).any(|row| self.is_row_of(index, row)) || self.has_nobodys_rows(index)?)
    }

    /// Under the lock: the spaces that have to move, with the rows that stay.
    pub fn start(&self) -> Result<Vec<Moving>> {
        let mut moving = Vec::new();
        for index in self.vectors.known(self.state).spaces.spaces.values() {
            if self.must_move(index)? {
                let stays = |row: u32| !self.is_row_of(index, row);
                moving.push(Moving::start(self.site, false, index, &[], stays)?);
            }
        }
        Ok(moving)
    }

    /// Under the lock: the rows that stay have left every file that holds others. Most were copied before.
    pub fn end(&self, moving: Vec<Moving>) -> Result<MovedSpaces> {
        let mut moved = MovedSpaces::default();
        let mut moving: BTreeMap<String, Moving> = moving
            .into_iter()
            .map(|space| (space.name().to_owned(), space))
            .collect();
        for index in self.vectors.known(self.state).spaces.spaces.values() {
            let stays = |row: u32| !self.is_row_of(index, row);
            let draft = match moving.remove(&index.bound.name) {
                Some(space) => space.end(self.state, index, self.depth, stays)?,
                None => None,
            };
            let draft = match draft {
                None if self.must_move(index)? => {
                    // It is not the one that was copied, or nobody knew that it has to move.
                    let space = Moving::start(self.site, false, index, &[], stays)?;
                    space.end(self.state, index, self.depth, stays)?
                }
                draft => draft,
            };
            if let Some(draft) = draft {
                moved.names.insert(index.bound.name.clone());
                moved.drafts.push(draft);
                moved.files.push(format!("vectors/{}", file_name(&index.bound)));
            }
        }
        Ok(moved)
    }
}
