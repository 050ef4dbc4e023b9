//! The memory that a change needs while it is drafted, kept for the next one.

use chronomemory::Draft;

use crate::shape::Shapes;

/// Where changes are drafted.
#[derive(Default)]
pub struct DraftBuffer {
    /// What is to be written.
    pub draft: Draft,
    /// How dicts were written before.
    pub shapes: Shapes,
}
