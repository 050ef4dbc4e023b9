//! One event of the log as an object of Python.
//!
//! An event keeps its line, and reads it when someone looks at a field: a writer who ignores what a write returns does
//! not pay for parsing it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chronomemory::is_salt_text;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyBool, PyDict, PyInt, PyString, PyTuple, PyType};

use crate::enter::invalid;
use crate::words::{canonical_json, event_hash, parse_json};

/// The fields of an event, in the order of its constructor.
const FIELDS: [&str; 8] = [
    "seq",
    "ts",
    "op",
    "record_id",
    "record",
    "prev_hash",
    "hash",
    "recursion_depth",
];

enum Said {
    Line(Vec<u8>),
    Fields([Py<PyAny>; FIELDS.len()]),
}

/// One event: what happened to which record, chained to the event before.
#[pyclass(module = "chronomemory.event", frozen)]
pub struct WalEvent {
    said: Mutex<Said>,
}

impl WalEvent {
    /// An event that the engine vouches for.
    pub fn of_line(line: Vec<u8>) -> Self {
        Self {
            said: Mutex::new(Said::Line(line)),
        }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All fields; the line is read if it was not yet.
    fn fields(&self, py: Python<'_>) -> PyResult<[Py<PyAny>; FIELDS.len()]> {
        let line = match &*self.said() {
            Said::Fields(fields) => return Ok(fields.each_ref().map(|field| field.clone_ref(py))),
            Said::Line(line) => line.clone(),
        };
        // Not under the mutex: making objects may run the collector, and that may come by here.
        let read = fields_of(py, &line)?;
        let mut said = self.said();
        if matches!(*said, Said::Line(_)) {
            *said = Said::Fields(read.each_ref().map(|field| field.clone_ref(py)));
        }
        Ok(read)
    }

    fn get(&self, py: Python<'_>, place: usize) -> PyResult<Py<PyAny>> {
        Ok(self.fields(py)?[place].clone_ref(py))
    }

    fn set(&self, py: Python<'_>, place: usize, value: Py<PyAny>) -> PyResult<()> {
        self.fields(py)?;
        let before = match &mut *self.said() {
            Said::Fields(fields) => Some(std::mem::replace(&mut fields[place], value)),
            Said::Line(_) => None,
        };
        // What nobody else holds ends here, without the mutex.
        drop(before);
        Ok(())
    }

    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in FIELDS.iter().zip(self.fields(py)?) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }
}

/// The key of the salt in a record.
const SALT_KEY: &str = "~";

fn fields_of(py: Python<'_>, line: &[u8]) -> PyResult<[Py<PyAny>; FIELDS.len()]> {
    let parsed = parse_json(py, line)?;
    let Ok(parsed) = parsed.cast::<PyDict>() else {
        return Err(invalid(py, "line", "it is no JSON object, so it is no event"));
    };
    let mut fields = FIELDS.map(|_| py.None());
    for (field, name) in fields.iter_mut().zip(FIELDS) {
        let Some(value) = parsed.get_item(name)? else {
            return Err(invalid(py, name, "the line does not have it"));
        };
        *field = value.unbind();
    }
    Ok(fields)
}

