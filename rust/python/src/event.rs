//! How does a line of the log become a `WalEvent`? It is wrapped; whoever looks at a field pays for reading it.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};

/// The public class of events, and how an empty one is made.
fn class(py: Python<'_>) -> PyResult<&(Py<PyType>, Py<PyAny>)> {
    static CLASS: PyOnceLock<(Py<PyType>, Py<PyAny>)> = PyOnceLock::new();
    CLASS.get_or_try_init(py, || {
        let class = PyModule::import(py, "chronomemory.event")?.getattr("WalEvent")?;
        let make = class.getattr("__new__")?.unbind();
        Ok((class.cast_into::<PyType>()?.unbind(), make))
    })
}

/// An event that keeps its line.
pub fn of_line<'py>(py: Python<'py>, line: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (class, make) = class(py)?;
    let event = make.bind(py).call1((class,))?;
    event.setattr(intern!(py, "_line"), PyBytes::new(py, line))?;
    Ok(event)
}
