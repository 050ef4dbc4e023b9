//! Turns reports of the engine into dicts of Python.

use chronomemory::{Damage, HeadStanding, Quarantined, Repaired, Tail, Verified, WHY_NOT_RESTORABLE};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A file of another kind may have damage in every line: no more places are listed.
const MOST_LISTED: usize = 20_000;

/// What was found as a dict; the Python side gives it a class.
pub fn dict<'py>(py: Python<'py>, found: &Verified) -> PyResult<Bound<'py, PyDict>> {
    let (report, standing, fault) = (&found.report, &found.standing, found.fault.as_deref());
    let dict = PyDict::new(py);
    dict.set_item("valid", report.valid())?;
    dict.set_item("events", report.events)?;
    dict.set_item("first_seq", report.first_seq)?;
    dict.set_item("last_seq", report.last_seq)?;
    dict.set_item(
        "head",
        report.head.map(|head| head.text().to_owned()).unwrap_or_default(),
    )?;
    dict.set_item("fast_lines", report.fast_lines)?;
    dict.set_item("slow_lines", report.slow_lines)?;
    dict.set_item("blank_lines", report.blank_lines)?;
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("committed_end", report.committed_end)?;
    dict.set_item("base", report.base.word())?;
    dict.set_item("damage", damages(py, &report.damage)?)?;
    dict.set_item("altered_indexes", damages(py, &report.altered)?)?;
    dict.set_item("returned", damages(py, &report.returned)?)?;
    dict.set_item(
        "tail",
        report.tail.as_ref().map(|tail| tail_dict(py, tail)).transpose()?,
    )?;
    let scopes = PyList::empty(py);
    for found in &report.scopes {
        let one = PyDict::new(py);
        one.set_item("kind", found.fault.word())?;
        one.set_item("id", &found.id)?;
        one.set_item("seq", found.seq)?;
        scopes.append(one)?;
    }
    dict.set_item("scopes", scopes)?;
    let is_unseen = *standing == HeadStanding::Unseen;
    let notes = PyList::new(py, &report.notes)?;
    if let Some(fault) = fault.filter(|_| !is_unseen) {
        notes.append(fault)?;
    }
    if let Some(more) = report.damage.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
        notes.append(format!("{more} more damaged places are not listed"))?;
    }
    dict.set_item("notes", notes)?;
    let (word, reason) = match standing {
        HeadStanding::Unseen => ("unseen", fault.unwrap_or_default()),
        HeadStanding::Kept => ("kept", ""),
        HeadStanding::Lost(reason) => ("lost", reason.as_str()),
        HeadStanding::Unknown(reason) => ("unknown", reason.as_str()),
        HeadStanding::Unreadable(reason) => ("unreadable", reason.as_str()),
    };
    dict.set_item("cut", report.cut.as_deref())?;
    dict.set_item("damaged_synced", report.is_hint_damaged)?;
    dict.set_item("remembered", word)?;
    dict.set_item("remembered_reason", reason)?;
    Ok(dict)
}

/// A list of damages, at most [`MOST_LISTED`].
pub fn damages<'py>(py: Python<'py>, found: &[Damage]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for damage in found.iter().take(MOST_LISTED) {
        let dict = PyDict::new(py);
        dict.set_item("path", &damage.path)?;
        dict.set_item("offset", damage.offset)?;
        dict.set_item("line", damage.line)?;
        dict.set_item("seq", damage.seq)?;
        dict.set_item("kind", damage.kind.word())?;
        dict.set_item("reason", &damage.reason)?;
        dict.set_item("id", damage.id.as_deref())?;
        list.append(dict)?;
    }
    Ok(list)
}

/// What a repair did; without one nothing was damaged.
pub fn repaired<'py>(py: Python<'py>, done: Option<&Repaired>, found: &[Quarantined]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let none: &[String] = &[];
    dict.set_item("damage", damages(py, done.map_or(&[], |done| &done.damage))?)?;
    dict.set_item("kept", done.and_then(|done| done.kept.as_deref()))?;
    dict.set_item("records", done.map(|done| done.records))?;
    dict.set_item("healed", done.map_or(0, |done| done.healed))?;
    dict.set_item("history_kept", done.is_none_or(|done| done.history_kept))?;
    dict.set_item("changed", done.map_or(none, |done| &done.changed))?;
    dict.set_item("lost", done.map_or(none, |done| &done.lost))?;
    dict.set_item("unsettled", done.map_or(none, |done| &done.unsettled))?;
    dict.set_item("unproven", done.map_or(none, |done| &done.unproven))?;
    dict.set_item("quarantine", kept(py, found)?)?;
    Ok(dict)
}

fn tail_dict<'py>(py: Python<'py>, tail: &Tail) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("offset", tail.offset)?;
    dict.set_item("length", tail.length)?;
    dict.set_item("reason", &tail.reason)?;
    dict.set_item("events", tail.events)?;
    Ok(dict)
}

/// What lies in `quarantine/` and is not a store of its own.
fn kept<'py>(py: Python<'py>, found: &[Quarantined]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for kept in found {
        let dict = PyDict::new(py);
        match kept {
            Quarantined::Tail {
                path,
                offset,
                events,
                first_seq,
                is_next,
            } => {
                dict.set_item("what", "tail")?;
                dict.set_item("path", path)?;
                dict.set_item("offset", offset)?;
                dict.set_item("events", events)?;
                dict.set_item("first_seq", first_seq)?;
                dict.set_item("restorable", is_next)?;
                dict.set_item("why", (!is_next).then_some(WHY_NOT_RESTORABLE))?;
            }
            Quarantined::Hint { path, offset, seq, .. } => {
                dict.set_item("what", "synced")?;
                dict.set_item("path", path)?;
                dict.set_item("offset", offset)?;
                dict.set_item("seq", seq)?;
            }
        }
        list.append(dict)?;
    }
    Ok(list)
}
