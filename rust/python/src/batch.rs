//! How is a large batch drafted and spelled at the same time?
//!
//! This thread reads the caller's objects, part by part; another one turns each part into chained lines meanwhile.

use std::ops::RangeInclusive;
use std::sync::Arc;

use chronomemory::event::draft::Draft;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::desk::Desk;
use crate::enter::enter;
use crate::handle::{Handle, threads};
use crate::record;

/// A batch of so many records is worth a second thread.
const WORTH_RECORDS: usize = 500;
/// How many records are handed over at a time: a share of those that are left, so that little is left to spell when the
/// last one is drafted.
const PART_RECORDS: RangeInclusive<usize> = 16..=256;
const PART_SHARE: usize = 4;

/// Whether a batch should be written by [`write`].
pub fn is_worth_it(records: usize) -> bool {
    records >= WORTH_RECORDS && threads() > 1
}

/// Writes records as one atomic batch; gives the first seq and the one after the last.
pub fn write(
    py: Python<'_>,
    handle: &Handle,
    desk: &mut Desk,
    records: &Bound<'_, PyList>,
    depth: i64,
    face: Option<&str>,
) -> PyResult<(u64, u64)> {
    let (mut ahead, used) = handle.spell_ahead(py, records.len())?;
    desk.take_back(used);
    let mut parts: Vec<Arc<Draft>> = Vec::new();
    let Some(speller) = handle.take_speller() else {
        // The system gives no thread: this one does both.
        draft_parts(desk, records, depth, face, |part| {
            ahead.add(&part);
            parts.push(part);
        })?;
        let committed = handle.commit_parts(py, &parts, ahead)?;
        return Ok((committed.first_seq, committed.next_seq));
    };
    let spelling = speller.begin(ahead);
    draft_parts(desk, records, depth, face, |part| {
        parts.push(Arc::clone(&part));
        spelling.add(part);
    })?;
    let Some((ahead, speller)) = enter(py, || Ok(spelling.end()))? else {
        return Err(pyo3::exceptions::PyRuntimeError::new_err(
            "the thread that spells a batch died",
        ));
    };
    handle.keep_speller(speller);
    let committed = handle.commit_parts(py, &parts, ahead)?;
    Ok((committed.first_seq, committed.next_seq))
}

fn draft_parts(
    desk: &mut Desk,
    records: &Bound<'_, PyList>,
    depth: i64,
    face: Option<&str>,
    mut give: impl FnMut(Arc<Draft>),
) -> PyResult<()> {
    let mut left = records.len();
    let mut room = part_of(left);
    for record in records.iter() {
        record::upsert(desk, &record, depth, face)?;
        if desk.draft.changes().len() == room {
            give(Arc::new(desk.next_part()));
            left = left.saturating_sub(room);
            room = part_of(left);
        }
    }
    if !desk.draft.is_empty() {
        give(Arc::new(desk.next_part()));
    }
    Ok(())
}

fn part_of(left: usize) -> usize {
    (left / PART_SHARE).clamp(*PART_RECORDS.start(), *PART_RECORDS.end())
}
