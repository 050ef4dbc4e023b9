//! How is a store looked after from Python: checked, compacted, copied, brought back?

use std::path::{Path, PathBuf};

use chronomemory::error::Error;
use chronomemory::store;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::engine::Engine;
use crate::handle::now;
use crate::report;

#[pymethods]
impl Engine {
    #[pyo3(signature = (progress=None))]
    fn verify<'py>(&self, py: Python<'py>, progress: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        // What this store wrote is synced first, so that a fault in it is damage and not an unsynced tail.
        let (layout, head_file, fault, missed) = self.handle.change(py, |store| {
            let missed = store.missed()?;
            store.sync()?;
            store.tell_known_head();
            let fault = store.head_fault().map(str::to_owned);
            let head_file = store.head_file().map(Path::to_owned);
            Ok((store.layout().clone(), head_file, fault, missed))
        })?;
        let (mut found, standing) = crate::words::verified(py, &layout, progress, head_file)?;
        if let Some(Error::Corrupted(damage)) = missed {
            found.damage.push(*damage);
        }
        self.handle.read(py, |store| {
            store.note_damage(&found.damage);
            Ok(())
        })?;
        report::dict(py, &found, &standing, fault.as_deref())
    }

    /// Takes the log as it is now for the right one.
    fn accept_head(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.change(py, |store| store.accept_head(now()))
    }

    #[pyo3(signature = (*, keep_history=true, progress=None))]
    fn compact(&self, py: Python<'_>, keep_history: bool, progress: Option<Py<PyAny>>) -> PyResult<u64> {
        self.handle.look_after(py, progress, |turns, report| {
            store::compact(turns, keep_history, &now, report)
        })
    }

    #[pyo3(signature = (progress=None))]
    fn backup(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let folder = self
            .handle
            .look_after(py, progress, |turns, report| store::backup(turns, &now, report))?;
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
        let repaired = self.handle.bring_back(py, &source, progress, damaged)?;
        repaired.map(|done| report::repaired(py, Some(&done), &[])).transpose()
    }

    #[pyo3(signature = (progress=None, *, unproven=false))]
    fn repair<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
        unproven: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (repaired, kept) = self.handle.repair(py, progress, unproven)?;
        report::repaired(py, repaired.as_ref(), &kept)
    }
}
