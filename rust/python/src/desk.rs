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
    /// Memory for the parts of large batches.
    spare: Vec<Draft>,
}

/// How many drafts of parts are kept.
const SPARE_PARTS: usize = 16;

impl Desk {
    /// Makes room for the next change.
    pub fn clear(&mut self) {
        if self.draft.room() > SPARE_BYTES {
            self.draft = Draft::default();
        }
        self.draft.clear();
    }

    /// The draft so far; an empty one takes its place.
    pub fn next_part(&mut self) -> Draft {
        let empty = self.spare.pop().unwrap_or_default();
        std::mem::replace(&mut self.draft, empty)
    }

    /// Keeps the memory of parts that are written.
    pub fn take_back(&mut self, parts: Vec<Draft>) {
        for mut part in parts {
            if self.spare.len() < SPARE_PARTS && part.room() <= SPARE_BYTES {
                part.clear();
                self.spare.push(part);
            }
        }
    }
}
