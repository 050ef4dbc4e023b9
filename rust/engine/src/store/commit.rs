//! How does a change become part of the log?

use std::io;

use crate::error::{Error, Result};
use crate::event::draft::Draft;
use crate::event::{Known, Op, stamp};
use crate::json::RecordSpans;
use crate::options::Durability;
use crate::origin::ADOPT_ID;
use crate::state::State;
use crate::verify::BaseState;
use crate::wal::writer::{Lines, Link, Saying};

use super::{Store, Syncing};

/// Memory for lines is kept from one commit to the next, up to so much.
const SPARE_BYTES: usize = 8 * 1024 * 1024;
/// What a record may grow to by patches, with room for the rest of its line.
const PATCHED_LIMIT_BYTES: usize = crate::json::MAX_LINE_BYTES - 4096;

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

/// Commits that are written and wait for their common sync.
pub struct Group {
    outcomes: Vec<Result<Committed>>,
    syncing: Option<Syncing>,
    rushed: bool,
}

impl Group {
    /// Waits for the disk, if this group asks for it.
    ///
    /// # Errors
    /// What the disk says; [`Store::end_group`] must hear of it.
    pub fn run(&self) -> io::Result<()> {
        self.syncing.as_ref().map_or(Ok(()), Syncing::run)
    }
}

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
pub(super) fn take_in(state: &mut State, draft: &Draft, lines: &Lines, base: u64) {
    let (system, written) = lines.starts.split_at(lines.starts.len() - draft.changes().len());
    let mut seq = lines.link.next_seq - lines.starts.len() as u64;
    for start in system {
        state.note(system_event(base + *start as u64, seq));
        seq += 1;
    }
    for (change, start) in draft.changes().iter().zip(written) {
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

impl Store {
    /// Writes a draft as one atomic batch. `now` is in microseconds since 1970.
    ///
    /// # Errors
    /// `Locked` if another writer keeps the lock, `Io`, `Poisoned`, `Closed`, `Invalid`; nothing is written then.
    pub fn commit(&mut self, draft: &Draft, now: i64) -> Result<Committed> {
        self.with_lock(now, |store| {
            let committed = store.check_and_write(draft, now)?;
            store.sync_if_due(now)?;
            Ok(committed)
        })
    }

    /// Writes a draft only if none of its records is there yet; `None` if one is.
    ///
    /// # Errors
    /// As `commit`.
    pub fn commit_new(&mut self, draft: &Draft, now: i64) -> Result<Option<Committed>> {
        self.with_lock(now, |store| {
            let mut ids = draft.changes().iter().map(|change| draft.id(change));
            if ids.any(|id| store.state.length_of(id).is_some()) {
                return Ok(None);
            }
            let committed = store.write(draft, now)?;
            store.sync_if_due(now)?;
            Ok(Some(committed))
        })
    }

    /// Writes several drafts, each an atomic batch of its own, under one lock and with one sync for all. In mode `full`
    /// that sync is the caller's to run, without the store, and then to end with [`Store::end_group`].
    ///
    /// # Errors
    /// As `commit`, for all of them.
    pub fn start_group(&mut self, drafts: &[&Draft], now: i64) -> Result<Group> {
        let rushed = self.begin(now)?;
        let outcomes: Vec<Result<Committed>> = drafts.iter().map(|draft| self.check_and_write(draft, now)).collect();
        self.prepared &= outcomes.iter().all(Result::is_ok);
        if self.syncs_every_commit() {
            let syncing = self.start_sync();
            return Ok(Group {
                outcomes,
                syncing,
                rushed,
            });
        }
        if let Err(fault) = self.sync_if_due(now) {
            self.prepared = false;
            self.rest(now, false);
            return Err(fault);
        }
        Ok(Group {
            outcomes,
            syncing: None,
            rushed,
        })
    }

    /// Whether nothing is acknowledged before it is on disk.
    pub fn syncs_every_commit(&self) -> bool {
        self.options.durability == Durability::Full
    }

    /// Hears how the sync of a group went, and lets go.
    ///
    /// # Errors
    /// What the sync said: none of the group is acknowledged then.
    pub fn end_group(&mut self, group: Group, synced: io::Result<()>, now: i64) -> Result<Vec<Result<Committed>>> {
        let told = match &group.syncing {
            Some(syncing) => self.end_sync(syncing, synced),
            None => Ok(()),
        };
        if told.is_err() {
            (self.log, self.prepared) = (None, false);
        }
        self.rest(now, group.rushed);
        told.map(|()| group.outcomes)
    }

    /// Runs a change under the lock, on the newest state.
    pub(super) fn with_lock<T>(&mut self, now: i64, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let rushed = self.begin(now)?;
        let outcome = change(self);
        // Whatever went wrong may have left the files other than the memory thinks.
        self.prepared &= outcome.is_ok();
        self.rest(now, rushed);
        outcome
    }

    /// Takes the lock and the newest state; says whether the last change is only just over.
    fn begin(&mut self, now: i64) -> Result<bool> {
        self.check_open()?;
        self.check_poison()?;
        let rushed = self.take_lock(now)?;
        if let Err(fault) = self.prepare(now) {
            self.prepared = false;
            self.rest(now, false);
            return Err(fault);
        }
        Ok(rushed)
    }

    fn check_and_write(&mut self, draft: &Draft, now: i64) -> Result<Committed> {
        self.check_patches(draft)?;
        self.write(draft, now)
    }

    /// A patch needs a record to change, and the result must fit into a line.
    fn check_patches(&self, draft: &Draft) -> Result<()> {
        if !draft.has_patches() {
            return Ok(());
        }
        let mut born = std::collections::HashMap::new();
        for change in draft.changes() {
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
            BaseState::Unanchored => self.write(&Draft::default(), now).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn write(&mut self, draft: &Draft, now: i64) -> Result<Committed> {
        let adoption = self.adopt()?;
        let adopts = adoption.is_some();
        let lines = self.spell(draft, adoption, now);
        self.append(&lines, draft, now)?;
        if adopts {
            self.report.base = BaseState::Adopted;
        }
        self.write_snapshot_if_due();
        let last = lines.starts.len().checked_sub(1);
        let committed = Committed {
            first_seq: lines.link.next_seq - draft.changes().len() as u64,
            next_seq: lines.link.next_seq,
            last_line: last.map(|last| lines.line(last).to_vec()).unwrap_or_default(),
        };
        if lines.bytes.capacity() <= SPARE_BYTES {
            self.spare = lines;
        }
        Ok(committed)
    }

    fn spell(&mut self, draft: &Draft, adoption: Option<String>, now: i64) -> Lines {
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
        lines.add(draft, &ts, depth);
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
