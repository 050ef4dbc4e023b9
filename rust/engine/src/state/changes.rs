//! Which records changed since someone began to watch?
//!
//! An index that is kept in memory asks this before it answers. Nothing is noted until the first one asks, so a store that
//! nobody searches pays nothing.

use std::sync::Arc;

use crate::memory::Refused;

/// The slots that events touched, in order, and whose changes these are.
#[derive(Debug, Default)]
pub struct Changes {
    life: Life,
    slots: Option<Vec<u32>>,
}

/// Stands for one state from its loading to its end: numbers of slots and changes mean nothing in another one.
#[derive(Debug, Default)]
pub struct Life(Arc<()>);

impl Life {
    /// Another name for the same life.
    pub fn same(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Whether these are one life.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A copy is a state of its own.
impl Clone for Changes {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Changes {
    /// Notes a change if someone watches.
    #[inline]
    pub(super) fn note(&mut self, slot: u32) {
        if let Some(slots) = &mut self.slots {
            slots.push(slot);
        }
    }

    pub(super) fn make_room(&mut self, events: usize) -> Result<(), Refused> {
        let slots = self.slots.as_mut();
        Ok(slots.map_or(Ok(()), |slots| slots.try_reserve(events))?)
    }

    pub(super) fn watch(&mut self) {
        self.slots.get_or_insert_default();
    }

    /// Whether changes are noted.
    pub fn are_watched(&self) -> bool {
        self.slots.is_some()
    }

    /// Whose changes these are.
    pub fn life(&self) -> &Life {
        &self.life
    }

    /// How many there were since someone began to watch.
    pub fn count(&self) -> usize {
        self.slots.as_ref().map_or(0, Vec::len)
    }

    /// The slots that were touched from that count on, some perhaps several times.
    pub fn since(&self, count: usize) -> &[u32] {
        self.slots
            .as_deref()
            .and_then(|slots| slots.get(count..))
            .unwrap_or_default()
    }
}
