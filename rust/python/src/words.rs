//! What can be asked without a store?

use std::path::PathBuf;

use chronomemory::digest::sha256;
use chronomemory::disk::RealDisk;
use chronomemory::json;
use chronomemory::layout::Layout;
use chronomemory::store::{Standing, Store, layout_of};
use chronomemory::verify::Report;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::enter::{Reporter, enter};
use crate::handle::{now, threads};
use crate::shape::Shapes;
use crate::value::{self, Field};
use crate::{object, report};

/// Checks the files of a store's folder.
pub fn verified(
    py: Python<'_>,
    layout: &Layout,
    progress: Option<Py<PyAny>>,
    head_file: Option<PathBuf>,
) -> PyResult<(Report, Standing)> {
    let mut reporter = Reporter::new(progress);
    let found = enter(py, || {
        let disk = RealDisk::default();
        let report = Store::verify_at(&disk, layout, threads(), now(), &mut |done, total| {
            reporter.report(done, total);
        })?;
        let standing = match head_file {
            Some(note) => Store::standing_of(&disk, layout, &note)?,
            None => Standing::Unseen,
        };
        Ok((report, standing))
    })?;
    reporter.finish()?;
    Ok(found)
}

/// Notes the head of what was verified, for the next look; why it could not, if it could not.
fn remembered(
    py: Python<'_>,
    layout: &Layout,
    report: &Report,
    head_file: Option<PathBuf>,
) -> PyResult<Option<String>> {
    let Some(note) = head_file else {
        return Ok(Some(
            "no head is remembered: there is no place for it, such as a home folder".to_owned(),
        ));
    };
    if !report.valid() {
        return Ok(None);
    }
    enter(py, || {
        let noted = Store::note_known_head(&RealDisk::default(), layout, &note);
        Ok(noted
            .err()
            .map(|fault| format!("the head could not be remembered: {fault}")))
    })
}

/// Checks the files of a store's folder without opening it.
#[pyfunction]
#[pyo3(signature = (log_folder, progress=None, head_file=None))]
pub fn verify_path(
    py: Python<'_>,
    log_folder: PathBuf,
    progress: Option<Py<PyAny>>,
    head_file: Option<PathBuf>,
) -> PyResult<Bound<'_, PyDict>> {
    let layout = Layout::of_folder(log_folder);
    let (found, standing) = verified(py, &layout, progress, head_file.clone())?;
    let fault = remembered(py, &layout, &found, head_file)?;
    report::dict(py, &found, &standing, fault.as_deref())
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

/// Reads JSON as strictly as a log line is read.
#[pyfunction]
pub fn parse_json<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let value = json::parse(text).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
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
