//! Asks for all memory that coming events will need, before the first of them is taken in.
//!
//! A state cannot stop in the middle of an event. So all memory that some events will need is asked for before the first
//! of them is taken in, or written.

use super::records::{SlotEntry, State};
use crate::event::IncomingEvents;
use crate::memory::{self, Refused};

impl State {
    /// Asks for all memory that some events need. Only what a delete, a patch or an act makes of a record that is there is not
    /// announced.
    ///
    /// # Errors
    /// `Refused` if there is not so much; nothing changed.
    pub fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        let (events, touched) = (coming.events, coming.events + coming.further);
        memory::check()?;
        self.arena.make_room(coming.bytes, coming.longest)?;
        self.slots.try_reserve(touched)?;
        self.ids.try_reserve(touched, |entry| SlotEntry::spread(entry.hash))?;
        self.timeline.make_room(events, coming.further)?;
        self.changes.make_room(touched)?;
        self.scopes.make_room(touched)?;
        self.moments.make_room(touched)?;
        Ok(())
    }

    /// How much memory the records take, those included that were replaced.
    pub fn bytes(&self) -> usize {
        self.arena.bytes()
    }
}
