//! The records of a state at one moment, which stay while the state goes on.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use super::changes::StateId;
use super::likeness::Likeness;
use super::records::State;
use super::table::{Slot, View};
use crate::segment::NO_CLASS;
use crate::snapshot::Moments;
use chronolog::error::{Error, Result};
use chronolog::memory::{Refused, gathered};

/// Records as they were at one moment, in insertion order.
#[derive(Debug)]
pub struct Frozen {
    view: View,
    slots: Vec<u32>,
    state_id: StateId,
}

impl Frozen {
    /// The canonical records.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Cow<'_, [u8]>> {
        self.slots
            .iter()
            .map(|&slot| self.view.bytes_at(self.view.get(slot).at))
    }

    /// Their moments.
    pub fn moments(&self) -> impl ExactSizeIterator<Item = Moments> {
        self.slots.iter().map(|&slot| self.view.moments_of(slot))
    }

    /// The number and the slot of one of them.
    pub(super) fn slot(&self, place: usize) -> Option<(u32, Slot)> {
        let &number = self.slots.get(place)?;
        Some((number, self.view.get(number)))
    }

    /// The state that they are of.
    pub(super) fn state_id(&self) -> &StateId {
        &self.state_id
    }

    /// Whether all that was read of them so far is as it was sealed.
    ///
    /// # Errors
    /// `Io` if not: nothing of it is to be used.
    pub fn check(&self) -> Result<()> {
        match self.view.has_failed() {
            true => Err(damaged_segment()),
            false => Ok(()),
        }
    }

    /// They, for another state that is to be loaded and is much like this one.
    pub fn likeness(self) -> Likeness {
        Likeness::of(self.view, &self.slots)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// One of them, by its place.
    pub fn record(&self, place: usize) -> Option<Cow<'_, [u8]>> {
        self.row(place).map(|(record, _)| record)
    }

    /// The same with its moments.
    pub fn row(&self, place: usize) -> Option<(Cow<'_, [u8]>, Moments)> {
        let &slot = self.slots.get(place)?;
        Some((self.view.bytes_at(self.view.get(slot).at), self.view.moments_of(slot)))
    }
}

/// What is said where a segment, or a record that it leads to, is not as it was sealed.
pub(super) fn damaged_segment() -> Error {
    let reason = "a segment, or a record that it leads to, is damaged; the next call reads the log instead";
    Error::io(
        Path::new("index/state"),
        io::Error::new(io::ErrorKind::InvalidData, reason),
    )
}

impl State {
    /// As [`Frozen::check`].
    ///
    /// # Errors
    /// `Io` if a check failed.
    pub fn check_sealed(&self) -> Result<()> {
        match self.has_failed() {
            true => Err(damaged_segment()),
            false => Ok(()),
        }
    }

    /// A cheap copy that later events do not change.
    pub fn freeze(&mut self) -> std::result::Result<Frozen, Refused> {
        self.freeze_those(0..self.slots.len() as u32)
    }

    /// The same of the records that events of the live log are about from some place on.
    pub fn freeze_since(&mut self, offset: u64) -> std::result::Result<Frozen, Refused> {
        let touched = self.slots_since(offset)?;
        self.freeze_those(touched.into_iter())
    }

    /// The slots of the records that events of the live log are about from some place on, ascending.
    pub fn slots_since(&self, offset: u64) -> std::result::Result<Vec<u32>, Refused> {
        let first = self.timeline.index_from(offset);
        let mut touched = gathered(self.timeline.slots_from(first))?;
        touched.sort_unstable();
        touched.dedup();
        Ok(touched)
    }

    /// The same of the records in some slots, in their order.
    pub fn freeze_those(&mut self, wanted: impl ExactSizeIterator<Item = u32>) -> std::result::Result<Frozen, Refused> {
        // Others wait meanwhile: all memory is asked for at once.
        let mut slots = Vec::new();
        slots.try_reserve_exact(wanted.len())?;
        slots.extend(wanted.filter(|&slot| self.slots.class(slot) != NO_CLASS));
        Ok(Frozen {
            slots,
            state_id: self.changes.state_id().same(),
            view: self.view()?,
        })
    }
}
