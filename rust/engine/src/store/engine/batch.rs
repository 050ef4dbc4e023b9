//! Drafts a large batch on the caller's thread, part by part, while another thread turns each part into chained lines.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Builder};

use super::Engine;
use crate::store::{Committed, EncodedAhead, Shared};
use chronolog::error::{Error, Result};
use chronolog::event::draft::{Draft, SPARE_BYTES};
use chronolog::host::Host;

/// From so many changes on a second thread encodes.
const WORTH_CHANGES: usize = 500;
/// The changes of one part: a share of the rest, so that the last part is small.
const PART_CHANGES: RangeInclusive<usize> = 16..=256;
const PART_SHARE: usize = 4;
const SPARE_PARTS: usize = 64;

/// A batch that is being drafted, change by change.
pub struct BatchWriter<'a> {
    engine: &'a Engine,
    large: Option<Large>,
}

struct Large {
    parts: Vec<Arc<Draft>>,
    spare: Vec<Draft>,
    /// How many changes are still to come.
    left: usize,
    /// How many of them are the next part.
    room: usize,
    encoding: Encoding,
}

enum Encoding {
    Beside(EncoderJob),
    /// There is no second thread.
    Here(Box<EncodedAhead>),
}

impl Engine {
    /// Begins a batch of so many changes. The caller drafts each and calls [`BatchWriter::drafted`].
    pub fn batch(&self, changes: usize) -> Result<BatchWriter<'_>> {
        self.check_caller()?;
        // A caller that drives the worker may have no threads to lend.
        let is_attended = || self.workers().as_ref().is_some_and(|workers| workers.worker.is_some());
        let is_worth_it = changes >= WORTH_CHANGES && self.threads > 1 && is_attended();
        Ok(BatchWriter {
            engine: self,
            large: is_worth_it.then(|| Large::begin(self, changes)),
        })
    }
}

impl BatchWriter<'_> {
    /// Hears that another change is in the draft; it may be taken out of it.
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
        let (ahead, encoder) = match large.encoding {
            Encoding::Beside(ordered) => {
                // The last lines are encoded meanwhile.
                let checked = engine.store.check_ahead(&large.parts);
                let died = || Error::busy("the thread that spells a batch died");
                let (mut ahead, encoder) = ordered.end().ok_or_else(died)?;
                ahead.checked = checked;
                (ahead, Some(encoder))
            }
            Encoding::Here(ahead) => (*ahead, None),
        };
        if let Some(workers) = engine.workers().as_mut() {
            workers.encoder = encoder.or_else(|| workers.encoder.take());
            keep(&mut workers.spare, large.spare);
        }
        engine.write(|store, now| store.commit_parts(&large.parts, ahead, now))
    }
}

impl Large {
    fn begin(engine: &Engine, changes: usize) -> Self {
        let (ahead, used) = engine.store.encode_ahead(changes, engine.host.now());
        let (waiting, mut spare) = match engine.workers().as_mut() {
            Some(workers) => (workers.encoder.take(), std::mem::take(&mut workers.spare)),
            None => (None, Vec::new()),
        };
        keep(&mut spare, used);
        let encoder = waiting.map_or_else(|| Encoder::start(Arc::clone(&engine.store), &*engine.host), Ok);
        Self {
            parts: Vec::new(),
            spare,
            left: changes,
            room: part_of(changes),
            encoding: match encoder {
                Ok(encoder) => Encoding::Beside(encoder.begin(ahead)),
                Err(_) => Encoding::Here(Box::new(ahead)),
            },
        }
    }

    fn hand_over(&mut self, draft: &mut Draft) {
        let mut empty = self.spare.pop().unwrap_or_default();
        empty.author = draft.author.clone();
        let part = Arc::new(std::mem::replace(draft, empty));
        self.left = self.left.saturating_sub(self.room);
        self.room = part_of(self.left);
        match &mut self.encoding {
            Encoding::Beside(ordered) => ordered.add(Arc::clone(&part)),
            Encoding::Here(ahead) => ahead.add(&part),
        }
        self.parts.push(part);
    }
}

fn part_of(left: usize) -> usize {
    (left / PART_SHARE).clamp(*PART_CHANGES.start(), *PART_CHANGES.end())
}

fn keep(spare: &mut Vec<Draft>, parts: Vec<Draft>) {
    for mut part in parts {
        if spare.len() < SPARE_PARTS && part.room() <= SPARE_BYTES {
            part.clear();
            spare.push(part);
        }
    }
}

/// The queue of the thread. Dropping it lets the thread finish and end without waiting for it.
pub(in crate::store) struct Encoder {
    orders: Sender<Order>,
}

struct Order {
    ahead: EncodedAhead,
    parts: Receiver<Arc<Draft>>,
    encoded: Sender<EncodedAhead>,
}

pub(in crate::store) struct EncoderJob {
    encoder: Encoder,
    parts: Sender<Arc<Draft>>,
    encoded: Receiver<EncodedAhead>,
}

impl Encoder {
    pub fn start(store: Arc<Shared>, host: &dyn Host) -> io::Result<Self> {
        let (orders, coming) = channel::<Order>();
        let work = move || {
            for mut order in coming {
                let is_behind = store.read_guard().pending.is_large();
                thread::scope(|scope| {
                    // The batch before this one is shown to the state while this one is encoded.
                    _ = is_behind.then(|| Builder::new().spawn_scoped(scope, || store.settle()));
                    order.parts.iter().for_each(|part| order.ahead.add(&part));
                });
                // The writer may have given up on the batch.
                let _ = order.encoded.send(order.ahead);
            }
        };
        drop(host.spawn("chronomemory-encoder", Box::new(work))?);
        Ok(Self { orders })
    }

    pub fn begin(self, ahead: EncodedAhead) -> EncoderJob {
        let (parts, coming) = channel();
        let (done, encoded) = channel();
        // A dead thread takes nothing; `end` finds that out.
        let _ = self.orders.send(Order {
            ahead,
            parts: coming,
            encoded: done,
        });
        EncoderJob {
            encoder: self,
            parts,
            encoded,
        }
    }
}

impl EncoderJob {
    pub fn add(&self, part: Arc<Draft>) {
        let _ = self.parts.send(part);
    }

    /// Waits for the lines; `None` if the thread died.
    pub fn end(self) -> Option<(EncodedAhead, Encoder)> {
        drop(self.parts);
        let ahead = self.encoded.recv().ok()?;
        Some((ahead, self.encoder))
    }
}
