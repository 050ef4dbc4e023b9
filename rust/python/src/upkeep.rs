//! The methods that check, compact, copy, bring back and repair a store, for Python.

use std::path::PathBuf;
use std::sync::Arc;

use chronomemory::{CopyOrder, Erase, Prune, Restoring};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::asked::condition_of;
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

    /// How many of the records that are seen are in doubt, and the ids of those that damaged lines name.
    fn in_doubt(&self, py: Python<'_>) -> PyResult<(u64, Vec<String>)> {
        self.read(py, |store| Ok(store.in_doubt(&self.viewer)))
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

    #[pyo3(signature = (ids, *, scope=None, reason, drop_history=false, again=Vec::new(), derived=false, dry_run=false, due_at=None, condition=None, progress=None))]
    #[allow(clippy::too_many_arguments)] // the signature is the public one
    fn erase<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<String>,
        scope: Option<Vec<u8>>,
        reason: String,
        drop_history: bool,
        again: Vec<String>,
        derived: bool,
        dry_run: bool,
        due_at: Option<i64>,
        condition: Option<Vec<u8>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let condition = condition_of(py, condition)?;
        let order = Erase {
            is_reason_trusted: false,
            ids,
            due_at,
            condition: condition.map(|condition| (Arc::clone(&self.viewer), condition)),
            scope,
            reason,
            drop_history,
            again,
            derived,
            dry_run,
        };
        let told = enter_reporting(py, progress, |report| self.engine.erase(&order, report))?;
        let dict = PyDict::new(py);
        dict.set_item("seq", told.seq)?;
        dict.set_item("ids", told.ids)?;
        dict.set_item("belonging", told.belonging)?;
        dict.set_item("mentions", told.mentions)?;
        dict.set_item("lines", told.lines)?;
        dict.set_item("unsalted", told.unsalted)?;
        dict.set_item("logs", told.by_log)?;
        dict.set_item("replaced", told.replaced)?;
        dict.set_item("again", told.again)?;
        dict.set_item("backups", told.backups)?;
        dict.set_item("quarantine", told.quarantine)?;
        dict.set_item("copies", told.copies)?;
        dict.set_item("unread", told.unread)?;
        dict.set_item("missing_copies", told.missing_copies)?;
        dict.set_item("done", told.done)?;
        Ok(dict)
    }

    #[pyo3(signature = (before, backups, reason, dry))]
    fn prune<'py>(
        &self,
        py: Python<'py>,
        before: Option<i64>,
        backups: Option<u64>,
        reason: String,
        dry: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let order = Prune {
            before,
            keep_backups: backups,
            reason,
            dry_run: dry,
        };
        let told = self.run(py, |engine| engine.prune(&order))?;
        let dict = PyDict::new(py);
        dict.set_item("seq", told.seq)?;
        dict.set_item("archives", told.archives)?;
        dict.set_item("last_seq", told.last_seq)?;
        dict.set_item("held", told.held)?;
        dict.set_item("backups", told.backups)?;
        Ok(dict)
    }

    #[pyo3(signature = (progress=None))]
    fn backup(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let folder = enter_reporting(py, progress, |report| self.engine.backup(report))?;
        Ok(folder.to_string_lossy().into_owned())
    }

    #[pyo3(signature = (to, keep=None, progress=None))]
    fn copy_out<'py>(
        &self,
        py: Python<'py>,
        to: PathBuf,
        keep: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let order = CopyOrder { to, keep };
        let made = enter_reporting(py, progress, |report| self.engine.copy_out(&order, report))?;
        let dict = PyDict::new(py);
        dict.set_item("path", made.path.to_string_lossy())?;
        dict.set_item("seq", made.seq)?;
        dict.set_item("head", made.head)?;
        dict.set_item("bytes", made.bytes)?;
        dict.set_item("removed", made.removed)?;
        Ok(dict)
    }

    /// The copies in the store's folder, and those that it knows of outside.
    fn copies<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let seen = self.run(py, chronomemory::Engine::copies)?;
        let told = seen.into_iter().map(|copy| {
            let dict = PyDict::new(py);
            dict.set_item("path", copy.path.to_string_lossy())?;
            dict.set_item("at", copy.at)?;
            dict.set_item("seq", copy.seq)?;
            dict.set_item("head", copy.head)?;
            dict.set_item("bytes", copy.bytes)?;
            dict.set_item("verified", copy.is_verified)?;
            dict.set_item("there", copy.is_there)?;
            dict.set_item("inside", copy.is_inside)?;
            Ok(dict)
        });
        told.collect()
    }

    fn forget_copies(&self, py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<u64> {
        self.run(py, |engine| engine.forget_copies(&paths))
    }

    #[pyo3(signature = (source, progress=None, *, damaged=false, bring_back=false))]
    fn restore<'py>(
        &self,
        py: Python<'py>,
        source: PathBuf,
        progress: Option<Py<PyAny>>,
        damaged: bool,
        bring_back: bool,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let wanted = Restoring { damaged, bring_back };
        let repaired = enter_reporting(py, progress, |report| self.engine.restore(&source, wanted, report))?;
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
