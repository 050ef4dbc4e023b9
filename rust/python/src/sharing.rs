//! The terms of writing for each of those who share a store, and how its log is.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::engine::Engine;
use crate::terms::terms_of;

#[pymethods]
impl Engine {
    /// The same store for one who writes on other terms.
    #[pyo3(signature = (*, recursion_depth, durability, lock_timeout, salt))]
    fn on_terms(
        &self,
        py: Python<'_>,
        recursion_depth: i64,
        durability: &str,
        lock_timeout: f64,
        salt: &str,
    ) -> PyResult<Self> {
        let terms = terms_of(py, recursion_depth, durability, lock_timeout, salt)?;
        Ok(Self {
            engine: Arc::new(self.engine.on_terms(terms)),
            author: self.author.clone(),
            viewer: Arc::clone(&self.viewer),
            depth: recursion_depth,
            spare: Mutex::default(),
            searches: Arc::clone(&self.searches),
        })
    }

    /// How the log is, as far as memory tells.
    fn pulse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let pulse = self.run(py, chronomemory::Engine::pulse)?;
        let dict = PyDict::new(py);
        dict.set_item("commits", pulse.appended.commits)?;
        dict.set_item("events", pulse.appended.events)?;
        dict.set_item("bytes", pulse.appended.bytes)?;
        dict.set_item("syncs", pulse.syncs)?;
        dict.set_item("lock_waits", pulse.lock_waits)?;
        dict.set_item("searches", self.searches.load(Ordering::Relaxed))?;
        dict.set_item("unsynced_bytes", pulse.unsynced_bytes)?;
        dict.set_item("synced_until_us", pulse.synced_until)?;
        dict.set_item("poisoned", pulse.poisoned)?;
        Ok(dict)
    }
}
