//! Asks whoever keeps the rows before one is scored, and tells of scores that its companion does not allow.

use std::fmt;

use super::rows::VectorRows;
use super::score::Scorer;
use super::shortlist::BoundedRow;
use super::top::rank_of;

/// Asked once for each row before it is scored, by any thread.
#[derive(Clone, Copy)]
pub struct Gate<'a>(pub &'a (dyn Fn(u32) -> bool + Sync));

impl fmt::Debug for Gate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

/// Told each row whose score lies outside its bounds, by any thread: the row or its companion is wrong, and rows may have
/// been ruled out that should not. Whoever is told finds out which it is, and asks again without it.
#[derive(Clone, Copy)]
pub struct RowDoubt<'a>(pub &'a (dyn Fn(u32) + Sync));

impl fmt::Debug for RowDoubt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Doubt")
    }
}

/// Rows behind a gate.
#[derive(Clone, Copy)]
pub(super) struct Gated<'a> {
    pub(super) rows: VectorRows<'a>,
    pub(super) gate: Option<Gate<'a>>,
    pub(super) doubt: Option<RowDoubt<'a>>,
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

    /// The score of a candidate, held against its bounds.
    #[inline]
    pub(super) fn score(&self, scorer: &Scorer, candidate: BoundedRow, floats: &[f32]) -> f32 {
        let score = scorer.score(floats);
        if !(candidate.lower..=candidate.upper).contains(&rank_of(score))
            && let Some(RowDoubt(tell)) = self.doubt
        {
            tell(candidate.row);
        }
        score
    }
}
