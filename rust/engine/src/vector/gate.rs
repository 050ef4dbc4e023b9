//! May this row be scored? Whoever keeps the rows may know better than to believe all of them.

use std::fmt;

use super::rows::Rows;

/// Asked once for each row before it is scored, by any thread.
#[derive(Clone, Copy)]
pub struct Gate<'a>(pub &'a (dyn Fn(u32) -> bool + Sync));

impl fmt::Debug for Gate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

/// Rows behind a gate.
#[derive(Clone, Copy)]
pub(super) struct Gated<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) gate: Option<Gate<'a>>,
}

impl<'a> Gated<'a> {
    pub(super) fn dim(&self) -> usize {
        self.rows.dim()
    }

    #[inline]
    pub(super) fn row(&self, row: u32) -> Option<&'a [f32]> {
        match self.gate {
            Some(Gate(admits)) if !admits(row) => None,
            _ => Some(self.rows.row(row)),
        }
    }
}
