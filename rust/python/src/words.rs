//! The functions that need no store.

use std::path::PathBuf;

use chronomemory::{RealDisk, Verified, holds_any, indented, layout_of, parse_json as parse, sha256};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::enter::{enter, enter_reporting};
use crate::shape::Shapes;
use crate::value::{self, Field};
use crate::{object, report};

/// Checks the files of a store's folder without opening it.
#[pyfunction]
#[pyo3(signature = (log_folder, progress=None, head_file=None))]
pub fn verify_path(
    py: Python<'_>,
    log_folder: PathBuf,
    progress: Option<Py<PyAny>>,
    head_file: Option<PathBuf>,
) -> PyResult<Bound<'_, PyDict>> {
    let found = enter_reporting(py, progress, |report| {
        Verified::of_folder(log_folder, head_file.as_deref(), report)
    })?;
    report::dict(py, &found)
}

/// Whether a file of a store holds one of some texts, given in lower case; packed ones are unpacked.
#[pyfunction]
pub fn file_holds(py: Python<'_>, path: PathBuf, texts: Vec<Vec<u8>>) -> PyResult<bool> {
    enter(py, || holds_any(&RealDisk::default(), &path, &texts))
}

/// The folder of a project's store, whether it exists or not: a backup is its own.
#[pyfunction]
pub fn store_folder(py: Python<'_>, project_root: PathBuf) -> PathBuf {
    py.detach(|| layout_of(&RealDisk::default(), &project_root).folder().to_owned())
}

/// The canonical JSON of a value.
#[pyfunction]
pub fn canonical_json<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    let field = Field {
        name: "value",
        depth: 0,
    };
    value::write(value, field, &mut Shapes::default(), &mut out)?;
    Ok(PyBytes::new(py, &out))
}

/// The same set over several lines, for people.
#[pyfunction]
pub fn indented_json<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let canonical = canonical_json(py, value)?;
    Ok(PyBytes::new(py, &indented(canonical.as_bytes())))
}

/// Reads JSON as strictly as a log line is read.
#[pyfunction]
pub fn parse_json<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let value = parse(text).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    object::of_value(py, &value)
}

/// The hash of an event's payload: its fields without `hash`.
#[pyfunction]
pub fn event_hash(fields: &Bound<'_, PyDict>) -> PyResult<String> {
    let payload = fields.copy()?;
    if payload.contains("hash")? {
        payload.del_item("hash")?;
    }
    let mut out = Vec::new();
    value::write(
        payload.as_any(),
        Field {
            name: "event",
            depth: 0,
        },
        &mut Shapes::default(),
        &mut out,
    )?;
    Ok(sha256(&out).text().to_owned())
}
