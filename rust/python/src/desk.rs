//! What does a change need until it is written? A draft, and the shapes of the dicts that come again and again.

use chronomemory::event::draft::Draft;

use crate::shape::Shapes;

/// A draft's memory is kept from one commit to the next, up to so much.
const SPARE_BYTES: usize = 8 * 1024 * 1024;

/// Where changes are drafted.
#[derive(Default)]
pub struct Desk {
    /// What is to be written.
    pub draft: Draft,
    /// How dicts were written before.
    pub shapes: Shapes,
}

impl Desk {
    /// Cleared for the next change.
    pub fn cleared(mut self) -> Self {
        if self.draft.room() > SPARE_BYTES {
            self.draft = Draft::default();
        }
        self.draft.clear();
        self
    }
}
