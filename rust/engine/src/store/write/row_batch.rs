//! Commits those of many rows that may be written, and tells which were refused.

use chronolog::error::{Error, Result};
use chronolog::event::draft::Draft;
use chronomemory_state::state::unspelled;

use super::claims::refused_claims;
use super::spell::Committed;
use crate::store::Store;

/// How many refusals are kept; all are counted.
pub(in crate::store) const KEPT_REFUSALS: usize = 1000;

/// Changes that were left out: their places, and why.
pub type RefusedChanges = Vec<(usize, Error)>;

/// The rows that begin in one piece of the source.
#[derive(Default)]
pub(in crate::store) struct RowBatch {
    /// What they say.
    pub draft: Draft,
    /// The line of each change, within the piece.
    pub places: Vec<u64>,
    /// How many lines there are.
    pub lines: u64,
    /// Rows that are no records.
    pub refused: Vec<RefusedRow>,
    /// How many were left out; not all of them are kept.
    pub skipped: u64,
}

/// A row that is no record: its line within the piece, its id, and why.
pub(in crate::store) struct RefusedRow {
    pub line: u64,
    pub id: Option<String>,
    pub fault: Error,
}

impl RowBatch {
    /// Notes a row that cannot be written.
    pub fn refuse(&mut self, line: u64, id: Option<String>, fault: Error) {
        self.skipped += 1;
        if self.refused.len() < KEPT_REFUSALS {
            self.refused.push(RefusedRow { line, id, fault });
        }
    }

    /// Takes changes out that cannot be written, given by their places among the changes.
    fn leave_out(&mut self, mut faults: Vec<(usize, Error)>) {
        faults.sort_by_key(|(row, _)| *row);
        faults.dedup_by_key(|(row, _)| *row);
        let rows: Vec<usize> = faults.iter().map(|(row, _)| *row).collect();
        for (row, fault) in faults {
            let id = unspelled(self.draft.id(&self.draft.changes()[row]));
            self.refuse(self.places[row], Some(id), fault);
        }
        self.draft.retain(|row| rows.binary_search(&row).is_err());
        let mut row = 0;
        self.places.retain(|_| {
            row += 1;
            rows.binary_search(&(row - 1)).is_err()
        });
    }
}

/// Writes rows as one batch; those that are not the writer's to write are left out if that is asked for.
pub(in crate::store) fn commit_rows(
    store: &mut Store,
    rows: &mut RowBatch,
    skips: bool,
    now: &dyn Fn() -> i64,
) -> Result<Option<Committed>> {
    while !rows.draft.is_empty() {
        let fault = match store.commit(&rows.draft, now()) {
            Ok(committed) => return Ok(Some(committed)),
            Err(fault) if skips => fault,
            Err(fault) => return Err(fault),
        };
        let first = row_of(fault, rows.draft.changes().len())?;
        let mut faults: Vec<(usize, Error)> = refused_claims(&store.state, &[&rows.draft])?.collect();
        faults.push(first);
        rows.leave_out(faults);
    }
    Ok(None)
}

/// Writes a draft as one batch without the changes that are not its writer's to make: these come back, with their
/// places.
///
/// # Errors
/// As [`Store::commit`], but for the refusal of a change.
pub(in crate::store) fn commit_allowed(
    store: &mut Store,
    draft: &mut Draft,
    now: i64,
) -> Result<(Option<Committed>, RefusedChanges)> {
    let mut rows = RowBatch {
        places: (0..draft.changes().len() as u64).collect(),
        draft: std::mem::take(draft),
        ..RowBatch::default()
    };
    let committed = commit_rows(store, &mut rows, true, &|| now)?;
    let refused = rows.refused.into_iter().map(|row| (row.line as usize, row.fault));
    Ok((committed, refused.collect()))
}

/// Which of so many changes a refusal is about, if it is about one.
pub(in crate::store) fn row_of(fault: Error, changes: usize) -> std::result::Result<(usize, Error), Error> {
    match fault {
        Error::InBatch { row, fault } => Ok((row, *fault)),
        Error::IdTaken { .. } | Error::OutOfScope { .. } | Error::Invalid { .. } if changes == 1 => Ok((0, fault)),
        other => Err(other),
    }
}
