//! A thread that spells the lines of a large batch while its records are drafted.
//!
//! A thread of the store: started when the first large batch comes, kept for the next one, never used after a fork. It
//! works for one batch at a time: whoever comes meanwhile, perhaps from within the drafting of the first, has another.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::store::{Shared, SpelledAhead};
use chronolog::event::draft::Draft;
use chronolog::host::Host;

/// The way to the thread. When it is dropped the thread finishes what it has and ends; nobody waits for that, because
/// whoever drops it may be the one whose records are being drafted.
pub(in crate::store) struct Speller {
    orders: Sender<Order>,
}

struct Order {
    ahead: SpelledAhead,
    parts: Receiver<Arc<Draft>>,
    spelled: Sender<SpelledAhead>,
}

/// A batch that is being spelled, and the thread that does it.
pub(in crate::store) struct SpellerJob {
    speller: Speller,
    parts: Sender<Arc<Draft>>,
    spelled: Receiver<SpelledAhead>,
}

impl Speller {
    /// Starts the thread.
    pub fn start(store: Arc<Shared>, host: &dyn Host) -> io::Result<Self> {
        let (orders, coming) = channel::<Order>();
        let work = move || {
            for mut order in coming {
                // The batch before this one is shown to the state while this one is drafted.
                store.settle();
                order.parts.iter().for_each(|part| order.ahead.add(&part));
                // Whoever gave up on the batch does not wait for it.
                let _ = order.spelled.send(order.ahead);
            }
        };
        drop(host.spawn("chronomemory-speller", Box::new(work))?);
        Ok(Self { orders })
    }

    /// Begins a batch.
    pub fn begin(self, ahead: SpelledAhead) -> SpellerJob {
        let (parts, coming) = channel();
        let (done, spelled) = channel();
        // A dead thread takes nothing; `end` finds that out.
        let _ = self.orders.send(Order {
            ahead,
            parts: coming,
            spelled: done,
        });
        SpellerJob {
            speller: self,
            parts,
            spelled,
        }
    }
}

impl SpellerJob {
    /// Gives the next part.
    pub fn add(&self, part: Arc<Draft>) {
        let _ = self.parts.send(part);
    }

    /// Waits for the lines, and gives the thread back; `None` if it died.
    pub fn end(self) -> Option<(SpelledAhead, Speller)> {
        drop(self.parts);
        let ahead = self.spelled.recv().ok()?;
        Some((ahead, self.speller))
    }
}
