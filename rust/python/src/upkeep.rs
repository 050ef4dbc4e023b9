//! How is a store looked after from Python: checked, compacted, copied, brought back?

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::engine::Engine;
use crate::enter::enter_reporting;
use crate::report;

#[pymethods]
impl Engine {
    /// What opening found.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (found, short_rows) = self.run(py, chronomemory::Engine::findings)?;
        let dict = report::dict(py, &found)?;
        dict.set_item("short_rows", short_rows)?;
        Ok(dict)
    }

    #[pyo3(signature = (progress=None))]
    fn verify<'py>(&self, py: Python<'py>, progress: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        let found = enter_reporting(py, progress, |report| self.engine.verify(report))?;
        report::dict(py, &found)
    }

    /// Takes the log as it is now for the right one.
    fn accept_head(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, chronomemory::Engine::accept_head)
    }

    #[pyo3(signature = (*, keep_history=true, progress=None))]
    fn compact(&self, py: Python<'_>, keep_history: bool, progress: Option<Py<PyAny>>) -> PyResult<u64> {
        enter_reporting(py, progress, |report| self.engine.compact(keep_history, report))
    }

    #[pyo3(signature = (progress=None))]
    fn backup(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let folder = enter_reporting(py, progress, |report| self.engine.backup(report))?;
        Ok(folder.to_string_lossy().into_owned())
    }

    #[pyo3(signature = (source, progress=None, *, damaged=false))]
    fn restore<'py>(
        &self,
        py: Python<'py>,
        source: PathBuf,
        progress: Option<Py<PyAny>>,
        damaged: bool,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let repaired = enter_reporting(py, progress, |report| self.engine.restore(&source, damaged, report))?;
        repaired.map(|done| report::repaired(py, Some(&done), &[])).transpose()
    }

    #[pyo3(signature = (progress=None, *, unproven=false))]
    fn repair<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
        unproven: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (repaired, kept) = enter_reporting(py, progress, |report| self.engine.repair(unproven, report))?;
        report::repaired(py, repaired.as_ref(), &kept)
    }
}
