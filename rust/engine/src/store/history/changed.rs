//! What was written since a moment, also if the log was compacted meanwhile?

use std::collections::HashSet;
use std::sync::Arc;

use crate::chain::Held;
use crate::error::Result;
use crate::event::faces::face_of;
use crate::event::line::{Event, Trust};
use crate::event::{Known, Op};
use crate::origin::Origin;
use crate::state::unspelled;
use crate::verify::{Sink, Walk};
use crate::wal::reader::Reading;

use super::lines::History;
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
        for volume in self.volumes_since(seq)?.iter().rev() {
            let mut walk = Walk::new(None);
            let reading = Reading {
                trusted_until: 0,
                threads: self.threads,
            };
            walk.go(
                &*volume.archive.log,
                volume.length,
                reading,
                &mut changed,
                &mut |_, _| {},
            )
            .or_damage(&volume.name)?;
            if let Some(found) = walk.follower.damage.first() {
                return Err(damaged(&volume.name, found));
            }
            volume.archive.rest();
        }
        for range in self.state.timeline().since(seq) {
            self.live().each_line(range, |line| {
                if let Ok(event) = Event::read(line, Trust::Hashes) {
                    changed.note(event.op, event.record_id(line), event.spans.seq);
                }
            })?;
        }
        Ok(changed.ids)
    }

    /// The archives that hold events of this seq or a later one, newest first.
    fn volumes_since(&self, seq: u64) -> Result<Vec<Arc<IndexedArchive>>> {
        let mut found: Vec<Arc<IndexedArchive>> = Vec::new();
        let mut origin = self.log.open().map(|log| log.origin.clone());
        while let Some(Origin::Ours(sentinel)) = origin.filter(|origin| is_after(origin, seq)) {
            let volume = self.volume_before(&sentinel)?.ok_or_else(|| not_kept(&sentinel))?;
            origin = Some(volume.beginning.origin.clone());
            found.push(volume);
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
    /// Those of a batch that may still turn out to be broken.
    held: Vec<(Op, Vec<u8>, u64)>,
}

impl Changed {
    fn note(&mut self, op: Op, id: &[u8], seq: u64) {
        let is_change = matches!(op, Op::Upsert | Op::Migrate | Op::Patch);
        let is_asked_for = seq >= self.since && (self.faces || face_of(id).is_none());
        if is_change && is_asked_for && self.seen.insert(id.to_vec()) {
            self.ids.push(unspelled(id));
        }
    }
}

impl Sink for Changed {
    fn count(&mut self, known: Known<'_>, _: i64) {
        self.note(known.op, known.id, known.seq);
    }

    fn hold(&mut self, known: Known<'_>, _: i64) {
        self.held.push((known.op, known.id.to_vec(), known.seq));
    }

    fn settle(&mut self, held: Held) {
        let batch = std::mem::take(&mut self.held);
        if held == Held::Count {
            for (op, id, seq) in batch {
                self.note(op, &id, seq);
            }
        }
    }
}
