//! The way of a call into the engine and back: it lets go of the interpreter and turns errors into exceptions.
//!
//! This is the only place that lets go of the interpreter.

use std::io::ErrorKind;
use std::path::Path;

use chronomemory::{DamageKind, Error, Stranger, check_memory, could_have, said};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyString, PyType};

/// So much of a value is shown.
const SHOWN_LETTERS: usize = 60;

/// Runs engine work without the interpreter and turns its errors into Python's.
pub fn enter<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    let checked = || {
        check_memory()?;
        work()
    };
    enter_to_leave(py, checked)
}

/// The same for work that lets go of things: it is done also where there is hardly any memory left.
pub fn enter_to_leave<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    py.detach(work).map_err(|fault| to_python(py, fault))
}

/// Whether Python will find memory for so many bytes that become objects. Where it does not, much of what asks it for an
/// object can only panic.
pub fn check_room(py: Python<'_>, bytes: usize) -> PyResult<()> {
    could_have(bytes).map_err(|fault| to_python(py, fault.into()))
}

/// Runs engine work that reports its progress. A callback that raises stops nothing; its error is raised at the end.
pub fn enter_reporting<T: Send>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(u64, u64)) -> Result<T, Error> + Send,
) -> PyResult<T> {
    enter_stoppable(py, callback, |report| {
        work(&mut |done, total| {
            report(done, total);
        })
    })
}

