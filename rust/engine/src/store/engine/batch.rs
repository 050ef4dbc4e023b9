//! Drafts a large batch on the caller's thread, part by part, while another thread turns each part into chained lines.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Builder};

use super::Engine;
use crate::store::{Committed, EncodedAhead};
use chronolog::error::{Error, Result};
use chronolog::event::draft::Draft;

/// From so many changes on a second thread encodes.
const WORTH_CHANGES: usize = 500;
/// The changes of one part: a share of the rest, so that the last part is small.
const PART_CHANGES: RangeInclusive<usize> = 16..=256;
const PART_SHARE: usize = 4;

/// A batch that is being drafted, change by change.
pub struct BatchWriter<'a> {
    engine: &'a Engine,
    large: Option<Large>,
}

struct Large {
    parts: Vec<Arc<Draft>>,
    /// How many changes are still to come.
    left: usize,
    /// How many of them are the next part.
    room: usize,
    encoder: Encoder,
}

/// The thread that encodes a batch. It ends without being waited for if the batch is given up.
struct Encoder {
    parts: Sender<Arc<Draft>>,
    encoded: Receiver<EncodedAhead>,
}

impl Engine {
    /// Begins a batch of so many changes. The caller drafts each and calls [`BatchWriter::drafted`].
    pub fn batch(&self, changes: usize) -> Result<BatchWriter<'_>> {
        self.check_caller()?;
        // A caller that drives the worker may have no threads to lend.
        let is_attended = || self.worker_thread().is_some();
        let is_worth_it = changes >= WORTH_CHANGES && self.threads > 1 && is_attended();
        Ok(BatchWriter {
            engine: self,
            large: is_worth_it.then(|| Large::begin(self, changes).ok()).flatten(),
        })
    }
}

impl BatchWriter<'_> {
    /// Takes note of another change in the draft; it may be moved out of it.
    pub fn drafted(&mut self, draft: &mut Draft) {
        if let Some(large) = self.large.as_mut().filter(|large| draft.changes().len() == large.room) {
            large.hand_over(draft);
        }
    }

    /// Writes all changes as one atomic batch, with what is left in the draft at its end. The draft is empty then.
    pub fn commit(self, draft: &mut Draft) -> Result<Committed> {
        let engine = self.engine;
        let Some(mut large) = self.large else {
            return engine.commit(draft);
        };
        engine.check_caller()?;
        if !draft.is_empty() {
            large.hand_over(draft);
        }
        let Encoder { parts, encoded } = large.encoder;
        drop(parts);
        // The last lines are encoded meanwhile.
        let checked = engine.store.check_ahead(&large.parts);
        let died = |_| Error::busy("the thread that encodes a batch died");
        let mut ahead = encoded.recv().map_err(died)?;
        ahead.checked = checked;
        engine.write(|store, now| store.commit_parts(&large.parts, ahead, now))
    }
}

impl Large {
    /// Fails if there is no second thread.
    fn begin(engine: &Engine, changes: usize) -> io::Result<Self> {
        let (parts, coming) = channel::<Arc<Draft>>();
        let (done, encoded) = channel();
        let (store, now) = (Arc::clone(&engine.store), engine.host.now());
        let work = move || {
            let mut ahead = store.encode_ahead(changes, now);
            let is_behind = store.read_guard().pending.is_large();
            thread::scope(|scope| {
                // The batch before this one is shown to the state while this one is encoded.
                _ = is_behind.then(|| Builder::new().spawn_scoped(scope, || store.settle()));
                coming.iter().for_each(|part| ahead.add(&part));
            });
            // The writer may have given up on the batch.
            let _ = done.send(ahead);
        };
        drop(engine.host.spawn("chronomemory-encoder", Box::new(work))?);
        Ok(Self {
            parts: Vec::new(),
            left: changes,
            room: part_of(changes),
            encoder: Encoder { parts, encoded },
        })
    }

    fn hand_over(&mut self, draft: &mut Draft) {
        let mut empty = Draft::default();
        empty.author = draft.author.clone();
        let part = Arc::new(std::mem::replace(draft, empty));
        self.left = self.left.saturating_sub(self.room);
        self.room = part_of(self.left);
        // A dead thread takes nothing; the commit finds that out.
        let _ = self.encoder.parts.send(Arc::clone(&part));
        self.parts.push(part);
    }
}

fn part_of(left: usize) -> usize {
    (left / PART_SHARE).clamp(*PART_CHANGES.start(), *PART_CHANGES.end())
}