#[pymethods]
impl WalEvent {
    #[new]
    #[pyo3(
        signature = (seq=None, ts=None, op=None, record_id=None, record=None, prev_hash=None, hash=None, recursion_depth=None),
        text_signature = "(seq=0, ts='', op='upsert', record_id='', record=None, prev_hash='', hash='', recursion_depth=0)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        seq: Option<Py<PyAny>>,
        ts: Option<Py<PyAny>>,
        op: Option<Py<PyAny>>,
        record_id: Option<Py<PyAny>>,
        record: Option<Py<PyAny>>,
        prev_hash: Option<Py<PyAny>>,
        hash: Option<Py<PyAny>>,
        recursion_depth: Option<Py<PyAny>>,
    ) -> Self {
        let number = |given: Option<Py<PyAny>>| given.unwrap_or_else(|| PyInt::new(py, 0).into_any().unbind());
        let text = |given: Option<Py<PyAny>>, default| {
            given.unwrap_or_else(|| PyString::intern(py, default).into_any().unbind())
        };
        Self {
            said: Mutex::new(Said::Fields([
                number(seq),
                text(ts, ""),
                text(op, "upsert"),
                text(record_id, ""),
                record.unwrap_or_else(|| py.None()),
                text(prev_hash, ""),
                text(hash, ""),
                number(recursion_depth),
            ])),
        }
    }

    #[getter]
    fn seq(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, 0)
    }

    #[setter]
    fn set_seq(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<()> {
        self.set(py, 0, value)
    }

    #[getter]
    fn ts(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, 1)
    }

    #[setter]
    fn set_ts(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<()> {
        self.set(py, 1, value)
    }

    #[getter]
    fn op(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, 2)
    }

    #[setter]
    fn set_op(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<()> {
        self.set(py, 2, value)
    }

    #[getter]
    fn record_id(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, 3)
    }

    #[setter]
    fn set_record_id(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<()> {
        self.set(py, 3, value)
    }

    /// The record, without the salt: that belongs to the line.
    #[getter]
    fn record(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let record = self.get(py, 4)?;
        let Ok(fields) = record.bind(py).cast::<PyDict>() else {
            return Ok(record);
        };
        let salt = fields.get_item(intern!(py, SALT_KEY))?;
        let salt = salt.as_ref().and_then(|salt| salt.cast::<PyString>().ok());
        if !salt.is_some_and(|salt| salt.to_str().is_ok_and(is_salt_text)) {
            return Ok(record);
        }
        let told = fields.copy()?;
        told.del_item(intern!(py, SALT_KEY))?;
        Ok(told.into_any().unbind())
    }

    #[setter]
    fn set_record(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<()> {
        self.set(py, 4, value)
    }

    #[getter]
    fn prev_hash(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, 5)
    }

    #[setter]
    fn set_prev_hash(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<()> {
        self.set(py, 5, value)
    }

    #[getter]
    fn hash(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, 6)
    }

    #[setter]
    fn set_hash(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<()> {
        self.set(py, 6, value)
    }

    #[getter]
    fn recursion_depth(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, 7)
    }

    #[setter]
    fn set_recursion_depth(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<()> {
        self.set(py, 7, value)
    }

    /// Wraps a line that the engine vouches for.
    #[staticmethod]
    fn _of_line(line: &[u8]) -> Self {
        Self::of_line(line.to_vec())
    }

    #[classmethod]
    fn from_json_line<'py>(class: &Bound<'py, PyType>, line: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        let fields = match line.cast::<PyString>() {
            Ok(text) => fields_of(py, text.to_str()?.as_bytes())?,
            Err(_) => fields_of(py, line.extract()?)?,
        };
        class.call1(PyTuple::new(py, fields)?)
    }

    fn to_json_line(&self, py: Python<'_>) -> PyResult<String> {
        let canonical = canonical_json(py, self.as_dict(py)?.as_any())?;
        let text = String::from_utf8_lossy(canonical.as_bytes());
        // Line ends to careless readers: escaped in the line, though raw in the hashed payload.
        Ok(text
            .replace('\u{85}', "\\u0085")
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029"))
    }

    fn compute_hash(&self, py: Python<'_>) -> PyResult<String> {
        event_hash(&self.as_dict(py)?)
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, how: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let (Ok(other), CompareOp::Eq | CompareOp::Ne) = (other.cast::<Self>(), how) else {
            return Ok(py.NotImplemented());
        };
        let equal = self.as_dict(py)?.eq(other.get().as_dict(py)?)?;
        let answer = equal == matches!(how, CompareOp::Eq);
        Ok(PyBool::new(py, answer).to_owned().into_any().unbind())
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let py = this.py();
        Ok((this.get_type(), PyTuple::new(py, this.get().fields(py)?)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut inside = Vec::new();
        for (name, value) in FIELDS.iter().zip(self.fields(py)?) {
            inside.push(format!("{name}={}", value.bind(py).repr()?));
        }
        Ok(format!("WalEvent({})", inside.join(", ")))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Whoever holds the mutex is using the fields: they are reachable anyway.
        if let Ok(said) = self.said.try_lock()
            && let Said::Fields(fields) = &*said
        {
            fields.iter().try_for_each(|field| visit.call(field))?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        *self.said() = Said::Line(Vec::new());
    }
}
