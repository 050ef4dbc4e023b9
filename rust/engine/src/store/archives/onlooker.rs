//! Lets others see the events of logs while these are proved, so that nobody reads them once more.

use std::sync::Arc;

use chronolog::chain::BatchFate;
use chronolog::digest::Hex;
use chronolog::event::{IncomingEvents, Known};
use chronolog::memory::Refused;
use chronolog::verify::{Sink, Walk};
use chronomemory_state::state::{Likeness, State};

/// Somebody who looks on while a log and its past are examined.
pub trait Onlooker {
    /// Records that the logs are likely to tell of, if somebody has them in memory.
    fn likeness(&self) -> Option<Arc<Likeness>>;
    /// The log is read from its first line on; what was seen before counts no more.
    fn begin(&self);
    /// A line of the log that is read, whether its batch is whole or not; what it says may have its salt.
    fn see(&self, known: &Known<'_>);
    /// The log was read to its end.
    fn end(&self, walk: &Walk);
    /// Now a retired log is read from its first line on.
    fn begin_retired(&self);
    /// It was read to its end, and is whole: the archive with this digest. Each of its lines has the seq of its place, or not.
    fn end_retired(&self, digest: &Hex, is_even: bool);
    /// The base with this digest holds these records and no others.
    fn base(&self, sha256: &Hex, state: &State);
}

/// Takes in what a log says while somebody looks on.
pub(in crate::store) struct LookedOn<'a, S>(pub &'a mut S, pub &'a dyn Onlooker);

impl<S: Sink> Sink for LookedOn<'_, S> {
    fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        self.0.make_room(coming)
    }

    fn count(&mut self, known: Known<'_>, ts: i64) {
        self.1.see(&known);
        self.0.count(known, ts);
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        self.1.see(&known);
        self.0.hold(known, ts);
    }

    fn settle(&mut self, held: BatchFate) {
        self.0.settle(held);
    }

    fn note_loss(&mut self) {
        self.0.note_loss();
    }

    fn minds_salt(&self, id: &[u8]) -> bool {
        self.0.minds_salt(id)
    }

    fn is_satisfied(&self) -> bool {
        self.0.is_satisfied()
    }
}
