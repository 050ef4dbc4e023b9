//! One event of the log as a Python object, which keeps its line and parses it when a field is read.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chronomemory::is_salt_text;
use pyo3::PyTraverseError;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple, PyType};

use crate::boundary::invalid;
use crate::functions::{canonical_json, event_hash, parse_json};
use crate::{Dict, Object};

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

/// The key of the salt in a record.
const SALT_KEY: &str = "~";

enum Content {
    Line(Vec<u8>),
    Fields([Py<PyAny>; FIELDS.len()]),
}

/// One event: what happened to which record, chained to the event before.
#[pyclass(module = "chronomemory.event", frozen)]
pub struct WalEvent(Mutex<Content>);

impl WalEvent {
    /// An event that the engine has checked.
    pub fn of_line(line: Vec<u8>) -> Self {
        Self(Mutex::new(Content::Line(line)))
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All fields; the line is parsed if it was not yet.
    fn fields(&self, py: Python<'_>) -> PyResult<[Py<PyAny>; FIELDS.len()]> {
        let line = match &*self.content() {
            Content::Fields(fields) => return Ok(fields.each_ref().map(|field| field.clone_ref(py))),
            Content::Line(line) => line.clone(),
        };
        // Not under the mutex: making objects may run the collector, which may visit this event.
        let parsed = fields_of(py, &line)?;
        let mut content = self.content();
        if matches!(*content, Content::Line(_)) {
            *content = Content::Fields(parsed.each_ref().map(|field| field.clone_ref(py)));
        }
        Ok(parsed)
    }

    /// A field; of a record without the salt, which belongs to the line.
    fn field(&self, py: Python<'_>, place: usize) -> PyResult<Py<PyAny>> {
        let value = self.fields(py)?[place].clone_ref(py);
        if let Ok(record) = value.bind(py).cast::<PyDict>()
            && let Some(salt) = record.get_item(intern!(py, SALT_KEY))?
            && let Ok(salt) = salt.cast::<PyString>()
            && salt.to_str().is_ok_and(is_salt_text)
        {
            let unsalted = record.copy()?;
            unsalted.del_item(intern!(py, SALT_KEY))?;
            return Ok(unsalted.into_any().unbind());
        }
        Ok(value)
    }

    fn set_field(&self, py: Python<'_>, place: usize, value: Py<PyAny>) -> PyResult<()> {
        self.fields(py)?;
        let before = match &mut *self.content() {
            Content::Fields(fields) => Some(std::mem::replace(&mut fields[place], value)),
            Content::Line(_) => None,
        };
        // Dropped without the mutex.
        drop(before);
        Ok(())
    }

    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Dict<'py>> {
        let dict = PyDict::new(py);
        for (name, value) in FIELDS.iter().zip(self.fields(py)?) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }
}

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

/// The properties of the fields, by their place in [`FIELDS`].
macro_rules! properties {
    ($($place:literal $name:ident $set_name:ident),*) => {$(
        #[pymethods]
        impl WalEvent {
            #[getter]
            fn $name(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.field(py, $place)
            }

            #[setter]
            fn $set_name(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<()> {
                self.set_field(py, $place, value)
            }
        }
    )*};
}

properties!(0 seq set_seq, 1 ts set_ts, 2 op set_op, 3 record_id set_record_id, 4 record set_record,
    5 prev_hash set_prev_hash, 6 hash set_hash, 7 recursion_depth set_recursion_depth);

#[pymethods]
impl WalEvent {
    #[new]
    #[pyo3(signature = (*values, **named), text_signature = "(seq=0, ts='', op='upsert', record_id='', record=None, prev_hash='', hash='', recursion_depth=0)")]
    fn new(values: &Bound<'_, PyTuple>, named: Option<&Dict<'_>>) -> PyResult<Self> {
        let py = values.py();
        let text = |text| PyString::intern(py, text).into_any().unbind();
        let zero = || PyInt::new(py, 0).into_any().unbind();
        let mut fields = [
            zero(),
            text(""),
            text("upsert"),
            text(""),
            py.None(),
            text(""),
            text(""),
            zero(),
        ];
        let given = PyDict::new(py);
        for (name, value) in FIELDS.iter().zip(values) {
            given.set_item(name, value)?;
        }
        if let Some(named) = named {
            given.update(named.as_mapping())?;
        }
        let mut known = 0;
        for (field, name) in fields.iter_mut().zip(FIELDS) {
            if let Some(value) = given.get_item(name)? {
                *field = value.unbind();
                known += 1;
            }
        }
        if known < values.len() + named.map_or(0, |named| named.len()) {
            return Err(PyTypeError::new_err(
                "WalEvent() got an unknown argument, or one too many",
            ));
        }
        Ok(Self(Mutex::new(Content::Fields(fields))))
    }

    /// Wraps a line that the engine has checked.
    #[staticmethod]
    fn _of_line(line: &[u8]) -> Self {
        Self::of_line(line.to_vec())
    }

    #[classmethod]
    fn from_json_line<'py>(class: &Bound<'py, PyType>, line: &Object<'py>) -> PyResult<Object<'py>> {
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
        // Some readers take these for line ends: they are escaped in the line, and raw in the hashed payload.
        Ok(text
            .replace('\u{85}', "\\u0085")
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029"))
    }

    fn compute_hash(&self, py: Python<'_>) -> PyResult<String> {
        event_hash(&self.as_dict(py)?)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
        self.as_dict(py)?.eq(other.get().as_dict(py)?)
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
        // A thread that holds the mutex is using the fields: they are reachable anyway.
        if let Ok(content) = self.0.try_lock()
            && let Content::Fields(fields) = &*content
        {
            fields.iter().try_for_each(|field| visit.call(field))?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        *self.content() = Content::Line(Vec::new());
    }
}
