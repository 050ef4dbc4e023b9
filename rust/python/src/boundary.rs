//! Calls the engine without the interpreter, which only forks do elsewhere, and turns its errors into Python exceptions.

use std::io::ErrorKind;
use std::path::Path;

use chronomemory::{DamageKind, Error, Result, UnexpectedEntry, check_memory, could_have, said};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyString, PyType};

use crate::{Dict, Object};

/// The longest value that a message shows in full, in characters.
const SHOWN_CHARS: usize = 60;

/// Runs engine work without the interpreter.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let checked = || {
        check_memory()?;
        work()
    };
    detached_unchecked(py, checked)
}

/// Like [`detached`] for work that only releases resources, which also runs when memory is short.
pub fn detached_unchecked<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(|fault| to_python(py, fault))
}

/// Fails if there is no memory for this number of bytes of Python objects: most functions that create one panic then.
pub fn check_room(py: Python<'_>, bytes: usize) -> PyResult<()> {
    could_have(bytes).map_err(|fault| to_python(py, fault.into()))
}

/// A progress callback.
pub type Callback = Option<Py<PyAny>>;

/// Runs engine work that reports its progress. A callback that raises stops nothing; its error is raised at the end.
pub fn detached_reporting<T: Send>(
    py: Python<'_>,
    callback: Callback,
    work: impl FnOnce(&mut dyn FnMut(u64, u64)) -> Result<T> + Send,
) -> PyResult<T> {
    detached_stoppable(py, callback, |report| {
        work(&mut |done, total| {
            report(done, total);
        })
    })
}

/// Runs engine work that can stop: the report returns false once the callback or a signal handler has raised.
pub fn detached_stoppable<T: Send>(
    py: Python<'_>,
    callback: Callback,
    work: impl FnOnce(&mut dyn FnMut(u64, u64) -> bool) -> Result<T> + Send,
) -> PyResult<T> {
    let mut raised: Option<PyErr> = None;
    let outcome = detached(py, || {
        work(&mut |done, total| {
            if raised.is_none() {
                raised = Python::attach(|py| match &callback {
                    Some(callback) => callback.call1(py, (done, total)).err(),
                    None => py.check_signals().err(),
                });
            }
            raised.is_none()
        })
    });
    raised.map_or(outcome, Err)
}

/// The exception for an engine error.
pub fn to_python(py: Python<'_>, fault: Error) -> PyErr {
    let message = match fault {
        Error::Io { path, source } if source.kind() == ErrorKind::OutOfMemory => {
            let message = format!("{}: there is not enough memory to read it", path.display());
            return exception(py, &message, Ok(("OutOfMemory", PyDict::new(py))));
        }
        Error::Io { path, source } => return os_error(&path, &source),
        Error::Invalid { field, reason } => return invalid(py, &field, &reason),
        // Who wrote a batch of rows names the row; elsewhere a place among the changes means nothing.
        Error::InBatch { fault, .. } => return to_python(py, *fault),
        Error::InFile {
            file,
            line,
            id,
            fault,
            kept,
        } => {
            let fault = to_python(py, *fault);
            return located(py, fault, "line", line, id, |place, message| {
                format!("{file} line {line}{place}, {message} ({kept} records before it were kept)")
            });
        }
        _ => fault.to_string(),
    };
    exception(py, &message, class_of(py, &fault))
}

/// The exception class of an engine error and its details. The class has the usual recovery.
fn class_of<'py>(py: Python<'py>, fault: &Error) -> PyResult<(&'static str, Dict<'py>)> {
    Ok(match fault {
        Error::Argument { field, .. } => {
            // A place inside of an argument begins with its name: where.and[1]."data.age".gt
            let end = field.find(['.', '[']).unwrap_or(field.len());
            ("InvalidArgument", dict!(py; field: &field[..end], path: field))
        }
        Error::TooLarge { field, .. } => ("RecordTooLarge", dict!(py; field: field)),
        Error::IdTaken(id) => ("IdTaken", dict!(py; field: "id", id: id)),
        Error::OutOfScope(id) => ("OutOfScope", dict!(py; field: "id", id: id)),
        Error::ScopeRequired(level) => ("ScopeRequired", dict!(py; field: level)),
        Error::UnknownRecord(id) => ("UnknownRecord", dict!(py; id: id)),
        Error::Bound { space, model, dim, .. } => {
            ("EmbeddingMismatch", dict!(py; space: space, model: model, dim: dim))
        }
        Error::NoSpace { name, known } => ("UnknownSpace", dict!(py; space: name, known: known)),
        Error::HistoryUnavailable { first_seq, .. } => ("HistoryUnavailable", dict!(py; first_seq: first_seq)),
        Error::Refused { path, instead, .. } => ("LogCorrupted", dict!(py; path: path, recovery: instead)),
        Error::Corrupted(damage) => {
            let recovery = match damage.kind {
                DamageKind::LogMissing => {
                    "Bring the log back, or restore() a backup; repair() starts again from what is proved, \
                     repair(unproven=True) from all that is left. Then open the store again."
                }
                DamageKind::BaseAltered | DamageKind::BaseMissing | DamageKind::SnapshotRefused => {
                    "Run verify() for the whole list, then restore() a backup; repair(unproven=True) takes what \
                     nothing proves, and marks it."
                }
                _ => "Run verify() for the whole list, then repair() or restore() a backup.",
            };
            let kind = damage.kind.word();
            (
                "LogCorrupted",
                dict!(py, damage; path, offset, seq; damage: kind, recovery: recovery),
            )
        }
        Error::OutOfMemory => ("OutOfMemory", PyDict::new(py)),
        Error::Busy { .. } => ("Busy", PyDict::new(py)),
        Error::Limit { .. } => ("Limit", PyDict::new(py)),
        Error::Locked { .. } => ("StoreLocked", PyDict::new(py)),
        Error::ReadOnly { .. } => ("StoreReadOnly", PyDict::new(py)),
        Error::Closed | Error::Forked => ("StoreClosed", PyDict::new(py)),
        Error::InProgress => ("CallInProgress", PyDict::new(py)),
        Error::Poisoned { .. } => ("StorePoisoned", PyDict::new(py)),
        // The engine may get errors that this binding does not know.
        _ => ("ChronoError", PyDict::new(py)),
    })
}