/// The same for work that can stop: the report returns false once the callback or a signal handler has raised.
pub fn enter_stoppable<T: Send>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(u64, u64) -> bool) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let mut raised: Option<PyErr> = None;
    let outcome = enter(py, || {
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

/// The exception for an engine error, under its public path.
pub fn to_python(py: Python<'_>, fault: Error) -> PyErr {
    let message = fault.to_string();
    let made = match fault {
        Error::Io { path, source } if source.kind() == ErrorKind::OutOfMemory => plain(
            py,
            "OutOfMemory",
            &format!("{}: there is not enough memory to read it", path.display()),
            "Give the process more memory; nothing was changed.",
        ),
        Error::OutOfMemory => plain(
            py,
            "OutOfMemory",
            &message,
            "Give the process more memory, or ask for less at a time; nothing was changed.",
        ),
        Error::Io { path, source } => return os_error(&path, &source),
        Error::Invalid { field, reason } => return invalid(py, &field, &reason),
        Error::Argument { field, .. } => raise(py, "InvalidArgument", &message, |details| {
            // A place inside of an argument begins with its name: where.and[1]."data.age".gt
            let end = field.find(['.', '[']).unwrap_or(field.len());
            details.set_item("field", &field[..end])?;
            details.set_item("path", &field)?;
            details.set_item("recovery", "Correct the argument and call again.")
        }),
        Error::TooLarge { field, .. } => of_field(
            py,
            "RecordTooLarge",
            &field,
            &message,
            "Divide the record into several: a line of the log holds at most 16 MiB.",
        ),
        Error::Busy { .. } => plain(
            py,
            "Busy",
            &message,
            "Try again in a moment: nothing is wrong with the call or the store.",
        ),
        Error::Limit { .. } => plain(
            py,
            "Limit",
            &message,
            "Go on in another store or space: this one cannot become larger. All that it holds stays readable.",
        ),
        Error::Locked { .. } => plain(
            py,
            "StoreLocked",
            &message,
            "Wait for the other writer, or raise lock_timeout; never remove the lock file, or two writers destroy each \
             other's work.",
        ),
        Error::ReadOnly { .. } => plain(
            py,
            "StoreReadOnly",
            &message,
            "Restore it into a project: store.restore(path), or 'chronomemory restore'.",
        ),
        Error::Closed => plain(py, "StoreClosed", &message, "Open the store again."),
        Error::Forked => plain(py, "StoreClosed", &message, "Open the store in this process."),
        Error::InProgress => plain(
            py,
            "CallInProgress",
            &message,
            "Use the store when the call has come back, or open it a second time.",
        ),
        Error::Poisoned { .. } => plain(
            py,
            "StorePoisoned",
            &message,
            "Check the disk, then open the store again: what was acknowledged before is still read.",
        ),
        Error::Refused { path, instead, .. } => raise(py, "LogCorrupted", &message, |details| {
            details.set_item("path", path)?;
            details.set_item("recovery", instead)
        }),
        Error::Unsupported { recovery, .. } => plain(py, "FormatUnsupported", &message, recovery),
        Error::IdTaken { id } => of_id(
            py,
            "IdTaken",
            &id,
            &message,
            "Leave the id out, or use that of handle.id(name) in Python: no other scope can take it.",
        ),
        Error::ScopeRequired { level } => raise(py, "ScopeRequired", &message, |details| {
            details.set_item("field", level)?;
            details.set_item(
                "recovery",
                "Write through store.scoped(…) with that name; through store.public() what is for all.",
            )
        }),
        // Who wrote a batch of rows says so before; of others a place among their changes means nothing.
        Error::InBatch { fault, .. } => return to_python(py, *fault),
        Error::InFile {
            file,
            line,
            id,
            fault,
            kept,
        } => return in_file(py, (&file, line, kept), id.as_deref(), *fault),
        Error::UnknownRecord { id } => of_record(
            py,
            "UnknownRecord",
            &id,
            &message,
            "Look the id up with query() or search(), or write the record first.",
        ),
        Error::OutOfScope { id } => of_id(
            py,
            "OutOfScope",
            &id,
            &message,
            "Change it through a handle of the scope that it carries.",
        ),
        Error::Bound { space, model, dim, .. } => raise(py, "EmbeddingMismatch", &message, |details| {
            details.set_item("space", space)?;
            details.set_item("model", model)?;
            details.set_item("dim", dim)?;
            details.set_item("recovery", "Embed with the bound model, or name another space.")
        }),
        Error::NoSpace { name, known } => raise(py, "UnknownSpace", &message, |details| {
            details.set_item("space", name)?;
            details.set_item("known", known)?;
            details.set_item(
                "recovery",
                "Attach an embedding to create it, or name one of those there are.",
            )
        }),
        Error::HistoryUnavailable { first_seq, .. } => raise(py, "HistoryUnavailable", &message, |details| {
            details.set_item("first_seq", first_seq)?;
            details.set_item("recovery", "Ask for a later moment.")
        }),
        Error::Corrupted(damage) => raise(py, "LogCorrupted", &message, |details| {
            details.set_item("path", &damage.path)?;
            details.set_item("offset", damage.offset)?;
            details.set_item("seq", damage.seq)?;
            details.set_item("damage", damage.kind.word())?;
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
            details.set_item("recovery", recovery)
        }),
        // The engine may learn to say more than this binding knows.
        _ => plain(py, "ChronoError", &message, ""),
    };
    made.unwrap_or_else(|fault| fault)
}

/// `InvalidRecord` for one field.
pub fn invalid(py: Python<'_>, field: &str, reason: &str) -> PyErr {
    invalid_at(py, field, field, reason)
}

/// `InvalidRecord` for a place inside of a field.
pub fn invalid_at(py: Python<'_>, field: &str, path: &str, reason: &str) -> PyErr {
    let made = raise(py, "InvalidRecord", &said(path, reason), |details| {
        details.set_item("field", field)?;
        details.set_item("path", path)?;
        details.set_item("recovery", "Correct the value and write it again.")
    });
    made.unwrap_or_else(|fault| fault)
}

/// `InvalidArgument`: what an argument must be or have, and what was given.
pub fn must(field: &str, need: &str, given: &Bound<'_, PyAny>) -> PyErr {
    to_python(given.py(), Error::must(field, need, shown(given)))
}

/// A value if it can be shown in a line, else what kind of thing it is.
pub fn shown(given: &Bound<'_, PyAny>) -> String {
    let is_plain = given.is_none()
        || given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.is_instance_of::<PyInt>()
        || given.is_instance_of::<PyFloat>();
    match given.repr() {
        Ok(spelled) if is_plain => {
            let spelled = spelled.to_string_lossy().into_owned();
            if spelled.chars().count() <= SHOWN_LETTERS {
                return spelled;
            }
            spelled.chars().take(SHOWN_LETTERS - 1).chain(['…']).collect()
        }
        Err(_) if is_plain => "a number that is too long to show".to_owned(),
        _ => given
            .get_type()
            .name()
            .map_or_else(|_| "something else".to_owned(), |name| name.to_string()),
    }
}

/// Says of which row of a batch a refusal is, and which id that has. What is no refusal of a value stays as it is.
pub fn at_row(fault: PyErr, row: usize, record: &Bound<'_, PyAny>) -> PyErr {
    let id = record.getattr("id").or_else(|_| record.get_item("id"));
    let id = id
        .and_then(|id| id.extract::<String>())
        .ok()
        .filter(|id| !id.is_empty());
    at_row_of(record.py(), fault, row, id)
}

/// The same where only the id is known.
pub fn at_row_of(py: Python<'_>, fault: PyErr, row: usize, id: Option<String>) -> PyErr {
    let told = || -> PyResult<()> {
        let value = fault.value(py);
        if !value.hasattr("row")? {
            return Ok(());
        }
        let (shown, message) = placed(value, id.as_deref())?;
        value.setattr("args", (format!("row {row}{shown}, {message}"),))?;
        value.setattr("row", row)?;
        value.setattr("id", &id)
    };
    told().err().unwrap_or(fault)
}

/// An id in brackets, and what is said beside it without naming it once more.
fn placed(value: &Bound<'_, PyAny>, id: Option<&str>) -> PyResult<(String, String)> {
    let message = value.str()?.to_string_lossy().into_owned();
    let Some(id) = id else {
        return Ok((String::new(), message));
    };
    let rest = message.strip_prefix(&format!("id {id:?}:"));
    let message = rest.map_or(message.clone(), |rest| format!("id:{rest}"));
    Ok((format!(" (id {id:?})"), message))
}

/// A refusal of a line in a file: the error of its own, which also says where.
fn in_file(py: Python<'_>, place: (&str, u64, u64), id: Option<&str>, fault: Error) -> PyErr {
    let made = to_python(py, fault);
    let (file, line, kept) = place;
    let told = || -> PyResult<()> {
        let value = made.value(py);
        let (shown, message) = placed(value, id)?;
        let message = format!("{file} line {line}{shown}, {message} ({kept} records before it were kept)");
        value.setattr("args", (message,))?;
        value.setattr("line", line)?;
        value.setattr("id", id)
    };
    told().err().unwrap_or(made)
}

/// Says of what was refused as the content of a record that it was an argument.
pub fn as_argument(py: Python<'_>, fault: PyErr) -> PyErr {
    let said = |fault: &PyErr| -> PyResult<Option<Error>> {
        let value = fault.value(py);
        let Ok(field) = value.getattr("field") else {
            return Ok(None);
        };
        let field: String = field.extract()?;
        let message = value.to_string();
        let reason = message.strip_prefix(&field).unwrap_or(&message);
        Ok(Some(Error::argument(&field, reason.trim_start_matches([':', ' ']))))
    };
    match said(&fault) {
        Ok(Some(argument)) => to_python(py, argument),
        _ => fault,
    }
}

fn of_id(py: Python<'_>, name: &str, id: &str, message: &str, recovery: &str) -> PyResult<PyErr> {
    raise(py, name, message, |details| {
        details.set_item("field", "id")?;
        details.set_item("id", id)?;
        details.set_item("recovery", recovery)
    })
}

fn of_record(py: Python<'_>, name: &str, id: &str, message: &str, recovery: &str) -> PyResult<PyErr> {
    raise(py, name, message, |details| {
        details.set_item("id", id)?;
        details.set_item("recovery", recovery)
    })
}

fn plain(py: Python<'_>, name: &str, message: &str, recovery: &str) -> PyResult<PyErr> {
    raise(py, name, message, |details| details.set_item("recovery", recovery))
}

fn of_field(py: Python<'_>, name: &str, field: &str, message: &str, recovery: &str) -> PyResult<PyErr> {
    raise(py, name, message, |details| {
        details.set_item("field", field)?;
        details.set_item("recovery", recovery)
    })
}

fn raise(
    py: Python<'_>,
    name: &str,
    message: &str,
    fill: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyResult<PyErr> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let errors = ERRORS.get_or_try_init(py, || PyModule::import(py, "chronomemory.errors").map(Bound::unbind))?;
    let details = PyDict::new(py);
    fill(&details)?;
    let class = errors.bind(py).getattr(name)?.cast_into::<PyType>()?;
    Ok(PyErr::from_value(class.call((message,), Some(&details))?))
}

fn os_error(path: &Path, fault: &std::io::Error) -> PyErr {
    if let Some(stranger) = Stranger::in_error(fault) {
        return PyOSError::new_err((
            stranger.code(),
            stranger.to_string(),
            stranger.path().as_os_str().to_owned(),
        ));
    }
    match fault.raw_os_error() {
        Some(code) => {
            let text = fault.to_string();
            let said = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((code, said, path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("{}: {fault}", path.display())),
    }
}

/// A choice that is not one.
pub fn bad_choice(py: Python<'_>, name: &str, given: &str, choices: &str) -> PyErr {
    to_python(py, Error::must(name, format!("be {choices}"), format!("{given:?}")))
}
