//! Takes a condition on records in from Python, and hands the records back.

use chronomemory::Listing;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::asked::SelectQuestion;
use crate::engine::Engine;
use crate::told::Copied;

#[pymethods]
impl Engine {
    /// The records that a question asks for, as dicts.
    fn select_dicts<'py>(&self, py: Python<'py>, wanted: SelectQuestion) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let (query, condition) = wanted.split(py, &self.viewer)?;
        let listing = Listing {
            query,
            ..Listing::default()
        };
        let found = self.read(py, |store| {
            Copied::of(&store.page(&listing, condition.as_ref())?.records)
        })?;
        found.dicts(py)
    }

    /// Declares an index of a field: whether there was none.
    fn create_index(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.run(py, |engine| engine.change(|store, now| store.create_index(path, now)))
    }

    /// Takes an index back: whether there was one.
    fn drop_index(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.run(py, |engine| engine.change(|store, now| store.drop_index(path, now)))
    }

    /// The fields that have an index, the oldest first.
    fn indexes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, chronomemory::Store::declared)
    }
}
