//! The base class of a store in Python, with the calls that must cost no frame of Python.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::engine::Engine;
use crate::event::WalEvent;

/// What `ChronoStore` is made of: it opens and closes the engine, and here it is kept.
// Named as its callers know it: a call that is wrong is told with the name.
#[pyclass(name = "Store", module = "chronomemory._core", subclass, frozen)]
pub struct Door {
    engine: Mutex<Option<Py<Engine>>>,
}

impl Door {
    fn engine(&self) -> MutexGuard<'_, Option<Py<Engine>>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Door {
    #[new]
    #[pyo3(signature = (*_args, **_options))]
    fn new(_args: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            engine: Mutex::default(),
        }
    }

    #[getter]
    fn _engine(&self, py: Python<'_>) -> Option<Py<Engine>> {
        self.engine().as_ref().map(|engine| engine.clone_ref(py))
    }

    #[setter(_engine)]
    fn set_engine(&self, engine: Option<Py<Engine>>) {
        let before = std::mem::replace(&mut *self.engine(), engine);
        // An engine that nobody else holds ends here, without the mutex.
        drop(before);
    }

    /// Write a record, replacing the one with its id; the store's depth is stamped on it. With `if_version` that one must be
    /// of this version, with `if_new` there must be none.
    #[pyo3(signature = (record, *, if_version=None, if_new=false))]
    fn upsert<'py>(
        slf: &Bound<'py, Self>,
        record: &Bound<'py, PyAny>,
        if_version: Option<&Bound<'py, PyAny>>,
        if_new: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if if_version.is_some() || if_new {
            let terms = PyDict::new(py);
            terms.set_item(intern!(py, "if_version"), if_version)?;
            terms.set_item(intern!(py, "if_new"), if_new)?;
            return slf.call_method(intern!(py, "_upsert_if"), (record,), Some(&terms));
        }
        let event: WalEvent = match slf.get()._engine(py) {
            Some(engine) => engine.get().upsert(py, record, None)?,
            // Whoever made the store knows how to open it.
            None => {
                let engine = slf.getattr(intern!(py, "engine"))?.cast_into::<Engine>()?;
                engine.get().upsert(py, record, None)?
            }
        };
        Ok(Bound::new(py, event)?.into_any())
    }
}
