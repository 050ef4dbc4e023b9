//! What does a change look like in the log, and what does the state make of it?

use crate::error::{Error, Result};
use crate::event::draft::Draft;
use crate::event::{Known, Op, stamp};
use crate::json::RecordSpans;
use crate::origin::ADOPT_ID;
use crate::state::State;
use crate::verify::BaseState;
use crate::wal::writer::{Lines, Link, Saying};

use super::ahead::Ahead;
use super::{Committed, Store};

/// Memory for lines is kept from one commit to the next, up to so much.
const SPARE_BYTES: usize = 8 * 1024 * 1024;
/// What a record may grow to by patches, with room for the rest of its line.
const PATCHED_LIMIT_BYTES: usize = crate::json::MAX_LINE_BYTES - 4096;

/// An event of the log's own, as far as the state is concerned: it only has a place.
pub(super) fn system_event(offset: u64, seq: u64) -> Known<'static> {
    Known {
        op: Op::Other,
        id: b"",
        record: b"{}",
        fields: RecordSpans::default(),
        hash: b"",
        offset,
        seq,
    }
}

/// Shows the state what was written at `base`.
pub(super) fn take_in(state: &mut State, parts: &[&Draft], lines: &Lines, base: u64) {
    let (system, written) = lines.starts.split_at(lines.starts.len() - count(parts));
    let mut seq = lines.link.next_seq - lines.starts.len() as u64;
    for start in system {
        state.note(system_event(base + *start as u64, seq));
        seq += 1;
    }
    let changes = parts
        .iter()
        .flat_map(|part| part.changes().iter().map(move |change| (part, change)));
    for ((draft, change), start) in changes.zip(written) {
        state.apply(Known {
            op: change.op,
            id: draft.id(change),
            record: draft.record(change),
            fields: change.fields,
            hash: b"",
            offset: base + *start as u64,
            seq,
        });
        seq += 1;
    }
}

/// How many changes the parts of a batch have.
pub(super) fn count(parts: &[&Draft]) -> usize {
    parts.iter().map(|part| part.changes().len()).sum()
}

impl Store {
    /// A patch needs a record to change, and the result must fit into a line.
    pub(super) fn check_patches(&self, parts: &[&Draft]) -> Result<()> {
        if !parts.iter().any(|part| part.has_patches()) {
            return Ok(());
        }
        let mut born = std::collections::HashMap::new();
        for (draft, change) in parts
            .iter()
            .flat_map(|part| part.changes().iter().map(move |change| (part, change)))
        {
            let (id, record) = (draft.id(change), draft.record(change));
            match change.op {
                Op::Upsert => {
                    born.insert(id, record.len());
                }
                Op::Patch => {
                    let shown = || String::from_utf8_lossy(id).into_owned();
                    let known = born.get(id).copied().or_else(|| self.state.length_of(id));
                    let Some(length) = known else {
                        return Err(Error::invalid(
                            "id",
                            format!("there is no record \"{}\" to patch", shown()),
                        ));
                    };
                    if length + record.len() + id.len() > PATCHED_LIMIT_BYTES {
                        return Err(Error::invalid("patch", format!("\"{}\" would outgrow 16 MiB", shown())));
                    }
                    born.insert(id, length + record.len());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives a foreign base its anchor, if it has none yet.
    pub(super) fn anchor(&mut self, now: i64) -> Result<()> {
        match self.report.base {
            BaseState::Unanchored => self.write(&[], None, now).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Under the lock: makes one batch of the parts and puts it behind the log.
    pub(super) fn write(&mut self, parts: &[&Draft], ahead: Option<Ahead>, now: i64) -> Result<Committed> {
        let adoption = self.adopt()?;
        let adopts = adoption.is_some();
        let fits = |ahead: &Ahead| !adopts && ahead.fits(self.link(), self.latest(), count(parts));
        let lines = match ahead.filter(fits) {
            Some(ahead) => ahead.lines,
            None => self.spell(parts, adoption, now),
        };
        self.append(&lines, parts, now)?;
        if adopts {
            self.report.base = BaseState::Adopted;
        }
        self.write_snapshot_if_due();
        let last = lines.starts.len().checked_sub(1);
        let committed = Committed {
            first_seq: lines.link.next_seq - count(parts) as u64,
            next_seq: lines.link.next_seq,
            last_line: last.map(|last| lines.line(last).to_vec()).unwrap_or_default(),
        };
        if lines.bytes.capacity() <= SPARE_BYTES {
            self.spare = lines;
        }
        Ok(committed)
    }

    fn spell(&mut self, parts: &[&Draft], adoption: Option<String>, now: i64) -> Lines {
        let ts = stamp::digits(now.max(self.latest()));
        let depth = self.options.recursion_depth;
        let mut lines = std::mem::take(&mut self.spare).reusing(self.link());
        if let Some(record) = adoption {
            lines.push(Saying {
                op: Op::Adopt,
                id: ADOPT_ID,
                record: record.as_bytes(),
                ts: &ts,
                depth,
            });
        }
        lines.begin(count(parts), &ts, depth);
        for part in parts {
            lines.add(part, &ts, depth);
        }
        lines
    }

    pub(super) fn link(&self) -> Link {
        let walk = self.log.as_ref().map(|log| &log.walk);
        let mark = walk.map(|walk| *walk.mark()).unwrap_or_default();
        let claimed = walk.map_or(0, |walk| walk.follower.claimed);
        Link {
            head: mark.head,
            next_seq: mark.last_seq.max(claimed) + 1,
        }
    }

    pub(super) fn latest(&self) -> i64 {
        self.log.as_ref().map_or(i64::MIN, |log| log.walk.latest)
    }
}
