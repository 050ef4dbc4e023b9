//! Spells changes as lines of the log, and takes them into the state.

use std::borrow::Borrow;
use std::sync::Arc;

use crate::options::Options;
use chronolog::error::{Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::{IncomingEvents, Known, Op};
use chronolog::log::Log;
use chronolog::origin::ADOPT_ID;
use chronolog::verify::BaseState;
use chronolog::wal::writer::{EventBody, Lines};
use chronomemory_state::state::State;

use super::adopt::adopt;
use super::pending::{WrittenAt, changes, count, take_in};
use crate::store::Store;
use crate::store::spell_ahead::SpelledAhead;

/// What a record may grow to by patches, with room for the rest of its line.
const PATCHED_LIMIT_BYTES: usize = chronolog::json::MAX_LINE_BYTES - 4096;

/// What a commit wrote.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The seq of the first change; a batch's `begin` stands before it.
    pub first_seq: u64,
    /// The seq after the last change.
    pub next_seq: u64,
    /// The line of the last change, without its newline.
    pub last_line: Vec<u8>,
}

/// What a batch asks of the state. The line that opens it, and one that adopts a base, are events too.
fn coming(parts: &[impl Borrow<Draft>]) -> IncomingEvents {
    let own = IncomingEvents {
        events: 2,
        ..IncomingEvents::default()
    };
    parts.iter().fold(own, |sum, part| sum.and(part.borrow().coming()))
}

