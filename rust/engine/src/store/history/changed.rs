//! Lists what was written since a moment, also if the log was compacted meanwhile.

use std::collections::HashSet;
use std::sync::Arc;

use chronolog::chain::BatchFate;
use chronolog::error::Result;
use chronolog::event::act::each_concerned;
use chronolog::event::faces::face_of;
use chronolog::event::line::{Event, Trust};
use chronolog::event::{Known, Op};
use chronolog::hint::Hint;
use chronolog::origin::{Origin, WayBack, foreign_traces};
use chronolog::verify::{Sink, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_state::state::unspelled;

use super::lines::{History, one_back};
use crate::store::archives::archive_index::IndexedArchive;
use crate::store::archives::faults::{OrDamage, damaged, not_kept};

impl History<'_> {
    /// The ids of the records that were upserted or patched at `seq` or later, each once, in order of their first change;
    /// those of the faces only if asked for.
    ///
    /// # Errors
    /// `HistoryUnavailable` if some of it was compacted away and not kept, `Corrupted` if an archive is damaged, `Io`.
    pub fn changed_since(&self, seq: u64, faces: bool) -> Result<Vec<String>> {
        self.log.check_is_there()?;
        let mut changed = Changed {
            since: seq,
            faces,
            ..Changed::default()
        };
        for indexed in self.indexed_since(seq)?.iter().rev() {
            let mut walk = Walk::new(None);
            let reading = Reading {
                trusted_until: 0,
                threads: self.threads,
            };
            walk.go(
                &*indexed.archive.log,
                indexed.length,
                reading,
                &mut changed,
                &mut |_, _| {},
            )
            .or_damage(&indexed.name)?;
            if let Some(found) = walk.follower.damage.first() {
                return Err(damaged(&indexed.name, found));
            }
            indexed.archive.rest();
        }
        for range in self.state.timeline().since(seq) {
            self.live().each_line(range, |line| {
                if let Ok(event) = Event::read(line, Trust::Hashes) {
                    changed.note(event.op, event.record_id(line), event.record(line), event.spans.seq);
                }
            })?;
        }
        // An act speaks of links that may not be there.
        let is_there = |id: &String| !changed.by_act.contains(id) || self.state.get(id).is_some();
        changed.ids.retain(is_there);
        Ok(changed.ids)
    }

    /// Whether the event with this seq is the one with this hash: a log that went back and on again has another.
    ///
    /// # Errors
    /// As [`History::changed_since`].
    pub fn has_event(&self, seq: u64, hash: &str) -> Result<bool> {
        self.log.check_is_there()?;
        if let Some(Origin::Ours(sentinel)) = self.log.open().map(|log| &log.origin)
            && (sentinel.last_seq, sentinel.previous_head.as_str()) == (seq, hash)
        {
            // It was the last one of the log before: that need not be unpacked.
            return Ok(true);
        }
        let mut found = false;
        if let Some(oldest) = self.indexed_since(seq)?.last() {
            let log = &*oldest.archive.log;
            let traces = foreign_traces(log, oldest.length, seq, Hint::None).or_damage(&oldest.name)?;
            found = traces.hashes.iter().any(|there| there == hash.as_bytes());
            oldest.archive.rest();
        }
        for range in self.state.timeline().since(seq) {
            self.live().each_line(range.start..range.start + 1, |line| {
                let event = Event::read(line, Trust::Hashes);
                found |= event.is_ok_and(|event| event.spans.seq == seq && event.hash(line).text() == hash);
            })?;
        }
        Ok(found)
    }

    /// The archives that hold events of this seq or a later one, newest first.
    fn indexed_since(&self, seq: u64) -> Result<Vec<Arc<IndexedArchive>>> {
        let mut found: Vec<Arc<IndexedArchive>> = Vec::new();
        let mut origin = self.log.open().map(|log| log.origin.clone());
        let mut way = WayBack::default();
        while let Some(Origin::Ours(sentinel)) = origin.filter(|origin| is_after(origin, seq)) {
            let indexed = self.indexed_before(&sentinel)?.ok_or_else(|| not_kept(&sentinel))?;
            origin = Some(one_back(&mut way, &sentinel, &indexed)?);
            found.push(indexed);
        }
        Ok(found)
    }
}

/// Whether a log begins with a compaction that retired events of this seq or a later one.
fn is_after(origin: &Origin, seq: u64) -> bool {
    matches!(origin, Origin::Ours(sentinel) if sentinel.last_seq >= seq)
}

/// The records that events speak of.
#[derive(Default)]
struct Changed {
    since: u64,
    faces: bool,
    ids: Vec<String>,
    seen: HashSet<Vec<u8>>,
    /// Those of them of which only acts spoke.
    by_act: HashSet<String>,
    /// Those of a batch that may still turn out to be broken.
    held: Vec<(Op, Vec<u8>, Vec<u8>, u64)>,
}

impl Changed {
    fn note(&mut self, op: Op, id: &[u8], record: &[u8], seq: u64) {
        let is_change = matches!(op, Op::Upsert | Op::Migrate | Op::Patch | Op::Act);
        if !is_change || seq < self.since {
            return;
        }
        each_concerned(op, id, record, |id| {
            if !self.faces && face_of(id).is_some() {
                return;
            }
            if self.seen.insert(id.to_vec()) {
                self.ids.push(unspelled(id));
                if op == Op::Act {
                    self.by_act.insert(unspelled(id));
                }
            } else if op != Op::Act {
                self.by_act.remove(&unspelled(id));
            }
        });
    }
}

impl Sink for Changed {
    fn count(&mut self, known: Known<'_>, _: i64) {
        self.note(known.op, known.id, known.record, known.seq);
    }

    fn hold(&mut self, known: Known<'_>, _: i64) {
        let record = Some(known.record).filter(|_| known.op == Op::Act);
        let record = record.unwrap_or_default().to_vec();
        self.held.push((known.op, known.id.to_vec(), record, known.seq));
    }

    fn settle(&mut self, held: BatchFate) {
        let batch = std::mem::take(&mut self.held);
        if held == BatchFate::Count {
            for (op, id, record, seq) in batch {
                self.note(op, &id, &record, seq);
            }
        }
    }
}
