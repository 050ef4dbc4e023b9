//! Adds the parts of a mixed batch of Python to a draft.

use chronomemory::parse_json;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::draft_buffer::DraftBuffer;
use crate::enter::{as_argument, bad_choice, invalid, must, to_python};
use crate::record::Naming;
use crate::{record, value};

/// Puts one entry of a mixed batch into a draft.
pub fn add_change(
    buffer: &mut DraftBuffer,
    verb: &str,
    what: &Bound<'_, PyAny>,
    depth: i64,
    face: Option<&str>,
) -> PyResult<()> {
    let py = what.py();
    match verb {
        "upsert" => record::upsert(buffer, what, depth, face, Naming::Given).map(|_| ()),
        "delete" => {
            let id = record_id(what)?;
            buffer
                .draft
                .delete(written_id(&id)?, face)
                .map_err(|fault| to_python(py, fault))
        }
        "patch" => {
            let (id, patch): (Bound<'_, PyAny>, Bound<'_, PyDict>) = what.extract()?;
            add_patch(buffer, &record_id(&id)?, &patch, face)
        }
        "act" => add_act(buffer, what.cast()?, depth, face),
        other => Err(bad_choice(py, "verb", other, "one of upsert, delete, patch, act")),
    }
}

/// Puts what happened to several records into a draft.
fn add_act(buffer: &mut DraftBuffer, act: &Bound<'_, PyDict>, depth: i64, face: Option<&str>) -> PyResult<()> {
    let py = act.py();
    let mut text = Vec::new();
    value::write(
        act.as_any(),
        value::Field { name: "act", depth: 1 },
        &mut buffer.shapes,
        &mut text,
    )?;
    let payload = parse_json(&text).map_err(|fault| invalid(py, "act", &fault.to_string()))?;
    buffer
        .draft
        .act(face.unwrap_or_default(), &payload, depth)
        .map_err(|fault| to_python(py, fault))
}

/// Puts a merge patch into a draft.
pub fn add_patch(
    buffer: &mut DraftBuffer,
    id: &Bound<'_, PyString>,
    patch: &Bound<'_, PyDict>,
    face: Option<&str>,
) -> PyResult<()> {
    let py = id.py();
    let mut text = Vec::new();
    // The patch stands where a record does: inside the event.
    value::write(
        patch.as_any(),
        value::Field {
            name: "patch",
            depth: 1,
        },
        &mut buffer.shapes,
        &mut text,
    )?;
    buffer
        .draft
        .patch(written_id(id)?, face.unwrap_or_default(), &text)
        .map_err(|fault| to_python(py, fault))
}

/// The text of an id that names a record.
pub fn text_of<'a>(id: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    value::str_of(id, "id").map_err(|fault| as_argument(id.py(), fault))
}

/// The same for one that the log is to name: no record has an empty id.
fn written_id<'a>(id: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    match text_of(id)? {
        "" => Err(must("id", "not be empty", id.as_any())),
        text => Ok(text),
    }
}

/// The id, if it is one.
pub fn record_id<'py>(id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    match id.cast::<PyString>() {
        Ok(id) => Ok(id.clone()),
        Err(_) => Err(must("id", "be a string", id)),
    }
}