/// A patch needs a record to change, and the result must fit into a line.
pub(in crate::store) fn check_patches(state: &State, parts: &[impl Borrow<Draft>]) -> Result<()> {
    if !parts.iter().any(|part| part.borrow().has_patches()) {
        return Ok(());
    }
    let mut born = std::collections::HashMap::new();
    for (draft, change) in changes(parts) {
        let (id, record) = (draft.id(change), draft.record(change));
        match change.op {
            Op::Upsert => {
                born.insert(id, record.len());
            }
            Op::Patch => {
                let shown = || String::from_utf8_lossy(id).into_owned();
                let known = born.get(id).copied().or_else(|| state.length_of(id));
                let Some(length) = known else {
                    return Err(Error::invalid(
                        "id",
                        format!("there is no record \"{}\" to patch", shown()),
                    ));
                };
                if length + record.len() + id.len() > PATCHED_LIMIT_BYTES {
                    return Err(Error::too_large(
                        "patch",
                        format!("\"{}\" would outgrow 16 MiB", shown()),
                    ));
                }
                born.insert(id, length + record.len());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Says what was written, and keeps the memory of the lines for the next ones.
fn put_away(log: &mut Log, lines: Lines, changes: usize) -> Committed {
    let last = lines.starts.len().checked_sub(1);
    let committed = Committed {
        first_seq: lines.link.next_seq - changes as u64,
        next_seq: lines.link.next_seq,
        last_line: last.map(|last| lines.line(last).to_vec()).unwrap_or_default(),
    };
    log.keep_memory(lines);
    committed
}

/// Makes the lines of a batch.
fn spell(
    log: &mut Log,
    options: &Options,
    parts: &[impl Borrow<Draft>],
    coming: IncomingEvents,
    adoption: Option<String>,
    now: i64,
) -> Result<Lines> {
    let (ts, depth) = (log.stamp(now), options.recursion_depth);
    let mut lines = log.fresh_lines(options.salts());
    if let Some(record) = adoption {
        lines.push(EventBody {
            op: Op::Adopt,
            id: ADOPT_ID,
            record: record.as_bytes(),
            ts: &ts,
            depth,
        });
    }
    lines.make_room(coming)?;
    lines.salts.draw(coming.events).map_err(Error::randomness)?;
    lines.begin(count(parts), &ts, depth);
    for part in parts {
        lines.add(part.borrow(), &ts, depth);
    }
    Ok(lines)
}

impl Store {
    /// Gives a foreign base its anchor, if it has none yet.
    pub(in crate::store) fn anchor(&mut self, now: i64) -> Result<()> {
        match self.log.report().base {
            BaseState::Unanchored => self.write(&[], now).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Under the lock: makes one batch of the parts, puts it behind the log and shows it to the state.
    pub(in crate::store) fn write(&mut self, parts: &[&Draft], now: i64) -> Result<Committed> {
        let (lines, base, micros) = self.put(parts, None, now)?;
        let place = WrittenAt {
            base,
            starts: &lines.starts,
            next_seq: lines.link.next_seq,
            micros,
        };
        take_in(&mut self.state, parts, place);
        self.write_due_snapshot();
        Ok(put_away(&mut self.log, lines, count(parts)))
    }

    /// Under the lock: puts a line behind the log that the store says of itself; `record` is made of its seq.
    pub(in crate::store) fn write_own(
        &mut self,
        op: Op,
        word: &str,
        record: impl FnOnce(&str) -> Vec<u8>,
        now: i64,
    ) -> Result<u64> {
        self.log.check_end_is_known()?;
        self.anchor(now)?;
        let micros = now.max(self.log.latest());
        let (ts, depth) = (self.log.stamp(micros), self.options.recursion_depth);
        let mut lines = self.log.fresh_lines(None);
        let seq = lines.link.next_seq;
        let id = format!("{word}:{seq}");
        let record = record(&id);
        lines.push(EventBody {
            op,
            id: id.as_bytes(),
            record: &record,
            ts: &ts,
            depth,
        });
        self.settle();
        self.state.make_room(IncomingEvents {
            events: 1,
            ..IncomingEvents::default()
        })?;
        let offset = self.append(&lines, now)?;
        let known = Known {
            op,
            id: id.as_bytes(),
            record: &record,
            fields: chronolog::json::scan_record(&record).unwrap_or_default(),
            hash: b"",
            offset,
            seq,
        };
        self.state.apply(known, micros);
        self.log.keep_memory(lines);
        Ok(seq)
    }

    /// The same with lines that were spelled ahead, if they still fit; the state may see them later.
    pub(in crate::store) fn write_ahead(
        &mut self,
        parts: &[Arc<Draft>],
        ahead: Option<SpelledAhead>,
        now: i64,
    ) -> Result<Committed> {
        let (lines, base, micros) = self.put(parts, ahead, now)?;
        self.pending
            .take_in_later(&mut self.state, parts, &lines, (base, micros));
        self.write_due_snapshot();
        Ok(put_away(&mut self.log, lines, count(parts)))
    }

    /// Puts a batch behind the log; gives its lines, where they stand and the moment that they carry.
    fn put(
        &mut self,
        parts: &[impl Borrow<Draft>],
        ahead: Option<SpelledAhead>,
        now: i64,
    ) -> Result<(Lines, u64, i64)> {
        if count(parts) > 0 {
            self.log.check_end_is_known()?;
        }
        let coming = coming(parts);
        let adoption = adopt(&self.site, self.log.report().base)?;
        let adopts = adoption.is_some();
        let fits = |ahead: &SpelledAhead| !adopts && ahead.fits(self.log.link(), self.log.latest(), count(parts));
        let (lines, micros) = match ahead.filter(fits) {
            Some(ahead) => (ahead.lines, ahead.now),
            None => {
                let micros = now.max(self.log.latest());
                let lines = spell(&mut self.log, &self.options, parts, coming, adoption, micros)?;
                (lines, micros)
            }
        };
        // Whatever the state will need is had before anything is written.
        self.settle();
        self.state.make_room(coming)?;
        let base = self.append(&lines, now)?;
        if adopts {
            self.log.set_adopted();
        }
        Ok((lines, base, micros))
    }

    /// Writes a snapshot that is due, unless somebody looks after the store.
    fn write_due_snapshot(&mut self) {
        if self.snapshots.is_due(&self.log) && !self.options.attended {
            self.write_wanted_snapshot();
        }
    }
}
