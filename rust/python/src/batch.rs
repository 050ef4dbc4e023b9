//! How is a large batch drafted and spelled at the same time?
//!
//! This thread reads the caller's objects, part by part; another one turns each part into chained lines meanwhile.

use std::sync::Arc;
use std::sync::mpsc::channel;

use chronomemory::event::draft::Draft;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::desk::Desk;
use crate::enter::enter;
use crate::handle::{Handle, threads};
use crate::record;

/// A batch of so many records is worth a second thread.
const WORTH_RECORDS: usize = 500;
/// How many records are handed over at a time.
const PART_RECORDS: usize = 64;

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
    let mut ahead = handle.spell_ahead(py, records.len())?;
    let (give, take) = channel::<Arc<Draft>>();
    let mut parts: Vec<Arc<Draft>> = Vec::with_capacity(records.len() / PART_RECORDS + 1);
    let spelled = std::thread::scope(|scope| {
        let speller = scope.spawn(move || {
            take.iter().for_each(|part| ahead.add(&part));
            ahead
        });
        let drafted = draft_parts(desk, records, depth, face, |part| {
            parts.push(Arc::clone(&part));
            // Only a dead thread does not take it, and that is found out below.
            let _ = give.send(part);
        });
        drop(give);
        let ahead = enter(py, || Ok(speller.join()))?;
        drafted.map(|()| ahead)
    })?;
    let Ok(ahead) = spelled else {
        return Err(pyo3::exceptions::PyRuntimeError::new_err(
            "the thread that spells a batch died",
        ));
    };
    let borrowed: Vec<&Draft> = parts.iter().map(|part| &**part).collect();
    let committed = handle.commit_parts(py, &borrowed, ahead)?;
    desk.take_back(parts);
    Ok((committed.first_seq, committed.next_seq))
}

fn draft_parts(
    desk: &mut Desk,
    records: &Bound<'_, PyList>,
    depth: i64,
    face: Option<&str>,
    mut give: impl FnMut(Arc<Draft>),
) -> PyResult<()> {
    for record in records.iter() {
        record::upsert(desk, &record, depth, face)?;
        if desk.draft.changes().len() == PART_RECORDS {
            give(Arc::new(desk.next_part()));
        }
    }
    if !desk.draft.is_empty() {
        give(Arc::new(desk.next_part()));
    }
    Ok(())
}
