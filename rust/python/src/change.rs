//! How do the parts of a mixed batch become a draft?

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::desk::Desk;
use crate::enter::{bad_choice, invalid, to_python};
use crate::{record, value};

/// Puts one entry of a mixed batch into a draft.
pub fn add_change(
    desk: &mut Desk,
    verb: &str,
    what: &Bound<'_, PyAny>,
    depth: i64,
    face: Option<&str>,
) -> PyResult<()> {
    let py = what.py();
    match verb {
        "upsert" => record::upsert(desk, what, depth, face),
        "delete" => {
            let id = record_id(what)?;
            desk.draft
                .delete(value::str_of(&id, "id")?, face)
                .map_err(|fault| to_python(py, fault))
        }
        "patch" => {
            let (id, patch): (Bound<'_, PyAny>, Bound<'_, PyDict>) = what.extract()?;
            add_patch(desk, &record_id(&id)?, &patch, face)
        }
        other => Err(bad_choice("verb", other, "upsert, delete, patch")),
    }
}

/// Puts a merge patch into a draft.
pub fn add_patch(
    desk: &mut Desk,
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
        &mut desk.shapes,
        &mut text,
    )?;
    desk.draft
        .patch(value::str_of(id, "id")?, face.unwrap_or_default(), &text)
        .map_err(|fault| to_python(py, fault))
}

/// The id, if it is one.
pub fn record_id<'py>(id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    match id.cast::<PyString>() {
        Ok(id) => Ok(id.clone()),
        Err(_) => Err(invalid(id.py(), "id", "it must be a string")),
    }
}