/// An exception of `chronomemory.errors`.
fn exception(py: Python<'_>, message: &str, class: PyResult<(&str, Dict<'_>)>) -> PyErr {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let made = class.and_then(|(name, details)| {
        let errors = ERRORS.get_or_try_init(py, || PyModule::import(py, "chronomemory.errors").map(Bound::unbind))?;
        let class = errors.bind(py).getattr(name)?.cast_into::<PyType>()?;
        Ok(PyErr::from_value(class.call((message,), Some(&details))?))
    });
    made.unwrap_or_else(|fault| fault)
}

/// `InvalidRecord` for one field.
pub fn invalid(py: Python<'_>, field: &str, reason: &str) -> PyErr {
    invalid_at(py, field, field, reason)
}

/// `InvalidRecord` for a place inside of a field.
pub fn invalid_at(py: Python<'_>, field: &str, path: &str, reason: &str) -> PyErr {
    let details = || Ok(dict!(py; field: field, path: path));
    exception(
        py,
        &said(path, reason),
        details().map(|details| ("InvalidRecord", details)),
    )
}

/// `InvalidArgument`: what an argument must be or have, and what was given.
pub fn must(field: &str, need: &str, given: &Object<'_>) -> PyErr {
    to_python(given.py(), Error::must(field, need, shown(given)))
}

/// `InvalidArgument` for a word that is none of the choices.
pub fn bad_choice(py: Python<'_>, name: &str, given: &str, choices: &str) -> PyErr {
    to_python(py, Error::must(name, format!("be {choices}"), format!("{given:?}")))
}

/// A plain value as a message shows it, or else the name of its class.
pub fn shown(given: &Object<'_>) -> String {
    let is_plain = given.is_none()
        || given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.is_instance_of::<PyInt>()
        || given.is_instance_of::<PyFloat>();
    match given.repr() {
        _ if !is_plain => {
            let name = given.get_type().name();
            name.map_or_else(|_| "something else".to_owned(), |name| name.to_string())
        }
        Err(_) => "a number that is too long to show".to_owned(),
        Ok(text) => match text.to_string_lossy() {
            short if short.chars().count() <= SHOWN_CHARS => short.into_owned(),
            long => long.chars().take(SHOWN_CHARS - 1).chain(['…']).collect(),
        },
    }
}

/// The id of a record or a dict like one, if it is a string.
pub fn id_of(record: &Object<'_>) -> Option<String> {
    let id = record.getattr("id").or_else(|_| record.get_item("id"));
    id.and_then(|id| id.extract()).ok()
}

/// Adds the row of a batch and the id of its record to a refusal of a value; other errors stay as they are.
pub fn at_row(py: Python<'_>, fault: PyErr, row: usize, id: Option<String>) -> PyErr {
    let id = id.filter(|id| !id.is_empty());
    match fault.value(py).hasattr("row") {
        Ok(true) => located(py, fault, "row", row as u64, id, |place, message| {
            format!("row {row}{place}, {message}")
        }),
        Ok(false) => fault,
        Err(other) => other,
    }
}

/// Adds the place of a refused record to an error: as an attribute and, by way of `tell`, to its message.
fn located(
    py: Python<'_>,
    fault: PyErr,
    name: &str,
    place: u64,
    id: Option<String>,
    tell: impl FnOnce(String, String) -> String,
) -> PyErr {
    let update = || -> PyResult<()> {
        let value = fault.value(py);
        let mut message = value.str()?.to_string_lossy().into_owned();
        let mut shown = String::new();
        if let Some(id) = &id {
            // The message names the id once.
            if let Some(rest) = message.strip_prefix(&format!("id {id:?}:")) {
                message = format!("id:{rest}");
            }
            shown = format!(" (id {id:?})");
        }
        value.setattr("args", (tell(shown, message),))?;
        value.setattr(name, place)?;
        value.setattr("id", &id)
    };
    update().err().unwrap_or(fault)
}

fn os_error(path: &Path, fault: &std::io::Error) -> PyErr {
    if let Some(stranger) = UnexpectedEntry::in_error(fault) {
        let path = stranger.path().as_os_str().to_owned();
        return PyOSError::new_err((stranger.code(), stranger.to_string(), path));
    }
    match fault.raw_os_error() {
        Some(code) => {
            let text = fault.to_string();
            let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((code, reason, path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("{}: {fault}", path.display())),
    }
}
