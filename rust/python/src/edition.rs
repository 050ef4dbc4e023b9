//! A token by which Python sees whether anything changed that somebody sees.

use pyo3::prelude::*;

use crate::engine::Engine;

/// What somebody saw at a moment: two of these are equal if none of it changed in between.
#[pyclass(module = "chronomemory._core", frozen, eq)]
#[derive(PartialEq)]
pub struct Edition(pub chronomemory::Edition);

#[pymethods]
impl Engine {
    /// What is seen now.
    fn edition(&self, py: Python<'_>) -> PyResult<Edition> {
        self.read(py, |store| Ok(Edition(store.edition(&self.viewer))))
    }
}
